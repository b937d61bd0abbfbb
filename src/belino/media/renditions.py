"""Renditions of one file for an agent: facts, text, and pictures."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import MediaError
from belino.domain.media import Blob, DocumentText, DocumentUnit, OpenBlob, Unread
from belino.domain.safe_text import one_line
from belino.domain.tokens import estimate_image_tokens, estimate_tokens
from belino.domain.units import NUMBER_MOST, clock_time, format_duration, format_size, span
from belino.media.documents import scanned_pages
from belino.media.image.header import DRAWN_MIMES
from belino.media.paging import Page, TextPosition, page_of, parse_cursor
from belino.media.price import (
    FRAME_SIDE,
    FRAMES,
    PAGES_SHOWN,
    PDF,
    SHEET_FRAMES,
    TEXT_TOKENS,
    THUMB_BYTES,
    THUMB_SIDE,
    has_text,
    picture_tokens,
    side_within,
)
from belino.media.render import Renderer
from belino.media.sniff import HEAD_BYTES, Sniffed, sniff
from belino.media.subtitles import TYPES as SUBTITLED

if TYPE_CHECKING:
    from belino.media.image.images import Fitted
    from belino.media.video import VideoFacts

PICTURE_TOKENS = 6_000
LEAST_TOKENS, MOST_TOKENS = 300, 100_000
MADE = ("image", "thumb", "text", "frames", "sheet")
"""Forms that are rendered; any other is the file itself."""

_FRAME_BYTES = 256 * 1024
_LEAST_SIDE = 192
"""A smaller frame is useless: show fewer of them."""
_WORDS = 80
_REF_TOKENS = 16
_REASON_CHARS = 200
_WIDEST_SCAN = (
    " You see pages 99999-99999, which are pictures. Not shown: pages 99999-99999; as=image with pages=99999 shows it."
)
EMPTY = "the file is empty"
COPY = "as=file gives a copy in your folder"
NO_FILES = "send_media with its ref can send it on"
"""Instead of a copy, for an agent that opens no files."""


class CannotRender(MediaError):
    """The file has no such form, or it could not be made; the message lists the alternatives."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(f"{why}; {instead}" if instead else why)
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A file whose bytes are held."""

    blob: Blob
    """With the type of its bytes."""
    title: str
    """Our name for it, sanitised."""
    name: str = ""
    """The sender's name for it, for formats that are recognised by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """The requested range and limits."""

    pages: tuple[int, int | None] | None = None
    times: tuple[float, float | None] | None = None
    cursor: str | None = None
    max_tokens: int | None = None
    sees_images: bool = True
    opens_files: bool = True
    block_bytes: int = 1024 * 1024
    block_side: int = 1568


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A rendition."""

    about: str
    """Our words."""
    what: str
    """For `explain`: what was made, without content."""
    text: str = ""
    """Untrusted text, sanitised; to stand between markers."""
    rest: str | None = None
    """The cursor of the next page."""
    pictures: "tuple[Fitted, ...]" = ()
    labels: tuple[str, ...] = ()
    """The caption of each picture."""

    @property
    def tokens(self) -> int:
        """Approximate cost for a model."""
        seen = sum(estimate_image_tokens(picture.width, picture.height) for picture in self.pictures)
        return estimate_tokens(self.about) + estimate_tokens(self.text) + seen


Dress = Callable[[str], str]
"""Puts untrusted text between markers."""


async def render(renderer: Renderer, item: Item, form: str, wish: RenderOptions) -> Rendered:
    """The file in this form, for a person: one of MADE."""
    match form:
        case "text":
            return await as_text(renderer, item, wish)
        case "frames":
            return await as_frames(renderer, item, wish)
        case "sheet":
            return await as_film_sheet(renderer, item, wish)
        case "image" | "thumb" if item.blob.mime == PDF:
            return await as_pages(renderer, item, wish, thumb=form == "thumb")
        case _:
            return await as_picture(renderer, item, wish, thumb=form == "thumb")


async def as_text(renderer: Renderer, item: Item, wish: RenderOptions, dress: Dress = str) -> Rendered:
    """The text of a document, from the requested pages or cursor, as far as there is room."""
    mime = item.blob.mime
    if not item.blob.size:
        raise CannotRender(EMPTY)
    if not has_text(mime) and mime not in SUBTITLED:
        raise CannotRender(f"belino finds no text in {mime}", COPY)
    place = _place(wish)
    text = await renderer.reading(item.blob, mime=mime, name=item.name, first=place.part, last=place.last)
    if not text.parts or (text.unread is not None and mime != PDF):
        if 0 < text.total < place.part:
            raise CannotRender(only_so_many(text))
        raise CannotRender(why_unread(text), "as=frames or as=sheet shows it" if mime in SUBTITLED else COPY)
    room, notes = wish.max_tokens or TEXT_TOKENS, _notes(text, place)

    def price(body: str) -> int:
        """The cost of the whole answer with this text, with the surrounding words at their longest."""
        widest = _about(item, text, f"You read {text.unit}s 99999-99999; it goes on with cursor=99999.9999999.99999")
        widest += _WIDEST_SCAN if scanned_pages(text) else ""
        return estimate_tokens(f"{widest}\n{dress(notes + body)}")

    page = await asyncio.to_thread(page_of, text, place, room=room, price=price)
    rendered = _told(item, text, place, page, notes)
    scans = scanned_pages(text)
    silent = [each.part for each in page.told if each.part in scans and not each.start]
    if not silent:
        return rendered
    return await with_scans(renderer, item, wish, rendered, silent, room - price(page.text))


async def as_pages(renderer: Renderer, item: Item, wish: RenderOptions, *, thumb: bool = False) -> Rendered:
    """Pages of a PDF as pictures: the first, or the requested ones, a few at a time."""
    wish = _small(wish) if thumb else wish
    first, last = wish.pages or (1, 1)
    text = await renderer.reading(item.blob, mime=item.blob.mime, name=item.name, first=first, last=first)
    if not text.total or first > text.total:
        raise CannotRender(only_so_many(text)) if text.total else CannotRender(why_unread(text), COPY)
    last = min(last or text.total, text.total)
    drawn, numbers = await _pages(renderer, item, wish, range(first, last + 1), wish.max_tokens or PICTURE_TOKENS)
    if not numbers:
        raise CannotRender("a page costs more than max_tokens; ask for more")
    left = f"; go on with pages={numbers[-1] + 1}-{last}" if numbers[-1] < last else ""
    shown = _named(DocumentUnit.PAGE, numbers)
    return Rendered(
        about=_about(item, text, f"You see {shown}{left}"),
        what=f"{shown} of {text.total} as pictures",
        pictures=drawn,
        labels=tuple(f"page {number}" for number in numbers),
    )


async def as_picture(renderer: Renderer, item: Item, wish: RenderOptions, *, thumb: bool = False) -> Rendered:
    """A picture within the limits: upright, without metadata."""
    if item.blob.mime not in DRAWN_MIMES:
        raise CannotRender(f"{item.blob.mime} is not a picture", COPY)
    facts = await renderer.probe(item.blob)
    wish = _small(wish) if thumb else wish
    side = side_within(_room(item, wish), (facts.width, facts.height), wish.block_side)
    picture = await renderer.fit(item.blob, max_bytes=wish.block_bytes, max_side=side)
    note = await renderer.note(item.blob.sha256)
    about = f"{head_of(item)}, {facts.width}×{facts.height}.{f' {note}' if note else ''}"
    return Rendered(about=about, what="a thumb" if thumb else "a picture", pictures=(picture,), labels=("",))


async def as_frames(renderer: Renderer, item: Item, wish: RenderOptions) -> Rendered:
    """A few frames of a video, evenly over the time range or all of it."""
    facts = await renderer.video(item.blob)
    start, end = _times(wish, facts.seconds)
    size, most = (facts.width, facts.height), min(FRAME_SIDE, wish.block_side)
    room, count = _room(item, wish), FRAMES
    while count > 1 and side_within(room // count, size, most) < min(_LEAST_SIDE, most):
        count -= 1
    frames = await renderer.frames(
        item.blob,
        count=count,
        start=start,
        end=end,
        max_side=side_within(room // count, size, most),
        max_bytes=min(_FRAME_BYTES, wish.block_bytes),
    )
    moments = tuple(clock_time(frame.at) for frame in frames)
    return Rendered(
        about=f"{head_of(item)}.{film_words(facts)} You see it at {', '.join(moments)}.",
        what=f"frames at {', '.join(moments)}",
        pictures=tuple(frame.picture for frame in frames),
        labels=moments,
    )


async def as_film_sheet(renderer: Renderer, item: Item, wish: RenderOptions) -> Rendered:
    """Many frames of a video on one picture, each with its time."""
    facts = await renderer.video(item.blob)
    start, end = _times(wish, facts.seconds)
    side = side_within(_room(item, wish), None, wish.block_side)
    sheet = await renderer.sheet(
        item.blob, count=SHEET_FRAMES, start=start, end=end, max_side=side, max_bytes=wish.block_bytes
    )
    about = f"{head_of(item)}.{film_words(facts)} You see moments of it on one sheet, row by row, each with its time."
    return Rendered(about=about, what=f"a sheet of {SHEET_FRAMES} frames", pictures=(sheet,), labels=("sheet",))


async def as_album_sheet(renderer: Renderer, items: Sequence[tuple[str, Item]], wish: RenderOptions) -> Rendered:
    """The pictures of an album on one, each with its number; `items` come with their refs."""
    numbered = [(str(number), item.blob) for number, (_, item) in enumerate(items, 1)]
    room = _room(items[0][1], wish) - _REF_TOKENS * len(items)
    side = side_within(max(1, room), None, wish.block_side)
    sheet = await renderer.album(numbered, max_side=side, max_bytes=wish.block_bytes)
    listed = ", ".join(f"{number} {ref}" for number, (ref, _) in enumerate(items, 1))
    about = f"An album of {len(items)} on one sheet, by number: {listed}."
    return Rendered(about=about, what=f"a sheet of {len(items)} pictures", pictures=(sheet,), labels=("sheet",))


async def seen_item(blob: Blob, open_blob: OpenBlob, *, name: str | None, title: str, declared: str = "") -> Item:
    """A file with the type of its bytes."""
    async with open_blob(blob.sha256) as path:
        sniffed = await asyncio.to_thread(_sniffed, path, name, declared)
    return Item(blob=replace(blob, mime=sniffed.mime), title=title, name=name or "")


def _sniffed(path: Path, name: str | None, declared: str) -> Sniffed:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES + 1)
    return sniff(head[:HEAD_BYTES], name=name, declared=declared, whole=len(head) <= HEAD_BYTES)


def film_words(facts: "VideoFacts") -> str:
    """A video's facts, in a sentence."""
    lasts = f"lasts {format_duration(facts.seconds)}, " if facts.seconds else ""
    sound = "with sound" if facts.audio_codec else "without sound"
    words = "; as=text gives its subtitles" if facts.subtitles else ""
    part = f" Only its first {format_duration(facts.seen)} can be shown." if facts.seen else ""
    return f" It {lasts}is {facts.width}×{facts.height}, {sound}{words}.{part}"


def text_words(text: DocumentText) -> str:
    """How much text a document has, or why none, in a sentence."""
    if text.unread is not None and text.unread is not Unread.RENDERED:
        why = f", {one_line(text.reason)[:_REASON_CHARS].rstrip('. ')}" if text.reason else ""
        return f" Its text: {text.unread}{why}."
    return f" It has {text.total} {text.unit}{'' if text.total == 1 else 's'}."


def notes_of(text: DocumentText) -> tuple[str, ...]:
    """Notes for the reader, one per line; an attacker may control the child that wrote them."""
    said = [*text.notes, *([text.reason] if text.reason else [])]
    return tuple(one_line(note)[:_REASON_CHARS] for note in said[:5])


def why_unread(text: DocumentText) -> str:
    """Why there is no text."""
    why = f": {one_line(text.reason)[:_REASON_CHARS].rstrip('. ')}" if text.reason else ""
    return f"{text.unread or Unread.NO_TEXT}{why}"


def only_so_many(text: DocumentText) -> str:
    """The number of parts, for a request beyond them."""
    return f"it has only {text.total} {text.unit}{'' if text.total == 1 else 's'}"


def reason_of(error: Exception) -> str:
    """The reason of a failure; the words may come from a decoder."""
    return one_line(str(error))[:_REASON_CHARS].rstrip(". ")


def _small(wish: RenderOptions) -> RenderOptions:
    return replace(wish, block_side=min(THUMB_SIDE, wish.block_side), block_bytes=min(THUMB_BYTES, wish.block_bytes))


def _place(wish: RenderOptions) -> TextPosition:
    if wish.cursor is not None:
        return parse_cursor(wish.cursor)
    first, last = wish.pages or (1, None)
    return TextPosition(part=first, offset=0, last=last or NUMBER_MOST)


def _times(wish: RenderOptions, seconds: float | None) -> tuple[float | None, float | None]:
    start, end = wish.times or (None, None)
    if start and seconds is not None and start >= seconds:
        raise CannotRender(f"it lasts only {clock_time(seconds)}; ask for a time before that")
    return start, end


def _room(item: Item, wish: RenderOptions) -> int:
    """Tokens left for pictures after the text."""
    return max(1, (wish.max_tokens or PICTURE_TOKENS) - _WORDS - estimate_tokens(item.title))


def _told(item: Item, text: DocumentText, place: TextPosition, page: Page, notes: str) -> Rendered:
    read = _named(text.unit, [each.part for each in page.told])
    whole = page.rest is None and (place.part, place.offset) == (1, 0) and place.last >= text.total
    goes_on = f"; it goes on with cursor={page.rest}" if page.rest else ""
    return Rendered(
        about=_about(item, text, f"You read {'all of it' if whole else read}{goes_on}"),
        what=f"text of {read} of {text.total}" if text.total > 1 else "its text",
        text=notes + page.text,
        rest=str(page.rest) if page.rest else None,
    )


async def with_scans(
    renderer: Renderer, item: Item, wish: RenderOptions, told: Rendered, silent: Sequence[int], room: int
) -> Rendered:
    """Scanned pages are shown as pictures, as far as there is room; the others are named."""
    which, are = _named(DocumentUnit.PAGE, silent), "is a picture" if len(silent) == 1 else "are pictures"
    if not wish.sees_images:
        copy = f"; {COPY}" if wish.opens_files else ""
        return replace(told, about=f"{told.about} There {are} instead of text on {which}{copy}.")
    try:
        drawn, numbers = await _pages(renderer, item, wish, silent, room)
    except MediaError as error:
        why = reason_of(error)
        return replace(told, about=f"{told.about} There {are} instead of text on {which}, but none is shown: {why}.")
    which = _named(DocumentUnit.PAGE, numbers)
    shown = f" You see {which}, which {'is a picture' if len(numbers) == 1 else 'are pictures'}."
    left = [number for number in silent if number not in numbers]
    more = f" Not shown: {_named(DocumentUnit.PAGE, left)}; as=image with pages={left[0]} shows it." if left else ""
    return replace(
        told,
        about=f"{told.about}{shown if numbers else ''}{more}",
        what=f"{told.what}, {_named(DocumentUnit.PAGE, numbers)} as pictures" if numbers else told.what,
        pictures=drawn,
        labels=tuple(f"page {number}" for number in numbers),
    )


async def _pages(
    renderer: Renderer, item: Item, wish: RenderOptions, numbers: Sequence[int], room: int
) -> "tuple[tuple[Fitted, ...], list[int]]":
    """Some pages as pictures: the first of these numbers that there is room for."""
    room -= _WORDS
    side = side_within(max(1, room), None, wish.block_side)
    drawn: list[Fitted] = []
    for number in numbers[:PAGES_SHOWN]:
        if room < picture_tokens(None, side) or side < min(_LEAST_SIDE, wish.block_side):
            break
        drawn.append(await renderer.page(item.blob, number, max_bytes=wish.block_bytes, max_side=side))
        room -= estimate_image_tokens(drawn[-1].width, drawn[-1].height)
    return tuple(drawn), list(numbers[: len(drawn)])


def _about(item: Item, text: DocumentText, said: str) -> str:
    return f"{head_of(item)}, {text.total} {text.unit}{'' if text.total == 1 else 's'}. {said}."


def head_of(item: Item) -> str:
    """The name, type and size of a file."""
    return f"{item.title}: {item.blob.mime}, {format_size(item.blob.size)}"


def _named(unit: DocumentUnit, numbers: Sequence[int]) -> str:
    return f"{unit}{'' if len(numbers) == 1 else 's'} {span(list(numbers))}"


def _notes(text: DocumentText, place: TextPosition) -> str:
    """Notes for the reader, at the beginning."""
    return "" if place.part > 1 or place.offset else "".join(f"(note: {note})\n" for note in notes_of(text))
