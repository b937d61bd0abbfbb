"""Read ahead: which media of senders who may command is still unread, and how far each was read in the background."""

from dataclasses import dataclass
from datetime import datetime

from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import RefRecord
from belino.storage.database import Tx, Verbs, to_micros
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.refs import SELECT_REFS, record_of
from belino.storage.row_ids import find_channel

DONE, SKIPPED = "done", "skipped"

_UNREAD = """
 LEFT JOIN read_ahead a ON a.ref = r.id
WHERE (a.ref IS NULL OR a.place NOT IN ('done', 'skipped')) AND r.kind <> ? AND r.author_marks < 2
AND EXISTS (
    SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message
    WHERE l.ref = r.seq AND l.role IN ('own', 'forwarded') AND m.deleted IS NULL
    AND (m.standing = ? OR m.sender_may_command = 1)
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAheadPlace:
    """How far a ref was read ahead."""

    place: str
    """DONE, SKIPPED, or where to go on, as the reader wrote it."""
    tries: int = 0
    """How often reading on from there was begun."""


class ReadAheadVerbs(Verbs):
    """Reading ahead."""

    async def unread_refs(self, *, fetch: bool, before: int | None = None, limit: int = 50) -> tuple[RefRecord, ...]:
        """Refs to read ahead, newest first: those whose bytes are held, or with `fetch` those that can be fetched."""
        return await self._database.read(
            lambda tx: unread_refs(tx, self._keys, fetch=fetch, before=before, limit=limit)
        )

    async def place_ahead(self, ref: str) -> ReadAheadPlace | None:
        """How far a ref was read ahead; None if that was not begun."""
        return await self._database.read(lambda tx: find_place_ahead(tx, ref))

    async def note_ahead(self, ref: str, place: ReadAheadPlace) -> None:
        """Store how far a ref was read ahead, if it still exists."""
        await self._database.write(lambda tx: keep_place_ahead(tx, ref, place))

    async def unskip_ahead(self) -> None:
        """Make skipped refs candidates again: access and limits change."""
        await self._database.write(lambda tx: tx.execute("DELETE FROM read_ahead WHERE place = ?", (SKIPPED,)))

    async def pieces_ahead(self, channel: ConversationKey, since: datetime) -> int:
        """How many pieces of a channel's media were read ahead since then."""
        return await self._database.read(lambda tx: count_pieces(tx, channel, since))


def unread_refs(tx: Tx, keys: Keys, *, fetch: bool, before: int | None, limit: int) -> tuple[RefRecord, ...]:
    """Refs to read ahead, newest first."""
    outcomes = (MediaOutcome.HELD, *((MediaOutcome.REFERENCED,) if fetch else ()))
    terms, values = f"AND r.outcome IN ({marks(outcomes)})", list[object]()
    values += [MediaKind.STICKER, Standing.MAY_COMMAND, *outcomes]
    if before is not None:
        terms += " AND r.seq < ?"
        values.append(before)
    rows = tx.execute(f"{SELECT_REFS}{_UNREAD}{terms} ORDER BY r.seq DESC LIMIT ?", (*values, limit))
    return tuple(record_of(keys, row) for row in rows)


def find_place_ahead(tx: Tx, ref: str) -> ReadAheadPlace | None:
    """How far a ref was read ahead."""
    row = tx.execute("SELECT place, tries FROM read_ahead WHERE ref = ?", (ref,)).fetchone()
    return None if row is None else ReadAheadPlace(place=row["place"], tries=row["tries"])


def keep_place_ahead(tx: Tx, ref: str, place: ReadAheadPlace) -> None:
    """Store how far a ref was read ahead."""
    if tx.execute("SELECT 1 FROM refs WHERE id = ?", (ref,)).fetchone() is not None:
        tx.execute(
            "INSERT INTO read_ahead (ref, place, tries) VALUES (?, ?, ?) "
            "ON CONFLICT (ref) DO UPDATE SET place = excluded.place, tries = excluded.tries",
            (ref, place.place, place.tries),
        )


def count_pieces(tx: Tx, channel: ConversationKey, since: datetime) -> int:
    """How many attempts ahead there were since then that a reader was asked for."""
    row = tx.execute(
        "SELECT count(*) FROM reading_attempts WHERE channel = ? AND at >= ? AND ahead = 1 AND cached = 0",
        (find_channel(tx, channel), to_micros(since)),
    ).fetchone()
    return int(row[0])
