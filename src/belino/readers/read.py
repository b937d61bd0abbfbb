"""Read a document: the reader of each type, and the jobs that run it in the sandbox's child."""

import codecs
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, BinaryIO

from belino.domain.errors import MediaRefused
from belino.domain.media import DocumentText, Unread
from belino.readers import ole
from belino.readers.parts import NOTE_CHARS, CannotRead, ReadOptions, nothing

_OFFICE = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"
_MS = "application/vnd.ms"
_OLE = "application/x-ole-storage"
# Module of this package → the types it reads, in the sniffer's spelling.
_BY_MODULE: Mapping[str, tuple[str, ...]] = {
    "pdf": ("application/pdf",),
    "word": (
        f"{_OFFICE}.wordprocessingml.document", f"{_OFFICE}.wordprocessingml.template",
        f"{_MS}-word.document.macroenabled.12", f"{_MS}-word.template.macroenabled.12",
    ),
    "slides": (
        f"{_OFFICE}.presentationml.presentation", f"{_OFFICE}.presentationml.slideshow",
        f"{_OFFICE}.presentationml.template", f"{_MS}-powerpoint.presentation.macroenabled.12",
        f"{_MS}-powerpoint.slideshow.macroenabled.12", f"{_MS}-powerpoint.template.macroenabled.12",
    ),
    "sheets": (
        f"{_OFFICE}.spreadsheetml.sheet", f"{_OFFICE}.spreadsheetml.template",
        f"{_MS}-excel.sheet.macroenabled.12", f"{_MS}-excel.template.macroenabled.12",
        f"{_MS}-excel.addin.macroenabled.12",
    ),
    "opendocument": (
        f"{_ODF}.text", f"{_ODF}.text-template", f"{_ODF}.text-master", f"{_ODF}.presentation",
        f"{_ODF}.presentation-template", f"{_ODF}.graphics", f"{_ODF}.graphics-template",
        f"{_ODF}.spreadsheet", f"{_ODF}.spreadsheet-template",
        "application/vnd.sun.xml.writer", "application/vnd.sun.xml.impress",
    ),
    "legacy_word": ("application/msword",),
    "legacy_slides": (f"{_MS}-powerpoint",),
    "legacy_sheets": (f"{_MS}-excel", f"{_MS}-excel.sheet.binary.macroenabled.12"),
    "ole": (_OLE,),
    "html": ("text/html", "application/xhtml+xml"),
    "book": ("application/epub+zip",),
    "rtf": ("application/rtf",),
    "mail": ("message/rfc822", "application/mbox"),
    "outlook": ("application/vnd.ms-outlook",),
    "archive": (
        "application/zip", "application/java-archive", "application/vnd.android.package-archive",
        "application/x-xpinstall", "application/vnd.comicbook+zip", "application/vnd.google-earth.kmz",
        "application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz", "application/vnd.rar",
    ),
    "iwork": (
        "application/vnd.apple.pages", "application/vnd.apple.numbers", "application/vnd.apple.keynote",
    ),
    "plain": (
        "text/plain", "text/markdown", "text/csv", "text/tab-separated-values",
        "application/json", "application/x-ndjson", "application/xml", "image/svg+xml",
        "application/rss+xml", "application/atom+xml",
        "application/yaml", "application/toml", "application/sql", "application/x-subrip", "text/calendar",
        "text/vcard", "text/vtt", "application/vnd.apple.mpegurl", "application/postscript", "image/x-xpixmap",
        "application/pgp-keys", "application/pgp-signature", "application/pgp-encrypted", "application/x-pem-file",
        "application/x-x509-ca-cert", "image/vnd.dxf", "image/x-xbitmap",
    ),
}  # fmt: skip
_MODULES: Mapping[str, str] = MappingProxyType({mime: module for module, ms in _BY_MODULE.items() for mime in ms})

READS = frozenset(_MODULES)
"""The types from which we get text or a listing; other kinds of text are read as plain text."""

_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# With a password, files of these types are OLE containers with the real file inside.
_LOCKABLE = frozenset({
    *_BY_MODULE["word"], *_BY_MODULE["slides"], *_BY_MODULE["sheets"],
    f"{_MS}-excel.sheet.binary.macroenabled.12", f"{_ODF}.spreadsheet", f"{_ODF}.spreadsheet-template",
})  # fmt: skip


def reads(mime: str) -> bool:
    """Whether we get text or a listing from files of this type."""
    return _module(mime) is not None


def _module(mime: str) -> str | None:
    if (module := _MODULES.get(mime)) is not None:
        return module
    return "plain" if mime.startswith("text/") or mime.endswith(("+json", "+xml")) else None


def prepare() -> None:
    """Import what the jobs need before the sandbox forks: its child cannot."""
    codecs.lookup("cp437")  # for names in a zip
    for name in _BY_MODULE:
        # If one reader's library is missing, the other readers and image decoding still work.
        with suppress(ImportError):
            module = import_module(f"{__package__}.{name}")
            getattr(module, "prepare", lambda: None)()


def read(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the text of `source` to `target`: a line about the document, then a line for each part."""
    asked = ReadOptions(**options)
    with os.fdopen(os.dup(source), "rb") as file, os.fdopen(os.dup(target), "wb") as writer:
        write_document(writer, _read(file, asked))
    return {}


def page(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Draw page `number` of the PDF in `source`, its longer side `max_side`, as a PNG."""
    from belino.readers import pdf

    try:
        with os.fdopen(os.dup(source), "rb") as file, os.fdopen(os.dup(target), "wb") as writer:
            pdf.draw(file, writer, number=options["number"], max_side=options["max_side"])
    except CannotRead as error:
        raise MediaRefused(error.reason) from error
    return {}


def _read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    try:
        inside = replace(options, mime=ole.type_of(file)) if _is_container(file, options.mime) else options
        file.seek(0)
        found: DocumentText = import_module(f"{__package__}.{_module(inside.mime)}").read(file, inside)
    except CannotRead as error:
        return nothing(error.unread, error.reason)
    except ImportError:
        return nothing(Unread.UNSUPPORTED, f"belino finds no text in files of type {options.mime}")
    return found


def _is_container(file: BinaryIO, mime: str) -> bool:
    """Whether a file is an OLE container whose content decides its type."""
    return mime == _OLE or (mime in _LOCKABLE and file.read(8) == _OLE_START)


def write_document(writer: BinaryIO, text: DocumentText) -> None:
    """A line about the document, then a line for each part."""
    head = {
        "unit": text.unit,
        "total": text.total,
        "unread": text.unread,
        "reason": text.reason[:NOTE_CHARS],
        "notes": list(text.notes),
    }
    lines = [head, *([part.number, part.title, part.text, part.scanned] for part in text.parts)]
    for line in lines:
        writer.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
