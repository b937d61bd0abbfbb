"""Eviction: which blobs are deleted first when media fills the disk, which by age, and which never."""

import sqlite3
from collections.abc import Container, Iterator, Sequence

from belino.domain.outcome import MediaOutcome
from belino.storage.deletions import forsake, note_deletion
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
_AGEING_MARKS = ", ".join("?" * len(_AGEING))


def bytes_held(connection: sqlite3.Connection) -> int:
    """Bytes of all blobs."""
    return int(connection.execute("SELECT coalesce(sum(size), 0) FROM blobs").fetchone()[0])


def least_needed(connection: sqlite3.Connection, too_many: int, keep: Container[str]) -> tuple[str, ...]:
    """Blobs to evict to free this many bytes, least recently used first; fewer if not enough may be evicted."""
    found: list[str] = []
    for row in connection.execute("SELECT sha256, size FROM blobs ORDER BY kept, sha256"):
        if too_many <= 0:
            break
        if row["sha256"] not in keep and _may_go(connection, row["sha256"]):
            found.append(row["sha256"])
            too_many -= row["size"]
    return tuple(found)


def evict(connection: sqlite3.Connection, names: Sequence[str], keep: Container[str], now: int) -> tuple[str, ...]:
    """Delete the rows of these blobs, except those in use by now; their refs can be fetched again."""
    gone = tuple(name for name in names if name not in keep and _may_go(connection, name))
    for name in gone:
        connection.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        for owner in _owners(connection, name):
            connection.execute(
                "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
                (MediaOutcome.REFERENCED, EVICTED, now, owner.removeprefix("ref:")),
            )
        connection.execute("DELETE FROM blob_uses WHERE sha256 = ?", (name,))
        connection.execute("DELETE FROM blobs WHERE sha256 = ?", (name,))
    note_deletion(connection, gone, now)
    return gone


def aged_refs(connection: sqlite3.Connection, before: int, after: int, limit: int) -> Sequence[sqlite3.Row]:
    """Refs stored before a time that have not ended, in order, after a number."""
    return connection.execute(
        "SELECT seq, id, sha256 FROM refs WHERE seq > ? AND stored < ? "  # noqa: S608  only marks are put together
        f"AND outcome IN ({_AGEING_MARKS}) ORDER BY seq LIMIT ?",
        (after, before, *_AGEING, limit),
    ).fetchall()


def expire(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row], keep: Container[str], now: int) -> int:
    """Mark these refs as expired and drop their bytes; those of unsent parcels stay."""
    gone = [row for row in rows if row["sha256"] is None or row["sha256"] not in keep]
    for row in gone:
        connection.execute(
            "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
            (MediaOutcome.EXPIRED, f"{row['id']} is older than media is kept here", now, row["id"]),
        )
        connection.execute("DELETE FROM blob_uses WHERE owner = ? AND sha256 = ?", (f"ref:{row['id']}", row["sha256"]))
    forsake(connection, [row["sha256"] for row in gone if row["sha256"] is not None], now)
    return len(gone)


def lose(connection: sqlite3.Connection, names: Sequence[str], now: int) -> tuple[str, ...]:
    """Delete the rows of damaged or missing blobs, and record the reason at their refs.

    A ref that was fetched can be fetched again; bytes that came with their message cannot. Returns those deleted.
    """
    gone = []
    for name in names:
        for owner in _owners(connection, name):
            connection.execute(
                "UPDATE refs SET outcome = iif(fetched IS NULL, ?, ?), reason = iif(fetched IS NULL, ?, ?), ended = ? "
                "WHERE id = ?",
                (
                    MediaOutcome.NOT_FOUND,
                    MediaOutcome.REFERENCED,
                    f"{DAMAGED}, and only its sender has them",
                    f"{DAMAGED}; asked for again, they are fetched again",
                    now,
                    owner.removeprefix("ref:"),
                ),
            )
        connection.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        connection.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner NOT LIKE 'parcel:%'", (name,))
        gone += [name] * connection.execute("DELETE FROM blobs WHERE sha256 = ?", (name,)).rowcount
    return tuple(gone)


def touch(connection: sqlite3.Connection, sha256: str, now: int, every: int) -> None:
    """Record a blob's use, unless the last record is younger than `every`."""
    connection.execute("UPDATE blobs SET kept = ? WHERE sha256 = ? AND kept < ?", (now, sha256, now - every))


def _may_go(connection: sqlite3.Connection, sha256: str) -> bool:
    """Only blobs of refs and renditions, all of which can be fetched or made again, and none of a running turn."""
    owners = tuple(_owners(connection, sha256))
    return bool(owners) and all(_can_return(connection, owner) for owner in owners)


def _owners(connection: sqlite3.Connection, sha256: str) -> Iterator[str]:
    for row in connection.execute("SELECT owner FROM blob_uses WHERE sha256 = ?", (sha256,)).fetchall():
        yield row["owner"]


def _can_return(connection: sqlite3.Connection, owner: str) -> bool:
    if owner.startswith(RENDITION):
        return True
    if not owner.startswith("ref:"):
        return False  # an upload no message has taken yet, or a parcel that is not delivered
    row = connection.execute(
        "SELECT fetched IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message "
        "JOIN turns t ON t.id = m.turn WHERE l.ref = refs.seq AND t.state = 'running') FROM refs WHERE id = ?",
        (owner.removeprefix("ref:"),),
    ).fetchone()
    return row is None or bool(row[0])
