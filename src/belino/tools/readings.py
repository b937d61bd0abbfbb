"""Readings on request: a media item as transcript, description or text, with its price told first."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from belino.context.readings import media_text
from belino.domain.errors import MediaError, ProviderError, ToolError
from belino.domain.graphemes import cut
from belino.domain.media import Blob, DocumentText, DocumentUnit, MediaKind, Part, Unread
from belino.domain.outcome import Stage, Step
from belino.domain.reading import Attempt, ReadingForm, ReadingOutcome
from belino.domain.safe_text import clean_mime, clean_name, one_line
from belino.domain.stored import RefRecord
from belino.domain.tokens import estimate_tokens
from belino.domain.units import NoRange, clock_time, format_size
from belino.media.paging import TextPosition, page_of, parse_cursor
from belino.media.price import PDF, TEXT_TOKENS, Facts, Price, prices, with_pages
from belino.media.renditions import Item, Rendered, RenderOptions, reason_of, with_scans
from belino.tools.tool_context import ToolContext, tell_client
from belino.understanding.request import ItemReading, ReadingPrice

FORMS = tuple(form.value for form in ReadingForm)
CHARS_A_TOKEN = 4
"""So much text is enough for an answer: no further page is recognised for it."""
_WORDS = 120
"""Tokens for our words around a reading."""
_SAMPLES = (
    Facts(mime="image/jpeg", kind=MediaKind.IMAGE, size=100_000),
    Facts(mime="audio/ogg", kind=MediaKind.VOICE, size=100_000, seconds=10.0),
    Facts(mime="video/mp4", kind=MediaKind.VIDEO, size=1_000_000, seconds=10.0),
    Facts(mime=PDF, size=100_000),
)


def offered_forms(context: ToolContext) -> frozenset[ReadingForm]:
    """The forms that some configured or installed provider makes of some media here."""
    if context.understanding is None:
        return frozenset()
    return frozenset(form for facts in _SAMPLES for form in context.understanding.prices(facts, context.conversation))


def reading_prices(context: ToolContext, facts: Facts) -> Mapping[str, Price]:
    """The forms in which a file can be read here, with their prices; empty if there are none."""
    if context.understanding is None:
        return {}
    found = context.understanding.prices(facts, context.conversation)
    return {form.value: as_price(price, facts) for form, price in found.items()}


def all_prices(context: ToolContext, facts: Facts) -> Mapping[str, Price]:
    """The price of every form of a file: what belino makes itself, and what providers read."""
    made = prices(facts, side=context.image_block_side, sees_images=context.sees_images, accepts=context.accepts)
    read = dict(reading_prices(context, facts))
    if clean_mime(facts.mime) != PDF or not facts.scans or not recognises(context, facts):
        read = {form: cost for form, cost in read.items() if form not in made}
    elif context.sees_images and facts.blank:
        text = read["text"]
        tokens = with_pages(text.tokens, facts.blank, context.image_block_side)
        read["text"] = replace(text, tokens=tokens, exact=False)
    return {**made, **read}


def recognises(context: ToolContext, facts: Facts) -> bool:
    """Whether scanned pages are given as text; not if that costs money, and the agent can look at them instead."""
    if context.understanding is None:
        return False
    price = context.understanding.prices(facts, context.conversation).get(ReadingForm.TEXT)
    return price is not None and (price.local or not context.sees_images)


def as_price(price: ReadingPrice, facts: Facts) -> Price:
    """The price of a reading, beside those of renditions."""
    fetched = 0 if facts.held or price.stored else facts.size or 0
    return Price(tokens=price.tokens, bytes=fetched, seconds=price.seconds, exact=price.exact, usd=price.usd)


async def as_reading(
    context: ToolContext, record: RefRecord, item: Item, form: ReadingForm, wish: RenderOptions
) -> Rendered:
    """The text that a provider reads in a file, as far as there is room. ToolError with the reason if there is none."""
    room = max(1, (wish.max_tokens or TEXT_TOKENS) - _WORDS)
    read = await read_form(context, record, item.blob, form, wish, max_chars=room * CHARS_A_TOKEN)
    blank = _blank_pages(read) if item.blob.mime == PDF else []
    if not read.text.strip() and not (blank and context.sees_images):
        raise ToolError(f"{record.ref.id}: {_why_empty(read)}")
    if read.document.unit is DocumentUnit.SECOND:
        told = _spoken(read, room)
    elif read.document.unit is DocumentUnit.PAGE:
        told = await _paged(read.document, wish, room)
    else:
        told = _cut(read, room)
    rendered = Rendered(
        about=f"{item.title}: {item.blob.mime}, {format_size(item.blob.size)}. {_about(read, told)}",
        what=f"{form} by {read.provider}",
        text=told.text,
        rest=told.rest,
    )
    silent = [number for number in blank if number in told.pages]
    if not silent or not context.sees_images:
        return rendered
    return await with_scans(context.renderer, item, wish, rendered, silent, room - estimate_tokens(told.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """As much of a reading as there is room for."""

    text: str
    covers: str = ""
    pages: tuple[int, ...] = ()
    rest: str | None = None
    """The cursor of the next page."""
    more: str = ""
    """How to read on, for an agent."""


async def read_form(
    context: ToolContext,
    record: RefRecord,
    blob: Blob,
    form: ReadingForm,
    wish: RenderOptions,
    *,
    max_chars: int | None = None,
) -> ItemReading:
    """What a provider reads in a file, stored or now; ToolError with the reason if it cannot be read."""
    if context.understanding is None:
        raise ToolError("no provider that reads media is set up here; as=file gives a copy in your folder")
    try:
        pages = wish.pages
        if wish.cursor is not None:
            place = parse_cursor(wish.cursor)
            pages = (place.part, place.last)
        sender = await context.library.sender_of(context.channel, record.ref.id)
        tell_client(f"reading {record.ref.id} as {form}")
        read = await context.understanding.read_item(
            record,
            blob,
            form,
            pages=pages,
            times=wish.times,
            conversation=context.conversation,
            language=sender.reported,
            recent_texts=sender.recent_texts,
            max_chars=max_chars,
        )
    except NoRange as error:
        raise ToolError(f"{record.ref.id}: {error}") from error
    except (MediaError, ProviderError) as error:
        raise ToolError(f"{record.ref.id} cannot be read as {form}: {reason_of(error)}") from error
    await _note_attempts(context, record, read.attempts)
    return read


async def _note_attempts(context: ToolContext, record: RefRecord, attempts: Sequence[Attempt]) -> None:
    """Record for `explain` which provider was asked, and what it cost."""
    for attempt in attempts:
        is_read = attempt.outcome is ReadingOutcome.SUCCESS
        by = f"{record.ref.id}: {attempt.outcome} by {attempt.provider}, {attempt.milliseconds} ms"
        tell_client(by, "info" if is_read else "warning")
        if context.notes is not None:
            outcome = "read" if is_read else attempt.outcome.value
            told = [f"{attempt.provider} {attempt.model}".rstrip(), attempt.reason, f"{attempt.milliseconds} ms"]
            told += [f"{attempt.usd:.4f} USD"] if attempt.usd else []
            told += [f"sent to {attempt.sent_to}"] if attempt.sent_to else []
            reason = ", ".join(filter(None, told))
            at = context.clock.now()
            step = Step(at=at, stage=Stage.READING, outcome=outcome, reason=reason, subject=record.ref.id)
            await context.notes(step)


def _spoken(read: ItemReading, room: int) -> _Told:
    """The words with their times, line by line, as far as there is room."""
    lines, cost = list[str](), 0
    parts = [part for part in read.document.parts if part.text.strip()]
    for position, part in enumerate(parts):
        line = spoken_line(part)
        cost += estimate_tokens(line) + 1
        if cost > room and lines:
            return _told_until(read, lines, parts[position].number - 1)
        lines.append(line if cost <= room else cut(line, room * 2))
    if read.next is not None:
        return _told_until(read, lines, read.next)
    end = read.read_to if read.read_to is not None else read.seconds
    return _Told(text="\n".join(lines), covers=f"from {clock_time(read.read_from)} to {_end(end)}")


def _told_until(read: ItemReading, lines: Sequence[str], end: float) -> _Told:
    return _Told(
        text="\n".join(lines),
        covers=f"from {clock_time(read.read_from)} to {clock_time(end)}",
        more=f"go on with time_range={clock_time(end)}-",
    )


def _end(seconds: float | None) -> str:
    return "the end" if seconds is None else clock_time(seconds)


def spoken_line(part: Part) -> str:
    """What is said from a second on, with its time and speaker."""
    speaker = f"{clean_name(part.title)}: " if part.title else ""
    return f"{clock_time(part.number - 1)} {speaker}{one_line(part.text)}"


async def _paged(text: DocumentText, wish: RenderOptions, room: int) -> _Told:
    first, last = wish.pages or (1, None)
    place = TextPosition(part=first, offset=0, last=last or max(1, text.total))
    if wish.cursor is not None:
        place = parse_cursor(wish.cursor)
    page = await asyncio.to_thread(page_of, text, place, room=room, price=estimate_tokens)
    numbers = tuple(told.part for told in page.told)
    covers = f"{text.unit}s {numbers[0]}-{numbers[-1]} of {text.total}" if numbers else ""
    rest = str(page.rest) if page.rest else None
    more = f"go on with cursor={rest}" if rest else ""
    return _Told(text=page.text, covers=covers, pages=numbers, rest=rest, more=more)


def _cut(read: ItemReading, room: int) -> _Told:
    text = media_text(read.text)
    while estimate_tokens(text) > room:
        text = cut(text, max(1, len(text) * 9 // 10))
    goes_on = f"go on with pages={read.next:.0f}-" if read.next is not None else ""
    return _Told(text=text, more=goes_on)


def _about(read: ItemReading, told: _Told) -> str:
    covers = f" {told.covers}" if told.covers else ""
    how = "read before" if read.cached else f"read now by {one_line(read.provider)}"
    doubt = " It is uncertain: parts of it may be wrong." if read.uncertain else ""
    more = f"; {told.more}" if told.more else ""
    return f"Its {read.form}{covers}, {how}{more}.{doubt}"


def _blank_pages(read: ItemReading) -> list[int]:
    """Pages on which no text was found: drawings and photographs, for an agent that sees them."""
    return [part.number for part in read.document.parts if not part.text.strip()]


def _why_empty(read: ItemReading) -> str:
    if read.document.reason:
        return one_line(read.document.reason)
    if read.form is ReadingForm.TRANSCRIPT:
        return "nothing is said in it"
    return f"{read.document.unread or Unread.NO_TEXT}"
