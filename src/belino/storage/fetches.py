"""Daily limits: bytes received for a channel, by fetches or upload, whatever becomes of the ref or the message."""

from datetime import datetime, timedelta

from belino.domain.message import ConversationKey
from belino.storage.database import Tx, to_micros
from belino.storage.row_ids import RowIds, find_channel

KEPT = timedelta(days=7)
"""Longer than any limit looks back."""


def note_fetched(tx: Tx, channel: ConversationKey, size: int, now: datetime) -> None:
    """Count bytes that were fetched now."""
    count_bytes(tx, tx.memo(RowIds).channel(tx, channel).id, size, to_micros(now))


def count_bytes(tx: Tx, channel: int, size: int, now: int) -> None:
    """Count bytes toward a channel's daily limit, and delete counts that no limit needs."""
    tx.execute("INSERT INTO fetches (channel, at, bytes) VALUES (?, ?, ?)", (channel, now, size))
    tx.execute("DELETE FROM fetches WHERE channel = ? AND at < ?", (channel, now - KEPT // timedelta(microseconds=1)))


def bytes_fetched(tx: Tx, channel: ConversationKey, since: datetime) -> tuple[int, int]:
    """Bytes received since then, with the announced size of open uploads, and when the last of them came."""
    number = find_channel(tx, channel)
    return (0, 0) if number is None else bytes_counted(tx, number, to_micros(since))


def bytes_counted(tx: Tx, channel: int, since: int) -> tuple[int, int]:
    """The same by a channel's row id. An open upload counts in full until it ends: its bytes may all still come."""
    size, last = tx.execute(
        "SELECT coalesce(sum(bytes), 0), coalesce(max(at), 0) FROM fetches WHERE channel = ? AND at >= ?",
        (channel, since),
    ).fetchone()
    announced = tx.execute(
        "SELECT coalesce(sum(size), 0) FROM uploads WHERE channel = ? AND sha256 IS NULL", (channel,)
    ).fetchone()[0]
    return int(size) + int(announced), int(last)


def turn_back(tx: Tx, channel: int | None, now: int) -> None:
    """Move counts from the future, left by a clock that was set back, to now."""
    tx.execute("UPDATE fetches SET at = ? WHERE channel = ? AND at > ?", (now, channel, now))
