"""Units as people write and read them: sizes, durations (`90s`), ranges of pages and times (`3-5`, `0:30-1:10`)."""

import re
from datetime import timedelta

from belino.domain.errors import BelinoError

NUMBER_MOST = 1_000_000
SECONDS_MOST = 1_000_000.0

_DURATION = re.compile(r"([1-9][0-9]{0,5})\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DASH = r"\s*(?:-|–|—|\.\.|to)\s*"
_PAGES = re.compile(rf"([0-9]{{1,7}})(?:({_DASH})([0-9]{{1,7}})?)?")
_TIME = r"(?:(?:([0-9]{1,4}):)?([0-9]{1,5}):)?([0-9]{1,7}(?:\.[0-9]{1,3})?)"
_TIMES = re.compile(rf"{_TIME}s?(?:{_DASH}(?:{_TIME}s?)?)?")


class NoRange(BelinoError):
    """The range cannot be parsed; the message shows the format."""


def parse_duration(text: str) -> timedelta:
    """Parse a duration; ValueError if the text is not one."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no duration; write a whole number and a unit, like 30m, 24h or 7d")
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})


def format_size(size: int) -> str:
    """`512B 847KB 2.4MB 1.2GB`: 1024-based, one decimal from MB up."""
    if size < 1024:
        return f"{size}B"
    if round(size / 1024) < 1024:
        return f"{round(size / 1024)}KB"
    if round(size / 1024**2, 1) < 1024:
        return f"{size / 1024**2:.1f}MB"
    return f"{size / 1024**3:.1f}GB"


def format_duration(seconds: float) -> str:
    """`12s 1m15s 1h02m`."""
    whole = max(1, round(seconds)) if seconds > 0 else 0
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def parse_pages(text: str) -> tuple[int, int | None]:
    """`3` is one, `3-5` three, `3-` from there to the end (None)."""
    found = _PAGES.fullmatch(text.strip().lower())
    if found is None:
        raise NoRange("pages must be a number or a range, like 3 or 3-5 or 3-")
    first = int(found[1])
    last = int(found[3]) if found[3] else None if found[2] else first
    if not 1 <= first <= NUMBER_MOST or (last is not None and not first <= last <= NUMBER_MOST):
        raise NoRange("pages count from 1, and the first comes before the last, like 3-5")
    return first, last


def parse_times(text: str) -> tuple[float, float | None]:
    """`0:30-1:10` or `30-70`, in seconds; `0:30-` and `0:30` continue to the end (None)."""
    found = _TIMES.fullmatch(text.strip().lower())
    if found is None:
        raise NoRange("time_range must be two times in minutes and seconds, like 0:30-1:10")
    start = _seconds(*found.groups()[:3])
    end = _seconds(*found.groups()[3:]) if found[6] is not None else None
    if start > SECONDS_MOST or (end is not None and not start < end <= SECONDS_MOST):
        raise NoRange("time_range must begin before it ends, like 0:30-1:10")
    return start, end


def clock_time(seconds: float) -> str:
    """`0:07`, `1:10`, `1:02:05`; tenths only where several moments share a second."""
    tenths = round(seconds * 10)
    whole, tenth = divmod(tenths, 10)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    told = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{told}.{tenth}" if tenth else told


def span(numbers: tuple[int, ...] | list[int]) -> str:
    """Ascending numbers in short form: `3`, `3-5`, `1-3, 7`."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _seconds(hours: str | None, minutes: str | None, seconds: str | None) -> float:
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0)
