"""Channel tool channel_messages: a thread, messages by id and a media item, in full, in one answer."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from belino.context.json_format import json_text, media_json, message_json, spoken_json, thread_json
from belino.context.line_format import (
    TimeColumn,
    carried_marks,
    header,
    labels,
    line,
    placeholder,
    short_time,
    shown_id,
    spoken_marks,
)
from belino.context.readings import carried_words, words_of
from belino.context.search import named_messages
from belino.context.snapshot import context_message
from belino.domain.context import ThreadContext, Truncation
from belino.domain.errors import ToolError
from belino.domain.graphemes import cut
from belino.domain.media import Block, FileBlock, MediaRef, TextBlock
from belino.domain.message import UNKNOWN_NAME, Quote
from belino.domain.outcome import MediaOutcome
from belino.domain.safe_text import clean_name, disarm
from belino.domain.stored import RefRecord, StoredMessage
from belino.domain.turn import ToolSpec
from belino.tools.arguments import Arguments
from belino.tools.media import FORMATS, item_json, read_cursor, wish_of
from belino.tools.renditions import Ask, fetch_record
from belino.tools.tool_context import NO_MEDIA, ToolContext, known_ref

MESSAGE_CHARS = 40_000
REPLIES_DEFAULT, REPLIES_MOST = 50, 200
REPLIES_CHARS = 60_000
"""The most characters of replies on one page. One reply is always included."""

CHANNEL_MESSAGES = ToolSpec(
    name="channel_messages",
    description=(
        "Read this channel in full: a thread by the id of its first message (thread_id: that message and the newest "
        "max_replies replies), messages by their ids (message_ids), a media item by its ref (media_artifact_id, as "
        "fetch_media gives it), or several of these at once."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "thread_id": {"type": "string", "description": "The id of the first message, or of any in the thread."},
            "message_ids": {
                "type": "array",
                "items": {"type": "string"},
            },
            "media_artifact_id": {"type": "string"},
            "max_replies": {"type": "integer"},
            "cursor": {"type": "string", "description": "Replies before those of a page; alone: of the channel."},
            "again": {"type": "boolean"},
            "format": {"type": "string", "enum": list(FORMATS)},
        },
    },
)


async def channel_messages(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """A thread, messages by id and a media item as `fetch_media` returns it: whatever was asked for, in one answer."""
    known = ("thread_id", "message_ids", "media_artifact_id", "max_replies", "cursor", "again", "format")
    arguments = Arguments(given, known)
    thread, ids = arguments.text("thread_id"), arguments.texts("message_ids")
    artifact, again = arguments.ref("media_artifact_id"), arguments.flag("again")
    style = arguments.choice("format", FORMATS, "compact")
    limit = arguments.number("max_replies", default=REPLIES_DEFAULT, most=REPLIES_MOST)
    before = read_cursor(arguments.text("cursor"))
    if thread is None and ids is None and artifact is None and before is None:
        raise ToolError("give thread_id, message_ids or media_artifact_id, or several of them")
    page, note = (None, "") if thread is None else await _thread(context, thread, before=before, limit=limit)
    earlier = None
    if thread is None and before is not None:
        earlier = await _earlier(context, before=before, limit=limit)
    named = {} if ids is None else await named_messages(context.library, context.channel, ids)
    media = None
    if artifact is not None:
        alone = thread is None and ids is None
        media = await _media(context, artifact, again=again, alone=alone)
        if media is None and alone and style != "json":
            raise ToolError(NO_MEDIA)
    found = _Found(
        page=page,
        earlier=earlier,
        messages=None if ids is None else [message for message in named.values() if message is not None],
        media=media,
        missing=(
            *((thread,) if thread is not None and page is None else ()),
            *(name for name, message in named.items() if message is None),
            *((artifact,) if artifact is not None and media is None else ()),
        ),
        note=note,
    )
    text = await _as_json(context, found) if style == "json" else await _as_lines(context, found)
    return arguments.reported((TextBlock(text=text), *(media.shown if media is not None else ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownMedia:
    """A media item as `fetch_media` gives it: our words, then its picture or file."""

    ref: str
    record: RefRecord | None
    """None if its sender deleted it."""
    words: str
    shown: tuple[Block, ...] = ()
    failed: bool = False
    """Whether the words say why it cannot be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found of everything that was asked for."""

    page: "MessagePage | None"
    earlier: "ChannelPage | None"
    messages: Sequence[StoredMessage] | None
    media: _ShownMedia | None
    missing: Sequence[str]
    note: str


async def _media(context: ToolContext, ref_id: str, *, again: bool, alone: bool) -> _ShownMedia | None:
    """The item; None if it is unknown. Why it cannot be shown is told beside the rest, or raised if there is none."""
    record = None
    try:
        record = await known_ref(context, ref_id)
        if record is None:
            return None
        words, *shown = await fetch_record(context, record, Ask(wish=wish_of(context), again=again))
    except ToolError as error:
        if alone:
            raise
        return _ShownMedia(ref=ref_id, record=record, words=str(error), failed=True)
    assert isinstance(words, TextBlock)
    return _ShownMedia(ref=ref_id, record=record, words=words.text, shown=tuple(shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """A thread's first message and some of its replies, and the range of the omitted ones."""

    thread_id: str
    root: StoredMessage | None
    replies: tuple[StoredMessage, ...]
    total: int | None
    """None if the platform could not be asked, and did not report it."""
    omitted: tuple[datetime, datetime] | None
    """When the first and the last of the older replies were sent."""

    @property
    def cursor(self) -> str | None:
        return str(self.replies[0].seq) if self.omitted else None

    @property
    def messages(self) -> tuple[StoredMessage, ...]:
        return (self.root, *self.replies) if self.root else self.replies


async def _thread(context: ToolContext, name: str, *, before: int | None, limit: int) -> tuple[MessagePage | None, str]:
    """A page of the thread, and a note if the platform could not be asked for it."""
    named = (await named_messages(context.library, context.channel, [name]))[name]
    root = name if named is None else named.root or named.id
    note = await context.history.thread(context.channel, root) if context.history else ""
    return await _page(context, root, before=before, limit=limit, is_whole=not note), note


async def _page(
    context: ToolContext, root: str, *, before: int | None, limit: int, is_whole: bool
) -> MessagePage | None:
    found = await context.library.thread(context.channel, root, before=before, limit=limit + 1)
    if found is None:
        return None
    first = _first_shown(found.replies, limit)
    omitted = (found.first or found.replies[0].sent, found.replies[first - 1].sent) if first else None
    return MessagePage(
        thread_id=root,
        root=found.root,
        replies=found.replies[first:],
        total=found.total if is_whole or found.is_reported else None,
        omitted=omitted,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPage:
    """Messages of the channel itself, and how many are older."""

    messages: tuple[StoredMessage, ...]
    older: int

    @property
    def cursor(self) -> str | None:
        return str(self.messages[0].seq) if self.older and self.messages else None


async def _earlier(context: ToolContext, *, before: int, limit: int) -> ChannelPage:
    found, older = await context.library.said_before(context.channel, before=before, limit=limit)
    first = _first_shown(found, limit)
    return ChannelPage(messages=found[first:], older=older + first)


def _first_shown(messages: Sequence[StoredMessage], limit: int) -> int:
    """Where a page begins: it holds the newest of these, at least one, up to a number and a length."""
    first, used = len(messages), 0
    while first and len(messages) - first < limit:
        used += min(len(words_of(messages[first - 1])), MESSAGE_CHARS)
        if used > REPLIES_CHARS and first < len(messages):
            break
        first -= 1
    return first


def _page_json(page: MessagePage) -> dict[str, object]:
    thread = ThreadContext(
        thread_id=page.thread_id,
        root=None,
        replies=(),
        truncation=Truncation(
            total_replies=page.total, included_replies=len(page.replies), omitted_range_ts=page.omitted
        ),
    )
    return thread_json(thread) | {
        "root": _message_json(page.root) if page.root else None,
        "replies": [_message_json(reply) for reply in page.replies],
        "next_cursor": page.cursor,
    }


async def _as_lines(context: ToolContext, found: _Found) -> str:
    today = context.clock.now()
    lines = [f"Note: {found.note}"] if found.note else []
    if found.page is not None:
        lines += [_thread_line(found.page, today), *await _lines(context, found.page.messages, today)]
    if found.earlier is not None:
        lines += [_channel_line(found.earlier), *await _lines(context, found.earlier.messages, today)]
    if found.messages:
        lines += await _lines(context, found.messages, today)
    if found.media is not None:
        lines.append(found.media.words)
    if found.missing:
        lines.append(f"Not found in this channel: {line([', '.join(clean_name(name) for name in found.missing)])}")
    return "\n".join(lines)


def _thread_line(page: MessagePage, today: datetime) -> str:
    name = shown_id(page.root.short_id or page.root.id if page.root else page.thread_id)
    told = f"Thread {name}: {len(page.replies)} "
    told += "replies; how many there are is not known" if page.total is None else f"of {page.total} replies"
    if page.root is None:
        told += "; its first message is not here"
    if page.omitted:
        told += f"; older ones from {short_time(page.omitted[0], today)} on: cursor={page.cursor}"
    return told


def _channel_line(page: ChannelPage) -> str:
    told = f"{len(page.messages)} messages of the channel itself"
    return f"{told}; {page.older} older: cursor={page.cursor}" if page.cursor else told


async def _lines(context: ToolContext, messages: Sequence[StoredMessage], today: datetime) -> list[str]:
    times = TimeColumn(today)
    return [
        *([header(today)] if messages else []),
        *[await _line(context, message, times.write(message.sent)) for message in messages],
    ]


async def _line(context: ToolContext, message: StoredMessage, time: str) -> str:
    """A message as in a thread's context; what it carries is not shortened, and comes with its media."""
    marks = labels(message.author, message.is_observed) + spoken_marks(message.spoken)
    marks += carried_marks(message.quote, message.forward)
    is_cut = len(words_of(message)) > MESSAGE_CHARS
    facts = ((is_cut, "cut"), (message.edited, "edited"), (message.deleted, "deleted"))
    marks += [mark for is_so, mark in facts if is_so]
    author = clean_name(message.author.name) or UNKNOWN_NAME
    told = await _told(context, message.media, context_message(message, MESSAGE_CHARS).text)
    carried = " / ".join([words async for words in _carried(context, message)])
    fields = [message.short_id or disarm(message.id), time, author, told]
    fields += [f"({', '.join(marks)})"] if marks or carried else []
    return line([*fields, carried] if carried else fields)


async def _carried(context: ToolContext, message: StoredMessage) -> AsyncIterator[str]:
    """What it replies to and what it forwards."""
    for label, carried in (("in reply to", message.quote), ("forwarded from", message.forward)):
        if carried is not None:
            author = clean_name(carried.author.name) if carried.author else ""
            words = cut(carried_words(carried), MESSAGE_CHARS)
            yield f"{label} {author or UNKNOWN_NAME}: {await _told(context, carried.media, words)}"


async def _told(context: ToolContext, media: Sequence[MediaRef], words: str) -> str:
    """Media as placeholders, then the words; a caption is told once."""
    placeholders = []
    for ref in media:
        record = await context.library.ref(context.channel, ref.id)
        outcome = record.outcome if record else MediaOutcome.NOT_FOUND
        is_told = ref.caption is not None and ref.caption in words
        placeholders.append(placeholder(replace(ref, caption=None) if is_told else ref, outcome))
    return " ".join(filter(None, [*placeholders, disarm(words)]))


async def _as_json(context: ToolContext, found: _Found) -> str:
    told: dict[str, object] = {}
    if found.page is not None:
        told["thread"] = _page_json(found.page)
    if found.earlier is not None:
        told["channel"] = {
            "messages": [_message_json(message) for message in found.earlier.messages],
            "older": found.earlier.older,
            "next_cursor": found.earlier.cursor,
        }
    if found.messages is not None:
        told["messages"] = [_message_json(message) for message in found.messages]
    if found.media is not None:
        told["media"] = await _media_item_json(context, found.media)
    told["not_found"] = list(found.missing)
    return json_text(told | ({"note": found.note} if found.note else {}))


async def _media_item_json(context: ToolContext, media: _ShownMedia) -> dict[str, object]:
    told: dict[str, object] = (
        {"artifact_id": media.ref} if media.record is None else await item_json(context, media.record)
    )
    if media.failed:
        return told | {"error": media.words}
    paths = [f"{block.path.parent.name}/{block.path.name}" for block in media.shown if isinstance(block, FileBlock)]
    return told | {"note": media.words, "path": paths[0] if paths else None}


def _message_json(message: StoredMessage) -> dict[str, object]:
    told = message_json(context_message(message, MESSAGE_CHARS))
    return told | {
        "reply_to": _carried_json(message.quote, message.reply_to),
        "forward": _carried_json(message.forward),
    }


def _carried_json(carried: Quote | None, message_id: str | None = None) -> dict[str, object] | None:
    if carried is None:
        return None if message_id is None else {"message_id": disarm(message_id)}
    author = clean_name(carried.author.name) if carried.author else None
    return {
        "message_id": disarm(carried.message_id or message_id or "") or None,
        "author": author,
        "text": cut(disarm(carried_words(carried)), MESSAGE_CHARS),
        "media": [media_json(ref) for ref in carried.media],
    } | spoken_json(carried.spoken)
