"""Bytes that came for a channel, fetch by fetch: they count whatever becomes of the ref, the bytes or the message."""

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
    connection.execute("INSERT INTO fetches VALUES (?, ?, ?)", (number, to_micros(now), size))
    connection.execute("DELETE FROM fetches WHERE channel = ? AND at < ?", (number, to_micros(now - KEPT)))


def bytes_fetched(connection: sqlite3.Connection, channel: ConversationKey, since: datetime) -> tuple[int, int]:
    """What came since then, and when the last of it did."""
    size, last = connection.execute(
        "SELECT coalesce(sum(bytes), 0), coalesce(max(at), 0) FROM fetches WHERE channel = ? AND at >= ?",
        (find_channel(connection, channel), to_micros(since)),
    ).fetchone()
    return int(size), int(last)


def turn_back(connection: sqlite3.Connection, channel: ConversationKey, now: int) -> None:
    """What came at a time that is yet to come did so by a clock that has been turned back since: it came just now."""
    connection.execute(
        "UPDATE fetches SET at = ? WHERE channel = ? AND at > ?", (now, find_channel(connection, channel), now)
    )
