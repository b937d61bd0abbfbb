"""Times, ids and nested components as Discord writes them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from belino.net.raw import MOST, Raw, table, tables, words

# Discord takes forty in all, three deep.
MOST_COMPONENTS, DEEPEST = 50, 4

# An id's first 42 bits are milliseconds since 2015; see "Snowflakes" in the reference.
_EPOCH = datetime(2015, 1, 1, tzinfo=UTC)


def as_identity(value: object) -> str:
    """A snowflake as text; empty if it is none. Discord writes them as strings, some servers as numbers."""
    digits = str(value) if type(value) is int else value
    if not isinstance(digits, str) or not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return ""
    return str(int(digits)) if 0 < int(digits) <= MOST else ""


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


def first_at(moment: datetime) -> str:
    """The snowflake before all that were made from a moment on."""
    return str(max(int((moment - _EPOCH) / timedelta(milliseconds=1)), 0) << 22)


def components_in(holder: Raw, depth: int = 0) -> Iterator[Raw]:
    """Everything a message is made of besides its text, what stands inside of it too, from top to bottom."""
    inner = (*tables(holder, "components")[:MOST_COMPONENTS], table(holder, "accessory"), table(holder, "component"))
    for component in filter(None, inner if depth < DEEPEST else ()):
        yield component
        yield from components_in(component, depth + 1)
