"""Preview of a file for a person: its first words, its listing, its waveform or a small picture."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from belino.domain.errors import MediaError, MediaNotFound
from belino.domain.graphemes import cut_before
from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.domain.safe_text import clean_mime, clean_name
from belino.domain.units import NoRange
from belino.media.image.header import DRAWN_MIMES
from belino.media.paging import clean
from belino.media.price import BLOCK_SIDE, PDF, has_text, is_sound
from belino.media.render import Renderer
from belino.media.renditions import CannotRender, Item, notes_of, only_so_many, reason_of, why_unread

if TYPE_CHECKING:
    from belino.media.image.images import Fitted

CHARS = 20_000
"""The most characters of a part that are shown at once."""
PICTURE_BYTES = 1024 * 1024


class Shape(StrEnum):
    """The kinds of preview."""

    TEXT = "text"
    LISTING = "listing"
    WAVEFORM = "waveform"
    POSTER = "poster"
    PICTURE = "picture"
    """For a picture type that browsers do not draw."""
    NONE = "none"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePreview:
    """The position: a part of a document, the first character, and how many."""

    part: int = 1
    offset: int = 0
    chars: int = CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A stretch of one part of a document or listing: untrusted text, sanitised."""

    unit: DocumentUnit
    part: int
    parts: int
    title: str
    text: str
    rest: int | None
    """The offset at which the part continues."""
    notes: tuple[str, ...]
    drawn: bool
    """Whether there is a picture instead: a scanned page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness:
    """Length and loudness of a sound, 0 to 100; `reason` says why they are unknown."""

    seconds: float | None
    heights: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poster:
    """A video with an available poster."""

    seconds: float | None
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture available in a form that every browser draws."""

    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """No preview, and why."""

    reason: str
    failed: bool
    """Whether a preview was expected."""


Glance = Words | Loudness | Poster | Drawing | Nothing


def promised(mime: str) -> Shape | None:
    """The likely preview for this type; only the bytes decide."""
    plain = clean_mime(mime)
    if plain.startswith("video/"):
        return Shape.POSTER
    if is_sound(plain):
        return Shape.WAVEFORM
    if plain in DRAWN_MIMES:
        return Shape.PICTURE
    return Shape.TEXT if has_text(plain) else None


async def glance(renderer: Renderer, item: Item, look: FilePreview) -> Glance:
    """The preview; NoRange if there is no such part."""
    try:
        return await _seen(renderer, item, look)
    except MediaNotFound:
        raise  # deleted in the meantime: nothing may be shown
    except MediaError as error:
        return Nothing(reason=reason_of(error), failed=True)


async def picture(renderer: Renderer, item: Item, page: int) -> "Fitted":
    """A picture of the file: a video's poster, a PDF page, a picture in a form that browsers draw."""
    match promised(item.blob.mime):
        case Shape.POSTER:
            return await renderer.poster(item.blob)
        case Shape.PICTURE:
            return await renderer.fit(item.blob, max_bytes=PICTURE_BYTES, max_side=BLOCK_SIDE)
    if item.blob.mime == PDF:
        return await renderer.page(item.blob, page, max_bytes=PICTURE_BYTES, max_side=BLOCK_SIDE)
    raise CannotRender(f"there is no picture of {item.blob.mime}")


async def _seen(renderer: Renderer, item: Item, look: FilePreview) -> Glance:
    blob = item.blob
    match promised(blob.mime):
        case Shape.POSTER:
            film = await renderer.video(blob)
            await renderer.poster(blob)  # made now, so that a failure is reported now
            return Poster(seconds=film.seconds, width=film.width, height=film.height)
        case Shape.WAVEFORM:
            return await _loudness(renderer, item)
        case Shape.PICTURE:
            drawn = await renderer.fit(blob, max_bytes=PICTURE_BYTES, max_side=BLOCK_SIDE)
            return Drawing(width=drawn.width, height=drawn.height)
        case Shape.TEXT:
            text = await renderer.reading(blob, mime=blob.mime, name=item.name, first=look.part, last=look.part)
            return await asyncio.to_thread(_words, text, look, scans=blob.mime == PDF)
    return Nothing(reason=f"there is no preview of {clean_mime(blob.mime) or 'this type'}", failed=False)


async def _loudness(renderer: Renderer, item: Item) -> Loudness:
    facts = await renderer.sound(item.blob)
    try:
        return Loudness(seconds=facts.seconds, heights=await renderer.waveform(item.blob))
    except MediaNotFound:
        raise
    except MediaError as error:
        return Loudness(seconds=facts.seconds, heights=(), reason=reason_of(error))


def _words(text: DocumentText, look: FilePreview, *, scans: bool) -> Words | Nothing:
    if not text.parts or (text.unread is not None and not scans):
        if 0 < text.total < look.part:
            raise NoRange(only_so_many(text))
        return Nothing(reason=why_unread(text), failed=text.unread is not Unread.NO_TEXT)
    part = text.parts[0]
    whole = clean(part.text)
    start = min(look.offset, len(whole))
    end = len(whole) if len(whole) - start <= look.chars else max(start + 1, cut_before(whole, start + look.chars))
    return Words(
        unit=text.unit,
        part=part.number,
        parts=text.total,
        title=clean_name(part.title) if part.title else "",
        text=whole[start:end],
        rest=end if end < len(whole) else None,
        notes=notes_of(text) if part.number == 1 and not start else (),
        drawn=scans and not whole,
    )
