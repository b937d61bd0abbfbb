"""Access: grants and pairings."""

import secrets
from datetime import timedelta

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel
from belino.domain.stored import Grant, GrantKind, Pairing
from belino.storage.database import TableRow, Tx, Verbs, from_micros, maybe_from_micros
from belino.storage.encryption import Keys
from belino.storage.parcels import insert_parcels
from belino.storage.text import sanitized

_SECRET_BYTES = 32
_ID_BYTES = 8
_MICROSECOND = timedelta(microseconds=1)
LIFETIME = timedelta(minutes=10)
TRIES = 5
WAITING_AT_MOST = 3
"""Per account: limits the messages we send to strangers within the lifetime of a code."""
_LIFETIME = LIFETIME // timedelta(microseconds=1)


class AccessVerbs(Verbs):
    """Grants of access, and paired senders."""

    @property
    def instance(self) -> str:
        """A short public id of this state folder, the same at every start."""
        return self._keys.instance

    async def grant(
        self,
        kind: GrantKind,
        *,
        conversation: ConversationKey | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
    ) -> tuple[Grant, str]:
        """Create a grant and its secret, which is shown once."""
        now = self._now()
        return await self._database.write(
            lambda tx: grant(tx, self._keys, kind, conversation=conversation, note=note, lifetime=lifetime, now=now)
        )

    async def check(self, secret: str) -> Grant | None:
        now = self._now()
        return await self._database.read(lambda tx: check(tx, self._keys, secret, now))

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        """Exchange a login secret, once, for a browser grant."""
        now = self._now()
        return await self._database.write(lambda tx: redeem(tx, self._keys, secret, lifetime=lifetime, now=now))

    async def grants(self) -> tuple[Grant, ...]:
        now = self._now()
        return await self._database.read(lambda tx: grants(tx, now))

    async def revoke(self, grant_id: str) -> bool:
        now = self._now()
        return await self._database.write(lambda tx: revoke(tx, grant_id, now))

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        """Store a stranger's pairing request, and put the parcel with their code into the outbox.

        The account and the conversation are the parcel's. False, and nothing is stored or sent, while the sender's last
        code is valid or the account has its maximum of pending requests.
        """
        now, (who, answer) = self._now(), sanitized((sender, parcel))
        return await self._database.write(lambda tx: ask(tx, self._keys, who, answer, code, now))

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool:
        return await self._database.read(lambda tx: is_paired(tx, platform, account, sender_id))

    async def pairings(self) -> tuple[Pairing, ...]:
        """Pending and approved pairings, oldest first."""
        now = self._now()
        return await self._database.read(lambda tx: pairings(tx, now))

    async def pair(self, code: str) -> Pairing | None:
        """Approve the sender of a code. A wrong code uses up one try of every pending code."""
        now = self._now()
        return await self._database.write(lambda tx: pair(tx, self._keys, code, now))

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        """Revoke a pairing, or invalidate the code of a pending one."""
        now = self._now()
        return await self._database.write(lambda tx: unpair(tx, platform, account, sender_id, now))


def grant(
    tx: Tx,
    keys: Keys,
    kind: GrantKind,
    *,
    conversation: ConversationKey | None,
    note: str,
    lifetime: timedelta | None,
    now: int,
) -> tuple[Grant, str]:
    """Create a grant and its secret; only the secret's hash is stored."""
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    expires = None if lifetime is None else now + lifetime // _MICROSECOND
    row = tx.execute(
        "INSERT INTO grants (id, hash, kind, conversation, note, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "RETURNING *",
        (
            secrets.token_hex(_ID_BYTES),
            keys.grant_hash(secret),
            kind,
            None if conversation is None else str(conversation),
            note,
            now,
            expires,
        ),
    ).fetchone()
    return _grant(row), secret


def check(tx: Tx, keys: Keys, secret: str, now: int) -> Grant | None:
    """The grant of a secret; a login secret grants nothing until it is redeemed."""
    row = _live(tx, keys, secret, now)
    return None if row is None or row["kind"] == GrantKind.LOGIN else _grant(row)


def redeem(tx: Tx, keys: Keys, secret: str, *, lifetime: timedelta, now: int) -> tuple[Grant, str] | None:
    """Exchange a login secret, once, for a browser grant."""
    row = _live(tx, keys, secret, now)
    if row is None or row["kind"] != GrantKind.LOGIN:
        return None
    tx.execute("DELETE FROM grants WHERE id = ?", (row["id"],))
    return grant(tx, keys, GrantKind.BROWSER, conversation=None, note=row["note"], lifetime=lifetime, now=now)


def grants(tx: Tx, now: int) -> tuple[Grant, ...]:
    """Every valid grant, oldest first."""
    rows = tx.execute("SELECT * FROM grants WHERE expires IS NULL OR expires > ? ORDER BY created, id", (now,))
    return tuple(_grant(row) for row in rows)


def revoke(tx: Tx, grant_id: str, now: int) -> bool:
    """Revoke a grant, and delete the expired ones."""
    tx.execute("DELETE FROM grants WHERE expires <= ?", (now,))
    return tx.execute("DELETE FROM grants WHERE id = ?", (grant_id,)).rowcount == 1


def _live(tx: Tx, keys: Keys, secret: str, now: int) -> TableRow | None:
    row: TableRow | None = tx.execute(
        "SELECT * FROM grants WHERE hash = ? AND (expires IS NULL OR expires > ?)", (keys.grant_hash(secret), now)
    ).fetchone()
    return row


def _grant(row: TableRow) -> Grant:
    return Grant(
        id=row["id"],
        kind=GrantKind(row["kind"]),
        conversation=None if row["conversation"] is None else ConversationKey.parse(row["conversation"]),
        note=row["note"],
        created=from_micros(row["created"]),
        expires=maybe_from_micros(row["expires"]),
    )


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
