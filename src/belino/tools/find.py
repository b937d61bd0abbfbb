"""Find words in one media item: the passages of its text, transcript or recognised text that have them."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from belino.context.readings import media_text
from belino.domain.errors import ToolError
from belino.domain.media import DocumentText, DocumentUnit
from belino.domain.reading import ReadingForm
from belino.domain.safe_text import clean_name
from belino.domain.stored import RefRecord
from belino.domain.tokens import estimate_tokens
from belino.domain.units import clock_time, format_size, span
from belino.media.documents import scanned_pages
from belino.media.paging import clean, under_headings
from belino.media.price import PDF, has_text
from belino.media.renditions import CannotRender, Item, Rendered, RenderOptions, why_unread
from belino.media.subtitles import TYPES as SUBTITLED
from belino.search.excerpt import BestLines, TextLine, best_lines
from belino.tools.readings import offered_forms, read_form, spoken_line
from belino.tools.tool_context import ToolContext

FIND_TOKENS = 700
"""What an answer may cost if the agent sets no limit."""
_WORDS = 90
"""Tokens for our words around the passages."""
_WORDS_NAMED = 6
LINE_CHARS = 240
GAP = "…"

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*(?=\S)")
_FORMS = {"image": (ReadingForm.TEXT, ReadingForm.DESCRIPTION), "audio": (ReadingForm.TRANSCRIPT,)}
_VIDEO = (ReadingForm.TRANSCRIPT, ReadingForm.TEXT, ReadingForm.DESCRIPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The text of an item in one form, as far as it was read."""

    what: str
    document: DocumentText
    more: str = ""
    """Where the text goes on that was not searched, for an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passages:
    """The lines of a document that have the words, and those around them."""

    document: DocumentText
    """The parts with matches, of each only the chosen lines."""
    lines: BestLines


async def find_in(
    context: ToolContext, record: RefRecord, item: Item, form: str, wish: RenderOptions, wanted: str
) -> Rendered:
    """The passages with the wanted words, in the first form of the item that has some; all of a short text."""
    room = max(1, (wish.max_tokens or FIND_TOKENS) - _WORDS)
    searched: list[_Text] = []
    refused = ToolError(
        f"{record.ref.id}: nothing reads {item.blob.mime} as text here; as=file gives a copy in your folder"
    )
    for kind in _kinds(context, item, form):
        try:
            text = await _read(context, record, item, kind, wish)
        except (ToolError, CannotRender) as error:
            refused = ToolError(str(error))
            continue
        searched.append(text)
        found = await asyncio.to_thread(_passages, text.document, wanted, room)
        if found.document.parts:
            return _rendered(item, text, found, room)
    if not searched:
        raise refused
    return _nothing(item, searched, wanted, room)


def _kinds(context: ToolContext, item: Item, form: str) -> Sequence[ReadingForm | None]:
    """The forms to search, in order; None is the text that belino reads itself."""
    if form in (ReadingForm.TRANSCRIPT, ReadingForm.DESCRIPTION):
        return (ReadingForm(form),)
    if has_text(item.blob.mime):
        return (None,)
    major = item.blob.mime.partition("/")[0]
    offered = offered_forms(context)
    read = [each for each in _FORMS.get(major, _VIDEO if major == "video" else ()) if each in offered]
    return [None, *read] if item.blob.mime in SUBTITLED else read


async def _read(
    context: ToolContext, record: RefRecord, item: Item, form: ReadingForm | None, wish: RenderOptions
) -> _Text:
    if form is not None:
        read = await read_form(context, record, item.blob, form, wish)
        return _Text(what=form.value, document=read.document, more=_goes_on(read.document.unit, read.next))
    text = await _document(context, item, wish)
    if item.blob.mime == PDF and scanned_pages(text) and context.understanding is not None:
        read = await read_form(context, record, item.blob, ReadingForm.TEXT, wish)
        return _Text(what="text", document=read.document, more=_goes_on(read.document.unit, read.next))
    if not any(part.text.strip() for part in text.parts):
        raise CannotRender(f"{record.ref.id}: {why_unread(text)}")
    return _Text(what="text", document=text)


async def _document(context: ToolContext, item: Item, wish: RenderOptions) -> DocumentText:
    """All parts of a document, or the requested ones."""
    first, last = wish.pages or (1, None)
    blob = item.blob
    text = await context.renderer.reading(blob, mime=blob.mime, name=item.name, first=first)
    while text.parts and text.parts[-1].number < min(last or text.total, text.total):
        after = text.parts[-1].number + 1
        more = await context.renderer.reading(blob, mime=blob.mime, name=item.name, first=after)
        if not more.parts:
            break
        text = replace(text, parts=(*text.parts, *more.parts))
    return replace(text, parts=tuple(part for part in text.parts if last is None or part.number <= last))


def _goes_on(unit: DocumentUnit, place: float | None) -> str:
    if place is None:
        return ""
    return f"time_range={clock_time(place)}-" if unit is DocumentUnit.SECOND else f"pages={place:.0f}-"


def _passages(document: DocumentText, wanted: str, room: int) -> _Passages:
    own = [(at, line) for at, part in enumerate(document.parts) for line in _lines(clean(part.text))]
    # The parts of a sound are seconds: what is said in one goes on in the next.
    sections = [0 if document.unit is DocumentUnit.SECOND else at for at, _ in own]
    lines = [TextLine(text=line, section=section) for (_, line), section in zip(own, sections, strict=True)]
    found = best_lines(lines, wanted, room=room, price=estimate_tokens)
    texts: dict[int, list[str]] = {}
    for place, (at, line) in enumerate(own):
        told = texts.setdefault(at, [])
        if place in found.chosen:
            told.append(line)
        elif not told or told[-1] != GAP:
            told.append(GAP)
    parts = tuple(
        replace(part, text="\n".join(texts[at]))
        for at, part in enumerate(document.parts)
        if at in texts and texts[at] != [GAP]
    )
    return _Passages(document=replace(document, parts=parts), lines=found)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text; a long one is divided at its sentences, or at least between words."""
    for line in text.split("\n"):
        piece = ""
        for sentence in _SENTENCE.split(line) if len(line) > LINE_CHARS else [line]:
            if piece and len(piece) + len(sentence) > LINE_CHARS:
                yield piece
                piece = ""
            piece = f"{piece} {sentence}".strip()
            while len(piece) > LINE_CHARS:
                blank = piece.rfind(" ", 1, LINE_CHARS)
                end = blank if blank > 0 else LINE_CHARS
                yield piece[:end].rstrip()
                piece = piece[end:].lstrip()
        if piece:
            yield piece


def _rendered(item: Item, text: _Text, found: _Passages, room: int) -> Rendered:
    whole = _written(text.document)
    if estimate_tokens(whole) <= room:
        return Rendered(about=_about(item, text, "You read all of it."), what=f"all of its {text.what}", text=whole)
    shown = found.document
    words = ", ".join(clean_name(word) for word in found.lines.words[:_WORDS_NAMED])
    left = found.lines.left
    more = f"; {left} more lines have them" if left else ""
    said = f"Passages with {words}: {_places(shown)}{more}."
    return Rendered(about=_about(item, text, said), what=f"passages of its {text.what}", text=_written(shown))


def _nothing(item: Item, searched: Sequence[_Text], wanted: str, room: int) -> Rendered:
    """No passage has the words: all of a short text, and no more than that of a long one."""
    text = searched[0]
    said = f"No passage has the words {clean_name(wanted)!r}"
    whole = _written(text.document)
    if estimate_tokens(whole) <= room:
        return Rendered(about=_about(item, text, f"{said}; this is all of it."), what=f"its {text.what}", text=whole)
    about = _about(item, text, f"{said}; other words, or fewer, may find it, and as=text reads it.")
    return Rendered(about=about, what=f"no passage of its {text.what}")


def _about(item: Item, text: _Text, said: str) -> str:
    document = text.document
    parts = "" if document.unit is DocumentUnit.SECOND else f", {document.total} {document.unit}"
    parts += "s" if parts and document.total != 1 else ""
    more = f" Not searched yet: {text.more}." if text.more else ""
    return f"{item.title}: {text.what} of {item.blob.mime}, {format_size(item.blob.size)}{parts}. {said}{more}"


def _places(document: DocumentText) -> str:
    numbers = [part.number for part in document.parts]
    if document.unit is DocumentUnit.SECOND:
        return ", ".join(clock_time(number - 1) for number in numbers)
    return f"{document.unit}{'' if len(numbers) == 1 else 's'} {span(numbers)}"


def _written(document: DocumentText) -> str:
    """The parts for an agent, each under its heading, or with its time."""
    if document.unit is not DocumentUnit.SECOND:
        return media_text(under_headings(document))
    return "\n".join(spoken_line(part) for part in document.parts if part.text.strip())
