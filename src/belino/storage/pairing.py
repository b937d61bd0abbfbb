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
"""Of one account: a crowd of strangers makes us send no more than this many messages in the time a code lives."""

_LIFETIME = LIFETIME // timedelta(microseconds=1)


def ask(
    connection: sqlite3.Connection, keys: Keys, places: RowIds, sender: Author, parcel: Parcel, code: str, now: int
) -> bool:
    """A stranger's question and our answer to it, or nothing at all."""
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
    """Whether a sender may command in direct messages of this account."""
    row = connection.execute(
        "SELECT 1 FROM pairings WHERE platform = ? AND account = ? AND sender_id = ?", (platform, account, sender_id)
    ).fetchone()
    return row is not None


def pairings(connection: sqlite3.Connection, now: int) -> tuple[Pairing, ...]:
    """Who waits, and who is paired; oldest first."""
    rows = connection.execute(
        "SELECT platform, account, sender_id, name, asked AS at, expires, tries_left FROM pairings_asked "
        "WHERE expires > ? UNION ALL "
        "SELECT platform, account, sender_id, name, since, NULL, 0 FROM pairings ORDER BY at, sender_id",
        (now,),
    )
    return tuple(_pairing(row) for row in rows)


def pair(connection: sqlite3.Connection, keys: Keys, code: str, now: int) -> Pairing | None:
    """Approve whom a code was given to; a wrong code uses up a try of every code that could have been meant."""
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
    """Take a pairing back. One who only waits stays until the code would have ended, so as not to be told anew."""
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
    """Strangers nobody approved leave nothing behind, neither their names nor what they were told."""
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
