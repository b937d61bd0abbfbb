"""Channel tools: channel_context searches the channel, channel_messages reads a thread or messages in full."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from belino.context.json_format import json_text, media_json, message_json, spoken_json, thread_json
from belino.context.line_format import carried_marks, header, labels, line, short_time, spoken_marks
from belino.context.search import results_json, results_lines, search
from belino.context.snapshot import carried_words, context_message, words_of, written_in
from belino.domain.context import ThreadContext, Truncation
from belino.domain.errors import ToolError
from belino.domain.graphemes import cut
from belino.domain.media import Block, MediaRef, TextBlock
from belino.domain.message import Quote
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.safe_text import clean_name, disarm
from belino.domain.search import SearchPage
from belino.domain.stored import StoredMessage
from belino.domain.turn import ToolSpec
from belino.media.placeholder import placeholder
from belino.tools.arguments import LIST_ITEMS, Arguments
from belino.tools.media import FORMATS, read_cursor, wish_of
from belino.tools.renditions import Ask, fetch_one
from belino.tools.tool_context import ToolContext

RESULTS_DEFAULT, RESULTS_MOST = 8, 50
INTENT_CHARS = 2_000

CHANNEL_CONTEXT = ToolSpec(
    name="channel_context",
    description=(
        "Search everything that was said in this channel, and the documents that were read. intent: what you want to "
        "know, in the words people here would have used; names, dates, ids and “quoted phrases” count. Each result "
        "shows the words that matter, and why it was chosen; channel_messages gives them in full."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "intent": {"type": "string", "minLength": 1, "maxLength": INTENT_CHARS},
            "since": {"type": "string", "description": "Only from then on: ISO 8601, or how long ago: 2h, 3d."},
            "authors": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": LIST_ITEMS,
                "description": "Names of people whose words count more.",
            },
            "max_results": {"type": "integer", "minimum": 1, "maximum": RESULTS_MOST, "default": RESULTS_DEFAULT},
            "cursor": {"type": "string", "description": "From the end of the results before, with the same intent."},
            "format": {"type": "string", "enum": list(FORMATS), "default": "compact"},
        },
        "required": ["intent"],
    },
)

MESSAGE_CHARS = 40_000
REPLIES_DEFAULT, REPLIES_MOST = 50, 200
REPLIES_CHARS = 60_000
"""The most characters of replies on one page. One reply is always included."""

CHANNEL_MESSAGES = ToolSpec(
    name="channel_messages",
    description=(
        "Read this channel in full: a thread by the id of its first message (thread_id: that message and the newest "
        "max_replies replies), messages by their ids (message_ids), or a media item by its ref (media_artifact_id, as "
        "fetch_media gives it). Ids that are not of this channel are listed as not found."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "thread_id": {"type": "string", "description": "The id of the first message, or of any in the thread."},
            "message_ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": LIST_ITEMS,
            },
            "media_artifact_id": {"type": "string"},
            "max_replies": {"type": "integer", "minimum": 1, "maximum": REPLIES_MOST, "default": REPLIES_DEFAULT},
            "cursor": {"type": "string", "description": "With thread_id: the replies before those told last."},
            "format": {"type": "string", "enum": list(FORMATS), "default": "compact"},
        },
    },
)


async def channel_context(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """The messages that match an intent best, without the one being answered."""
    arguments = Arguments(given, ("intent", "since", "authors", "max_results", "cursor", "format"))
    now = context.clock.now()
    intent = arguments.words("intent", most=INTENT_CHARS)
    since, authors = arguments.since("since", now), arguments.texts("authors") or ()
    limit = arguments.number("max_results", default=RESULTS_DEFAULT, most=RESULTS_MOST)
    cursor = arguments.text("cursor")
    style = arguments.choice("format", FORMATS, "compact")
    note = await context.history.channel(context.channel) if context.history else ""
    ask = partial(search, context.archive, context.channel, intent, now=now, since=since, authors=authors)
    found = await _others(ask, context.answers, limit, cursor)
    if style == "json":
        return (TextBlock(text=json_text(results_json(found) | ({"note": note} if note else {}))),)
    text = results_lines(found, intent, now=now)
    return (TextBlock(text=f"Note: {note}\n{text}" if note else text),)


async def _others(
    ask: Callable[..., Awaitable[SearchPage]], answers: Collection[str], limit: int, cursor: str | None
) -> SearchPage:
    """A page without the question itself, which contains the words of the intent and no answer."""
    found = await ask(limit=limit, cursor=cursor)
    others = [result for result in found.results if result.message_id not in answers]
    missing, more = len(found.results) - len(others), found.next_cursor
    while missing and more is not None:
        rest = await ask(limit=missing, cursor=more)
        new = [result for result in rest.results if result.message_id not in answers]
        others, missing, more = [*others, *new], missing - len(new), rest.next_cursor
    return replace(found, results=tuple(others), next_cursor=more)


async def channel_messages(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """A thread, messages by id, or a media item as `fetch_media` returns it."""
    known = ("thread_id", "message_ids", "media_artifact_id", "max_replies", "cursor", "format")
    arguments = Arguments(given, known)
    thread, ids = arguments.text("thread_id"), arguments.texts("message_ids")
    artifact = arguments.text("media_artifact_id")
    style = arguments.choice("format", FORMATS, "compact")
    limit = arguments.number("max_replies", default=REPLIES_DEFAULT, most=REPLIES_MOST)
    before = read_cursor(arguments.text("cursor"))
    if sum(value is not None for value in (thread, ids, artifact)) != 1:
        raise ToolError("give one of thread_id, message_ids or media_artifact_id")
    if artifact is not None:
        return await fetch_one(context, artifact, Ask(wish=wish_of(context)))
    if thread is not None:
        return (TextBlock(text=await _thread(context, thread, before=before, limit=limit, style=style)),)
    assert ids is not None
    found = await context.library.messages(context.channel, ids)
    by_id = {message.id: message for message in found}
    messages = [by_id[name] for name in ids if name in by_id]
    missing = [name for name in ids if name not in by_id]
    text = _as_json(messages, missing) if style == "json" else await _as_lines(context, messages, missing)
    return (TextBlock(text=text),)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """A thread's first message and some of its replies, and the range of the omitted ones."""

    thread_id: str
    root: StoredMessage | None
    replies: tuple[StoredMessage, ...]
    total: int
    omitted: tuple[datetime, datetime] | None
    """When the first and the last of the older replies were sent."""

    @property
    def cursor(self) -> str | None:
        return str(self.replies[0].seq) if self.omitted else None


async def _thread(context: ToolContext, name: str, *, before: int | None, limit: int, style: str) -> str:
    named = next(iter(await context.library.messages(context.channel, [name])), None)
    root = named.root if named is not None and named.root is not None else name
    note = await context.history.thread(context.channel, root) if context.history else ""
    page = await _page(context, root, before=before, limit=limit)
    if style == "json":
        found = {"not_found": [name]} if page is None else {"thread": _page_json(page), "not_found": []}
        return json_text(found | ({"note": note} if note else {}))
    lines = [f"Note: {note}"] if note else []
    lines.append(await _as_lines(context, (), [name]) if page is None else await _page_lines(context, page))
    return "\n".join(lines)


async def _page(context: ToolContext, root: str, *, before: int | None, limit: int) -> MessagePage | None:
    found = await context.library.thread(context.channel, root, before=before, limit=limit + 1)
    if found is None:
        return None
    first, used = len(found.replies), 0
    while first and len(found.replies) - first < limit:
        used += min(len(words_of(found.replies[first - 1])), MESSAGE_CHARS)
        if used > REPLIES_CHARS and first < len(found.replies):
            break
        first -= 1
    omitted = (found.first or found.replies[0].sent, found.replies[first - 1].sent) if first else None
    return MessagePage(
        thread_id=root, root=found.root, replies=found.replies[first:], total=found.total, omitted=omitted
    )


async def _page_lines(context: ToolContext, page: MessagePage) -> str:
    told = f"Thread {line([clean_name(page.thread_id)])}: {len(page.replies)} of {page.total} replies"
    if page.root is None:
        told += "; its first message is not here"
    if page.omitted:
        told += f"; older ones from {short_time(page.omitted[0], context.clock.now())} on: cursor={page.cursor}"
    messages = (page.root, *page.replies) if page.root else page.replies
    return f"{told}\n{await _as_lines(context, messages, ())}"


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


async def _as_lines(context: ToolContext, messages: Sequence[StoredMessage], missing: Sequence[str]) -> str:
    today = context.clock.now()
    lines = []
    if messages:
        lines.append(header(today))
        lines += [await _line(context, message, today) for message in messages]
    if missing:
        lines.append(f"Not found in this channel: {line([', '.join(clean_name(name) for name in missing)])}")
    return "\n".join(lines)


async def _line(context: ToolContext, message: StoredMessage, today: datetime) -> str:
    """A message with all its content; quotes are not shortened as they are in a prompt."""
    marks = labels(message.author, message.standing is not Standing.MAY_COMMAND) + spoken_marks(message.spoken)
    marks += carried_marks(message.quote, message.forward)
    is_cut = len(words_of(message)) > MESSAGE_CHARS
    facts = ((is_cut, "cut"), (message.edited, "edited"), (message.deleted, "deleted"))
    marks += [mark for is_so, mark in facts if is_so]
    author = clean_name(message.author.name) or "somebody"
    fields = [disarm(message.id), short_time(message.sent, today), author, await _told(context, message)]
    return line([*fields, f"({', '.join(marks)})"] if marks else fields)


async def _told(context: ToolContext, message: StoredMessage) -> str:
    """Its quote or forward, its media, and its text."""
    parts: list[str] = []
    for label, carried in (("in reply to", message.quote), ("forwarded from", message.forward)):
        if carried is not None:
            author = clean_name(carried.author.name) if carried.author else ""
            words = cut(disarm(carried_words(carried)), MESSAGE_CHARS)
            parts.append(f"({label} {author or 'somebody'}: {words})")
            parts += [await _placeholder(context, ref) for ref in carried.media]
    parts += [await _placeholder(context, ref) for ref in message.media]
    captions = {ref.caption for ref in message.media}
    words = context_message(message, MESSAGE_CHARS).text
    if message.spoken is not None and written_in(message) in captions:
        words = cut(message.spoken.text, MESSAGE_CHARS)
    if words and words not in captions:
        parts.append(disarm(words))
    return "\n".join(parts)


async def _placeholder(context: ToolContext, ref: MediaRef) -> str:
    record = await context.library.ref(context.channel, ref.id)
    return placeholder(ref, record.outcome if record else MediaOutcome.NOT_FOUND)


def _as_json(messages: Sequence[StoredMessage], missing: Sequence[str]) -> str:
    return json_text({"messages": [_message_json(message) for message in messages], "not_found": list(missing)})


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
