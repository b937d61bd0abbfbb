"""Documents: their text, part by part, and the pages of a PDF as pictures; all parsing happens in the sandbox."""

import asyncio
import codecs
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from belino.domain.document import DocumentText, Part, Unit, Unread
from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media.document.parts import NOTE_CHARS, NOTES_AT_MOST, TITLE_CHARS, CannotRead, Wish

if TYPE_CHECKING:
    from belino.media.image.images import Fitted, Runs

MAX_CHARS = 2_000_000
PARTS_AT_MOST = 10_000
PAGE_SIDE_AT_MOST = 4_096

_OFFICE = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"
_MS = "application/vnd.ms"
# Module of this folder → the types it reads, in the sniffer's spelling.
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
        f"{_OFFICE}.spreadsheetml.sheet", f"{_OFFICE}.spreadsheetml.template", f"{_MS}-excel",
        f"{_MS}-excel.sheet.macroenabled.12", f"{_MS}-excel.template.macroenabled.12",
        f"{_MS}-excel.addin.macroenabled.12", f"{_MS}-excel.sheet.binary.macroenabled.12",
        f"{_ODF}.spreadsheet", f"{_ODF}.spreadsheet-template",
    ),
    "opendocument": (
        f"{_ODF}.text", f"{_ODF}.text-template", f"{_ODF}.text-master", f"{_ODF}.presentation",
        f"{_ODF}.presentation-template", f"{_ODF}.graphics", f"{_ODF}.graphics-template",
        "application/vnd.sun.xml.writer", "application/vnd.sun.xml.impress",
    ),
    "word97": ("application/msword",),
    "slides97": (f"{_MS}-powerpoint",),
    "ole": ("application/x-ole-storage",),
    "tables": ("text/csv", "text/tab-separated-values"),
    "markup": ("text/html", "application/xhtml+xml"),
    "book": ("application/epub+zip",),
    "rtf": ("application/rtf",),
    "mail": ("message/rfc822", "application/vnd.ms-outlook"),
    "archive": (
        "application/zip", "application/java-archive", "application/vnd.android.package-archive",
        "application/x-xpinstall", "application/vnd.comicbook+zip", "application/vnd.google-earth.kmz",
        "application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz",
        "application/x-7z-compressed",
    ),
    "plain": (
        "text/plain", "text/markdown", "application/json", "application/x-ndjson", "application/xml", "image/svg+xml",
        "application/rss+xml", "application/atom+xml",
        "application/yaml", "application/toml", "application/sql", "application/x-subrip", "text/calendar",
        "text/vcard", "text/vtt", "application/vnd.apple.mpegurl", "application/postscript", "image/x-xpixmap",
        "application/pgp-keys", "application/pgp-signature", "application/pgp-encrypted", "application/x-pem-file",
        "application/x-x509-ca-cert", "image/vnd.dxf", "image/x-xbitmap",
    ),
}  # fmt: skip
_MODULES: Mapping[str, str] = MappingProxyType({mime: module for module, ms in _BY_MODULE.items() for mime in ms})

READS = frozenset(_MODULES)
"""The types we get text or a listing from; other kinds of text are read as plain text."""

_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKABLE = frozenset({"word", "slides", "sheets"})
_STRING = r'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
# Looked at before it is parsed: an enemy's JSON could be a million little lists.
_PART = re.compile(rf"\[\d{{1,9}}, {_STRING}, {_STRING}\]\n?")
_HEAD_BYTES = 64 * 1024
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def reads(mime: str) -> bool:
    """Whether we get text or a listing from files of this type."""
    return _module(mime) is not None


def _module(mime: str) -> str | None:
    if (module := _MODULES.get(mime)) is not None:
        return module
    return "plain" if mime.startswith("text/") or mime.endswith(("+json", "+xml")) else None


class Documents:
    """Asks the sandbox, and believes only what it can check."""

    def __init__(self, sandbox: "Runs", scratch: Path) -> None:
        self._sandbox = sandbox
        self._scratch = scratch

    async def read(
        self,
        blob: Blob,
        *,
        mime: str,
        name: str = "",
        parts: tuple[int, int] | None = None,
        max_chars: int = MAX_CHARS,
    ) -> DocumentText:
        """The text of the parts from first to last, or why there is none; raises only when the sandbox fails."""
        if not reads(mime):
            return nothing(Unread.UNSUPPORTED, f"belino finds no text in files of type {mime[:100]}")
        first, last = parts if parts is not None else (1, None)
        options = {"mime": mime, "name": name[:255], "first": first, "last": last, "max_chars": max_chars}
        output = self._output("text")
        try:
            await self._sandbox.run("document.read", blob.path, options, output=output)
            return await asyncio.to_thread(_taken, output, max_chars)
        except MediaRefused as error:
            return nothing(Unread.UNREADABLE, str(error))
        finally:
            output.unlink(missing_ok=True)

    async def page(self, blob: Blob, number: int, *, max_bytes: int, max_side: int) -> "Fitted":
        """A page of a PDF as a picture; MediaRefused if there is no such page, or it cannot be drawn."""
        from belino.media.image.images import Images

        drawn = self._output("page")
        options = {"number": number, "max_side": max(1, min(max_side, PAGE_SIDE_AT_MOST))}
        try:
            await self._sandbox.run("document.page", blob.path, options, output=drawn)
            # It was an enemy's page: the drawing goes through the sandbox like every other picture.
            picture = Blob(sha256=drawn.name, mime="image/png", size=drawn.stat().st_size, path=drawn)
            return await Images(self._sandbox, self._scratch).fit(picture, max_bytes=max_bytes, max_side=max_side)
        finally:
            drawn.unlink(missing_ok=True)

    def _output(self, kind: str) -> Path:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._scratch / f"{kind}-{os.urandom(8).hex()}"


def nothing(unread: Unread, reason: str) -> DocumentText:
    """A document without a word of text, and why."""
    return DocumentText(unit=Unit.PART, total=0, unread=unread, reason=reason)


def pages_without_text(text: DocumentText) -> tuple[int, ...]:
    """Pages that were read and say nothing: scans, most likely, which can be looked at as pictures."""
    return tuple(part.number for part in text.parts if text.unit is Unit.PAGE and not part.text)


def _taken(output: Path, max_chars: int) -> DocumentText:
    """What the child wrote, line by line: it may be in an enemy's hands."""
    with output.open("rb") as file:
        head = _head(file.readline(_HEAD_BYTES))
        parts: list[Part] = []
        room, last = max_chars, 0
        # A character takes six bytes at most, `\u0000`; a title and the marks around it come on top.
        while line := file.readline(6 * (room + TITLE_CHARS) + 64):
            part = _part(line)
            room -= len(part.text)
            if not last < part.number <= head.total or room < 0 or len(parts) >= PARTS_AT_MOST:
                raise _improper()
            last = part.number
            parts.append(part)
    return DocumentText(
        unit=head.unit,
        total=head.total,
        parts=tuple(parts),
        unread=head.unread if not any(part.text for part in parts) else None,
        reason=head.reason,
        notes=head.notes,
    )


def _head(line: bytes) -> DocumentText:
    try:
        told = json.loads(line)
        match told:
            case {"unit": str(unit), "total": int(total), "unread": unread, "reason": str(reason), "notes": [*notes]}:
                if 0 <= total < 10**9 and len(notes) <= NOTES_AT_MOST and all(isinstance(note, str) for note in notes):
                    return DocumentText(
                        unit=Unit(unit),
                        total=int(total),
                        unread=Unread(unread) if unread is not None else None,
                        reason=_text(reason[:NOTE_CHARS]),
                        notes=tuple(_text(note[:NOTE_CHARS]) for note in notes),
                    )
    except (ValueError, RecursionError):
        pass
    raise _improper()


def _part(line: bytes) -> Part:
    try:
        written = line.decode()
        if _PART.fullmatch(written):
            number, title, text = json.loads(written)
            return Part(number=number, title=_text(title[:TITLE_CHARS]), text=_text(text))
    except ValueError:
        pass
    raise _improper()


def _improper() -> MediaRefused:
    return MediaRefused("reading it gave no proper answer")


def _text(text: str) -> str:
    return _NOT_TEXT.sub("\ufffd", text)


# What follows runs in the sandbox's child.


def prepare() -> None:
    """Import what the jobs need; in the child it would be too late."""
    codecs.lookup("cp437")  # of names in a zip
    for name in _BY_MODULE:
        # Without one reader's library, the others and every picture are still decoded.
        with suppress(ImportError):
            module = import_module(f"{__name__}.{name}")
            getattr(module, "prepare", lambda: None)()


def read(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the text of `source` to `target`: a line about all of it, then a line for each part."""
    wish = Wish(**options)
    with os.fdopen(os.dup(source), "rb") as file, os.fdopen(os.dup(target), "wb") as writer:
        _write(writer, _read(file, wish))
    return {}


def page(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Draw page `number` of the PDF in `source`, its longer side `max_side`, as a PNG."""
    from belino.media.document import pdf

    try:
        with os.fdopen(os.dup(source), "rb") as file, os.fdopen(os.dup(target), "wb") as writer:
            pdf.draw(file, writer, number=options["number"], max_side=options["max_side"])
    except CannotRead as error:
        raise MediaRefused(error.reason) from error
    return {}


def _read(file: BinaryIO, wish: Wish) -> DocumentText:
    module = _module(wish.mime)
    # With a password on it, an office file of any kind is an old container with the real one inside.
    if module in _LOCKABLE and wish.mime != f"{_MS}-excel" and file.read(8) == _OLE_START:
        module = "ole"
    file.seek(0)
    try:
        found: DocumentText = import_module(f"{__name__}.{module}").read(file, wish)
    except CannotRead as error:
        return nothing(error.unread, error.reason)
    except ImportError:
        return nothing(Unread.UNSUPPORTED, f"belino finds no text in files of type {wish.mime}")
    return found


def _write(writer: BinaryIO, text: DocumentText) -> None:
    head = {
        "unit": text.unit,
        "total": text.total,
        "unread": text.unread,
        "reason": text.reason[:NOTE_CHARS],
        "notes": list(text.notes),
    }
    lines = [head, *([part.number, part.title, part.text] for part in text.parts)]
    for line in lines:
        writer.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
