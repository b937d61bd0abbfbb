"""JSON fields: read untrusted JSON; a value of an unexpected type counts as absent."""

import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from types import MappingProxyType

Raw = Mapping[str, object]

NOTHING: Raw = MappingProxyType({})

# More than 63 bits would not fit into a column.
MOST = 2**63 - 1
BEGINNING = datetime.fromtimestamp(0, UTC)
UNKNOWN_MIME = "application/octet-stream"

_LAST_SECOND = 253_402_300_799  # the year 9999
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


def from_json(text: str | bytes) -> Raw:
    """The object in a JSON text; empty if it is none."""
    try:
        return as_table(json.loads(text))
    except (ValueError, RecursionError):
        return NOTHING


def as_table(value: object) -> Raw:
    return value if isinstance(value, dict) else NOTHING


def table(raw: Raw, key: str) -> Raw:
    """The object under a key; empty if there is none."""
    return as_table(raw.get(key))


def as_tables(value: object) -> tuple[Raw, ...]:
    """The objects of a list."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def tables(raw: Raw, key: str) -> tuple[Raw, ...]:
    """The objects in the list under a key."""
    return as_tables(raw.get(key))


def words(raw: Raw, key: str) -> str:
    """The text under a key, fit for storage."""
    value = raw.get(key)
    return _storable(value) if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """A lone surrogate, which JSON may hold, becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def texts(raw: Raw, key: str) -> tuple[str, ...]:
    """The texts of the list under a key."""
    listed = raw.get(key)
    return tuple(_storable(each) for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()


def texts_by_key(raw: Raw) -> dict[str, str]:
    """Every value as a text, by its key; empty for one that is none."""
    return {key: words(raw, key) for key in raw}


def from_base64(text: str) -> bytes:
    """The bytes of a base64 text; empty if it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def line(raw: Raw, key: str, *, most: int = 300) -> str:
    """The label under a key, on one line."""
    return one_line(words(raw, key), most=most)


def one_line(text: str, *, most: int = 300) -> str:
    """A label on one line: white space is collapsed, so that it cannot start a line of its own."""
    label = " ".join(text.split())
    return label if len(label) <= most else f"{label[: most - 1]}…"


def whole(raw: Raw, key: str) -> int | None:
    """The integer under a key; booleans do not count."""
    value = raw.get(key)
    return value if type(value) is int and abs(value) <= MOST else None


def count(raw: Raw, key: str) -> int | None:
    """A non-negative integer."""
    value = whole(raw, key)
    return value if value is not None and value >= 0 else None


def real(raw: Raw, key: str) -> float | None:
    """The finite number under a key, integer or not."""
    value = raw.get(key)
    if type(value) is int and abs(value) <= MOST:
        return float(value)
    return value if type(value) is float and isfinite(value) else None


def measure(raw: Raw, key: str) -> float | None:
    """A non-negative number."""
    value = real(raw, key)
    return value if value is not None and value >= 0 else None


def yes(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


def has(raw: Raw, key: str) -> bool:
    """Whether a key has a value; null does not count."""
    return raw.get(key) is not None


def number_id(raw: Raw, key: str) -> str:
    """An integer id, as text; empty if there is none."""
    value = whole(raw, key)
    return "" if value is None else str(value)


def unix_time(raw: Raw, key: str) -> datetime:
    """The Unix time under a key; 1970 for anything else, because parsing has no clock."""
    seconds = whole(raw, key)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 <= seconds <= _LAST_SECOND else BEGINNING


def iso_time(raw: Raw, key: str) -> datetime | None:
    """The ISO 8601 time under a key, in UTC; None without a zone."""
    try:
        time = datetime.fromisoformat(words(raw, key))
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def mime(raw: Raw, key: str, otherwise: str = UNKNOWN_MIME) -> str:
    """The MIME type under a key, without parameters; `otherwise` if it is invalid."""
    declared = words(raw, key)[:256].partition(";")[0].strip().lower()
    return declared if _MIME.fullmatch(declared) else otherwise
