"""Look into JSON that may be anything: what is not of the expected type is simply not there."""

from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType

Raw = Mapping[str, object]

NOTHING: Raw = MappingProxyType({})

# More than 63 bits would not fit into a column.
MOST = 2**63 - 1


def as_table(value: object) -> Raw:
    return value if isinstance(value, dict) else NOTHING


def table(raw: Raw, key: str) -> Raw:
    """The object under a key; an empty one if there is none."""
    return as_table(raw.get(key))


def as_tables(value: object) -> tuple[Raw, ...]:
    """The objects of a list."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def tables(raw: Raw, key: str) -> tuple[Raw, ...]:
    """The objects in the list under a key."""
    return as_tables(raw.get(key))


def words(raw: Raw, key: str) -> str:
    """The text under a key, fit to be stored: half a surrogate pair, which JSON may hold, becomes U+FFFD."""
    value = raw.get(key)
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def line(raw: Raw, key: str, *, most: int = 300) -> str:
    """A label in one line of ours: white space collapsed, so that it cannot start a line of its own."""
    label = " ".join(words(raw, key).split())
    return label if len(label) <= most else f"{label[: most - 1]}…"


def whole(raw: Raw, key: str) -> int | None:
    """The integer under a key; true and false are none."""
    value = raw.get(key)
    return value if type(value) is int and abs(value) <= MOST else None


def count(raw: Raw, key: str) -> int | None:
    """An integer that counts something: never negative."""
    value = whole(raw, key)
    return value if value is not None and value >= 0 else None


def real(raw: Raw, key: str) -> float | None:
    """The number under a key, integer or not, but a number that can be written down."""
    value = raw.get(key)
    if type(value) is int and abs(value) <= MOST:
        return float(value)
    return value if type(value) is float and isfinite(value) else None


def measure(raw: Raw, key: str) -> float | None:
    """A number that measures something: never negative."""
    value = real(raw, key)
    return value if value is not None and value >= 0 else None


def yes(raw: Raw, key: str) -> bool:
    return raw.get(key) is True
