"""Native blocks: a document or a sound in its own format, for a model that takes it as it is."""

from dataclasses import replace

from belino.domain.errors import MediaError
from belino.domain.media import AudioBlock, AudioFormats, Block, DocumentBlock, TextBlock, Unread
from belino.domain.stored import RefRecord
from belino.domain.units import clock_time, format_duration, format_size
from belino.media import stream_open
from belino.media.price import TEXT_TOKENS, Facts, audio_tokens, document_tokens, facts_of, is_heard
from belino.media.render import PARTS_AT_ONCE
from belino.media.renditions import CannotRender, Item, RenderOptions, head_of, why_unread
from belino.media.samples import FLAC, WAV
from belino.readers.parts import HIDDEN_NOTE
from belino.tools.tool_context import ToolContext

DOCUMENT, AUDIO = "document", "audio"
FORMS = (DOCUMENT, AUDIO)
HIDES = "it has text that its reader would not see"
WAV_BYTES = 32_000
"""A second of samples."""

_READABLE = (None, Unread.RENDERED, Unread.NO_TEXT)


class TooDear(MediaError):
    """The file costs the model more than may be spent."""


async def native_form(context: ToolContext, record: RefRecord, item: Item, wish: RenderOptions) -> str:
    """The form in which a file is given if none is named: its own, if the model takes it and it costs little."""
    facts = replace(facts_of(record), mime=item.blob.mime, size=item.blob.size, held=True)
    known = await context.renderer.known(facts, item.blob.sha256)
    formats, audio = context.accepts.documents, context.accepts.audio
    room = wish.max_tokens or TEXT_TOKENS
    if formats is not None and item.blob.mime in formats.mimes and document_tokens(known, formats) <= room:
        return DOCUMENT
    if audio is not None and is_heard(known, audio) and audio_tokens(known.seconds, known.size, audio) <= room:
        return AUDIO
    return ""


def why_not(context: ToolContext, form: str, mime: str) -> str:
    """Why the agent cannot have a file of this type in this form; empty if it may."""
    documents, audio = context.accepts.documents, context.accepts.audio
    if form == DOCUMENT and (documents is None or mime not in documents.mimes):
        return f"your model takes no {mime} as it is"
    if form == AUDIO and (audio is None or not is_heard(Facts(mime=mime), audio)):
        return "your model hears no sounds" if audio is None else f"{mime} is no sound"
    return ""


async def as_native(
    context: ToolContext, record: RefRecord, item: Item, wish: RenderOptions, form: str
) -> tuple[Block, ...]:
    """The file itself, after our words about it; CannotRender with the reason if the model would not take it."""
    if why := why_not(context, form, item.blob.mime):
        raise CannotRender(why)
    block: DocumentBlock | AudioBlock
    if form == DOCUMENT:
        block, said, is_whole = *await _document(context, record, item), True
    else:
        block, said, is_whole = await _audio(context, record, item, wish)
    if wish.max_tokens is not None and block.tokens > wish.max_tokens:
        raise TooDear(f"it costs about {block.tokens} tokens as it is")
    await context.note(record, f"the {form} itself", block.tokens)
    if is_whole:
        context.shown_now.update((record.ref.id, item.blob.sha256))
        if context.shown:
            context.shown(block)
    return TextBlock(text=f"{head_of(item)}{said}"), block


async def _document(context: ToolContext, record: RefRecord, item: Item) -> tuple[DocumentBlock, str]:
    """A document that the sandbox could read, and our words about it: the provider gets the sender's bytes."""
    formats, blob = context.accepts.documents, item.blob
    assert formats is not None
    if blob.size > formats.max_bytes:
        raise CannotRender(f"{format_size(blob.size)} is more than your model takes ({format_size(formats.max_bytes)})")
    most = min(formats.max_pages, PARTS_AT_ONCE)  # what the sandbox has looked through
    text = await context.renderer.reading(blob, mime=blob.mime, name=item.name, last=most)
    if text.unread not in _READABLE or not text.total:
        raise CannotRender(why_unread(text))
    if text.total > most:
        raise CannotRender(f"it has {text.total} pages, and your model takes {most}")
    if HIDDEN_NOTE in text.notes:
        raise CannotRender(HIDES)  # which text marks, and a model that reads the file itself takes for the author's
    data = await context.fetcher.read(blob, formats.max_bytes)
    if b"/Encrypt" in data:
        raise CannotRender("it is encrypted")  # which providers refuse, even if it opens without a password
    facts = await context.renderer.known(Facts(mime=blob.mime, size=blob.size), blob.sha256)
    block = DocumentBlock(
        mime=blob.mime,
        data=data,
        ref=record.ref.id,
        sha256=blob.sha256,
        tokens=document_tokens(replace(facts, parts=text.total), formats),
        pages=text.total,
    )
    return block, f", {text.total} page{'' if text.total == 1 else 's'}. You have it as it is."


async def _audio(
    context: ToolContext, record: RefRecord, item: Item, wish: RenderOptions
) -> tuple[AudioBlock, str, bool]:
    """A sound or a part of it, our words about it, and whether it is all of it."""
    formats = context.accepts.audio
    assert formats is not None
    lasts = (await context.renderer.sound(item.blob)).seconds
    if not lasts:
        raise CannotRender("it does not tell how long it lasts")
    start, wanted = wish.times or (0.0, None)
    end = min(lasts, wanted if wanted is not None else lasts)
    most = min(formats.max_seconds, formats.max_bytes / WAV_BYTES)
    if start >= end:
        raise CannotRender(f"it lasts only {clock_time(lasts)}; ask for a time before that")
    if end - start > most:
        span = f"{clock_time(start)}-{clock_time(start + most)}"
        raise CannotRender(f"your model takes {format_duration(most)} at a time", f"time_range={span} gives a part")
    mime, data = await _samples(context, item, formats, (start, end))
    is_whole = (start, end) == (0.0, lasts)
    part = "" if is_whole else f" from {clock_time(start)} to {clock_time(end)}"
    block = AudioBlock(
        mime=mime,
        data=data,
        ref=record.ref.id,
        sha256=item.blob.sha256,
        tokens=audio_tokens(end - start, None, formats),
        seconds=end - start,
    )
    return block, f". It lasts {format_duration(lasts)}. You hear it{part}.", is_whole


async def _samples(
    context: ToolContext, item: Item, formats: AudioFormats, window: tuple[float, float]
) -> tuple[str, bytes]:
    """A sound without its metadata; without a decoder, the file itself if the model takes its format."""
    (start, end), blob = window, item.blob
    if stream_open.installed():
        mime = FLAC if FLAC in formats.mimes else WAV
        return mime, await context.renderer.samples(blob, start=start, end=end, mime=mime)
    if blob.mime in formats.mimes and blob.size <= formats.max_bytes:
        return blob.mime, await context.fetcher.read(blob, formats.max_bytes)
    raise CannotRender(f"your model takes no {blob.mime}, and nothing here converts it")
