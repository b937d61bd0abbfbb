"""Line format: one compact line per message, whose fields cannot be forged by their content.

`id|MM-DD HH:MM|author|text|(marks)|what it replies to or forwards`. Empty columns at the end are left out. Marks are
belino's own words and have their own column, so that a text cannot contain one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from belino.domain.context import AdjacentMessage, ContextMessage, ThreadActivity
from belino.domain.message import Author, Quote, SpokenText
from belino.domain.outcome import CacheSize, MediaOutcome
from belino.domain.safe_text import clean_name, disarm, one_line
from belino.media.placeholder import placeholder

COLUMNS = "id|MM-DD HH:MM|author|text"
NO_OUTCOMES: Mapping[str, MediaOutcome] = {}

_SPECIAL = {"\\": "\\\\", "|": "\\|", "\n": "\\n"}
_ESCAPED = re.compile(r"[\\|\n]")
_WRITTEN_MOST = 4_096
_BETWEEN_MARKS = re.compile(r"[(),]")


def header(today: datetime) -> str:
    """The line above compact lines: their columns, and the day that completes their dates."""
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


def message_line(
    message: ContextMessage,
    *,
    today: datetime,
    marks: Sequence[str] = (),
    outcomes: Mapping[str, MediaOutcome] = NO_OUTCOMES,
) -> str:
    """A message in full: its media as placeholders, then its text."""
    told = disarm(message.text)
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
        carried = " / ".join(filter(None, (_replied(message.quote), _forwarded(message.forward))))
    return _row(message.message_id, message.ts, message.author, told, all_marks, carried, today)


def answered_line(message: ContextMessage, *, today: datetime, marks: Sequence[str] = ()) -> str:
    """The line of the message being answered; its text follows separately."""
    return _row(message.message_id, message.ts, message.author, "", [*marks, "the message to answer"], "", today)


def snippet_line(message: AdjacentMessage, *, today: datetime) -> str:
    """A message near the one being answered, as a snippet."""
    marks = labels(message.author, message.observed)
    if message.has_media:
        marks.append("media")
    marks += spoken_marks(message.spoken)
    if message.thread_activity is not None:
        marks += _activity(message.thread_activity, today)
    marks += message.reactions
    return _row(message.message_id, message.ts, message.author, message.snippet, marks, "", today)


def reaction_mark(emoji: str, people: int) -> str:
    """`👀 2`, or `:eyes: 2`. Users name custom emoji, so a name must not look like several marks."""
    return f"{_BETWEEN_MARKS.sub('', clean_name(emoji, limit=40)) or '?'} {people}"


def fenced(kind: str, lines: Sequence[str], fence: str) -> str:
    """Lines between markers that their content cannot contain."""
    content = re.sub(re.escape(fence), "…", "\n".join(lines), flags=re.IGNORECASE)
    return f"<<<{kind} {fence}\n{content}\n{fence} {kind}>>>"


# A context is priced and then written, so every line is built twice.
@lru_cache(maxsize=_WRITTEN_MOST)
def _short_time(moment: datetime, year: int | None) -> str:
    moment = moment.astimezone(UTC)
    return f"{moment:%m-%d %H:%M}" if year in (None, moment.year) else f"{moment:%Y-%m-%d %H:%M}"


@lru_cache(maxsize=_WRITTEN_MOST)
def _name(name: str) -> str:
    return clean_name(name) or "somebody"


def cache_size() -> CacheSize:
    """The size of the cache of formatted times and names."""
    known = _short_time.cache_info().currsize + _name.cache_info().currsize
    return CacheSize.of_entries(known, most=2 * _WRITTEN_MOST, each=300)


def _row(
    message_id: str, ts: datetime, author: Author, text: str, marks: Sequence[str], carried: str, today: datetime
) -> str:
    fields = [disarm(message_id), short_time(ts, today), _name(author.name), text]
    if marks or carried:
        fields.append(f"({', '.join(marks)})")
    if carried:
        fields.append(carried)
    return line(fields)


def labels(author: Author, observed: bool) -> list[str]:
    """Labels of a message: its author is the agent or a bot, and whether it is only observed."""
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
        marks.append(f"last {short_time(activity.last_reply_ts, today)}")
    return marks


def _replied(quote: Quote | None) -> str:
    if quote is None:
        return ""
    if not quote.text and quote.message_id is not None:
        return f"re {disarm(quote.message_id)}"
    return f"in reply to {_carried(quote)}"


def _forwarded(forward: Quote | None) -> str:
    return "" if forward is None else f"forwarded from {_carried(forward)}"


def _carried(quote: Quote) -> str:
    name = _name(quote.author.name if quote.author else "")
    return f"{name}: {one_line(quote.text)}".rstrip()
