"""Look into JSON that may be anything: what is not of the expected type is simply not there."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from types import MappingProxyType

Raw = Mapping[str, object]

NOTHING: Raw = MappingProxyType({})

# An id's first 42 bits are milliseconds since 2015; see "Snowflakes" in the reference.
_EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
_MOST_ID = 2**63 - 1
_MOST_WHOLE = 2**63 - 1


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
    return value if type(value) is int and abs(value) <= _MOST_WHOLE else None


def count(raw: Raw, key: str) -> int | None:
    """An integer that counts something: never negative."""
    value = whole(raw, key)
    return value if value is not None and value >= 0 else None


def real(raw: Raw, key: str) -> float | None:
    """A number that is not negative and can be written down."""
    value = raw.get(key)
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        return None
    return float(value) if 0 <= value <= _MOST_WHOLE else None  # type: ignore[operator,arg-type]


def yes(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


def as_identity(value: object) -> str:
    """A snowflake as text; empty if it is none. Discord writes them as strings, some servers as numbers."""
    digits = str(value) if type(value) is int else value
    if not isinstance(digits, str) or not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return ""
    return str(int(digits)) if 0 < int(digits) <= _MOST_ID else ""


def identity(raw: Raw, key: str) -> str:
    return as_identity(raw.get(key))


def identities(raw: Raw, key: str) -> tuple[str, ...]:
    """The snowflakes in the list under a key."""
    value = raw.get(key)
    return tuple(own for item in value if (own := as_identity(item))) if isinstance(value, list) else ()


def moment(raw: Raw, key: str) -> datetime | None:
    """The time under a key, which Discord writes as ISO 8601."""
    try:
        time = datetime.fromisoformat(words(raw, key))
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def made_at(own: str) -> datetime | None:
    """When a snowflake was made."""
    try:
        return _EPOCH + timedelta(milliseconds=int(own) >> 22) if own else None
    except OverflowError:
        return None
