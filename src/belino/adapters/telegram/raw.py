"""Times and ids as Telegram writes them."""

from datetime import UTC, datetime

from belino.net.raw import Raw, whole

BEGINNING = datetime.fromtimestamp(0, UTC)

_LAST_SECOND = 253_402_300_799  # the year 9999


def has(raw: Raw, key: str) -> bool:
    """Whether something stands under a key; some servers write null where Telegram writes nothing."""
    return raw.get(key) is not None


def moment(raw: Raw, key: str) -> datetime:
    """Unix time as a time; the beginning of time for anything else, because parsing knows no clock."""
    seconds = whole(raw, key)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 <= seconds <= _LAST_SECOND else BEGINNING


def identity(raw: Raw, key: str) -> str:
    """A number that names something, as text; empty if there is none."""
    value = whole(raw, key)
    return "" if value is None else str(value)
