"""Readings, renditions and image prints, by the hash of the blob they were derived from: verbs and rows."""

from collections.abc import AsyncIterator, Mapping, Sequence

import orjson

from belino.domain.errors import MediaNotFound
from belino.domain.media import Blob, DocumentText, DocumentUnit, Likeness, Part, Printed, Unread
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.reading import AttemptRecord
from belino.storage.blob_rows import find_blob, insert_blob, rendition_owner, use_blob
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import TableRow, Tx
from belino.storage.deletions import is_named
from belino.storage.dialect import marks
from belino.storage.reading_attempts import insert_attempts
from belino.storage.row_ids import find_channel
from belino.storage.text import sanitized

ALL_PARTS = (1, (1 << 63) - 1)
BLANKS = " \t\r\n"
_INSERT_LIKENESS = """
INSERT INTO likenesses (sha256, other, likeness) VALUES (?, ?, ?)
ON CONFLICT (sha256, other) DO UPDATE SET likeness = excluded.likeness
"""


class ReadingVerbs(BlobVerbs):
    """What was derived from blobs."""

    async def reading(self, sha256: str, reader: str, *, parts: tuple[int, int] | None = None) -> DocumentText | None:
        """The text a reader has found in these bytes so far; only the parts from … to, if they are given."""
        return await self._database.read(lambda tx: find_reading(tx, sha256, reader, parts or ALL_PARTS))

    async def keep_reading(
        self, sha256: str, reader: str, text: DocumentText, attempts: Sequence[AttemptRecord] = ()
    ) -> bool:
        """Store a reading, with the parts that were read before, and the attempts that led to it.

        False if no ref names the bytes any more: they were deleted in between, and only the cost is stored.
        """
        read, tried, now = sanitized(text), tuple(sanitized(each) for each in attempts), self._clock.now()

        def keep(tx: Tx) -> bool:
            insert_attempts(tx, tried, now)
            return keep_reading(tx, sha256, reader, read)

        return await self._database.write(keep)

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        """Those of these bytes in which some reader has found text."""
        return await self._database.read(lambda tx: read_before(tx, sha256s))

    async def beginnings(self, sha256s: Sequence[str], chars: int) -> Mapping[str, str]:
        """How the text begins that was found in these bytes, in at most so many characters."""
        return await self._database.read(lambda tx: beginnings(tx, sha256s, chars))

    async def rendition(self, sha256: str, name: str) -> Blob | None:
        """The rendition of these bytes with this name, if it is still stored."""
        row = await self._database.read(lambda tx: find_rendition(tx, sha256, name))
        blob = None if row is None else await self._proven(row)
        if blob is not None:
            await self.touch(blob.sha256)
        return blob

    async def keep_rendition(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> Blob:
        """Store a rendition of bytes, replacing an older one; it may be evicted at any time.

        `also`: other bytes it was made from, under a name that tells which; it is deleted with the first of them.
        MediaNotFound if no ref names some of the bytes any more: they were deleted in between.
        """
        async with self._blobs.put(_once(data), limit=len(data)) as stored:
            blob, now = Blob(sha256=stored.sha256, mime=mime, size=stored.size), self._now()

            def work(tx: Tx) -> tuple[bool, bool]:
                sources = dict.fromkeys((sha256, *also))
                named = all(is_named(tx, source) for source in sources)
                if named:
                    insert_blob(tx, blob.sha256, mime, blob.size, now, declared=True)
                    for source in sources:
                        keep_rendition(tx, source, name, blob)
                return named, find_blob(tx, blob.sha256) is not None

            named, known = await self._database.write(work)
        if not known:
            await self._blobs.delete((blob.sha256,))
        if not named:
            raise MediaNotFound("the bytes it was made of were deleted in the meantime")
        return blob

    async def keep_print(self, sha256: str, bits: bytes) -> bool:
        """Store the image print of a picture; False, and nothing is stored, if no ref names the bytes any more."""
        return await self._database.write(lambda tx: keep_print(tx, sha256, bits))

    async def prints(self, channel: ConversationKey, *, limit: int = 2_000) -> tuple[Printed, ...]:
        """The channel's pictures with image prints, oldest first; only the newest if there are too many."""
        return await self._database.read(lambda tx: prints(tx, channel, limit))

    async def keep_likenesses(self, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
        """Store how a picture relates to others, by their hashes; those that no ref names any more are skipped."""
        await self._database.write(lambda tx: keep_likenesses(tx, sha256, likenesses))

    async def likenesses(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
        """For those of these refs that repeat an earlier picture of the channel: its ref, and the relation."""
        return await self._database.read(lambda tx: likenesses(tx, channel, refs))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


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
        parts=tuple(_part(part) for part in read),
        unread=None if row["unread"] is None else Unread(row["unread"]),
        reason=row["reason"],
        notes=tuple(orjson.loads(row["notes"])),
    )


def _part(row: TableRow) -> Part:
    return Part(number=row["number"], text=row["text"], title=row["title"], scanned=bool(row["scanned"]))


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
        "INSERT INTO reading_parts (reading, number, title, text, scanned) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (reading, number) DO UPDATE SET title = excluded.title, text = excluded.text, "
        "scanned = excluded.scanned",
        [(number, part.number, part.title, part.text, int(part.scanned)) for part in text.parts],
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


def beginnings(tx: Tx, sha256s: Sequence[str], chars: int) -> Mapping[str, str]:
    """How the text begins that some reader has found in these bytes: the first reading counts."""
    rows = tx.execute(
        "SELECT r.sha256, substr(trim(p.text, ?), 1, ?) AS begins FROM readings r JOIN reading_parts p "
        f"ON p.reading = r.id WHERE r.sha256 IN ({marks(sha256s)}) AND r.unread IS NULL AND p.number = "
        "(SELECT min(number) FROM reading_parts WHERE reading = r.id AND trim(text, ?) <> '') ORDER BY r.id DESC",
        (BLANKS, chars, *sha256s, BLANKS),
    )
    return {row["sha256"]: row["begins"] for row in rows}


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
    owner = rendition_owner(sha256, name)
    tx.execute(
        "INSERT INTO renditions (sha256, name, blob, mime) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (sha256, name) DO UPDATE SET blob = excluded.blob, mime = excluded.mime",
        (sha256, name, blob.sha256, blob.mime),
    )
    tx.execute("DELETE FROM blob_uses WHERE owner = ? AND sha256 <> ?", (owner, blob.sha256))
    use_blob(tx, blob.sha256, owner)


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
