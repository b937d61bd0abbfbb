"""What Slack writes in a way of its own: ids that are times, and JSON wherever there is text."""

import json
import re
from datetime import UTC, datetime
from math import isfinite

from belino.net.raw import NOTHING, Raw, as_table

# A message's id and time in one: seconds since 1970, a dot, and what makes it one of its kind in its channel.
_TS = re.compile(r"(\d{1,11})\.(\d{1,9})", re.ASCII)


def stamp(raw: Raw, key: str) -> str:
    """A message's ts; empty for anything else. Some fields hold it as a number, which lost its last zeros."""
    value = raw.get(key)
    text = f"{value:.6f}" if type(value) is float and isfinite(value) else value
    return text if isinstance(text, str) and _TS.fullmatch(text) else ""


def moment(ts: str) -> datetime | None:
    """When a ts was; None for what is none."""
    found = _TS.fullmatch(ts)
    if found is None:
        return None
    return datetime.fromtimestamp(int(found[1]), UTC).replace(microsecond=int(found[2][:6].ljust(6, "0")))


def parsed(text: str | bytes) -> Raw:
    """An object from JSON; an empty one if it is none."""
    try:
        return as_table(json.loads(text))
    except (ValueError, RecursionError):
        return NOTHING
