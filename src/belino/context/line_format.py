"""Line format: one compact line per message, and per media item its placeholder; neither can be forged by content.

`id|time|author|text|(marks)|what it replies to or forwards`. Ids are short. The time is `HH:MM`, with the day where it
changes, and empty where the minute is that of the line before. Empty columns at the end are left out. Marks are
belino's own words and have their own column, so that a text cannot contain one.

A placeholder assures the agent that a ref exists; `domain/safe_text.py` keeps other people's text from imitating one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from belino.domain.context import AdjacentMessage, ContextMessage, ThreadActivity
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import UNKNOWN_NAME, Author, Quote, SpokenText
from belino.domain.outcome import CacheSize, MediaOutcome
from belino.domain.safe_text import clean_mime, clean_name, disarm, one_line
from belino.domain.tokens import estimate_tokens
from belino.domain.units import format_duration, format_size
from belino.media.price import known_price

COLUMNS = "id|time|author|text"
NO_OUTCOMES: Mapping[str, MediaOutcome] = {}

_SPECIAL = {"\\": "\\\\", "|": "\\|", "\n": "\\n"}
_ESCAPED = re.compile(r"[\\|\n]")
_WRITTEN_MOST = 4_096
_ID_TOKENS = 2
_BETWEEN_MARKS = re.compile(r"[(),]")
DAY_MINUTES = 1_440
LOST_FOR_GOOD = frozenset({MediaOutcome.EXPIRED, MediaOutcome.TOO_LARGE, MediaOutcome.NOT_FOUND, MediaOutcome.REFUSED})
"""A ref with such an outcome is shown without its id: asking for it again cannot help."""

_FINE = frozenset({MediaOutcome.REFERENCED, MediaOutcome.HELD})


def placeholder(ref: MediaRef, outcome: MediaOutcome = MediaOutcome.REFERENCED) -> str:
    """The placeholder of a ref, with its outcome if that is a failure."""
    parts = [_name_or_duration(ref), _size(ref.size), clean_mime(ref.mime)]
    if outcome not in _FINE:
        parts.append(outcome.value)
    if outcome not in LOST_FOR_GOOD:
        parts.append(f"ref:{ref.id}")
    line = f"[{ref.kind.value.capitalize()}: {', '.join(part for part in parts if part)}]"
    caption = one_line(ref.caption or "")
    return f"{line} {caption}" if caption else line


def header(today: datetime) -> str:
    """The line above compact lines: their columns, and the day of times without one."""
    return f"{COLUMNS} (UTC; today is {today.astimezone(UTC):%Y-%m-%d})"


def escape(field: str) -> str:
    """A field with bars, newlines and backslashes escaped."""
    return _ESCAPED.sub(lambda found: _SPECIAL[found.group()], field)


def line(fields: Sequence[str]) -> str:
    """Fields joined by `|`; a bar, a newline or a backslash inside one is escaped."""
    row = "|".join(fields)
    if row.count("|") == len(fields) - 1 and "\n" not in row and "\\" not in row:
        return row
    return "|".join(escape(field) for field in fields)


def short_time(moment: datetime, today: datetime | None = None) -> str:
    """`MM-DD HH:MM`, in UTC; with the year if it differs from that of `today`."""
    return _short_time(moment, None if today is None else today.astimezone(UTC).year)


class TimeColumn:
    """The times of consecutive lines: each where its minute changes, with the day where that changes."""

    def __init__(self, today: datetime) -> None:
        self._today = today
        self._minute = -1
        self._day = minute_of(today) // DAY_MINUTES

    def write(self, moment: datetime) -> str:
        """The time of the next line."""
        minute = minute_of(moment)
        if minute == self._minute:
            return ""
        day, clock = divmod(minute, DAY_MINUTES)
        is_same_day = day == self._day
        self._minute, self._day = minute, day
        return f"{clock // 60:02}:{clock % 60:02}" if is_same_day else short_time(moment, self._today)


def message_line(
    message: ContextMessage,
    time: str,
    *,
    marks: Sequence[str] = (),
    outcomes: Mapping[str, MediaOutcome] = NO_OUTCOMES,
) -> str:
    """A message in full."""
    return row(message, time, message_columns(message, marks=marks, outcomes=outcomes))


def message_columns(
    message: ContextMessage, *, marks: Sequence[str] = (), outcomes: Mapping[str, MediaOutcome] = NO_OUTCOMES
) -> str:
    """The columns after the author: its media as placeholders and its text, its marks, what it carries."""
    told = message.text
    if message.media:
        media = [
            placeholder(replace(ref, caption=None), outcomes.get(ref.id, MediaOutcome.REFERENCED))
            for ref in message.media
        ]
        told = " ".join([*media, told] if told else media)
    all_marks = [*marks, *labels(message.author, message.observed), *spoken_marks(message.spoken)]
    if message.is_truncated:
        all_marks.append("cut")
    if message.edited:
        all_marks.append("edited")
    if message.deleted:
        all_marks.append("deleted")
    carried = ""
    if message.quote is not None or message.forward is not None:
        all_marks += carried_marks(message.quote, message.forward)
        carried = " / ".join(filter(None, (_replied(message), _forwarded(message.forward))))
    return _columns(told, all_marks, carried)


def answered_line(message: ContextMessage, time: str, *, marks: Sequence[str] = ()) -> str:
    """The line of the message being answered; its text follows separately."""
    return row(message, time, _columns("", [*marks, "the message to answer"]))


def snippet_line(message: AdjacentMessage, time: str, *, today: datetime, side: int | None = None) -> str:
    """A message near the one being answered, as a snippet; `side` is that of the pictures its agent sees."""
    return row(message, time, snippet_columns(message, today=today, side=side))


def snippet_columns(message: AdjacentMessage, *, today: datetime, side: int | None) -> str:
    """The columns after the author."""
    marks = [
        *labels(message.author, message.observed),
        *(media_mark(ref, side=side, shows_ref=message.shows_refs) for ref in message.media),
        *spoken_marks(message.spoken),
    ]
    if message.thread_activity is not None:
        marks += _activity(message.thread_activity, today)
    marks += message.reactions
    return _columns(message.snippet, marks)


def media_mark(ref: MediaRef, *, side: int | None, shows_ref: bool) -> str:
    """`image 2.4MB ~690 tok tg_k3v9d0q2m7xa`: what a media item is, and its price where that is known."""
    is_timed = ref.duration is not None and ref.kind in (MediaKind.VOICE, MediaKind.AUDIO, MediaKind.VIDEO)
    facts = [
        ref.kind.value,
        format_duration(ref.duration) if is_timed and ref.duration is not None else "",
        format_size(ref.size) if ref.size is not None and not is_timed else "",
    ]
    known = known_price(ref, side=side)
    facts.append(f"~{known[1]} tok" if known is not None else "")
    return " ".join(filter(None, [*facts, ref.id if shows_ref else ""]))


def reaction_mark(emoji: str, people: int) -> str:
    """`👀 2`, or `:eyes: 2`. Users name custom emoji, so a name must not look like several marks."""
    return f"{_BETWEEN_MARKS.sub('', clean_name(emoji, limit=40)) or '?'} {people}"


def fenced(kind: str, lines: Sequence[str], fence: str) -> str:
    """Lines between markers that their content cannot contain."""
    content = re.sub(re.escape(fence), "…", "\n".join(lines), flags=re.IGNORECASE)
    return f"<<<{kind} {fence}\n{content}\n{fence} {kind}>>>"


def shown_id(own_id: str) -> str:
    """An id in our own sentences: a short one as it is, a platform's made safe."""
    return escape(clean_name(own_id))


# A context is priced and then written, so every line is built twice.
@lru_cache(maxsize=_WRITTEN_MOST)
def _short_time(moment: datetime, year: int | None) -> str:
    moment = moment.astimezone(UTC)
    return f"{moment:%m-%d %H:%M}" if year in (None, moment.year) else f"{moment:%Y-%m-%d %H:%M}"


@lru_cache(maxsize=_WRITTEN_MOST)
def _name(name: str) -> str:
    return clean_name(name) or UNKNOWN_NAME


@lru_cache(maxsize=_WRITTEN_MOST)
def _escaped_name(name: str) -> str:
    return escape(_name(name))


@lru_cache(maxsize=_WRITTEN_MOST)
def _name_tokens(name: str) -> int:
    """What a name costs, with the bars around it and around an empty time, and the line break."""
    return estimate_tokens(f"||{_escaped_name(name)}|\n")


def cache_size() -> CacheSize:
    """The size of the cache of formatted times and names."""
    known = sum(cache.cache_info().currsize for cache in (_short_time, _name, _escaped_name, _name_tokens))
    return CacheSize.of_entries(known, most=4 * _WRITTEN_MOST, each=300)


def minute_of(moment: datetime) -> int:
    """Minutes since 1970, UTC."""
    return int(moment.timestamp() // 60)


def row(message: ContextMessage | AdjacentMessage, time: str, columns: str) -> str:
    """A line, from its columns after the author."""
    own_id = message.short_id or escape(disarm(message.message_id))
    return f"{own_id}|{time}|{_escaped_name(message.author.name)}|{columns}"


def columns_tokens(message: ContextMessage | AdjacentMessage, columns: str) -> int:
    """What a line costs without its time. What is new in every line, its id, is not priced by its letters."""
    own_id = _ID_TOKENS if message.short_id else estimate_tokens(message.message_id)
    return own_id + _name_tokens(message.author.name) + estimate_tokens(columns)


def _columns(text: str, marks: Sequence[str], carried: str = "") -> str:
    if "|" in text or "\\" in text or "\n" in text:
        text = escape(text)
    if marks or carried:
        told = ", ".join(marks)
        text = f"{text}|({escape(told)})"
    return f"{text}|{escape(carried)}" if carried else text


def labels(author: Author, observed: bool) -> list[str]:
    """Labels of a message: its author is the agent or a bot, and whether they may not command the agent."""
    marks = ["you"] if author.is_agent else ["bot"] if author.is_bot else []
    return [*marks, "observed"] if observed else marks


def spoken_marks(spoken: SpokenText | None, whose: str = "") -> list[str]:
    """Marks of a text that was read from a voice message."""
    return [] if spoken is None else [f"{whose}{mark}" for mark in ("spoken", *spoken.doubts)]


def carried_marks(quote: Quote | None, forward: Quote | None) -> list[str]:
    """The same for the messages that a message carries."""
    return [
        *spoken_marks(quote.spoken if quote is not None else None, "quote "),
        *spoken_marks(forward.spoken if forward is not None else None, "forward "),
    ]


def _activity(activity: ThreadActivity, today: datetime) -> list[str]:
    marks = ["1 reply" if activity.reply_count == 1 else f"{activity.reply_count} replies"]
    if activity.replies_last_1h:
        marks.append(f"{activity.replies_last_1h} in the last hour")
    if activity.last_reply_ts is not None:
        marks.append(f"last {TimeColumn(today).write(activity.last_reply_ts)}")
    return marks


def _replied(message: ContextMessage) -> str:
    quote = message.quote
    if quote is None:
        return ""
    if not quote.text and quote.message_id is not None:
        return f"re {message.replies_to or disarm(quote.message_id)}"
    return f"in reply to {_carried(quote)}"


def _forwarded(forward: Quote | None) -> str:
    return "" if forward is None else f"forwarded from {_carried(forward)}"


def _carried(quote: Quote) -> str:
    name = _name(quote.author.name if quote.author else "")
    return f"{name}: {one_line(quote.text)}".rstrip()


def _name_or_duration(ref: MediaRef) -> str:
    name = clean_name(ref.file_name or "")
    if name or ref.kind not in (MediaKind.VOICE, MediaKind.AUDIO) or ref.duration is None:
        return name
    return format_duration(ref.duration) if math.isfinite(ref.duration) and ref.duration >= 0 else ""


def _size(size: int | None) -> str:
    return format_size(size) if size is not None and size >= 0 else ""
