"""Eviction: which blobs are deleted first when media fills the disk, which by age, and which never."""

from collections.abc import Container, Iterator, Sequence

from belino.domain.outcome import MediaOutcome
from belino.storage.database import TableRow, Tx
from belino.storage.deletions import forsake, note_deletion
from belino.storage.dialect import marks
from belino.storage.readings import RENDITION

EVICTED = "its bytes made room for others; asked for again, they are fetched again"
DAMAGED = "its bytes were damaged on disk"

# Refs with any other outcome have ended: it explains more than their age would.
_AGEING = tuple(
    str(outcome)
    for outcome in (
        MediaOutcome.REFERENCED,
        MediaOutcome.HELD,
        MediaOutcome.OVER_DAILY_LIMIT,
        MediaOutcome.FAILED,
    )
)


def bytes_held(tx: Tx) -> int:
    """Bytes of all blobs."""
    return int(tx.execute("SELECT coalesce(sum(size), 0) FROM blobs").fetchone()[0])


def least_needed(tx: Tx, too_many: int, keep: Container[str]) -> tuple[str, ...]:
    """Blobs to evict to free this many bytes, least recently used first; fewer if not enough may be evicted."""
    found: list[str] = []
    for row in tx.execute("SELECT sha256, size FROM blobs ORDER BY kept, sha256"):
        if too_many <= 0:
            break
        if row["sha256"] not in keep and _may_go(tx, row["sha256"]):
            found.append(row["sha256"])
            too_many -= row["size"]
    return tuple(found)


def evict(tx: Tx, names: Sequence[str], keep: Container[str], now: int) -> tuple[str, ...]:
    """Delete the rows of these blobs, except those in use by now; their refs can be fetched again."""
    gone = tuple(name for name in names if name not in keep and _may_go(tx, name))
    for name in gone:
        tx.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        for owner in _owners(tx, name):
            tx.execute(
                "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
                (MediaOutcome.REFERENCED, EVICTED, now, owner.removeprefix("ref:")),
            )
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ?", (name,))
        tx.execute("DELETE FROM blobs WHERE sha256 = ?", (name,))
    note_deletion(tx, gone, now)
    return gone


def aged_refs(tx: Tx, before: int, after: int, limit: int) -> Sequence[TableRow]:
    """Refs stored before a time that have not ended, in order, after a number."""
    return tx.execute(
        "SELECT seq, id, sha256 FROM refs WHERE seq > ? AND stored < ? "
        f"AND outcome IN ({marks(_AGEING)}) ORDER BY seq LIMIT ?",
        (after, before, *_AGEING, limit),
    ).fetchall()


def expire(tx: Tx, rows: Sequence[TableRow], keep: Container[str], now: int) -> int:
    """Mark these refs as expired and drop their bytes; those of unsent parcels stay."""
    gone = [row for row in rows if row["sha256"] is None or row["sha256"] not in keep]
    for row in gone:
        tx.execute(
            "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
            (MediaOutcome.EXPIRED, f"{row['id']} is older than media is kept here", now, row["id"]),
        )
        tx.execute("DELETE FROM blob_uses WHERE owner = ? AND sha256 = ?", (f"ref:{row['id']}", row["sha256"]))
    forsake(tx, [row["sha256"] for row in gone if row["sha256"] is not None], now)
    return len(gone)


def lose(tx: Tx, names: Sequence[str], now: int) -> tuple[str, ...]:
    """Delete the rows of damaged or missing blobs, and record the reason at their refs.

    A ref that was fetched can be fetched again; bytes that came with their message cannot. Returns those deleted.
    """
    gone = []
    for name in names:
        for owner in _owners(tx, name):
            tx.execute(
                "UPDATE refs SET outcome = CASE WHEN fetched IS NULL THEN ? ELSE ? END, "
                "reason = CASE WHEN fetched IS NULL THEN ? ELSE ? END, ended = ? WHERE id = ?",
                (
                    MediaOutcome.NOT_FOUND,
                    MediaOutcome.REFERENCED,
                    f"{DAMAGED}, and only its sender has them",
                    f"{DAMAGED}; asked for again, they are fetched again",
                    now,
                    owner.removeprefix("ref:"),
                ),
            )
        tx.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND substr(owner, 1, 7) <> 'parcel:'", (name,))
        gone += [name] * tx.execute("DELETE FROM blobs WHERE sha256 = ?", (name,)).rowcount
    return tuple(gone)


def touch(tx: Tx, sha256: str, now: int, every: int) -> None:
    """Record a blob's use, unless the last record is younger than `every`."""
    tx.execute("UPDATE blobs SET kept = ? WHERE sha256 = ? AND kept < ?", (now, sha256, now - every))


def _may_go(tx: Tx, sha256: str) -> bool:
    """Only blobs of refs and renditions, all of which can be fetched or made again, and none of a running turn."""
    owners = tuple(_owners(tx, sha256))
    return bool(owners) and all(_can_return(tx, owner) for owner in owners)


def _owners(tx: Tx, sha256: str) -> Iterator[str]:
    for row in tx.execute("SELECT owner FROM blob_uses WHERE sha256 = ?", (sha256,)).fetchall():
        yield row["owner"]


def _can_return(tx: Tx, owner: str) -> bool:
    if owner.startswith(RENDITION):
        return True
    if not owner.startswith("ref:"):
        return False  # an upload no message has taken yet, or a parcel that is not delivered
    row = tx.execute(
        "SELECT fetched IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message "
        "JOIN turns t ON t.id = m.turn WHERE l.ref = refs.seq AND t.state = 'running') FROM refs WHERE id = ?",
        (owner.removeprefix("ref:"),),
    ).fetchone()
    return row is None or bool(row[0])
