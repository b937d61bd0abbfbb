"""Deletions: withdrawn media refs, until their bytes, what was derived from them, and copies are deleted."""

from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime

from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import GoneCopies
from belino.storage.blob_rows import delete_blob, rendition_owner
from belino.storage.database import Tx, from_micros
from belino.storage.row_ids import KEY_COLUMNS, find_channel, key_of

OF_SEVERAL = "album-"
"""Prefix of the name of a rendition that was made from several files; it is deleted with the first of them."""
GRACE = 30_000_000
"""Microseconds for which a running turn may still read bytes that their sender deleted."""


def is_gone(tx: Tx, ref_id: str) -> bool:
    """Whether a ref was withdrawn."""
    return tx.execute("SELECT 1 FROM refs_gone WHERE id = ?", (ref_id,)).fetchone() is not None


def note_gone(tx: Tx, ref_id: str, channel: int, now: int) -> None:
    """Record that a ref was withdrawn: later uses of its id get this answer, and no quote restores it."""
    tx.execute(
        "INSERT INTO refs_gone (id, channel, at, has_copies) VALUES (?, ?, ?, 1) ON CONFLICT (id) DO UPDATE "
        "SET channel = excluded.channel, at = excluded.at, has_copies = 1",
        (ref_id, channel, now),
    )


def gone_since(tx: Tx, channel: ConversationKey, ref_id: str) -> datetime | None:
    """When a ref of this channel was withdrawn."""
    row = tx.execute(
        "SELECT at FROM refs_gone WHERE id = ? AND channel = ?", (ref_id, find_channel(tx, channel))
    ).fetchone()
    return None if row is None else from_micros(row["at"])


def forsake(tx: Tx, sha256s: Iterable[str], now: int) -> None:
    """A ref has dropped these bytes for good: delete what was derived from them, and the bytes once they are unused."""
    let_go = tuple(sha256s)
    made = forget_bytes(tx, let_go)
    note_deletion(tx, dict.fromkeys((*let_go, *made)), now)


def forget_bytes(tx: Tx, sha256s: Iterable[str]) -> tuple[str, ...]:
    """Delete what was derived from these bytes, unless a ref still names them.

    To be called wherever a ref drops its bytes, or bytes are deleted. Returns the blobs of renditions that are now
    unused.
    """
    let_go: dict[str, None] = {}
    for sha256 in sha256s:
        if is_named(tx, sha256):
            continue
        for row in tx.execute("SELECT id FROM readings WHERE sha256 = ?", (sha256,)).fetchall():
            tx.execute("DELETE FROM reading_words WHERE reading = ?", (row["id"],))
            tx.execute("DELETE FROM reading_parts WHERE reading = ?", (row["id"],))
            tx.execute("DELETE FROM transcripts WHERE reading = ?", (row["id"],))
        tx.execute("DELETE FROM readings WHERE sha256 = ?", (sha256,))
        tx.execute("DELETE FROM prints WHERE sha256 = ?", (sha256,))
        tx.execute("DELETE FROM likenesses WHERE sha256 = ?1 OR other = ?1", (sha256,))
        let_go |= dict.fromkeys(_forget_renditions(tx, sha256))
    unused = "SELECT NOT EXISTS (SELECT 1 FROM blob_uses WHERE sha256 = ?)"
    return tuple(blob for blob in let_go if tx.execute(unused, (blob,)).fetchone()[0])


def _forget_renditions(tx: Tx, sha256: str) -> list[str]:
    """Delete the renditions of these bytes, alone or with others; returns their blobs."""
    gone = tx.execute("DELETE FROM renditions WHERE sha256 = ? RETURNING *", (sha256,)).fetchall()
    for row in [row for row in gone if row["name"].startswith(OF_SEVERAL)]:
        query = "DELETE FROM renditions WHERE blob = ? AND name = ? RETURNING *"
        gone += tx.execute(query, (row["blob"], row["name"])).fetchall()
    for row in gone:
        owner = rendition_owner(row["sha256"], row["name"])
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["blob"], owner))
    return [row["blob"] for row in gone]


def is_named(tx: Tx, sha256: str) -> bool:
    """Whether a ref that has not expired names these bytes; they need not be stored."""
    query = "SELECT 1 FROM refs WHERE sha256 = ? AND outcome <> ? LIMIT 1"
    return tx.execute(query, (sha256, MediaOutcome.EXPIRED)).fetchone() is not None


def forsaken(tx: Tx, after: str, limit: int) -> tuple[str, ...]:
    """The next of the bytes that lost a use, after a name."""
    rows = tx.execute("SELECT sha256 FROM blobs_forsaken WHERE sha256 > ? LIMIT ?", (after, limit))
    return tuple(row["sha256"] for row in rows)


def purge(
    tx: Tx, names: Sequence[str], keep: Container[str], arrives: Callable[[str], bool], now: int
) -> tuple[str, ...]:
    """Delete the rows of those of these bytes that are unused. Those just arriving, or in `keep`, are checked later.

    The notes stay until `files_deleted`.
    """
    gone = []
    for name in names:
        row = tx.execute(
            "SELECT f.since, b.kept FROM blobs_forsaken f LEFT JOIN blobs b USING (sha256) WHERE sha256 = ?", (name,)
        ).fetchone()
        owners = tx.execute("SELECT owner FROM blob_uses WHERE sha256 = ?", (name,)).fetchall()
        if row is None or (owners and all(owner[0].startswith("parcel:") for owner in owners)):
            continue  # bytes of a parcel are deleted after its delivery
        # Kept again since then, they are about to be used for something else; if not, they go like all unused bytes.
        needed = bool(owners) or (row["kept"] or 0) > row["since"]
        if not needed and (arrives(name) or (name in keep and now - row["since"] < GRACE)):
            continue
        if needed:
            tx.execute("DELETE FROM blobs_forsaken WHERE sha256 = ?", (name,))
        else:
            delete_blob(tx, name)
            gone.append(name)
    return tuple(gone)


def note_deletion(tx: Tx, sha256s: Iterable[str], now: int) -> None:
    """Note that these files are to be deleted, in the transaction that drops their rows.

    A process killed before it deleted them does so after its next start; without the note they would be strays, which
    are kept.
    """
    tx.many(
        "INSERT INTO blobs_forsaken (sha256, since) VALUES (?, ?) "
        "ON CONFLICT (sha256) DO UPDATE SET since = excluded.since",
        [(sha256, now) for sha256 in sha256s],
    )


def files_deleted(tx: Tx, sha256s: Iterable[str]) -> None:
    """Delete the notes of `note_deletion`, except for bytes that were stored again and may have lost that use, too."""
    tx.many(
        "DELETE FROM blobs_forsaken WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = ?1)",
        [(sha256,) for sha256 in sha256s],
    )


def count_waiting(tx: Tx) -> int:
    """How many withdrawn blobs and copies still exist, except those that a parcel carries."""
    query = (
        "SELECT (SELECT count(*) FROM refs_gone WHERE has_copies = 1) + (SELECT count(*) FROM blobs_forsaken f "
        "WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = f.sha256))"
    )
    return int(tx.execute(query).fetchone()[0])


def copied(tx: Tx, limit: int) -> tuple[GoneCopies, ...]:
    """Refs whose copies are to be removed, with the conversations whose folders may contain them."""
    ids: dict[int, list[str]] = {}
    rows = tx.execute("SELECT id, channel FROM refs_gone WHERE has_copies = 1 LIMIT ?", (limit,))
    for row in rows:
        ids.setdefault(row["channel"], []).append(row["id"])
    return tuple(
        GoneCopies(conversations=_conversations(tx, channel), refs=tuple(names)) for channel, names in ids.items()
    )


def copies_removed(tx: Tx, ref_ids: Iterable[str]) -> None:
    """Record that no folder holds copies of these refs."""
    tx.many("UPDATE refs_gone SET has_copies = 0 WHERE id = ?", [(ref_id,) for ref_id in ref_ids])


def forget_gone(tx: Tx, before: int) -> None:
    """Delete the records of refs that were withdrawn before a time."""
    tx.execute("DELETE FROM refs_gone WHERE at < ? AND has_copies = 0", (before,))


def _conversations(tx: Tx, channel: int) -> tuple[ConversationKey, ...]:
    query = f"SELECT {KEY_COLUMNS} FROM conversations v JOIN channels c ON c.id = v.channel WHERE c.id = ?"
    found = [key_of(row) for row in tx.execute(query, (channel,))]
    return tuple(dict.fromkeys((*found, *(key.whole_channel for key in found))))
