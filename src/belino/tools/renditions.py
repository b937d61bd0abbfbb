"""Renditions for the agent: one media item of the channel in the requested form, or a sentence why not."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from belino.context.line_format import fenced
from belino.context.readings import media_text
from belino.domain.errors import MediaError, ToolError
from belino.domain.media import Blob, Block, ImageBlock, MediaRef, TextBlock, Unread
from belino.domain.reading import ReadingForm
from belino.domain.safe_text import clean_mime
from belino.domain.stored import RefRecord
from belino.domain.tokens import estimate_image_tokens, estimate_tokens
from belino.domain.units import NUMBER_MOST, NoRange, format_duration, format_size
from belino.media.documents import scanned_pages
from belino.media.fetch import Fetcher
from belino.media.image.header import BLOCK_MIMES, DRAWN_MIMES, HEADER_BYTES, carries_metadata, image_size
from belino.media.paging import parse_cursor
from belino.media.price import (
    PDF,
    TEXT_TOKENS,
    THUMB_BYTES,
    THUMB_SIDE,
    Facts,
    facts_of,
    has_text,
    is_sound,
    is_text,
    side_within,
)
from belino.media.render import Draws
from belino.media.renditions import (
    COPY,
    EMPTY,
    NO_FILES,
    CannotRender,
    Item,
    Rendered,
    RenderOptions,
    as_album_sheet,
    as_film_sheet,
    as_frames,
    as_pages,
    as_text,
    film_words,
    reason_of,
    text_words,
)
from belino.media.sniff import HEAD_BYTES, Sniffed, sniff
from belino.media.subtitles import TYPES as SUBTITLED
from belino.tools import native
from belino.tools.find import find_in
from belino.tools.readings import all_prices, as_reading, offered_forms, reading_prices, recognises
from belino.tools.tool_context import ALBUM_MOST, ToolContext, album_of, held, placed, title

if TYPE_CHECKING:
    from belino.media.image.images import Fitted

FORMS = ("auto", "image", "thumb", "text", "transcript", "description", "frames", "sheet", *native.FORMS, "file")
UNKNOWN = "application/octet-stream"

_FINDABLE = frozenset({"auto", *ReadingForm})
_SEEN = frozenset({"image", "thumb", "frames", "sheet"})
_WHOLE = frozenset({"auto", "image", *native.FORMS})
"""Forms that show an item itself, once."""
_PICTURE_WORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The form and options that the agent asks for."""

    form: str = "auto"
    wish: RenderOptions
    find: str | None = None
    """Words whose passages are wanted instead of the whole."""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The type and size of a ref's bytes, found without decoding."""

    sniffed: Sniffed
    size: tuple[int, int] | None
    """Upright, as the picture is displayed; None if only a decoder can tell."""
    declared: str

    @property
    def mime(self) -> str:
        return self.sniffed.mime

    @property
    def is_picture(self) -> bool:
        return self.mime in DRAWN_MIMES

    def told(self, blob: Blob) -> str:
        """Real type, dimensions and size; and a note if the declared type is wrong."""
        dimensions = f"{self.size[0]}×{self.size[1]}, " if self.size else ""
        unknown = self.mime == UNKNOWN
        lie = f" It was sent as {self.declared}, but its bytes are {'not' if unknown else self.mime}."
        untrue = self.sniffed.lies and self.declared not in ("", UNKNOWN)
        kind = "unknown type" if unknown else self.mime
        return f"{kind}, {dimensions}{format_size(blob.size)}.{lie if untrue else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A picture ready to be shown, and what was changed."""

    data: bytes
    mime: str
    changes: str
    """Empty if these are the original bytes."""
    tokens: int


async def fetch_record(context: ToolContext, record: RefRecord, ask: Ask) -> tuple[Block, ...]:
    """Fetch one item of the channel; every tool uses this. Our words come first."""
    try:
        return await _fetched(context, record, ask)
    except ToolError as error:
        if context.accepts.files:
            raise
        raise ToolError(str(error).replace(COPY, NO_FILES)) from error


async def _fetched(context: ToolContext, record: RefRecord, ask: Ask) -> tuple[Block, ...]:
    if ask.form == "file" and not context.accepts.files:
        raise ToolError(f"you have no tool that opens files; as=auto tells what forms {record.ref.id} has")
    if ask.find is not None and ask.form not in _FINDABLE:
        raise ToolError(f"find looks for words in text, and as={ask.form} is none; leave one of them out")
    if ask.form in _SEEN and not context.sees_images and not _is_told(context, ask.form):
        raise ToolError("you cannot look at pictures here; as=file gives a copy in your folder")
    if (
        ask.form in _WHOLE
        and ask.find is None
        and not ask.again
        and (note := _shown_before(context, record, record.ref.id))
    ):
        return (note,)
    if (heard := await _told(context, record, ask)) is not None:
        return (heard,)
    blob = await held(context, record)
    with context.fetcher.pin(blob.sha256):
        looked = await _look(context.fetcher, record.ref, blob)
        if looked.is_picture:
            looked = await _measured(context.renderer, blob, looked)
            if looked.size is not None:
                await context.renderer.saw(blob.sha256, looked.size)
        try:
            return await _formed(context, record, replace(blob, mime=looked.mime), looked, ask)
        except (CannotRender, NoRange) as error:
            raise ToolError(f"{record.ref.id}: {error}") from error
        except MediaError as error:
            raise ToolError(f"{record.ref.id}: {reason_of(error)}; as=file gives a copy in your folder") from error


async def _formed(context: ToolContext, record: RefRecord, blob: Blob, looked: Looked, ask: Ask) -> tuple[Block, ...]:
    if not blob.size and ask.form not in ("auto", "file"):
        raise CannotRender(EMPTY)
    item = Item(blob=blob, title=title(record), name=record.ref.file_name or "")
    if ask.find is not None:
        return await _blocks(context, record, blob, await find_in(context, record, item, ask.form, ask.wish, ask.find))
    if (reading := await _reading_meant(context, record, item, ask)) is not None:
        return await _blocks(context, record, blob, await as_reading(context, record, item, reading, ask.wish))
    if own := await _native_meant(context, record, item, ask):
        return await _as_native(context, record, item, looked, replace(ask, form=own), named=ask.form == own)
    form = _meant(ask, looked)
    makers: Mapping[str, Callable[[], Awaitable[Rendered]]] = {
        "text": partial(as_text, context.renderer, item, ask.wish, partial(_fenced, context)),
        "frames": partial(as_frames, context.renderer, item, ask.wish),
        "sheet": partial(_sheet, context, record, item, looked, ask.wish),
        "pages": partial(as_pages, context.renderer, item, ask.wish, thumb=ask.form == "thumb"),
    }
    if form in makers:
        return await _blocks(context, record, blob, await makers[form]())
    if form == "file" or not context.sees_images or not looked.is_picture:
        if form in ("image", "thumb"):
            raise ToolError(f"{record.ref.id} is {looked.mime}, not a picture; {_instead(looked)}")
        return await _as_file(context, record, item, looked, prices_too=form == "auto")
    if form != "thumb" and not ask.again and (note := _shown_before(context, record, blob.sha256)):
        return (note,)
    return await _as_picture(context, record, item, looked, ask.wish, thumb=form == "thumb")


async def _native_meant(context: ToolContext, record: RefRecord, item: Item, ask: Ask) -> str:
    """The native form that is meant; empty if none is."""
    if ask.form in native.FORMS:
        return ask.form
    is_open = ask.form == "auto" and not ask.wish.pages and not ask.wish.cursor
    return await native.native_form(context, record, item, ask.wish) if is_open else ""


async def _as_native(
    context: ToolContext, record: RefRecord, item: Item, looked: Looked, ask: Ask, *, named: bool
) -> tuple[Block, ...]:
    """A document or sound as it is; if the model would not take it, the reason, and its text if the form was named."""
    if not ask.again and not ask.wish.times and (note := _shown_before(context, record, item.blob.sha256)):
        return (note,)
    limit = ask.wish.max_tokens if named else ask.wish.max_tokens or TEXT_TOKENS
    try:
        return await native.as_native(context, record, item, replace(ask.wish, max_tokens=limit), ask.form)
    except native.TooDear as error:
        if named:
            raise ToolError(f"{record.ref.id}: {error}, which is over max_tokens") from error
        return await _as_file(context, record, item, looked, prices_too=True)
    except MediaError as error:
        why = reason_of(error)
    if not named:
        return await _as_file(context, record, item, looked, why=f" Not given as it is: {why}.", prices_too=True)
    instead = "transcript" if ask.form == native.AUDIO else "text"
    try:
        told = await _formed(context, record, item.blob, looked, replace(ask, form=instead))
    except (MediaError, NoRange, ToolError) as error:
        raise ToolError(f"{record.ref.id}: {why}; {reason_of(error)}") from error
    first = told[0].text if isinstance(told[0], TextBlock) else ""
    return TextBlock(text=f"Given as {instead}, because {why}. {first}"), *told[1:]


def _is_told(context: ToolContext, form: str) -> bool:
    """Whether what a form shows is described in words, for an agent that sees no pictures."""
    return form == "frames" and ReadingForm.DESCRIPTION in offered_forms(context)


async def _reading_meant(context: ToolContext, record: RefRecord, item: Item, ask: Ask) -> ReadingForm | None:
    """The reading by a provider that is meant; None if belino makes the form itself, or there is no such provider."""
    if ask.form in ("transcript", "description"):
        return ReadingForm(ask.form)
    if ask.form == "frames" and not context.sees_images:
        return ReadingForm.DESCRIPTION
    if ask.form == "text" and is_sound(item.blob.mime) and ReadingForm.TRANSCRIPT in offered_forms(context):
        return ReadingForm.TRANSCRIPT
    if ask.form != "text" or context.understanding is None or (has_text(item.blob.mime) and item.blob.mime != PDF):
        return None
    if item.blob.mime == PDF and not await _is_scan(context, item, ask.wish):
        return None
    facts = await context.renderer.known(_facts(record, item.blob), item.blob.sha256)
    if item.blob.mime == PDF:
        return ReadingForm.TEXT if recognises(context, facts) else None
    if item.blob.mime in SUBTITLED and not ask.wish.times and await _has_subtitles(context, item.blob):
        return None
    return ReadingForm.TEXT if ReadingForm.TEXT.value in reading_prices(context, facts) else None


async def _has_subtitles(context: ToolContext, blob: Blob) -> bool:
    """Whether the subtitles of a video are its text; if not, what is written in its frames is."""
    try:
        if not (await context.renderer.video(blob)).subtitles:
            return False
    except MediaError:
        return False
    return bool((await context.renderer.reading(blob, mime=blob.mime)).parts)


async def _is_scan(context: ToolContext, item: Item, wish: RenderOptions) -> bool:
    """Whether a requested page of a PDF has no text of its own."""
    place = parse_cursor(wish.cursor) if wish.cursor is not None else None
    first, last = (place.part, place.last) if place else wish.pages or (1, None)
    text = await context.renderer.reading(
        item.blob, mime=item.blob.mime, name=item.name, first=first, last=last or NUMBER_MOST
    )
    return text.unread in (None, Unread.RENDERED, Unread.NO_TEXT) and bool(scanned_pages(text))


def _facts(record: RefRecord, blob: Blob) -> Facts:
    return replace(facts_of(record), mime=blob.mime, size=blob.size, held=True)


def _meant(ask: Ask, looked: Looked) -> str:
    """The form that is meant when none is named: pages mean a file's text, times mean frames."""
    wish = ask.wish
    if ask.form in ("image", "thumb") and looked.mime == PDF:
        return "pages"
    if ask.form == "auto" and (wish.pages or wish.cursor) and has_text(looked.mime):
        return "text"
    if ask.form == "auto" and wish.times and _is_film(looked):
        return "frames"
    if ask.form == "text" and not has_text(looked.mime) and looked.mime not in SUBTITLED:
        raise ToolError(f"belino finds no text in {looked.mime}; {_instead(looked)}")
    if ask.form == "frames" and not _is_film(looked):
        raise ToolError(f"there are no moving pictures in {looked.mime}; {_instead(looked)}")
    return ask.form


def _is_film(looked: Looked) -> bool:
    """Whether it may be animated; only a decoder knows."""
    return looked.mime.startswith("video/") or looked.mime in ("image/gif", "image/webp", "image/png")


def _instead(looked: Looked) -> str:
    """The available forms, for an error about one that is not."""
    if looked.mime.startswith("video/"):
        return "as=frames or as=sheet shows it"
    if looked.is_picture:
        return "as=image shows it"
    return "as=text gives its text" if has_text(looked.mime) else "as=file gives a copy in your folder"


async def _sheet(context: ToolContext, record: RefRecord, item: Item, looked: Looked, wish: RenderOptions) -> Rendered:
    """Of a video or animation, its moments; of a picture, the album that it belongs to."""
    if looked.mime.startswith("video/"):
        return await as_film_sheet(context.renderer, item, wish)
    if not looked.is_picture:
        raise ToolError(f"there is nothing to see in {looked.mime}; {_instead(looked)}")
    records = await album_of(context.library, context.channel, record)
    if len(records) > 1:
        return await _album_sheet(context, records, wish)
    if looked.mime == "image/gif":
        return await as_film_sheet(context.renderer, item, wish)
    raise ToolError(f"{record.ref.id} is not part of an album; {_instead(looked)}")


async def _album_sheet(context: ToolContext, records: Sequence[RefRecord], wish: RenderOptions) -> Rendered:
    """The available pictures of an album on one sheet, and a note about the rest."""
    items: list[tuple[str, Item]] = []
    lost: list[str] = []
    with ExitStack() as needed:
        for record in records[:ALBUM_MOST]:
            try:
                blob = await held(context, record)
            except ToolError as error:
                lost.append(str(error))
                continue
            needed.enter_context(context.fetcher.pin(blob.sha256))
            looked = await _look(context.fetcher, record.ref, blob)
            if looked.is_picture or looked.mime.startswith("video/"):
                items.append((record.ref.id, Item(blob=replace(blob, mime=looked.mime), title=title(record))))
            else:
                lost.append(f"{record.ref.id} is {looked.mime}")
        if not items:
            raise ToolError("; ".join(lost))
        sheet = await as_album_sheet(context.renderer, items, wish)
    lost += [record.ref.id for record in records[ALBUM_MOST:]]
    missing = f" Not on it: {'; '.join(lost)}." if lost else ""
    return replace(sheet, about=f"{sheet.about}{missing}")


async def _blocks(context: ToolContext, record: RefRecord, blob: Blob, rendered: Rendered) -> tuple[Block, ...]:
    """A rendition as blocks: belino's text, then the fenced content, then the pictures."""
    words = f"{rendered.about}\n{_fenced(context, rendered.text)}" if rendered.text else rendered.about
    await context.note(record, rendered.what, rendered.tokens)
    pictures = [
        # A page, a frame or a thumbnail does not count as showing the item itself.
        ImageBlock(
            mime=picture.mime,
            data=picture.data,
            ref=record.ref.id,
            sha256=blob.sha256,
            tokens=estimate_image_tokens(picture.width, picture.height),
        )
        for picture in rendered.pictures
    ]
    return TextBlock(text=words), *pictures


async def _told(context: ToolContext, record: RefRecord, ask: Ask) -> TextBlock | None:
    """The platform's own whole transcript, without a fetch; None if there is none, or something else is meant."""
    ref, wish = record.ref, ask.wish
    if ask.form != "transcript" or ask.find is not None or ask.again or wish.times or ref.is_transcript_partial:
        return None
    understanding = context.understanding
    if not ref.transcript or (understanding is not None and not await understanding.told(record, context.conversation)):
        return None
    tokens = estimate_tokens(ref.transcript)
    if tokens > (wish.max_tokens or TEXT_TOKENS):
        return None
    await context.note(record, f"transcript by {ref.platform}", tokens)
    about = f"{title(record)}: its transcript by {ref.platform}, without times; again=true has it read here."
    return TextBlock(text=f"{about}\n{_fenced(context, media_text(ref.transcript))}")


def _fenced(context: ToolContext, text: str) -> str:
    return fenced("file", [text], context.fence)


def _shown_before(context: ToolContext, record: RefRecord, key: str) -> TextBlock | None:
    """A note instead of bytes that are already in the agent's context, by ref or by hash."""
    name = title(record)
    if key in context.shown_now:
        return TextBlock(text=f"{name} was shown to you in this turn already; again=true shows it again.")
    for entry in context.manifest:
        if key in (entry.artifact_id, entry.content_hash):
            turn = entry.included_at_turn
            return TextBlock(text=f"{name} was shown to you at turn {turn}; again=true shows it again.")
    return None


async def _as_picture(
    context: ToolContext, record: RefRecord, item: Item, looked: Looked, wish: RenderOptions, *, thumb: bool
) -> tuple[Block, ...]:
    max_bytes = min(THUMB_BYTES, context.image_block_bytes) if thumb else context.image_block_bytes
    max_side = min(THUMB_SIDE, context.image_block_side) if thumb else context.image_block_side
    if wish.max_tokens is not None:
        max_side = side_within(max(1, wish.max_tokens - _PICTURE_WORDS), looked.size, max_side)
    blob = item.blob
    try:
        seen = await _shown(context.fetcher, context.renderer, blob, looked, max_bytes=max_bytes, max_side=max_side)
    except MediaError as error:
        return await _as_file(context, record, item, looked, why=f" It cannot be shown: {reason_of(error)}.")
    picture = ImageBlock(mime=seen.mime, data=seen.data, ref=record.ref.id, sha256=blob.sha256, tokens=seen.tokens)
    told = await context.renderer.note(blob.sha256)
    about = f"{item.title}: {looked.told(blob)}{f' {told}' if told else ''}{await _likeness(context, record, blob)}"
    await context.note(record, "a thumb" if thumb else "a picture", seen.tokens)
    if thumb:
        # A thumbnail does not count as shown: the full picture can still be requested.
        return TextBlock(text=f"{about} {seen.changes}".rstrip()), picture
    context.shown_now.update((record.ref.id, blob.sha256))
    if context.shown:
        context.shown(picture)
    if not seen.changes or not context.accepts.files:
        return TextBlock(text=f"{about} {seen.changes}".rstrip()), picture
    original = await placed(context, record, blob, looked.mime)
    return TextBlock(text=f"{about} {seen.changes} The original is in your folder."), picture, original


async def _likeness(context: ToolContext, record: RefRecord, blob: Blob) -> str:
    """A note that the picture was sent before, for an agent that may have seen it then."""
    likenesses = context.renderer.likenesses
    note = await likenesses.note(context.channel, record.ref.id, blob) if likenesses else ""
    return f" It is the {note}." if note else ""


async def _as_file(
    context: ToolContext, record: RefRecord, item: Item, looked: Looked, *, why: str = "", prices_too: bool = False
) -> tuple[Block, ...]:
    """A copy in the session's folder; if no form was requested, also the other forms and their costs."""
    blob = item.blob
    told, unread = await _described(context, item) if prices_too else ("", False)
    forms = await _forms(context, record, blob, unread=unread) if prices_too else ""
    about = f"{item.title}: {looked.told(blob)}{told}{why}"
    if not context.accepts.files:
        return (TextBlock(text=f"{about}{forms}"),)
    file = await placed(context, record, blob, looked.mime)
    how = "read it as text" if is_text(file.mime) else "open it with a program that knows its type"
    return TextBlock(text=f"{about} A copy is in your folder; {how}.{forms}"), file


async def _described(context: ToolContext, item: Item) -> tuple[str, bool]:
    """What is worth knowing about a file that is not shown, and whether it cannot be read.

    It is read from the bytes, so that the prices given afterwards are right.
    """
    mime = item.blob.mime
    try:
        if mime.startswith("video/"):
            return film_words(await context.renderer.video(item.blob)), False
        if is_sound(mime):
            return await _heard(context, item.blob), False
        if has_text(mime):
            text = await context.renderer.reading(item.blob, mime=mime, name=item.name, last=1)
            return text_words(text), text.unread is not None and text.unread is not Unread.RENDERED
    except MediaError as error:
        return f" It cannot be looked into: {reason_of(error)}.", True
    return "", False


async def _heard(context: ToolContext, blob: Blob) -> str:
    facts = await context.renderer.sound(blob)
    waves = await context.renderer.waveform(blob)
    lasts = f" It lasts {format_duration(facts.seconds)}." if facts.seconds else ""
    loud = "".join(str(min(9, height // 10)) for height in waves)
    return f"{lasts} How loud, from 0 to 9, beginning to end: {loud}."


async def _forms(context: ToolContext, record: RefRecord, blob: Blob, *, unread: bool) -> str:
    if unread:
        return ""  # a form that has just failed is not offered
    known = await context.renderer.known(_facts(record, blob), blob.sha256)
    costs = all_prices(context, known)
    unseen = frozenset({"file"}) if context.sees_images else _SEEN | {"file"}
    told = ", ".join(f"{form} {cost}" for form, cost in costs.items() if form not in unseen)
    return f" Forms and their tokens: {told}." if told else ""


async def _look(fetcher: Fetcher, ref: MediaRef, blob: Blob) -> Looked:
    """The type of a blob, by its first bytes."""
    head = await fetcher.read(blob, HEADER_BYTES)
    declared = clean_mime(ref.mime)
    sniffed = sniff(head[:HEAD_BYTES], name=ref.file_name, declared=declared, whole=blob.size <= HEAD_BYTES)
    found = image_size(head)
    return Looked(sniffed=sniffed, size=found[1:] if found else None, declared=declared)


async def _measured(images: Draws, blob: Blob, looked: Looked) -> Looked:
    """The same with its dimensions, if only a decoder can find them and it succeeds."""
    if looked.size is not None or not looked.is_picture:
        return looked
    try:
        facts = await images.probe(blob)
    except MediaError:
        return looked
    return Looked(sniffed=looked.sniffed, size=(facts.width, facts.height), declared=looked.declared)


async def _shown(
    fetcher: Fetcher, images: Draws, blob: Blob, looked: Looked, *, max_bytes: int, max_side: int
) -> Shown:
    """The picture within these limits. MediaError if it cannot be decoded."""
    if looked.mime in BLOCK_MIMES and looked.size and max(looked.size) <= max_side and blob.size <= max_bytes:
        data = await fetcher.read(blob, max_bytes)
        if not carries_metadata(data):
            return Shown(data=data, mime=looked.mime, changes="", tokens=estimate_image_tokens(*looked.size))
    fitted = await images.fit(blob, max_bytes=max_bytes, max_side=max_side)
    tokens = estimate_image_tokens(fitted.width, fitted.height)
    return Shown(data=fitted.data, mime=fitted.mime, changes=_changes(fitted, blob, looked), tokens=tokens)


def _changes(fitted: "Fitted", blob: Blob, looked: Looked) -> str:
    """The changes that the agent should know about."""
    size = (fitted.width, fitted.height)
    done = []
    if looked.size is not None and size != looked.size:
        done.append("shrunk")
    if fitted.mime != looked.mime:
        done.append("converted")
    how = " and ".join(done) or "upright and without its metadata"
    return f"You see it {how}: {fitted.mime}, {size[0]}×{size[1]}, {format_size(len(fitted.data))}."
