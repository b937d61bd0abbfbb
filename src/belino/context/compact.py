"""What was said as an agent reads it: one compact line for a message, whose fields nobody can break out of."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

COLUMNS = "id|MM-DD HH:MM|author|text"

_SPECIAL = {"\\": "\\\\", "|": "\\|", "\n": "\\n"}
_ESCAPED = re.compile(r"[\\|\n]")


def header(today: datetime) -> str:
    """The line above compact lines: their columns, and the day that completes their dates."""
    return f"{COLUMNS} (UTC; today is {today.astimezone(UTC):%Y-%m-%d})"


def escape(field: str) -> str:
    """A field as it may stand between bars."""
    return _ESCAPED.sub(lambda found: _SPECIAL[found.group()], field)


def line(fields: Iterable[str]) -> str:
    """Fields joined by `|`; a bar, a newline or a backslash inside one is escaped."""
    return "|".join(escape(field) for field in fields)


def short_time(moment: datetime) -> str:
    """`MM-DD HH:MM`, in UTC."""
    return f"{moment.astimezone(UTC):%m-%d %H:%M}"
