"""Access rows: denied senders, read cursors of accounts, and credentials."""

import secrets
from datetime import timedelta

from belino.domain.message import ConversationKey
from belino.domain.stored import Grant, GrantKind
from belino.storage.database import TableRow, Tx, from_micros, maybe_from_micros
from belino.storage.encryption import Keys

_SECRET_BYTES = 32
_ID_BYTES = 8
_MICROSECOND = timedelta(microseconds=1)


def count_denied(tx: Tx, conversation: ConversationKey, reason: str) -> None:
    """Count a denied arrival; nothing else of it is stored."""
    tx.execute(
        "INSERT INTO denied (platform, account, reason, times) VALUES (?, ?, ?, 1) "
        "ON CONFLICT (platform, account, reason) DO UPDATE SET times = denied.times + 1",
        (conversation.platform, conversation.account, reason),
    )


def move_cursor(tx: Tx, platform: str, account: str, cursor: str) -> None:
    """Store the account's read cursor."""
    tx.execute(
        "INSERT INTO cursors (platform, account, cursor) VALUES (?, ?, ?) "
        "ON CONFLICT (platform, account) DO UPDATE SET cursor = excluded.cursor",
        (platform, account, cursor),
    )


def cursor(tx: Tx, platform: str, account: str) -> str | None:
    """The account's read cursor."""
    row = tx.execute("SELECT cursor FROM cursors WHERE platform = ? AND account = ?", (platform, account)).fetchone()
    return None if row is None else str(row[0])


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
