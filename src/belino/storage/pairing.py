"""Pairing rows: strangers who wrote directly, and those who were approved."""

import sqlite3
from datetime import timedelta

from belino.domain.message import Author
from belino.domain.reply import Parcel
from belino.domain.stored import Pairing
from belino.storage.encryption import Keys
from belino.storage.outbox import insert_parcels
from belino.storage.row_ids import RowIds
from belino.storage.timestamps import from_micros, maybe_from_micros

LIFETIME = timedelta(minutes=10)
TRIES = 5
WAITING_AT_MOST = 3
"""Per account: limits the messages we send to strangers within the lifetime of a code."""

_LIFETIME = LIFETIME // timedelta(microseconds=1)


def ask(
    connection: sqlite3.Connection, keys: Keys, places: RowIds, sender: Author, parcel: Parcel, code: str, now: int
) -> bool:
    """Store a stranger's pairing request together with our answer; False if it is not accepted."""
    where = parcel.conversation
    _forget_old(connection, now)
    waiting = connection.execute(
        "SELECT sender_id FROM pairings_asked WHERE platform = ? AND account = ?", (where.platform, where.account)
    ).fetchall()
    if len(waiting) >= WAITING_AT_MOST or sender.id in {row["sender_id"] for row in waiting}:
        return False
    connection.execute(
        "INSERT INTO pairings_asked VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            where.platform,
            where.account,
            sender.id,
            sender.name,
            keys.pairing_hash(code),
            now,
            now + _LIFETIME,
            TRIES,
        ),
    )
    insert_parcels(connection, places, None, [parcel], now)
    return True


def is_paired(connection: sqlite3.Connection, platform: str, account: str, sender_id: str) -> bool:
    """Whether a sender may give commands in direct messages of this account."""
    row = connection.execute(
        "SELECT 1 FROM pairings WHERE platform = ? AND account = ? AND sender_id = ?", (platform, account, sender_id)
    ).fetchone()
    return row is not None


def pairings(connection: sqlite3.Connection, now: int) -> tuple[Pairing, ...]:
    """Pending and approved pairings, oldest first."""
    rows = connection.execute(
        "SELECT platform, account, sender_id, name, asked AS at, expires, tries_left FROM pairings_asked "
        "WHERE expires > ? UNION ALL "
        "SELECT platform, account, sender_id, name, since, NULL, 0 FROM pairings ORDER BY at, sender_id",
        (now,),
    )
    return tuple(_pairing(row) for row in rows)


def pair(connection: sqlite3.Connection, keys: Keys, code: str, now: int) -> Pairing | None:
    """Approve the sender of a code; a wrong code uses up one try of every pending code."""
    row = connection.execute(
        "SELECT * FROM pairings_asked WHERE hash = ? AND expires > ? AND tries_left > 0", (keys.pairing_hash(code), now)
    ).fetchone()
    if row is None:
        connection.execute("UPDATE pairings_asked SET tries_left = max(0, tries_left - 1)")
        return None
    who = (row["platform"], row["account"], row["sender_id"])
    connection.execute("DELETE FROM pairings_asked WHERE platform = ? AND account = ? AND sender_id = ?", who)
    made = connection.execute(
        "INSERT INTO pairings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since "
        "RETURNING platform, account, sender_id, name, since AS at, NULL AS expires, 0 AS tries_left",
        (*who, row["name"], now),
    ).fetchone()
    return _pairing(made)


def unpair(connection: sqlite3.Connection, platform: str, account: str, sender_id: str, now: int) -> bool:
    """Revoke a pairing. A pending one stays until its code expires, so that no second code is sent."""
    who = (platform, account, sender_id)
    taken = connection.execute(
        "DELETE FROM pairings WHERE platform = ? AND account = ? AND sender_id = ?", who
    ).rowcount
    spent = connection.execute(
        "UPDATE pairings_asked SET tries_left = 0 "
        "WHERE platform = ? AND account = ? AND sender_id = ? AND expires > ? AND tries_left > 0",
        (*who, now),
    ).rowcount
    return bool(taken or spent)


def _forget_old(connection: sqlite3.Connection, now: int) -> None:
    """Delete expired requests, with the sender's name and the message that was sent."""
    connection.execute("DELETE FROM pairings_asked WHERE expires <= ?", (now,))
    connection.execute(
        "DELETE FROM parcels WHERE turn IS NULL AND created <= ? AND state NOT IN ('ready', 'sending')",
        (now - _LIFETIME,),
    )


def _pairing(row: sqlite3.Row) -> Pairing:
    return Pairing(
        platform=row["platform"],
        account=row["account"],
        sender_id=row["sender_id"],
        name=row["name"],
        at=from_micros(row["at"]),
        expires=maybe_from_micros(row["expires"]),
        tries_left=row["tries_left"],
    )
