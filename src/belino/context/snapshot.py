"""Snapshot of a channel: the message being answered, and excerpts of the messages just before it."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime

from belino.context.budget import ContextConfig, newest_that_fit
from belino.context.json_format import adjacent_json, json_text
from belino.context.line_format import reaction_mark, snippet_line
from belino.domain.context import AdjacentMessage, ChannelSnapshot, ContextMessage
from belino.domain.graphemes import cut
from belino.domain.message import Quote
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.safe_text import one_line
from belino.domain.stored import Nearby, StoredMessage, Surroundings
from belino.domain.tokens import estimate_tokens

QUOTE_CHARS = 200
REACTIONS_MOST = 8
_ENOUGH = 8
"""Multiple of a snippet's length that is cleaned first: most texts need not be cleaned whole."""


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
    )


def words_of(message: StoredMessage) -> str:
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
    return None if quote is None else replace(quote, text=snippet(quote.text, QUOTE_CHARS))


def _cost(message: AdjacentMessage, config: ContextConfig, today: datetime) -> int:
    as_json = config.format == "json"
    return estimate_tokens(json_text(adjacent_json(message)) if as_json else snippet_line(message, today=today))
