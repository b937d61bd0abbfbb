"""Look into JSON that may be anything: what is not of the expected type is simply not there."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from types import MappingProxyType

Raw = Mapping[str, object]

NOTHING: Raw = MappingProxyType({})

# A message's id and time in one: seconds since 1970, a dot, and what makes it one of its kind in its channel.
_TS = re.compile(r"(\d{1,11})\.(\d{1,9})")
_MOST = 2**63 - 1


def as_table(value: object) -> Raw:
    return value if isinstance(value, dict) else NOTHING


def table(raw: Raw, key: str) -> Raw:
    """The object under a key; an empty one if there is none."""
    return as_table(raw.get(key))


def tables(raw: Raw, key: str) -> tuple[Raw, ...]:
    """The objects in the list under a key."""
    value = raw.get(key)
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def words(raw: Raw, key: str) -> str:
    """The text under a key, fit to be stored: half a surrogate pair, which JSON may hold, becomes U+FFFD."""
    value = raw.get(key)
    if not isinstance(value, str):
        return ""
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def line(raw: Raw, key: str, *, most: int = 300) -> str:
    """A label in one line of ours: white space collapsed, so that it cannot start a line of its own."""
    label = " ".join(words(raw, key).split())
    return label if len(label) <= most else f"{label[: most - 1]}…"


def count(raw: Raw, key: str) -> int | None:
    """An integer that counts something: never negative, and true and false are none."""
    value = raw.get(key)
    return value if type(value) is int and 0 <= value <= _MOST else None


def real(raw: Raw, key: str) -> float | None:
    """The number under a key, integer or not, that is not negative and can be written down."""
    value = raw.get(key)
    number = float(value) if type(value) is int and abs(value) <= _MOST else value
    return number if isinstance(number, float) and isfinite(number) and number >= 0 else None


def yes(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


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
