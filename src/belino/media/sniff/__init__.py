"""Sniff the type of bytes by content; names and declared types help only where the content is ambiguous."""

from dataclasses import dataclass
from typing import Literal

from belino.domain.media import MediaKind, kind_of
from belino.media.sniff.archives import OLE_START, TGS, archive_type
from belino.media.sniff.hints import SUFFIXES, UNKNOWN, UNMARKED_SUFFIXES, Found, Hints, hints_of, normal
from belino.media.sniff.magic import STARTS, by_shape, by_start, late_pdf, tiff
from belino.media.sniff.streams import stream_type
from belino.media.sniff.text import read, text_type

HEAD_BYTES = 64 * 1024
"""The part of a file that is examined; 4 KB are enough for nearly all."""

Group = Literal["image", "audio", "video", "file"]

# Declarations that are less exact than the content, yet true: of the container, if the file begins like one …
_VESSELS: dict[str, tuple[bytes, ...]] = {
    "application/zip": (b"PK",),
    "application/gzip": (b"\x1f\x8b",),
    "application/x-ole-storage": (OLE_START,),
    "image/tiff": (b"II*\0", b"MM\0*"),
}
# … or of a related type that programs do not distinguish.
_BOXED = ("video/mp4", "audio/mp4", "video/quicktime", "video/3gpp", "video/3gpp2", "audio/3gpp",
          "audio/3gpp2", "video/x-m4v", "video/x-f4v")  # fmt: skip
_RELATIVES = {
    "application/xml": ("text/html", "image/svg+xml"),
    "image/heif": ("image/heic", "image/avif"),
    "image/heic": ("image/heif",),
    "image/jp2": ("image/jpx", "image/x-jp2-codestream"),
    "image/jpx": ("image/jp2",),
    "video/mp4": _BOXED,
    "audio/mp4": _BOXED,
    "video/quicktime": ("video/mp4",),
    "video/3gpp": (*_BOXED, "audio/amr"),
    "video/3gpp2": _BOXED,
    "audio/3gpp": (*_BOXED, "audio/amr"),
    "audio/3gpp2": _BOXED,
    "video/webm": ("audio/webm", "video/x-matroska"),
    "audio/webm": ("video/webm",),
    "video/x-matroska": ("audio/x-matroska", "video/webm", "audio/webm"),
    "video/x-ms-asf": ("video/x-ms-wmv", "audio/x-ms-wma"),
    "audio/ac3": ("audio/eac3",),
    "audio/amr": ("audio/amr-wb",),
    "audio/ogg": ("video/ogg",),
    "video/ogg": ("audio/ogg",),
    SUFFIXES["exe"]: ("application/x-msdos-program",),
    "message/rfc822": ("application/mbox",),
    "application/x-ndjson": ("application/json",),
    "application/yaml": ("application/json",),
}
_WRITTEN_TOO = frozenset({"application/rtf", "application/postscript"})
_UNMARKED = frozenset(UNMARKED_SUFFIXES.values())
_SHARED_SUFFIXES = frozenset({"dot", "key", "msg", "mts", "numbers", "one", "pages", "pub", "ts"})
"""Ambiguous suffixes: none of them implies a type."""
_TELLING = {mime for _, mime in STARTS} | set(SUFFIXES.values())
"""Types that are recognised by content: a mere claim is not enough for them."""
_WORD_COUNTS = ("application/", "font/", "model/", "chemical/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sniffed:
    """The type of the bytes, and claims about them that are wrong."""

    mime: str
    kind: MediaKind
    group: Group
    exact: bool
    """Determined by the bytes alone."""
    lies: str = ""
    charset: str = ""
    """Of text, where known."""


def sniff(head: bytes, *, name: str | None = None, declared: str | None = None, whole: bool = False) -> Sniffed:
    """The type of a file from its first bytes (`whole`: these are all of them). Takes any bytes, never raises."""
    head = head[:HEAD_BYTES] if len(head) > HEAD_BYTES else head
    hints = hints_of(name, declared)
    (mime, exact), charset = _found(head, hints, whole=whole)
    kind = MediaKind.STICKER if mime == TGS else kind_of(mime)
    lies = _lies(mime, hints, head, charset)
    return Sniffed(mime=mime, kind=kind, group=group_of(mime), exact=exact, lies=lies, charset=charset)


def group_of(mime: str) -> Group:
    """Image, audio or video by type, in any spelling and with any parameters; anything else is a file."""
    match normal(mime).partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "file"


def _found(head: bytes, hints: Hints, *, whole: bool) -> tuple[Found, str]:
    if told := by_start(head):
        return (told, True), ""
    if found := (archive_type(head, hints, whole=whole) or stream_type(head, hints, whole=whole) or tiff(head, hints)):
        return found, ""
    if told := by_shape(head):
        return (told, True), ""
    if late_pdf(head):
        return ("application/pdf", True), ""
    if written := read(head, hints, whole=whole):
        return text_type(written, hints, whole=whole), written.charset
    return _taken_at_its_word(hints), ""


def _taken_at_its_word(hints: Hints) -> Found:
    """Unrecognised bytes: the declared type counts where content could not have confirmed it."""
    for mime in (hints.declared, hints.named):
        if mime in _UNMARKED or (mime.startswith(_WORD_COUNTS) and mime not in _TELLING and not mime.endswith("xml")):
            return mime, False
    return UNKNOWN, False


def _lies(mime: str, hints: Hints, head: bytes, charset: str) -> str:
    if not head:
        return ""
    if hints.declared and not _true(hints.declared, mime, head, charset):
        return f"declared {hints.declared}, is {mime}"
    named = hints.named if hints.suffix not in _SHARED_SUFFIXES else ""
    if named and not _true(named, mime, head, charset):
        return f"named .{hints.suffix}, is {mime}"
    return ""


def _true(said: str, mime: str, head: bytes, charset: str) -> bool:
    if said == mime or mime in _RELATIVES.get(said, ()) or head.startswith(_VESSELS.get(said, ())):
        return True
    if said == "application/xml":
        return mime.endswith("+xml")
    return said == "text/plain" and (bool(charset) or mime in _WRITTEN_TOO)
