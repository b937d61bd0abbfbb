"""Snapshot of a conversation when a session begins: the message being answered, what was said before it, its thread.

The channel is included as excerpts of its last messages; the thread with its first message, the newest replies that
fit, and how many are omitted.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from belino.context.budget import ContextConfig, newest_that_fit
from belino.context.fit import PricedLines, TimeCosts, cut_to_fit
from belino.context.json_format import adjacent_json, json_text, snapshot_json, thread_json
from belino.context.line_format import columns_tokens, reaction_mark, snippet_columns
from belino.context.readings import carried_words, words_of
from belino.domain.context import AdjacentMessage, ChannelSnapshot, ContextMessage, ThreadContext, Truncation
from belino.domain.graphemes import cut
from belino.domain.message import Quote
from belino.domain.outcome import MessageOutcome
from belino.domain.safe_text import disarm, one_line
from belino.domain.stored import Nearby, StoredMessage, Surroundings, ThreadSlice
from belino.domain.tokens import estimate_tokens
from belino.media.price import BLOCK_SIDE
from belino.storage.library_verbs import LibraryVerbs

QUOTE_CHARS = 200
REACTIONS_MOST = 8
_ENOUGH = 8
"""Multiple of a snippet's length that is cleaned first: most texts need not be cleaned whole."""
REPLY_TOKENS = 33
"""Assumed tokens per reply: few long threads average less. If they do, more replies are loaded."""
SNIPPET_CHARS_A_TOKEN = 4.5
"""Characters of a snippet for each token that it may cost: plain words, so that code and dense scripts cost no more."""
NO_SHORT_IDS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredContext:
    """The context at the start of a session: a snapshot of the channel, and the thread."""

    snapshot: ChannelSnapshot
    thread: ThreadContext | None
    answers: tuple[str, ...]
    """The ids of the message being answered: one, or those of an album's items."""
    now: datetime
    picture_side: int | None = BLOCK_SIDE
    """The longest side of pictures for the agent, by which they are priced; None if it sees none."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of the thread's lines after the author, by message id, as they were priced."""


async def assemble(
    library: LibraryVerbs,
    anchor: Sequence[StoredMessage],
    config: ContextConfig,
    *,
    now: datetime,
    until: datetime | None = None,
    since: int = 0,
    is_whole: bool = True,
    picture_side: int | None = BLOCK_SIDE,
) -> StructuredContext:
    """The context of a message, or of an album's items: a few reads of the store, no platform, no model.

    What was sent after `until` is left out, and what has a seq up to `since`: an earlier session. `is_whole` is False
    if the platform could not be asked for the thread.
    """
    anchor = sorted(anchor, key=lambda message: (message.sent, message.seq))
    around = await library.around(anchor[0], now=now, limit=config.snapshot_messages, until=until)
    if since:
        around = _since(around, since)
    answers = tuple(message.id for message in anchor)
    replies = ReplyChooser(config, answers, today=now)
    return StructuredContext(
        snapshot=take_snapshot(around, anchor, config, today=now, picture_side=picture_side),
        thread=await _thread(library, anchor, config, replies, until=until, since=since, is_whole=is_whole),
        answers=answers,
        now=now,
        picture_side=picture_side,
        columns=replies.columns,
    )


def context_json(context: StructuredContext) -> dict[str, object]:
    """Both values as JSON."""
    thread = context.thread
    return {
        "snapshot": snapshot_json(context.snapshot),
        "thread": None if thread is None else thread_json(thread),
    }


async def _thread(
    library: LibraryVerbs,
    anchor: Sequence[StoredMessage],
    config: ContextConfig,
    chosen: "ReplyChooser",
    *,
    until: datetime | None,
    since: int,
    is_whole: bool,
) -> ThreadContext | None:
    """The anchor's thread: the one it is in, or the one under it."""
    first, channel = anchor[0], anchor[0].conversation.whole_channel
    above = next((message.root for message in anchor if message.root is not None), first.conversation.thread)
    thread_id = above or first.id
    limit = max(config.thread_tokens, 0) // REPLY_TOKENS + 2
    known = await library.thread(channel, thread_id, limit=limit, until=until)
    if known is None or (above is None and not known.total):
        return None
    if since:
        later = tuple(reply for reply in known.replies if _is_since(reply, since))
        known = replace(known, replies=later, stored=len(later), total=len(later))
    has_room = chosen.take(known.replies)
    # The newest reply that is left out must be known, for the time range of the gap.
    while len(known.replies) < known.stored and (has_room or chosen.taken == len(known.replies)):
        before = known.replies[0].seq
        more = await library.replies_before(channel, thread_id, before=before, limit=chosen.wanted)
        if not more:
            break
        has_room = has_room and chosen.take(more)
        known = replace(known, replies=(*more, *known.replies))
    return chosen.thread(thread_id, known, is_whole=is_whole)


def _since(around: Surroundings, since: int) -> Surroundings:
    """What belongs to the session that began with the message of this seq."""
    nearby = tuple(near for near in around.nearby if _is_since(near.message, since))
    return replace(around, nearby=nearby, older=0, replies_elsewhere=0, threads_elsewhere=())


def _is_since(message: StoredMessage, since: int) -> bool:
    # Imported messages are older than what was heard, whatever their seq.
    return message.seq > since and message.outcome is not MessageOutcome.RECALLED


def take_snapshot(
    around: Surroundings,
    anchor: Sequence[StoredMessage],
    config: ContextConfig,
    *,
    today: datetime,
    picture_side: int | None = BLOCK_SIDE,
) -> ChannelSnapshot:
    """The messages before an anchor (one message, or an album's items) that fit; the oldest are dropped first."""
    nearby = [adjacent_message(near, config.snippet_chars) for near in around.nearby]
    costs = list(_newest_costs(nearby, config, today, picture_side))
    told = newest_that_fit(costs, config.snapshot_tokens).told
    first, room = len(nearby) - told, config.snapshot_tokens - sum(costs[:told])
    shown = _with_refs(nearby[first:], room, config, today, picture_side)
    return ChannelSnapshot(
        channel=anchor[0].conversation.whole_channel,
        channel_name=around.channel_name,
        anchor=anchor_message(anchor, config.message_chars),
        adjacent=tuple(shown),
        omitted=first,
        older=around.older,
        cursor=shown[0].seq if shown else anchor[0].seq,
        replies_elsewhere=around.replies_elsewhere,
        threads_elsewhere=around.threads_elsewhere,
    )


def adjacent_message(near: Nearby, snippet_chars: int) -> AdjacentMessage:
    """A message as a snippet, with its reactions and replies."""
    message = near.message
    return AdjacentMessage(
        message_id=message.id,
        ts=message.sent,
        author=message.author,
        snippet=_within_tokens(snippet(words_of(message), snippet_chars), round(snippet_chars / SNIPPET_CHARS_A_TOKEN)),
        thread_activity=near.activity,
        media=message.media,
        reactions=reactions_of(message),
        observed=message.is_observed,
        spoken=message.spoken,
        seq=message.seq,
        short_id=message.short_id,
    )


def context_message(
    message: StoredMessage, message_chars: int, *, told: Mapping[str, str] = NO_SHORT_IDS
) -> ContextMessage:
    """A message in full, up to a limit; a message it replies to is only named by id if `told` has its short id."""
    words = words_of(message)
    return ContextMessage(
        message_id=message.id,
        ts=message.sent,
        author=message.author,
        text="(deleted)" if message.deleted is not None else disarm(cut(words, message_chars)),
        media=message.media,
        thread_id=message.root,
        is_truncated=len(words) > message_chars,
        observed=message.is_observed,
        quote=None if message.quote is None and message.reply_to is None else _quote(message, told),
        forward=None if message.forward is None else _short(message.forward),
        edited=message.edited,
        deleted=message.deleted is not None,
        spoken=message.spoken,
        seq=message.seq,
        short_id=message.short_id,
        replies_to=told.get(message.reply_to or "", ""),
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
        seq=first.seq,
        short_id=first.short_id,
    )


def snippet(text: str, limit: int) -> str:
    """The first characters of a text, on one line."""
    enough = one_line(text[: limit * _ENOUGH])
    return cut(enough if len(enough) > limit else one_line(text), limit)


def _within_tokens(text: str, most: int) -> str:
    told, length = text, len(text)
    while (cost := estimate_tokens(told)) > most and length > 1:
        length = max(1, min(length - 1, int(length * most / cost)))
        told = cut(text, length)
    return told


def reactions_of(message: StoredMessage) -> tuple[str, ...]:
    """`":eyes: 2"`, the first ones given first."""
    return tuple(reaction_mark(emoji, people) for emoji, people in message.reactions[:REACTIONS_MOST])


def _quote(message: StoredMessage, told: Container[str]) -> Quote | None:
    replied = message.reply_to or (message.quote.message_id if message.quote else None)
    if replied is not None and replied == message.root:
        return None  # its place in the thread shows this
    if replied is not None and (message.quote is None or replied in told):
        return Quote(message_id=replied)
    return None if message.quote is None else _short(message.quote)


def _short(quote: Quote) -> Quote:
    return replace(quote, text=snippet(carried_words(quote), QUOTE_CHARS))


def _cost(message: AdjacentMessage, config: ContextConfig, today: datetime, side: int | None) -> int:
    """The tokens of a message as JSON, or as a line without its time."""
    if config.format == "json":
        return estimate_tokens(json_text(adjacent_json(message)))
    return columns_tokens(message, snippet_columns(message, today=today, side=side))


def _newest_costs(
    messages: Sequence[AdjacentMessage], config: ContextConfig, today: datetime, side: int | None
) -> Iterator[int]:
    """What each message adds, newest first."""
    times = TimeCosts(today)
    for message in reversed(messages):
        cost = _cost(message, config, today, side)
        yield cost if config.format == "json" else cost + times.add(message.ts)


def _with_refs(
    messages: Sequence[AdjacentMessage], room: int, config: ContextConfig, today: datetime, side: int | None
) -> list[AdjacentMessage]:
    """The messages, the newest of them with the refs of their media, as far as there is room."""
    shown = list(messages)
    for at, message in reversed(list(enumerate(messages))):
        if message.media:
            with_refs = replace(message, shows_refs=True)
            room -= _cost(with_refs, config, today, side) - _cost(message, config, today, side)
            if room < 0:
                break
            shown[at] = with_refs
    return shown


class ReplyChooser:
    """Takes the newest replies of a thread into its budget, a few at a time."""

    def __init__(self, config: ContextConfig, answers: Container[str], *, today: datetime) -> None:
        self._config = config
        self._lines = PricedLines(style=config.format, today=today, answers=answers)
        self._left = config.thread_tokens
        self._short_ids: dict[str, str] = {}

    def take(self, replies: Sequence[StoredMessage]) -> bool:
        """Take these, which are older than those before; whether there is room for more."""
        self._short_ids |= {reply.id: reply.short_id for reply in replies}
        for reply in reversed(replies):
            message = context_message(reply, self._config.message_chars, told=self._short_ids)
            self._left -= self._lines.add(message)
            if self._left < 0:
                return False
        return True

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns of lines after the author, by message id."""
        return self._lines.columns

    @property
    def taken(self) -> int:
        """How many there are, with the one that may be cut."""
        return len(self._lines.messages)

    @property
    def wanted(self) -> int:
        """How many more to load: as many as may fit, and one more."""
        spent = max(self._config.thread_tokens - self._left, 1)
        return max(self._left, 0) * self.taken * 9 // (8 * spent) + 8

    def thread(self, thread_id: str, known: ThreadSlice, *, is_whole: bool = True) -> ThreadContext:
        """The thread with the chosen replies, oldest first, and the truth about the others."""
        chosen = self._lines.newest(self._config.thread_tokens)
        return ThreadContext(
            thread_id=thread_id,
            root=None if known.root is None else _root(known.root, self._config),
            replies=tuple(chosen),
            truncation=Truncation(
                total_replies=known.total if is_whole or known.is_reported else None,
                included_replies=len(chosen),
                omitted_range_ts=_omitted(known, len(known.replies) - len(chosen)),
            ),
            short_id="" if known.root is None else known.root.short_id,
        )


def _root(root: StoredMessage, config: ContextConfig) -> ContextMessage:
    """A thread's first message, within its own budget."""
    return cut_to_fit(context_message(root, config.message_chars), config.root_tokens, config.format)


def _omitted(known: ThreadSlice, first: int) -> tuple[datetime, datetime] | None:
    """When the first and the last of the stored replies were sent that are left out."""
    if first == 0 or known.first is None:
        return None
    return known.first, known.replies[first - 1].sent
