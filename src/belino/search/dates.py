"""Dates that a text names: days, weeks, months and years, exact or relative to the day on which it is said.

A query is about the past: a day that may be meant twice is the last one. In a message it may be the last or the next.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import chain
from typing import NamedTuple

from belino.search.date_words import DAYS, IN_GERMAN, MONTHS, NUMBERS, SIDES, UNITS, WEEKDAYS

Span = tuple[datetime, datetime]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


class DayRange(NamedTuple):
    """Consecutive days."""

    first: date
    end: date
    """The day after the last."""

    @property
    def days(self) -> int:
        return (self.end - self.first).days


def _any_of(words: Collection[str]) -> str:
    """An expression for one of the words; those without spaces between words may be anywhere."""
    spaced = sorted((word for word in words if word[-1] < "\u3000"), key=len, reverse=True)
    dense = sorted((word for word in words if word[-1] >= "\u3000"), key=len, reverse=True)
    return "|".join([rf"\b(?:{'|'.join(map(re.escape, spaced))})\b", *map(re.escape, dense)])


_MONTH, _WEEKDAY, _UNIT, _SIDE = (_any_of(words) for words in (MONTHS, WEEKDAYS, UNITS, SIDES))
_COUNT = rf"\d{{1,3}}|{_any_of(NUMBERS)}"
_ISO = re.compile(r"(?<![\w./-])(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2}))?(?![\w/-])")
_DOTTED = re.compile(r"(?<![\w./-])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?(?![.\w])")
_SLASHED = re.compile(r"(?<![\w./-])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?![\w/-])")
_CJK = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号號])?")
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.|º|er)?\s+(?:of\s+|de\s+)?({_MONTH})\.?,?\s*(?:de\s+)?(\d{{4}})?"
)
_MONTH_DAY = re.compile(rf"({_MONTH})\.?\s+(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(\d{{4}}))?")
_MONTH_YEAR = re.compile(rf"({_MONTH})\.?,?\s+(?:of\s+|de\s+)?(\d{{4}})\b")
_ONLY_MONTH = re.compile(rf"(?:\b(?:in|im|en|em|during|since|until|by|dans|в|у|w|v)\b|{_SIDE})\s+({_MONTH})(?!\s+\d)")
_ONLY_YEAR = re.compile(r"\b(?:in|im|en|em|during|of|from)\s+((?:19|20)\d\d)\b")
_RELATIVE_DAY = re.compile(_any_of(DAYS))
_SIDE_WEEKDAY = re.compile(rf"(?:({_SIDE})(?:\s*的)?\s*)?({_WEEKDAY})(?:\s+({_SIDE}))?")
_SIDE_UNIT = re.compile(rf"({_SIDE})\s*({_UNIT})(?![一二三四五六日天])|({_UNIT})\s+({_SIDE})")
_AGO = re.compile(
    rf"({_COUNT})\s*({_UNIT})\s*(?:ago\b|назад\b|geleden\b|fa\b|前)|"
    rf"\b(?:vor|il y a|hace|há)\s+({_COUNT})\s+({_UNIT})|\bf[öo]r\s+({_COUNT})\s+({_UNIT})\s+(?:sedan|siden)\b"
)
_AHEAD = re.compile(rf"\b(?:in|dans|en|tra|over|om|через)\s+({_COUNT})\s+({_UNIT})|({_COUNT})\s*({_UNIT})(?:后|後)")
_OFFSET = re.compile(rf"({_COUNT})\s+({_UNIT})\s+(after|before|nach|vor|après|avant)\s+")
_BASE_CHARS = 40
"""Where the date stands that days are counted from: "three days after Monday, 2 November 2026"."""
_DAYS_OF = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DENSE = re.compile(r"[\u3000-\u9fff\uac00-\ud7af]")
_NUMERIC = re.compile(r"\d[./年月-]")
_MONTH_WORDS, _WEEKDAY_WORDS, _UNIT_WORDS = frozenset(MONTHS), frozenset(WEEKDAYS), frozenset(UNITS)
_DAY_WORDS = frozenset(re.split(r"[ ']", phrase)[-1] for phrase in DAYS)
DATE_WORDS = _MONTH_WORDS | _WEEKDAY_WORDS | _UNIT_WORDS | _DAY_WORDS
"""One of these is in every date that is not a number, except where words are not divided by spaces."""


def asked_days(text: str, day: date, language: str = "") -> tuple[DayRange, ...]:
    """The days that a query names, which is asked on a day; only the exact ones if it names any."""
    return tuple(_DateReader(text, day, language, of_past=True).ranges())


def named_days(text: str, day: date, language: str = "") -> tuple[DayRange, ...]:
    """The days that a message names, which was said on a day."""
    return tuple(_DateReader(text, day, language, of_past=False).ranges())


def date_words(text: str, days: Iterable[tuple[date, date]]) -> set[str]:
    """The words of a query that are part of the dates that it names, in lower case."""
    numbers = {str(number) for first, end in days for day in (first, end - _DAY) for number in day.timetuple()[:3]}
    if not numbers:
        return set()
    said = text.lower()
    named = {word for word in re.findall(r"\d[\d./-]*(?<=\d)", said) if numbers.issuperset(_numbers_in(word))}
    return named | (set(_WORDS.findall(said)) & (_MONTH_WORDS | _WEEKDAY_WORDS))


def _numbers_in(word: str) -> Iterator[str]:
    return (str(int(number)) for number in re.findall(r"\d+", word))


def span(days: DayRange, zone: tzinfo) -> Span:
    """The time of days in a time zone, end excluded, in UTC."""
    return _midnight(days.first, zone), _midnight(days.end, zone)


def micros(moment: datetime) -> int:
    """A time as stored in the index: whole microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _midnight(day: date, zone: tzinfo) -> datetime:
    try:
        return datetime.combine(day, time(), zone).astimezone(UTC)
    except OverflowError:  # the first midnight of all, east of Greenwich, is in no year
        return datetime.combine(day, time(), UTC)


class _DateReader:
    """The dates of one text. What does not exist, or is out of range, is passed over."""

    def __init__(self, text: str, today: date, language: str, *, of_past: bool) -> None:
        self.said = text.lower()
        self.today = today
        self.of_past = of_past
        self.language = language
        self._words = set(_WORDS.findall(self.said))
        self._is_dense = not text.isascii() and _DENSE.search(text) is not None

    def ranges(self) -> list[DayRange]:
        exact = list(dict.fromkeys(chain(self._offsets(), self._numeric(), self._written())))
        if exact and self.of_past:
            return exact
        return list(dict.fromkeys((*exact, *self._months(), *self._relative())))

    def _has(self, words: frozenset[str]) -> bool:
        """Whether the text may have one of the words: most texts have none, and need no closer look."""
        return self._is_dense or not self._words.isdisjoint(words)

    def _offsets(self) -> Iterator[DayRange]:
        """Days counted from another date, which is then not meant itself."""
        for found in _OFFSET.finditer(self.said) if self._has(_UNIT_WORDS) else ():
            rest = _DateReader(
                self.said[found.end() : found.end() + _BASE_CHARS], self.today, self.language, of_past=True
            )
            base = next(chain(rest._numeric(), rest._written()), None)
            if base is not None:
                shift = timedelta(days=_count(found[1]) * _DAYS_OF[UNITS[found[2]]])
                later = found[3] in ("after", "nach", "après")
                self.said = self.said[: found.start()]
                by = shift if later else -shift
                yield from _shifted(base.first, base.end, by, by)
                return

    def _numeric(self) -> Iterator[DayRange]:
        if not _NUMERIC.search(self.said):
            return
        for year, _, month, day in _ISO.findall(self.said):
            yield from _calendar(int(year), int(month), int(day) if day else None)
        for day, month, year in _DOTTED.findall(self.said):
            yield from self._dated(int(month), int(day), year)
        for one, mark, two, year in _SLASHED.findall(self.said):
            # The day comes first in most of the world, the month in America; where it cannot be told, both are meant.
            yield from self._dated(int(two), int(one), year)
            if mark == "/" and one != two:
                yield from self._dated(int(one), int(two), year)
        for year, month, day in _CJK.findall(self.said):
            yield from self._dated(int(month), int(day) if day else None, year)

    def _written(self) -> Iterator[DayRange]:
        if not self._has(_MONTH_WORDS):
            return
        for day, month, year in _DAY_MONTH.findall(self.said):
            yield from self._dated(MONTHS[month], int(day), year)
        for month, day, year in _MONTH_DAY.findall(self.said):
            yield from self._dated(MONTHS[month], int(day), year)

    def _months(self) -> Iterator[DayRange]:
        named = self._has(_MONTH_WORDS)
        with_year = _MONTH_YEAR.findall(self.said) if named else []
        for month, year in with_year:
            yield from _calendar(int(year), MONTHS[month], None)
        for month in _ONLY_MONTH.findall(self.said) if named else ():
            yield from self._dated(MONTHS[month], None, "")
        for year in _ONLY_YEAR.findall(self.said):
            if not any(found[1] == year for found in with_year):
                yield DayRange(date(int(year), 1, 1), date(int(year) + 1, 1, 1))

    def _relative(self) -> Iterator[DayRange]:
        for word in _RELATIVE_DAY.findall(self.said) if self._has(_DAY_WORDS) else ():
            if not (self.language == "german" and word in IN_GERMAN):
                yield from self._days_from(DAYS[word], 1)
        for before, weekday, after in _SIDE_WEEKDAY.findall(self.said) if self._has(_WEEKDAY_WORDS) else ():
            yield from self._weekday(WEEKDAYS[weekday], SIDES.get(before or after))
        if not self._has(_UNIT_WORDS):
            return
        for found in _AGO.findall(self.said):
            count, unit = filter(None, found)
            yield from self._away(-_count(count), UNITS[unit])
        for found in _AHEAD.findall(self.said):
            count, unit = filter(None, found)
            yield from self._away(_count(count), UNITS[unit])
        for side, unit, unit_before, side_after in _SIDE_UNIT.findall(self.said):
            yield from self._unit(SIDES[side or side_after], UNITS[unit or unit_before])

    def _weekday(self, weekday: int, side: int | None) -> Iterator[DayRange]:
        """The last such day before today, the next one after it, or either; the next one may be a week later."""
        back = (self.today.weekday() - weekday) % 7 or 7
        ahead = (weekday - self.today.weekday()) % 7 or 7
        if side == 1:
            yield from self._days_from(ahead, 1)
            if not self.of_past:
                yield from self._days_from(ahead + 7, 1)
            return
        yield from self._days_from(-back, 1)
        if side != -1 and not self.of_past:
            yield from self._days_from(ahead, 1)
            yield from self._days_from(0, 1) if back == 7 else ()

    def _away(self, count: int, unit: str) -> Iterator[DayRange]:
        """Some units from today. "Three weeks ago" is not one day: half a unit to either side."""
        length = _DAYS_OF[unit]
        yield from self._days_from(count * length - length // 2, 1 + 2 * (length // 2))

    def _unit(self, side: int, unit: str) -> Iterator[DayRange]:
        today = self.today
        if unit == "year":
            yield from _years(today.year + side)
        elif unit == "month":
            months = today.year * 12 + today.month - 1 + side
            yield from _calendar(months // 12, months % 12 + 1, None)
        elif unit == "day":
            yield from self._days_from(side, 1)
        else:
            monday = -today.weekday() + 7 * side
            yield from self._days_from(monday + 5, 2) if unit == "weekend" else self._days_from(monday, 7)

    def _dated(self, month: int, day: int | None, year: str) -> Iterator[DayRange]:
        """Without a year: in a query the last such day or month that has begun, in a message the nearest."""
        if year:
            yield from _calendar(int(year), month, day)
            return
        found = [one for year in (-1, 0, 1) for one in _calendar(self.today.year + year, month, day)]
        if self.of_past:
            yield from [one for one in found if one.first <= self.today][-1:]
        elif found:
            yield min(found, key=lambda one: abs((one.first - self.today).days))

    def _days_from(self, days: int, count: int) -> Iterator[DayRange]:
        yield from _shifted(self.today, self.today, _DAY * days, _DAY * (days + count))


def _shifted(first: date, end: date, first_by: timedelta, end_by: timedelta) -> Iterator[DayRange]:
    try:
        yield DayRange(first + first_by, end + end_by)
    except OverflowError:
        return  # before the first year, or after the last


def _count(said: str) -> int:
    return int(said) if said.isdecimal() else NUMBERS[said]


def _calendar(year: int, month: int, day: int | None) -> Iterator[DayRange]:
    """A day, or a month."""
    try:
        first = date(year, month, day or 1)
        end = first + _DAY if day else (first + 32 * _DAY).replace(day=1)
    except (ValueError, OverflowError):
        return  # no such day, like February 31
    yield DayRange(first, end)


def _years(year: int) -> Iterator[DayRange]:
    try:
        yield DayRange(date(year, 1, 1), date(year + 1, 1, 1))
    except ValueError:
        return
