"""Durations as people write them: `90s`, `30m`, `24h`, `7d`."""

import re
from datetime import timedelta

_DURATION = re.compile(r"([1-9][0-9]{0,5})\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: str) -> timedelta:
    """The duration a text names; ValueError if it names none."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no duration; write a whole number and a unit, like 30m, 24h or 7d")
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
