"""Timestamps as the tables store them: whole microseconds since 1970, UTC."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """Exact, unlike a float of seconds."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The moment in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def maybe_from_micros(micros: int | None) -> datetime | None:
    """The moment in UTC; None for None."""
    return None if micros is None else from_micros(micros)
