"""Bytes that came for a channel from elsewhere than its platform: no ref stands for them, and they count too."""

import sqlite3
from datetime import datetime, timedelta

from belino.domain.message import ConversationKey
from belino.storage.places import Places, find_channel
from belino.storage.stamps import to_micros

KEPT = timedelta(days=7)
"""Longer than anybody asks for."""


def note_fetched(
    connection: sqlite3.Connection, places: Places, channel: ConversationKey, size: int, now: datetime
) -> None:
    """So many bytes came now."""
    number = places.channel(connection, channel).id
    connection.execute("INSERT INTO fetched_elsewhere VALUES (?, ?, ?)", (number, to_micros(now), size))
    connection.execute("DELETE FROM fetched_elsewhere WHERE channel = ? AND at < ?", (number, to_micros(now - KEPT)))


def bytes_from_elsewhere(connection: sqlite3.Connection, channel: ConversationKey, since: datetime) -> int:
    """What came since then."""
    row = connection.execute(
        "SELECT coalesce(sum(bytes), 0) FROM fetched_elsewhere WHERE channel = ? AND at >= ?",
        (find_channel(connection, channel), to_micros(since)),
    ).fetchone()
    return int(row[0])
