"""Dates that a query names (days, months, years) as spans of time in UTC."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain

Span = tuple[datetime, datetime]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MONTHS = {
    1: "january jan januar janvier enero janeiro gennaio januari января январь январе",
    2: "february feb februar février fevrier febrero fevereiro febbraio februari февраля февраль феврале",
    3: "march mar märz maerz mars marzo março maart марта март марте",
    4: "april apr avril abril aprile апреля апрель апреле",
    5: "may mai mayo maio maggio mei мая май мае",
    6: "june jun juni juin junio junho giugno июня июнь июне",
    7: "july jul juli juillet julio julho luglio июля июль июле",
    8: "august aug août aout agosto augustus августа август августе",
    9: "september sept sep septembre septiembre setembro settembre сентября сентябрь сентябре",
    10: "october oct oktober okt octobre octubre outubro ottobre октября октябрь октябре",
    11: "november nov novembre noviembre novembro ноября ноябрь ноябре",
    12: "december dec dezember dez décembre decembre diciembre dezembro dicembre декабря декабрь декабре",
}
_WEEKDAYS = (
    "monday montag lundi lunes понедельник",
    "tuesday dienstag mardi martes вторник",
    "wednesday mittwoch mercredi miércoles среду среда",
    "thursday donnerstag jeudi jueves четверг",
    "friday freitag vendredi viernes пятницу пятница",
    "saturday samstag samedi sábado субботу суббота",
    "sunday sonntag dimanche domingo воскресенье",
)
_MONTH_OF = {word: month for month, words in _MONTHS.items() for word in words.split()}
_WEEKDAY_OF = {word: day for day, words in enumerate(_WEEKDAYS) for word in words.split()}
_DAYS_AGO = {
    **dict.fromkeys(["today", "heute", "hoy", "aujourd'hui", "сегодня", "今天", "今日"], 0),
    **dict.fromkeys(["yesterday", "gestern", "hier", "ayer", "ontem", "ieri", "вчера", "昨天", "昨日"], 1),
    **dict.fromkeys(["vorgestern", "anteayer", "позавчера", "前天"], 2),
}
_NUMBERS = {"a": 1, "an": 1} | {
    word: 1 + at
    for at, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}

_NAMED_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_CJK = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号])?")
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?({_NAMED_MONTH})\b\.?,?\s*(?:de\s+)?(\d{{4}})?"
)
_MONTH_DAY = re.compile(rf"\b({_NAMED_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(\d{{4}}))?")
_MONTH_YEAR = re.compile(rf"\b({_NAMED_MONTH})\.?,?\s+(?:of\s+|de\s+)?(\d{{4}})\b")
_ONLY_MONTH = re.compile(rf"\b(?:in|im|en|em|during|last|since|dans|в)\s+({_NAMED_MONTH})\b(?!\s+\d)")
_ONLY_YEAR = re.compile(r"\b(?:in|im|en|em|during|of|from)\s+((?:19|20)\d\d)\b")
_WEEKDAY = re.compile(rf"\b(?:last|on|this|past|am|letzten|le|el|в|во)\s+({'|'.join(_WEEKDAY_OF)})\b")
_UNITS = r"(day|week|month|year)s?"
_AGO = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_NUMBERS)})\s+{_UNITS}\s+ago\b")
_LAST_UNIT = re.compile(r"\b(last|this|past|previous)\s+(week|month|year|weekend)\b")
_RELATIVE_DAY = re.compile("|".join(rf"\b{word}\b" if word < "\u3000" else word for word in _DAYS_AGO))


def named_spans(text: str, now: datetime) -> tuple[Span, ...]:
    """The times that a text names, relative to `now`; only the exact ones if it names any."""
    said = text.lower()
    now = now.astimezone(UTC)
    exact = dict.fromkeys(chain(_iso(said), _days(said, now)))
    if exact:
        return tuple(exact)
    return tuple(dict.fromkeys(chain(_months(said, now), _relative(said, now))))


def micros(moment: datetime) -> int:
    """A time as stored in the index: whole microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _iso(said: str) -> Iterator[Span]:
    for year, month, day in _ISO.findall(said):
        yield from _span(int(year), int(month), int(day) if day else None)


def _days(said: str, now: datetime) -> Iterator[Span]:
    for year, month, day in _CJK.findall(said):
        yield from _dated(now, int(month), int(day) if day else None, year)
    for day, month, year in _DAY_MONTH.findall(said):
        yield from _dated(now, _MONTH_OF[month], int(day), year)
    for month, day, year in _MONTH_DAY.findall(said):
        yield from _dated(now, _MONTH_OF[month], int(day), year)


def _months(said: str, now: datetime) -> Iterator[Span]:
    for month, year in _MONTH_YEAR.findall(said):
        yield from _span(int(year), _MONTH_OF[month], None)
    for month in _ONLY_MONTH.findall(said):
        yield from _dated(now, _MONTH_OF[month], None, "")
    for year in _ONLY_YEAR.findall(said):
        if f" {year}" in said and not any(found[1] == year for found in _MONTH_YEAR.findall(said)):
            yield datetime(int(year), 1, 1, tzinfo=UTC), datetime(int(year) + 1, 1, 1, tzinfo=UTC)


def _relative(said: str, now: datetime) -> Iterator[Span]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for word in _RELATIVE_DAY.findall(said):
        yield _days_from(today - timedelta(days=_DAYS_AGO[word]), 1)
    for word in _WEEKDAY.findall(said):
        back = (today.weekday() - _WEEKDAY_OF[word]) % 7 or 7
        yield _days_from(today - timedelta(days=back), 1)
    for count, unit in _AGO.findall(said):
        times = _NUMBERS.get(count) or int(count)
        length = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
        middle = today - timedelta(days=times * length)
        # "Three weeks ago" is not one day: half a unit to either side.
        yield _days_from(middle - timedelta(days=length // 2), 1 + 2 * (length // 2))
    for which, unit in _LAST_UNIT.findall(said):
        yield _unit(today, which == "this", unit)


def _unit(today: datetime, current: bool, unit: str) -> Span:
    if unit == "year":
        year = today.year - (not current)
        return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    if unit == "month":
        first = today.replace(day=1)
        return (first, _next_month(first)) if current else ((first - timedelta(days=1)).replace(day=1), first)
    monday = today - timedelta(days=today.weekday() + (0 if current else 7))
    return _days_from(monday + timedelta(days=5), 2) if unit == "weekend" else _days_from(monday, 7)


def _dated(now: datetime, month: int, day: int | None, year: str) -> Iterator[Span]:
    """Without a year, the last such day or month that has begun."""
    if year:
        yield from _span(int(year), month, day)
        return
    for candidate in (now.year, now.year - 1):
        for span in _span(candidate, month, day):
            if span[0] <= now:
                yield span
                return


def _span(year: int, month: int, day: int | None) -> Iterator[Span]:
    try:
        first = datetime(year, month, day or 1, tzinfo=UTC)
        yield _days_from(first, 1) if day else (first, _next_month(first))
    except (ValueError, OverflowError):
        return  # no such day, like February 31


def _next_month(first: datetime) -> datetime:
    return (first + timedelta(days=32)).replace(day=1)


def _days_from(first: datetime, days: int) -> Span:
    return first, first + timedelta(days=days)
