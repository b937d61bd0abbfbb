"""Pairing rows: strangers who wrote directly, and those who were approved."""

from datetime import timedelta

from belino.domain.message import Author
from belino.domain.reply import Parcel
from belino.domain.stored import Pairing
from belino.storage.database import TableRow, Tx, from_micros, maybe_from_micros
from belino.storage.encryption import Keys
from belino.storage.outbox import insert_parcels

LIFETIME = timedelta(minutes=10)
TRIES = 5
WAITING_AT_MOST = 3
"""Per account: limits the messages we send to strangers within the lifetime of a code."""

_LIFETIME = LIFETIME // timedelta(microseconds=1)


def ask(tx: Tx, keys: Keys, sender: Author, parcel: Parcel, code: str, now: int) -> bool:
    """Store a stranger's pairing request together with our answer; False if it is not accepted."""
    where = parcel.conversation
    _forget_old(tx, now)
    waiting = tx.execute(
        "SELECT sender_id FROM pairings_asked WHERE platform = ? AND account = ?", (where.platform, where.account)
    ).fetchall()
    if len(waiting) >= WAITING_AT_MOST or sender.id in {row["sender_id"] for row in waiting}:
        return False
    tx.execute(
        "INSERT INTO pairings_asked (platform, account, sender_id, name, hash, asked, expires, tries_left) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
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
    insert_parcels(tx, None, [parcel], now)
    return True


def is_paired(tx: Tx, platform: str, account: str, sender_id: str) -> bool:
    """Whether a sender may give commands in direct messages of this account."""
    row = tx.execute(
        "SELECT 1 FROM pairings WHERE platform = ? AND account = ? AND sender_id = ?", (platform, account, sender_id)
    ).fetchone()
    return row is not None


def pairings(tx: Tx, now: int) -> tuple[Pairing, ...]:
    """Pending and approved pairings, oldest first."""
    rows = tx.execute(
        "SELECT platform, account, sender_id, name, asked AS at, expires, tries_left FROM pairings_asked "
        "WHERE expires > ? UNION ALL "
        "SELECT platform, account, sender_id, name, since, NULL, 0 FROM pairings",
        (now,),
    )
    return tuple(sorted(map(_pairing, rows), key=lambda one: (one.at, one.sender_id)))


def pair(tx: Tx, keys: Keys, code: str, now: int) -> Pairing | None:
    """Approve the sender of a code; a wrong code uses up one try of every pending code."""
    row = tx.execute(
        "SELECT * FROM pairings_asked WHERE hash = ? AND expires > ? AND tries_left > 0", (keys.pairing_hash(code), now)
    ).fetchone()
    if row is None:
        tx.execute("UPDATE pairings_asked SET tries_left = tries_left - 1 WHERE tries_left > 0")
        return None
    who = (row["platform"], row["account"], row["sender_id"])
    tx.execute("DELETE FROM pairings_asked WHERE platform = ? AND account = ? AND sender_id = ?", who)
    made = tx.execute(
        "INSERT INTO pairings (platform, account, sender_id, name, since) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (platform, account, sender_id) DO UPDATE SET since = excluded.since "
        "RETURNING platform, account, sender_id, name, since AS at, NULL AS expires, 0 AS tries_left",
        (*who, row["name"], now),
    ).fetchone()
    return _pairing(made)


def unpair(tx: Tx, platform: str, account: str, sender_id: str, now: int) -> bool:
    """Revoke a pairing. A pending one stays until its code expires, so that no second code is sent."""
    who = (platform, account, sender_id)
    taken = tx.execute("DELETE FROM pairings WHERE platform = ? AND account = ? AND sender_id = ?", who).rowcount
    spent = tx.execute(
        "UPDATE pairings_asked SET tries_left = 0 "
        "WHERE platform = ? AND account = ? AND sender_id = ? AND expires > ? AND tries_left > 0",
        (*who, now),
    ).rowcount
    return bool(taken or spent)


def _forget_old(tx: Tx, now: int) -> None:
    """Delete expired requests, with the sender's name and the message that was sent."""
    tx.execute("DELETE FROM pairings_asked WHERE expires <= ?", (now,))
    tx.execute(
        "DELETE FROM parcels WHERE turn IS NULL AND created <= ? AND state NOT IN ('ready', 'sending')",
        (now - _LIFETIME,),
    )


def _pairing(row: TableRow) -> Pairing:
    return Pairing(
        platform=row["platform"],
        account=row["account"],
        sender_id=row["sender_id"],
        name=row["name"],
        at=from_micros(row["at"]),
        expires=maybe_from_micros(row["expires"]),
        tries_left=row["tries_left"],
    )
