"""Deletions: what was taken back, until its bytes and copies are gone."""

import sqlite3
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime

from belino.domain.message import ConversationKey
from belino.domain.stored import GoneCopies
from belino.storage.readings import forget_bytes
from belino.storage.row_ids import KEY_COLUMNS, find_channel, key_of
from belino.storage.timestamps import from_micros

GRACE = 30_000_000
"""Microseconds: so long a running turn may still read what it had before its sender deleted it."""


def is_gone(connection: sqlite3.Connection, ref_id: str) -> bool:
    """Whether a ref was taken back."""
    return connection.execute("SELECT 1 FROM refs_gone WHERE id = ?", (ref_id,)).fetchone() is not None


def note_gone(connection: sqlite3.Connection, ref_id: str, channel: int, now: int) -> None:
    """Remember that a ref was taken back: whoever still names it is told so, and no quote brings it again."""
    connection.execute("INSERT OR REPLACE INTO refs_gone VALUES (?, ?, ?, 1)", (ref_id, channel, now))


def gone_since(connection: sqlite3.Connection, channel: ConversationKey, ref_id: str) -> datetime | None:
    """When a ref of this channel was taken back."""
    row = connection.execute(
        "SELECT at FROM refs_gone WHERE id = ? AND channel = ?", (ref_id, find_channel(connection, channel))
    ).fetchone()
    return None if row is None else from_micros(row["at"])


def forsake(connection: sqlite3.Connection, sha256s: Iterable[str], now: int) -> None:
    """A ref let go of these bytes for good: what was made of them goes, and they do once nobody has a use for them."""
    let_go = tuple(sha256s)
    made = forget_bytes(connection, let_go)
    note_deletion(connection, dict.fromkeys((*let_go, *made)), now)


def forsaken(connection: sqlite3.Connection, after: str, limit: int) -> tuple[str, ...]:
    """The next of the bytes that lost a use, past a name."""
    rows = connection.execute("SELECT sha256 FROM blobs_forsaken WHERE sha256 > ? LIMIT ?", (after, limit))
    return tuple(row["sha256"] for row in rows)


def purge(
    connection: sqlite3.Connection, names: Sequence[str], keep: Container[str], arrives: Callable[[str], bool], now: int
) -> tuple[str, ...]:
    """Forget those of these bytes that nobody uses. Those just arriving, or in `keep`, are looked at again later.

    What is forgotten stays noted until `files_deleted`.
    """
    gone = []
    for name in names:
        row = connection.execute(
            "SELECT f.since, b.kept FROM blobs_forsaken f LEFT JOIN blobs b USING (sha256) WHERE sha256 = ?", (name,)
        ).fetchone()
        owners = connection.execute("SELECT owner FROM blob_uses WHERE sha256 = ?", (name,)).fetchall()
        if row is None or (owners and all(owner[0].startswith("parcel:") for owner in owners)):
            continue  # what a parcel carries goes once that is delivered
        # Kept again since then, they are about to be used for something else; if not, they go like all unused bytes.
        needed = bool(owners) or (row["kept"] or 0) > row["since"]
        if not needed and (arrives(name) or (name in keep and now - row["since"] < GRACE)):
            continue
        if needed:
            connection.execute("DELETE FROM blobs_forsaken WHERE sha256 = ?", (name,))
        else:
            connection.execute("DELETE FROM blobs WHERE sha256 = ?", (name,))
            gone.append(name)
    return tuple(gone)


def note_deletion(connection: sqlite3.Connection, sha256s: Iterable[str], now: int) -> None:
    """Note that these files are to be deleted, in the transaction that drops their rows.

    A process killed before it deleted them does so after its next start; without the note they would be strays, which
    are kept.
    """
    connection.executemany(
        "INSERT INTO blobs_forsaken VALUES (?1, ?2) ON CONFLICT DO UPDATE SET since = ?2",
        [(sha256, now) for sha256 in sha256s],
    )


def files_deleted(connection: sqlite3.Connection, sha256s: Iterable[str]) -> None:
    """Forget the notes of `note_deletion`, but for bytes that have come again and may have lost that use, too."""
    connection.executemany(
        "DELETE FROM blobs_forsaken WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = ?1)",
        [(sha256,) for sha256 in sha256s],
    )


def count_waiting(connection: sqlite3.Connection) -> int:
    """How many bytes and copies of what was taken back are still here, but for what a parcel carries."""
    query = (
        "SELECT (SELECT count(*) FROM refs_gone WHERE has_copies = 1) + (SELECT count(*) FROM blobs_forsaken f "
        "WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = f.sha256))"
    )
    return int(connection.execute(query).fetchone()[0])


def copied(connection: sqlite3.Connection, limit: int) -> tuple[GoneCopies, ...]:
    """Refs whose copies are to be removed, with the conversations in whose folders these may lie."""
    ids: dict[int, list[str]] = {}
    rows = connection.execute("SELECT id, channel FROM refs_gone WHERE has_copies = 1 LIMIT ?", (limit,))
    for row in rows:
        ids.setdefault(row["channel"], []).append(row["id"])
    return tuple(
        GoneCopies(conversations=_conversations(connection, channel), refs=tuple(names))
        for channel, names in ids.items()
    )


def copies_removed(connection: sqlite3.Connection, ref_ids: Iterable[str]) -> None:
    """No folder holds copies of these refs any more."""
    connection.executemany("UPDATE refs_gone SET has_copies = 0 WHERE id = ?", [(ref_id,) for ref_id in ref_ids])


def forget_gone(connection: sqlite3.Connection, before: int) -> None:
    """Nobody asks any more for what was taken back so long ago."""
    connection.execute("DELETE FROM refs_gone WHERE at < ? AND has_copies = 0", (before,))


def _conversations(connection: sqlite3.Connection, channel: int) -> tuple[ConversationKey, ...]:
    query = f"SELECT {KEY_COLUMNS} FROM conversations v JOIN channels c ON c.id = v.channel WHERE c.id = ?"  # noqa: S608
    found = [key_of(row) for row in connection.execute(query, (channel,))]
    return tuple(dict.fromkeys((*found, *(key.whole_channel for key in found))))
