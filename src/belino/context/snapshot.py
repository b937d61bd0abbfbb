"""Snapshot of a conversation when a session begins: the message being answered, what was said before it, its thread.

The channel is included as excerpts of its last messages; the thread with its first message, the newest replies that
fit, and how many are omitted.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, tee

from belino.context.budget import WORTH_A_LINE, ContextConfig, newest_that_fit
from belino.context.json_format import adjacent_json, json_text, message_json, snapshot_json, thread_json
from belino.context.line_format import answered_line, message_line, reaction_mark, snippet_line
from belino.domain.context import AdjacentMessage, ChannelSnapshot, ContextMessage, ThreadContext, Truncation
from belino.domain.graphemes import cut
from belino.domain.message import Quote, SpokenText
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.safe_text import one_line
from belino.domain.stored import Nearby, StoredMessage, Surroundings, ThreadSlice
from belino.domain.tokens import estimate_tokens
from belino.storage.library_verbs import LibraryVerbs

QUOTE_CHARS = 200
REACTIONS_MOST = 8
_ENOUGH = 8
"""Multiple of a snippet's length that is cleaned first: most texts need not be cleaned whole."""

CHARS_OF_A_TOKEN = 12
"""More characters than any token has, so that a text that is far too long is not priced whole."""
REPLY_TOKENS = (40, 25, 10)
"""Assumed tokens per reply: few long threads average less than the first, fewer than the second, none than the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredContext:
    """The context at the start of a session: a snapshot of the channel, and the thread."""

    snapshot: ChannelSnapshot
    thread: ThreadContext | None
    answers: tuple[str, ...]
    """The ids of the message being answered: one, or those of an album's items."""
    now: datetime


async def assemble(
    library: LibraryVerbs, anchor: Sequence[StoredMessage], config: ContextConfig, *, now: datetime
) -> StructuredContext:
    """The context of a message, or of an album's items: two reads of the store, no platform, no model."""
    anchor = sorted(anchor, key=lambda message: (message.sent, message.seq))
    around = await library.around(anchor[0], now=now, limit=config.snapshot_messages)
    return StructuredContext(
        snapshot=take_snapshot(around, anchor, config, today=now),
        thread=await _thread(library, anchor, config, now),
        answers=tuple(message.id for message in anchor),
        now=now,
    )


def context_json(context: StructuredContext) -> dict[str, object]:
    """Both values as JSON."""
    thread = context.thread
    return {
        "snapshot": snapshot_json(context.snapshot),
        "thread": None if thread is None else thread_json(thread),
    }


async def _thread(
    library: LibraryVerbs, anchor: Sequence[StoredMessage], config: ContextConfig, now: datetime
) -> ThreadContext | None:
    """The anchor's thread: the one it is in, or the one under it."""
    first = anchor[0]
    above = next((message.root for message in anchor if message.root is not None), first.conversation.thread)
    thread_id, answers = above or first.id, {message.id for message in anchor}
    for limit in replies_wanted(config):
        known = await library.thread(first.conversation.whole_channel, thread_id, limit=limit)
        if known is None or (above is None and not known.total):
            return None
        thread = thread_context(thread_id, known, answers, config, today=now)
        if len(known.replies) == known.total or len(thread.replies) < len(known.replies) - 1:
            break
    return thread


def take_snapshot(
    around: Surroundings, anchor: Sequence[StoredMessage], config: ContextConfig, *, today: datetime
) -> ChannelSnapshot:
    """The messages before an anchor (one message, or an album's items) that fit; the oldest are dropped first."""
    nearby = [adjacent_message(near, config.snippet_chars) for near in around.nearby]
    costs = (_cost(message, config, today) for message in reversed(nearby))
    first = len(nearby) - newest_that_fit(costs, config.snapshot_tokens).told
    return ChannelSnapshot(
        channel=anchor[0].conversation.whole_channel,
        channel_name=around.channel_name,
        anchor=anchor_message(anchor, config.message_chars),
        adjacent=tuple(nearby[first:]),
        omitted=first,
        replies_elsewhere=around.replies_elsewhere,
    )


def adjacent_message(near: Nearby, snippet_chars: int) -> AdjacentMessage:
    """A message as a snippet, with its reactions and replies."""
    message = near.message
    return AdjacentMessage(
        message_id=message.id,
        ts=message.sent,
        author=message.author,
        snippet=snippet(words_of(message), snippet_chars),
        thread_activity=near.activity,
        has_media=bool(message.media),
        reactions=reactions_of(message),
        observed=message.standing is not Standing.MAY_COMMAND,
        spoken=message.spoken,
    )


def context_message(message: StoredMessage, message_chars: int, *, told: Container[str] = ()) -> ContextMessage:
    """A message in full, up to a limit; a message it replies to is only named by id if that is in `told`."""
    words = words_of(message)
    return ContextMessage(
        message_id=message.id,
        ts=message.sent,
        author=message.author,
        text="(deleted)" if message.deleted is not None else cut(words, message_chars),
        media=message.media,
        thread_id=message.root,
        is_truncated=len(words) > message_chars,
        observed=message.standing is not Standing.MAY_COMMAND,
        quote=_quote(message, told),
        forward=_short(message.forward),
        edited=message.edited,
        deleted=message.deleted is not None,
        spoken=message.spoken,
    )


def anchor_message(anchor: Sequence[StoredMessage], message_chars: int) -> ContextMessage:
    """The message being answered; an album counts as one."""
    items = [context_message(message, message_chars) for message in anchor]
    first = items[0]
    if len(items) == 1:
        return first
    words = "\n".join(item.text for item in items if item.text)
    return ContextMessage(
        message_id=first.message_id,
        ts=first.ts,
        author=first.author,
        text=cut(words, message_chars),
        media=tuple(ref for item in items for ref in item.media),
        thread_id=first.thread_id,
        is_truncated=len(words) > message_chars or any(item.is_truncated for item in items),
        observed=first.observed,
        quote=next((item.quote for item in items if item.quote), None),
        forward=next((item.forward for item in items if item.forward), None),
        edited=max((item.edited for item in items if item.edited), default=None),
        spoken=next((item.spoken for item in items if item.spoken), None),
    )


def words_of(message: StoredMessage) -> str:
    """What a message says: what is written, then what is spoken."""
    return _with_spoken(written_in(message), message.spoken)


def carried_words(quote: Quote) -> str:
    """The same for a message carried inside another."""
    return _with_spoken(quote.text, quote.spoken)


def written_in(message: StoredMessage) -> str:
    """A message's text, else its captions, else a description of unsupported content."""
    if message.text.strip():
        return message.text
    captions = "\n".join(ref.caption for ref in message.media if ref.caption)
    return captions or (f"({message.reason})" if message.outcome is MessageOutcome.UNSUPPORTED else "")


def snippet(text: str, limit: int) -> str:
    """The first characters of a text, on one line."""
    enough = one_line(text[: limit * _ENOUGH])
    return cut(enough if len(enough) > limit else one_line(text), limit)


def reactions_of(message: StoredMessage) -> tuple[str, ...]:
    """`":eyes: 2"`, the first ones given first."""
    return tuple(reaction_mark(emoji, people) for emoji, people in message.reactions[:REACTIONS_MOST])


def _quote(message: StoredMessage, told: Container[str]) -> Quote | None:
    replied = message.reply_to or (message.quote.message_id if message.quote else None)
    if replied is not None and replied == message.root:
        return None  # its place in the thread shows this
    if replied is not None and (message.quote is None or replied in told):
        return Quote(message_id=replied)
    return _short(message.quote)


def _short(quote: Quote | None) -> Quote | None:
    return None if quote is None else replace(quote, text=snippet(carried_words(quote), QUOTE_CHARS))


def _with_spoken(written: str, spoken: SpokenText | None) -> str:
    if spoken is None:
        return written
    return f"{written}\n{spoken.text}" if written.strip() else spoken.text


def _cost(message: AdjacentMessage, config: ContextConfig, today: datetime) -> int:
    as_json = config.format == "json"
    return estimate_tokens(json_text(adjacent_json(message)) if as_json else snippet_line(message, today=today))


def replies_wanted(config: ContextConfig) -> Iterator[int]:
    """How many of a thread's newest replies to load: usually enough, plus one; then more, if they are not."""
    return (max(config.thread_tokens, 0) // tokens + 2 for tokens in REPLY_TOKENS)


def thread_context(
    thread_id: str, known: ThreadSlice, answers: Container[str], config: ContextConfig, *, today: datetime
) -> ThreadContext:
    """The part of a thread that fits. `answers`: ids of the message being answered, whose text follows separately."""
    told = {reply.id for reply in known.replies}
    newest = (context_message(reply, config.message_chars, told=told) for reply in reversed(known.replies))
    chosen = newest_told(newest, config, today=today, answers=answers)
    if len(chosen) == len(known.replies) < known.total:
        del chosen[0]  # the newest omitted reply must be known, for the time range of the gap
    return ThreadContext(
        thread_id=thread_id,
        root=None if known.root is None else context_message(known.root, config.message_chars),
        replies=tuple(chosen),
        truncation=Truncation(
            total_replies=known.total,
            included_replies=len(chosen),
            omitted_range_ts=_omitted(known, len(known.replies) - len(chosen)),
        ),
    )


def newest_told(
    newest: Iterable[ContextMessage], config: ContextConfig, *, today: datetime, answers: Container[str] = ()
) -> list[ContextMessage]:
    """The newest messages that fit into a thread's budget, at least one; given newest first, returned oldest first.

    The oldest of them may be cut. `newest` is not read past the first one that does not fit.
    """
    asked, priced = tee(newest)
    costs = (told_tokens(message, config, today=today, is_answered=message.message_id in answers) for message in priced)
    count, room = newest_that_fit(costs, config.thread_tokens, cuts=True)
    chosen = list(islice(asked, count))[::-1]
    if room is not None:
        is_only = count == 1
        chosen[0] = cut_to_fit(chosen[0], max(room, WORTH_A_LINE) if is_only else room, config, today=today)
        if not is_only and told_tokens(chosen[0], config, today=today) > room:
            del chosen[0]  # without any of its text, its quotes and media cost too much
    return chosen


def told_tokens(message: ContextMessage, config: ContextConfig, *, today: datetime, is_answered: bool = False) -> int:
    """The tokens of a message in the configured format."""
    if config.format == "json":
        return estimate_tokens(json_text(message_json(message)))
    line = answered_line(message, today=today) if is_answered else message_line(message, today=today)
    return estimate_tokens(line)


def cut_to_fit(message: ContextMessage, room: int, config: ContextConfig, *, today: datetime) -> ContextMessage:
    """The message with its text cut to the tokens that are left; only author and time if none fit."""
    told, length = message, len(message.text)
    if length > room * CHARS_OF_A_TOKEN:
        length = room * CHARS_OF_A_TOKEN
        told = replace(message, text=cut(message.text, length), is_truncated=True)
    while (cost := told_tokens(told, config, today=today)) > room and length:
        # The estimate is about linear: the length is reduced in proportion, and a little further.
        length = min(length - 1, int(length * room / cost * 0.98))
        told = replace(message, text=cut(message.text, length), is_truncated=True)
    return told


def _omitted(known: ThreadSlice, first: int) -> tuple[datetime, datetime] | None:
    if first == 0 or known.first is None:
        return None
    return known.first, known.replies[first - 1].sent
