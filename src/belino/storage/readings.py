"""Readings, renditions and image prints: stored by the hash of their source, deleted with its last ref."""

from collections.abc import Iterable, Mapping, Sequence

import orjson

from belino.domain.media import Blob, DocumentText, DocumentUnit, Likeness, Part, Printed, Unread
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.storage.blob_rows import use_blob
from belino.storage.database import TableRow, Tx
from belino.storage.dialect import marks
from belino.storage.row_ids import find_channel

RENDITION = "rendition:"
"""Prefix of the owner of bytes that can be made again from other bytes."""
OF_SEVERAL = "album-"
"""Prefix of the name of a rendition that was made from several files; it is stored under each of them."""
_INSERT_LIKENESS = """
INSERT INTO likenesses (sha256, other, likeness) VALUES (?, ?, ?)
ON CONFLICT (sha256, other) DO UPDATE SET likeness = excluded.likeness
"""


def find_reading(tx: Tx, sha256: str, reader: str, parts: tuple[int, int]) -> DocumentText | None:
    """The reading of these bytes by a reader, with its parts from … to."""
    row = tx.execute("SELECT * FROM readings WHERE sha256 = ? AND reader = ?", (sha256, reader)).fetchone()
    if row is None:
        return None
    read = tx.execute(
        "SELECT * FROM reading_parts WHERE reading = ? AND number BETWEEN ? AND ? ORDER BY number", (row["id"], *parts)
    )
    return DocumentText(
        unit=DocumentUnit(row["unit"]),
        total=row["total"],
        parts=tuple(Part(number=part["number"], text=part["text"], title=part["title"]) for part in read),
        unread=None if row["unread"] is None else Unread(row["unread"]),
        reason=row["reason"],
        notes=tuple(orjson.loads(row["notes"])),
    )


def keep_reading(tx: Tx, sha256: str, reader: str, text: DocumentText) -> bool:
    """Store a reading, with the parts that were read before."""
    if not is_named(tx, sha256):
        return False
    before = tx.execute("SELECT * FROM readings WHERE sha256 = ? AND reader = ?", (sha256, reader)).fetchone()
    notes = list(text.notes)
    if before is not None:
        if (before["unit"], before["total"]) != (text.unit, text.total):
            # Split in another way: the old part numbers mean nothing among the new ones.
            tx.execute("DELETE FROM reading_parts WHERE reading = ?", (before["id"],))
        else:
            notes = list(dict.fromkeys((*orjson.loads(before["notes"]), *notes)))
    number = tx.execute(
        "INSERT INTO readings (sha256, reader, unit, total, unread, reason, notes) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (sha256, reader) DO UPDATE SET unit = excluded.unit, total = excluded.total, "
        "unread = excluded.unread, reason = excluded.reason, notes = excluded.notes, edition = readings.edition + 1, "
        "indexed = '' RETURNING id",
        (sha256, reader, text.unit, text.total, text.unread, text.reason, orjson.dumps(notes)),
    ).fetchone()[0]
    tx.many(
        "INSERT INTO reading_parts (reading, number, title, text) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (reading, number) DO UPDATE SET title = excluded.title, text = excluded.text",
        [(number, part.number, part.title, part.text) for part in text.parts],
    )
    # Pages without text do not make a document unread if others have some.
    tx.execute(
        "UPDATE readings SET unread = NULL WHERE id = ?1 AND unread IS NOT NULL "
        "AND EXISTS (SELECT 1 FROM reading_parts WHERE reading = ?1 AND trim(text) <> '')",
        (number,),
    )
    return True


def read_before(tx: Tx, sha256s: Sequence[str]) -> frozenset[str]:
    """Those of these bytes in which some reader has found text."""
    rows = tx.execute(
        f"SELECT DISTINCT sha256 FROM readings WHERE sha256 IN ({marks(sha256s)}) AND unread IS NULL",
        tuple(sha256s),
    )
    return frozenset(row["sha256"] for row in rows)


def find_rendition(tx: Tx, sha256: str, name: str) -> TableRow | None:
    """The blob of a rendition, with the type it was made as."""
    row: TableRow | None = tx.execute(
        "SELECT b.sha256, r.mime, b.size FROM renditions r JOIN blobs b ON b.sha256 = r.blob "
        "WHERE r.sha256 = ? AND r.name = ?",
        (sha256, name),
    ).fetchone()
    return row


def keep_rendition(tx: Tx, sha256: str, name: str, blob: Blob) -> None:
    """Record a rendition whose bytes are stored as a blob."""
    owner = owner_of(sha256, name)
    tx.execute(
        "INSERT INTO renditions (sha256, name, blob, mime) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (sha256, name) DO UPDATE SET blob = excluded.blob, mime = excluded.mime",
        (sha256, name, blob.sha256, blob.mime),
    )
    tx.execute("DELETE FROM blob_uses WHERE owner = ? AND sha256 <> ?", (owner, blob.sha256))
    use_blob(tx, blob.sha256, owner)


def owner_of(sha256: str, name: str) -> str:
    """The owner of a rendition's bytes."""
    return f"{RENDITION}{sha256}:{name}"


def keep_print(tx: Tx, sha256: str, bits: bytes) -> bool:
    """Store the image print of a picture."""
    if not is_named(tx, sha256):
        return False
    tx.execute(
        "INSERT INTO prints (sha256, bits) VALUES (?, ?) ON CONFLICT (sha256) DO UPDATE SET bits = excluded.bits",
        (sha256, bits),
    )
    # Also with itself, because the same bytes may have been sent before.
    tx.execute(_INSERT_LIKENESS, (sha256, sha256, Likeness.SAME))
    return True


def prints(tx: Tx, channel: ConversationKey, limit: int) -> tuple[Printed, ...]:
    """The channel's pictures with image prints, oldest first; only the newest if there are too many."""
    rows = tx.execute(
        "SELECT r.id, r.sha256, p.bits FROM refs r JOIN prints p ON p.sha256 = r.sha256 "
        "WHERE r.channel = ? AND r.outcome <> ? ORDER BY r.seq DESC LIMIT ?",
        (find_channel(tx, channel), MediaOutcome.EXPIRED, limit),
    ).fetchall()
    return tuple(Printed(ref=row["id"], sha256=row["sha256"], bits=row["bits"]) for row in reversed(rows))


def keep_likenesses(tx: Tx, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
    """Store the likenesses between a picture and others, in both directions."""
    if not is_named(tx, sha256):
        return
    for other, likeness in likenesses.items():
        if is_named(tx, other):
            rows = ((sha256, other, likeness), (other, sha256, likeness.reverse))
            tx.many(_INSERT_LIKENESS, rows)


def likenesses(tx: Tx, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
    """The earliest picture of the channel that each of these refs repeats; equal bytes before similar ones."""
    rows = tx.execute(
        "SELECT r.id, o.id AS other, l.likeness FROM refs r JOIN likenesses l ON l.sha256 = r.sha256 "
        "JOIN refs o ON o.sha256 = l.other AND o.channel = r.channel AND o.seq < r.seq "
        f"WHERE r.channel = ? AND r.id IN ({marks(refs)}) AND o.outcome <> ? "
        "ORDER BY r.id, l.other = r.sha256 DESC, o.seq",
        (find_channel(tx, channel), *refs, MediaOutcome.EXPIRED),
    )
    found: dict[str, tuple[str, Likeness]] = {}
    for row in rows:
        found.setdefault(row["id"], (row["other"], Likeness(row["likeness"])))
    return found


def is_named(tx: Tx, sha256: str) -> bool:
    """Whether a ref that has not expired names these bytes; they need not be stored."""
    query = "SELECT 1 FROM refs WHERE sha256 = ? AND outcome <> ? LIMIT 1"
    return tx.execute(query, (sha256, MediaOutcome.EXPIRED)).fetchone() is not None


def _forget_renditions(tx: Tx, sha256: str) -> list[str]:
    """Delete the renditions of these bytes, alone or with others; returns their blobs."""
    gone = tx.execute("DELETE FROM renditions WHERE sha256 = ? RETURNING *", (sha256,)).fetchall()
    for row in [row for row in gone if row["name"].startswith(OF_SEVERAL)]:
        query = "DELETE FROM renditions WHERE blob = ? AND name = ? RETURNING *"
        gone += tx.execute(query, (row["blob"], row["name"])).fetchall()
    for row in gone:
        owner = owner_of(row["sha256"], row["name"])
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["blob"], owner))
    return [row["blob"] for row in gone]


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
        tx.execute("DELETE FROM readings WHERE sha256 = ?", (sha256,))
        tx.execute("DELETE FROM prints WHERE sha256 = ?", (sha256,))
        tx.execute("DELETE FROM likenesses WHERE sha256 = ?1 OR other = ?1", (sha256,))
        let_go |= dict.fromkeys(_forget_renditions(tx, sha256))
    unused = "SELECT NOT EXISTS (SELECT 1 FROM blob_uses WHERE sha256 = ?)"
    return tuple(blob for blob in let_go if tx.execute(unused, (blob,)).fetchone()[0])
