"""Thread being answered: its first message, the newest replies that fit, and how many are omitted."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice, tee

from belino.context.budget import WORTH_A_LINE, ContextConfig, newest_that_fit
from belino.context.json_format import json_text, message_json
from belino.context.line_format import answered_line, message_line
from belino.context.snapshot import context_message
from belino.domain.context import ContextMessage, ThreadContext, Truncation
from belino.domain.graphemes import cut
from belino.domain.stored import ThreadSlice
from belino.domain.tokens import estimate_tokens

CHARS_OF_A_TOKEN = 12
"""More characters than any token has, so that a text that is far too long is not priced whole."""
REPLY_TOKENS = (40, 25, 10)
"""Assumed tokens per reply: few long threads average less than the first, fewer than the second, none than the last."""


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
