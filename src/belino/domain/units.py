"""Units: durations as people write them (`90s`, `30m`, `24h`, `7d`), sizes and durations as people read them."""

import re
from datetime import timedelta

_DURATION = re.compile(r"([1-9][0-9]{0,5})\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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
