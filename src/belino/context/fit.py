"""Fit messages into a budget of tokens: newest first, each with what its line costs, until one does not fit."""

from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import datetime

from belino.context.budget import WORTH_A_LINE, newest_that_fit
from belino.context.json_format import json_text, message_json
from belino.context.line_format import DAY_MINUTES, answered_line, columns_tokens, message_columns, minute_of
from belino.domain.context import ContextMessage
from belino.domain.graphemes import cut
from belino.domain.tokens import estimate_tokens

CHARS_OF_A_TOKEN = 12
"""More characters than any token has, so that a text that is far too long is not priced whole."""
_CLOCK_TOKENS, _DAY_TOKENS, _YEAR_TOKENS = 4, 8, 10
"""What `HH:MM` costs, alone, with the day, and with the year."""


class TimeCosts:
    """What the times of lines cost that are added newest first: a line has none if the one before is of its minute."""

    def __init__(self, today: datetime) -> None:
        self._year = today.year
        self._today = minute_of(today) // DAY_MINUTES
        self._minute = -1
        self._cost = 0
        """Of the newest line but as the first of all, which has its time."""

    def add(self, moment: datetime) -> int:
        """What the next older line adds: its own time, as the first of all, less what the newer line no longer has."""
        minute, newer, saved = minute_of(moment), self._minute, 0
        if newer >= 0 and minute == newer:
            saved = self._cost
        elif newer >= 0 and minute // DAY_MINUTES == newer // DAY_MINUTES:
            saved = self._cost - _CLOCK_TOKENS
        self._minute, self._cost = minute, self._with_day(moment, minute)
        return self._cost - saved

    def _with_day(self, moment: datetime, minute: int) -> int:
        if minute // DAY_MINUTES == self._today:
            return _CLOCK_TOKENS
        return _DAY_TOKENS if moment.year == self._year else _YEAR_TOKENS


class PricedLines:
    """Messages with what their lines cost, added newest first."""

    def __init__(self, *, style: str, today: datetime, answers: Container[str] = ()) -> None:
        """`answers`: the ids of the message being answered, whose text follows separately."""
        self.messages: list[ContextMessage] = []
        self.columns: dict[str, str] = {}
        """The columns of lines after the author, by message id."""
        self.costs: list[int] = []
        self._style = style
        self._times = TimeCosts(today)
        self._answers = answers

    def add(self, message: ContextMessage) -> int:
        """Add the next older message; returns what it costs."""
        if self._style == "json":
            cost = told_tokens(message, self._style)
        elif message.message_id in self._answers:
            cost = estimate_tokens(answered_line(message, "")) + self._times.add(message.ts)
        else:
            columns = self.columns[message.message_id] = message_columns(message)
            cost = columns_tokens(message, columns) + self._times.add(message.ts)
        self.messages.append(message)
        self.costs.append(cost)
        return cost

    def newest(self, tokens: int) -> list[ContextMessage]:
        """The newest messages that fit, at least one, oldest first; the oldest of them may be cut."""
        count, room = newest_that_fit(self.costs, tokens, cuts=True)
        chosen = self.messages[:count]
        if room is not None:
            room -= self.costs[count - 1] - told_tokens(chosen[-1], self._style)  # its time
            room = max(room, WORTH_A_LINE) if count == 1 else room
            chosen[-1] = cut_to_fit(chosen[-1], room, self._style)
            if count > 1 and told_tokens(chosen[-1], self._style) > room:
                del chosen[-1]  # without any of its text, its quotes and media cost too much
        return chosen[::-1]


def newest_lines(newest: Iterable[ContextMessage], tokens: int, *, today: datetime) -> list[ContextMessage]:
    """The newest messages whose lines fit, at least one; given newest first, returned oldest first."""
    lines, left = PricedLines(style="compact", today=today), tokens
    for message in newest:
        left -= lines.add(message)
        if left < 0:
            break
    return lines.newest(tokens)


def told_tokens(message: ContextMessage, style: str) -> int:
    """The tokens of a message as JSON, or as a line without its time."""
    if style == "json":
        return estimate_tokens(json_text(message_json(message)))
    return columns_tokens(message, message_columns(message))


def cut_to_fit(message: ContextMessage, room: int, style: str) -> ContextMessage:
    """The message with its text cut to the tokens that are left; only author and time if none fit."""
    told, length = message, len(message.text)
    if length > room * CHARS_OF_A_TOKEN:
        length = room * CHARS_OF_A_TOKEN
        told = replace(message, text=cut(message.text, length), is_truncated=True)
    while (cost := told_tokens(told, style)) > room and length:
        # The estimate is about linear: the length is reduced in proportion, and a little further.
        length = min(length - 1, int(length * room / cost * 0.98))
        told = replace(message, text=cut(message.text, length), is_truncated=True)
    return told
