"""Price of each rendition of a file, before it is made: from its metadata, then from what was measured.

Tokens are what a model pays, bytes what must be fetched from the platform first, seconds about how long it takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from belino.domain.document import DocumentUnit
from belino.domain.media import MediaKind
from belino.domain.outcome import MediaOutcome
from belino.domain.safe_text import clean_mime
from belino.domain.stored import RefRecord
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST, estimate_image_tokens
from belino.media.image.header import DRAWN_MIMES
from belino.media.sniff.hints import UNKNOWN, hints_of
from belino.readers.read import reads

BLOCK_SIDE = 1568
"""Models shrink what is larger themselves, and are paid for it."""
THUMB_SIDE = 256
THUMB_BYTES = 64 * 1024
PDF = "application/pdf"
FRAMES = 6
FRAME_SIDE = 768
SHEET_FRAMES = 9
TEXT_TOKENS = 5_000
"""Told at a time, if nothing else is asked for."""
PAGES_SHOWN = 4
"""Pages that are pictures: so many are shown at a time."""

_BYTES_PER_TOKEN = 4
# About how many bytes a token of text takes in files that hold more than text: pictures, styles, and all compressed.
# A file may differ ten times from it; once it was read, its true price is told.
_OF_TYPE: Mapping[str, int] = {
    PDF: 40,
    "application/epub+zip": 10,
    "message/rfc822": 12,
    "application/vnd.ms-outlook": 100,
    "text/html": 12,
    "application/rtf": 12,
}
_OF_FAMILY: tuple[tuple[str, int], ...] = (
    ("word", 50),
    ("opendocument.text", 50),
    ("spreadsheet", 16),
    ("excel", 30),
    ("presentation", 400),
    ("powerpoint", 400),
    ("opendocument", 100),
    ("ole", 100),
    ("zip", 1_000),
    ("archive", 1_000),
    ("tar", 1_000),
    ("xz", 1_000),
)
_TEXT_MIMES = frozenset({"application/json", "application/xml", "application/x-yaml", "application/toml"})
_FILMS = frozenset({"image/gif"})

_WORDS = 200
"""About what is said beside pages that are shown."""
_FETCHED_A_SECOND = 4_000_000
_SECONDS = {"image": 0.2, "thumb": 0.1, "text": 0.1, "frames": 0.6, "sheet": 0.8, "file": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a file, from its platform or from its bytes."""

    mime: str
    kind: MediaKind = MediaKind.DOCUMENT
    size: int | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    held: bool = False
    text_tokens: int | None = None
    """Known once it was read."""
    unit: DocumentUnit | None = None
    parts: int | None = None
    """Pages, sheets, slides …"""
    scans: int = 0
    """Pages without text: whoever asks for the text is shown them."""

    @property
    def dimensions(self) -> tuple[int, int] | None:
        return (self.width, self.height) if self.width and self.height else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a rendition costs."""

    tokens: int
    bytes: int = 0
    seconds: float = 0.0
    exact: bool = True
    """False: guessed from the size of a file that nobody has looked into yet, or the most that it can be."""

    def __str__(self) -> str:
        return f"{self.tokens}" if self.exact else f"~{self.tokens}"


def facts_of(record: RefRecord) -> Facts:
    """What a ref says of its file."""
    ref = record.ref
    return Facts(
        mime=said_type(ref.mime, ref.file_name),
        kind=ref.kind,
        size=ref.size,
        width=ref.width,
        height=ref.height,
        seconds=ref.duration,
        held=record.outcome is MediaOutcome.HELD,
    )


def said_type(mime: str, name: str | None) -> str:
    """The type a file is sent under; where that says nothing, the one its name promises."""
    plain = clean_mime(mime)
    return hints_of(name, mime).named or plain if plain in ("", UNKNOWN) else plain


def price(record: RefRecord, *, side: int = BLOCK_SIDE) -> dict[str, Price]:
    """What the renditions of a ref cost, as far as its platform tells."""
    return prices(facts_of(record), side=side)


def prices(facts: Facts, *, side: int = BLOCK_SIDE, sees_images: bool = True) -> dict[str, Price]:
    """What each rendition of a file costs, by its name in `fetch_media`; pictures are at most `side` pixels long."""
    facts = facts if sees_images else replace(facts, scans=0)
    tokens: dict[str, tuple[int, bool]] = {}
    if is_picture(facts.kind, facts.mime):
        tokens["image"] = picture_tokens(facts.dimensions, side), facts.dimensions is not None
        tokens["thumb"] = picture_tokens(facts.dimensions, THUMB_SIDE), facts.dimensions is not None
    if has_text(facts.mime) and (facts.size if facts.text_tokens is None else facts.text_tokens or facts.scans):
        tokens["text"] = _text_tokens(facts, side)
    if clean_mime(facts.mime) == PDF:
        tokens["image"] = picture_tokens(None, side), True  # a page
        tokens["thumb"] = picture_tokens(None, THUMB_SIDE), True
    if is_film(facts):
        tokens["frames"] = FRAMES * picture_tokens(facts.dimensions, FRAME_SIDE), facts.dimensions is not None
        tokens["sheet"] = IMAGE_TOKENS_AT_MOST, False
    tokens["file"] = 0, True
    fetched = 0 if facts.held else facts.size or 0
    return {
        form: Price(
            tokens=count,
            bytes=fetched,
            seconds=round(_SECONDS[form] + fetched / _FETCHED_A_SECOND, 1),
            exact=exact,
        )
        for form, (count, exact) in tokens.items()
    }


def is_picture(kind: MediaKind, mime: str) -> bool:
    """Whether a file is said to be a picture that can be shown; a moving sticker is none."""
    plain = clean_mime(mime)
    return plain in DRAWN_MIMES or (not plain and kind in (MediaKind.IMAGE, MediaKind.STICKER))


def is_film(facts: Facts) -> bool:
    """Whether a file is said to move."""
    plain = clean_mime(facts.mime)
    return plain.startswith("video/") or plain in _FILMS or (not plain and facts.kind is MediaKind.VIDEO)


def is_sound(mime: str) -> bool:
    """Whether a file is said to be heard and not seen."""
    return clean_mime(mime).startswith("audio/")


def has_text(mime: str) -> bool:
    """Whether text, or a listing, can be had from files of this type."""
    return reads(clean_mime(mime)) or is_text(mime)


def is_text(mime: str) -> bool:
    """Whether a type is one an agent reads as text."""
    plain = clean_mime(mime)
    return plain.startswith("text/") or plain in _TEXT_MIMES or plain.endswith(("+json", "+xml"))


def within(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture once its longer side is no longer than `side`."""
    longer = max(width, height)
    if longer <= side:
        return width, height
    return max(1, round(width * side / longer)), max(1, round(height * side / longer))


def picture_tokens(dimensions: tuple[int, int] | None, side: int) -> int:
    """What a picture costs once it is no longer than `side`; of one nobody has measured, the most it can."""
    if dimensions is None:
        return min(IMAGE_TOKENS_AT_MOST, estimate_image_tokens(side, side))
    return estimate_image_tokens(*within(*dimensions, side))


def side_within(tokens: int, dimensions: tuple[int, int] | None, most: int) -> int:
    """The longest side, `most` at most, at which a picture costs no more than these tokens; at least 1."""
    if picture_tokens(dimensions, most) <= tokens:
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if picture_tokens(dimensions, middle) <= tokens:
            low = middle
        else:
            high = middle
    return low


def _text_tokens(facts: Facts, side: int) -> tuple[int, bool]:
    if facts.text_tokens is not None:
        page = picture_tokens(None, side)
        fit = max(0, TEXT_TOKENS - _WORDS - facts.text_tokens) // page
        return facts.text_tokens + min(facts.scans, PAGES_SHOWN, fit) * page, not facts.scans
    return -(-(facts.size or 0) // _bytes_per_token(clean_mime(facts.mime))), False


def _bytes_per_token(mime: str) -> int:
    if (known := _OF_TYPE.get(mime)) is not None:
        return known
    if is_text(mime) and not mime.startswith("application/vnd."):
        return _BYTES_PER_TOKEN
    return next((each for word, each in _OF_FAMILY if word in mime), _BYTES_PER_TOKEN)
