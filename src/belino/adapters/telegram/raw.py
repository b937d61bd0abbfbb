"""Look into JSON that may be anything: what is not of the expected type is simply not there."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from types import MappingProxyType

Raw = Mapping[str, object]

NOTHING: Raw = MappingProxyType({})
BEGINNING = datetime.fromtimestamp(0, UTC)

# Chat and user ids have up to 52 bits; more than 63 would not fit into a column.
_MOST = 2**63 - 1
_LAST_SECOND = 253_402_300_799  # the year 9999


def table(raw: Raw, key: str) -> Raw:
    """The object under a key; an empty one if there is none."""
    return as_table(raw.get(key))


def as_table(value: object) -> Raw:
    return value if isinstance(value, dict) else NOTHING


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


def whole(raw: Raw, key: str) -> int | None:
    """The integer under a key; true and false are none."""
    value = raw.get(key)
    return value if type(value) is int and abs(value) <= _MOST else None


def count(raw: Raw, key: str) -> int | None:
    """An integer that counts something: never negative."""
    value = whole(raw, key)
    return value if value is not None and value >= 0 else None


def real(raw: Raw, key: str) -> float | None:
    """The number under a key, integer or not, but a number that can be written down."""
    value = raw.get(key)
    if type(value) is int and abs(value) <= _MOST:
        return float(value)
    return value if type(value) is float and isfinite(value) else None


def yes(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


def moment(raw: Raw, key: str) -> datetime:
    """Unix time as a time; the beginning of time for anything else, because parsing knows no clock."""
    seconds = whole(raw, key)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 <= seconds <= _LAST_SECOND else BEGINNING


def identity(raw: Raw, key: str) -> str:
    """A number that names something, as text; empty if there is none."""
    value = whole(raw, key)
    return "" if value is None else str(value)
