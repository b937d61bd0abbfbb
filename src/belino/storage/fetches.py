"""Daily limits: bytes received for a channel, by fetches or upload, whatever becomes of the ref or the message."""

import sqlite3
from datetime import datetime, timedelta

from belino.domain.message import ConversationKey
from belino.storage.row_ids import RowIds, find_channel
from belino.storage.timestamps import to_micros

KEPT = timedelta(days=7)
"""Longer than any limit looks back."""


def note_fetched(
    connection: sqlite3.Connection, places: RowIds, channel: ConversationKey, size: int, now: datetime
) -> None:
    """Count bytes that were fetched now."""
    count_bytes(connection, places.channel(connection, channel).id, size, to_micros(now))


def count_bytes(connection: sqlite3.Connection, channel: int, size: int, now: int) -> None:
    """Count bytes toward a channel's daily limit, and delete counts that no limit needs."""
    connection.execute("INSERT INTO fetches VALUES (?, ?, ?)", (channel, now, size))
    connection.execute(
        "DELETE FROM fetches WHERE channel = ? AND at < ?", (channel, now - KEPT // timedelta(microseconds=1))
    )


def bytes_fetched(connection: sqlite3.Connection, channel: ConversationKey, since: datetime) -> tuple[int, int]:
    """Bytes received since then, with the announced size of open uploads, and when the last of them came."""
    number = find_channel(connection, channel)
    return (0, 0) if number is None else bytes_counted(connection, number, to_micros(since))


def bytes_counted(connection: sqlite3.Connection, channel: int, since: int) -> tuple[int, int]:
    """The same by a channel's row id. An open upload counts in full until it ends: its bytes may all still come."""
    size, last = connection.execute(
        "SELECT coalesce(sum(bytes), 0), coalesce(max(at), 0) FROM fetches WHERE channel = ? AND at >= ?",
        (channel, since),
    ).fetchone()
    announced = connection.execute(
        "SELECT coalesce(sum(size), 0) FROM uploads WHERE channel = ? AND sha256 IS NULL", (channel,)
    ).fetchone()[0]
    return int(size) + int(announced), int(last)


def turn_back(connection: sqlite3.Connection, channel: int | None, now: int) -> None:
    """Move counts from the future, left by a clock that was set back, to now."""
    connection.execute("UPDATE fetches SET at = ? WHERE channel = ? AND at > ?", (now, channel, now))
