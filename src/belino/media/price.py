"""Price of each rendition of a file, before it is made: from its metadata, then from measurements.

Tokens are the model's cost, bytes must first be fetched from the platform, seconds are the approximate duration.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from belino.domain.media import (
    TEXT_AND_PICTURES,
    AcceptedMedia,
    AudioFormats,
    DocumentFormats,
    DocumentUnit,
    MediaKind,
    MediaRef,
)
from belino.domain.outcome import MediaOutcome
from belino.domain.safe_text import clean_mime
from belino.domain.stored import RefRecord
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST, estimate_image_tokens
from belino.media.image.header import DRAWN_MIMES
from belino.media.sniff.hints import UNKNOWN, hints_of
from belino.readers.read import reads

BLOCK_SIDE = 1568
"""Models shrink larger pictures themselves, and charge for them."""
THUMB_SIDE = 256
THUMB_BYTES = 64 * 1024
PDF = "application/pdf"
FRAMES = 6
FRAME_SIDE = 768
SHEET_FRAMES = 9
TEXT_TOKENS = 5_000
"""Tokens at a time by default."""
PAGES_SHOWN = 4
"""Scanned pages that are shown at a time."""

_BYTES_PER_TOKEN = 4
# Approximate bytes per token of text in files that hold more than text: pictures, styles, and all compressed. A file
# may differ from it tenfold; once it was read, its true price is used.
_OF_TYPE: Mapping[str, int] = {
    PDF: 40,
    "application/epub+zip": 10,
    "message/rfc822": 12,
    "application/mbox": 12,
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
    ("rar", 1_000),
    ("vnd.apple", 400),
    ("xz", 1_000),
)
_TEXT_MIMES = frozenset({"application/json", "application/xml", "application/x-yaml", "application/toml"})
_FILMS = frozenset({"image/gif"})

_WORDS = 200
"""Approximate cost of the text beside shown pages."""
_TOKENS_A_SECOND = 4
"""Of speech, with the times of its subtitles."""
_FETCHED_A_SECOND = 4_000_000
_PAGE_BYTES = 50_000
"""Approximate size of a page, for a PDF whose pages are not counted yet."""
_SPEECH_BYTES = 4_000
"""Approximate bytes of a second of speech, for a sound whose length is not known."""
_SECONDS = {
    "image": 0.2, "thumb": 0.1, "text": 0.1, "frames": 0.6, "sheet": 0.8, "document": 0.1, "audio": 0.3, "file": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a file, from its platform or from its bytes."""

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
    subtitled: bool = False
    """Whether a video has subtitles: they are its text."""
    soundless: bool = False
    """Whether a video is known to have no sound."""
    still: bool = False
    """Whether nothing moves in an animation's format."""
    note: str = ""
    """What to know about a picture of it, once one was made; the name of a PictureNote."""
    unseen: str = ""
    """Why no picture of it can be made, once that was tried."""
    scans: int = 0
    """Pages that are pictures: a request for the text shows them, or has them recognised."""
    recogniser: str = ""
    """The key of the reader that comes first for scanned pages, when some were recognised."""
    recognised: int = 0
    """Scanned pages whose text is stored."""
    recognised_tokens: int = 0
    blank: int = 0
    """Recognised pages without text: an agent that sees pictures is shown them."""

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
    """False: estimated from the size of an unread file, or the maximum."""
    usd: float | None = 0.0
    """What a provider charges for it; None if that is unknown."""

    def __str__(self) -> str:
        tokens = f"{self.tokens}" if self.exact else f"~{self.tokens}"
        if self.usd == 0.0:
            return tokens
        return f"{tokens} and {'an unknown price' if self.usd is None else f'${self.usd:.4f}'}"


def facts_of(record: RefRecord) -> Facts:
    """The facts of a ref's file."""
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


def known_price(ref: MediaRef, *, side: int | None) -> tuple[str, int] | None:
    """The main rendition of a media item and its tokens, if the platform's metadata tell; no picture without a side."""
    mime = said_type(ref.mime, ref.file_name)
    if side is not None and ref.width and ref.height and is_picture(ref.kind, mime):
        return "image", picture_tokens((ref.width, ref.height), side)
    return ("text", -(-ref.size // _BYTES_PER_TOKEN)) if ref.size and is_text(mime) else None


def said_type(mime: str, name: str | None) -> str:
    """The declared type of a file; without a useful one, the type of its name."""
    plain = clean_mime(mime)
    return hints_of(name, mime).named or plain if plain in ("", UNKNOWN) else plain


def price(record: RefRecord, *, side: int = BLOCK_SIDE) -> dict[str, Price]:
    """The cost of a ref's renditions, by its platform's metadata."""
    return prices(facts_of(record), side=side)


def prices(
    facts: Facts, *, side: int = BLOCK_SIDE, sees_images: bool = True, accepts: AcceptedMedia = TEXT_AND_PICTURES
) -> dict[str, Price]:
    """The cost of each rendition of a file, by its name in `fetch_media`; pictures are at most `side` pixels long.

    `accepts` is what the model takes in its own format.
    """
    facts = facts if sees_images else replace(facts, scans=0)
    tokens: dict[str, tuple[int, bool]] = {}
    if is_picture(facts.kind, facts.mime) and not facts.unseen:
        tokens["image"] = picture_tokens(facts.dimensions, side), facts.dimensions is not None
        tokens["thumb"] = picture_tokens(facts.dimensions, THUMB_SIDE), facts.dimensions is not None
    if (has_text(facts.mime) or facts.subtitled) and (
        facts.size if facts.text_tokens is None else facts.text_tokens or facts.scans
    ):
        tokens["text"] = _text_tokens(facts, side)
    if clean_mime(facts.mime) == PDF:
        tokens["image"] = picture_tokens(None, side), True  # a page
        tokens["thumb"] = picture_tokens(None, THUMB_SIDE), True
    if is_film(facts) and not (facts.unseen or facts.still):
        tokens["frames"] = FRAMES * picture_tokens(facts.dimensions, FRAME_SIDE), facts.dimensions is not None
        tokens["sheet"] = IMAGE_TOKENS_AT_MOST, False
    if accepts.documents is not None and _is_taken(facts, accepts.documents):
        tokens["document"] = document_tokens(facts, accepts.documents), False
    if accepts.audio is not None and is_heard(facts, accepts.audio):
        tokens["audio"] = audio_tokens(facts.seconds, facts.size, accepts.audio), facts.seconds is not None
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


def document_tokens(facts: Facts, formats: DocumentFormats) -> int:
    """What a document costs a model that reads it in its own format."""
    pages = facts.parts or max(1, (facts.size or 0) // _PAGE_BYTES)
    text = facts.text_tokens if facts.text_tokens is not None else (facts.size or 0) // _OF_TYPE[PDF]
    return pages * formats.page_tokens + (text if formats.charges_text else 0)


def audio_tokens(seconds: float | None, size: int | None, formats: AudioFormats) -> int:
    """What a sound costs a model that hears it."""
    lasts = seconds if seconds is not None else (size or 0) / _SPEECH_BYTES
    return max(1, math.ceil(lasts * formats.second_tokens))


def is_heard(facts: Facts, formats: AudioFormats) -> bool:
    """Whether a model hears a file itself, as far as is known of it."""
    is_voice = facts.kind in (MediaKind.VOICE, MediaKind.AUDIO) and not clean_mime(facts.mime)
    return (is_sound(facts.mime) or is_voice) and (facts.seconds or 0) <= formats.max_seconds


def _is_taken(facts: Facts, formats: DocumentFormats) -> bool:
    is_small = (facts.size or 0) <= formats.max_bytes and (facts.parts or 0) <= formats.max_pages
    return clean_mime(facts.mime) in formats.mimes and is_small


def is_picture(kind: MediaKind, mime: str) -> bool:
    """Whether a file is declared as a picture that can be shown; an animated sticker is not."""
    plain = clean_mime(mime)
    return plain in DRAWN_MIMES or (not plain and kind in (MediaKind.IMAGE, MediaKind.STICKER))


def is_film(facts: Facts) -> bool:
    """Whether a file is declared as a video or animation."""
    plain = clean_mime(facts.mime)
    return plain.startswith("video/") or plain in _FILMS or (not plain and facts.kind is MediaKind.VIDEO)


def is_sound(mime: str) -> bool:
    """Whether a file is declared as audio."""
    return clean_mime(mime).startswith("audio/")


def has_text(mime: str) -> bool:
    """Whether files of this type have a text or a listing."""
    return reads(clean_mime(mime)) or is_text(mime)


def is_text(mime: str) -> bool:
    """Whether agents read this type as text."""
    plain = clean_mime(mime)
    return plain.startswith("text/") or plain in _TEXT_MIMES or plain.endswith(("+json", "+xml"))


def within(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture with its longer side at most `side`."""
    longer = max(width, height)
    if longer <= side:
        return width, height
    return max(1, round(width * side / longer)), max(1, round(height * side / longer))


def picture_tokens(dimensions: tuple[int, int] | None, side: int) -> int:
    """The cost of a picture reduced to `side`; the maximum for one of unknown size."""
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


def with_pages(tokens: int, pages: int, side: int) -> int:
    """The cost of a text with so many pages as pictures beside it, as far as there is room for them."""
    page = picture_tokens(None, side)
    fit = max(0, TEXT_TOKENS - _WORDS - tokens) // page
    return tokens + min(pages, PAGES_SHOWN, fit) * page


def _text_tokens(facts: Facts, side: int) -> tuple[int, bool]:
    if facts.text_tokens is not None:
        return with_pages(facts.text_tokens, facts.scans, side), not facts.scans
    if facts.subtitled:
        return round((facts.seconds or 0.0) * _TOKENS_A_SECOND) + _WORDS, False
    return -(-(facts.size or 0) // _bytes_per_token(clean_mime(facts.mime))), False


def _bytes_per_token(mime: str) -> int:
    if (known := _OF_TYPE.get(mime)) is not None:
        return known
    if is_text(mime) and not mime.startswith("application/vnd."):
        return _BYTES_PER_TOKEN
    return next((each for word, each in _OF_FAMILY if word in mime), _BYTES_PER_TOKEN)
