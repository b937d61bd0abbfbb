"""Marks: terms of a message that are no words of it: its author, the days that it names, the people it addresses.

They are indexed like words, and no word is equal to one of them.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from belino.search.dates import DayRange, named_days
from belino.search.stopwords import STOP_WORDS
from belino.search.tokenizer import TokenizedText, name_parts

MARKS_AT_MOST = 60
"""Marks of one message."""
FEW_DAYS, MONTH_DAYS = 7, 31
"""Longer times are known by their months, and even longer ones not at all."""
_MARK = "\x01"
_NAME = r"@?([^\W\d_][\w'|-]{1,30})"
_GREETING = (
    r"\b(?:hi|hey|hello|hallo|hola|salut|bonjour|ciao|olá|oi|hej|moin|servus|привет|thanks|thank you|thx|danke|merci|"
    r"gracias|obrigad[oa]|grazie|bedankt|tack|takk|спасибо|dear|lieber?|cher|chère|bye|goodbye|good morning|"
    r"good night|morning|congrats|congratulations|sorry|welcome)"
)
_ADDRESS = re.compile(rf"{_GREETING},?\s+{_NAME}|^{_NAME}[,:]\s|,\s+{_NAME}\s*[.!?]*$", re.IGNORECASE | re.MULTILINE)


def author_mark(author: str) -> str:
    """The mark of all messages of an author, by id."""
    return f"{_MARK}a{author}"


def day_mark(day: date) -> str:
    """The mark of messages that name a day."""
    return f"{_MARK}d{day:%Y%m%d}"


def month_mark(day: date) -> str:
    """The mark of messages that name a day of a month, or the month."""
    return f"{_MARK}m{day:%Y%m}"


def other_name_mark(name: str) -> str:
    """The mark of messages whose author the platform lists by this name too, in the form of `name_parts`."""
    return f"{_MARK}o{name}"


def address_mark(name: str) -> str:
    """The mark of messages that address someone by a name, in the form of `name_parts`."""
    return f"{_MARK}n{name}"


def message_marks(author: str, other_names: str, text: str, said: TokenizedText, day: date) -> list[str]:
    """The marks of a message that was said on a day."""
    marks = [author_mark(author), *map(other_name_mark, name_parts(other_names))]
    if said.may_name_dates:
        marks += (mark for found in named_days(text, day, said.language) for mark in range_marks(found))
    marks += (address_mark(name) for name in _addressed(text))
    return list(dict.fromkeys(marks))[:MARKS_AT_MOST]


def range_marks(named: DayRange) -> list[str]:
    """The marks of a message that names these days: its days if they are few, and their months."""
    return [*_day_marks(named), *_month_marks(named)]


def asked_marks(asked: DayRange) -> list[str]:
    """The marks of messages that name one of these days, or a day of the month that is asked for."""
    return _day_marks(asked) or _month_marks(asked)


def _day_marks(found: DayRange) -> list[str]:
    return [day_mark(found.first + timedelta(days=at)) for at in range(found.days)] if found.days <= FEW_DAYS else []


def _month_marks(found: DayRange) -> list[str]:
    ends = (found.first, found.end - timedelta(days=1)) if found.days <= MONTH_DAYS else ()
    return list(dict.fromkeys(map(month_mark, ends)))


def _addressed(text: str) -> Iterator[str]:
    for found in _ADDRESS.findall(text):
        for part in name_parts(next(filter(None, found))):
            if len(part) > 2 and part not in STOP_WORDS["english"]:
                yield part
