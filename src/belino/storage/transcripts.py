"""Transcripts: the segments of a reading with their exact times, beside its parts, which are whole seconds.

Their verbs include those of the attempts to read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from belino.domain.media import DocumentText
from belino.domain.message import ChatType, ConversationKey
from belino.domain.reading import AttemptRecord, Spent, StoredText, TranscriptWindow
from belino.storage import reading_attempts
from belino.storage.database import Tx
from belino.storage.dialect import marks
from belino.storage.readings import ALL_PARTS, ReadingVerbs, find_reading, keep_reading
from belino.storage.text import sanitized
from belino.storage.transcript_rows import find_transcript, packed


class TranscriptVerbs(ReadingVerbs):
    """What providers have read, and what was tried."""

    async def transcript(self, sha256: str, reader: str) -> TranscriptWindow | None:
        """A window of the transcript of these bytes, if it was read."""
        return await self._database.read(lambda tx: find_transcript(tx, sha256, reader))

    async def keep_transcript(
        self,
        sha256: str,
        reader: str,
        window: TranscriptWindow,
        text: DocumentText,
        attempts: Sequence[AttemptRecord] = (),
    ) -> bool:
        """Store a window of a transcript, the same as a text that is searched, and attempts, as `keep_reading` does."""
        heard, read = sanitized(window), sanitized(text)
        tried, now = tuple(sanitized(each) for each in attempts), self._clock.now()

        def keep(tx: Tx) -> bool:
            reading_attempts.insert_attempts(tx, tried, now)
            return keep_transcript(tx, sha256, reader, heard, read)

        return await self._database.write(keep)

    async def texts_of(self, sha256s: Sequence[str]) -> Mapping[str, tuple[StoredText, ...]]:
        """What providers found in these bytes, each under its reader's key, oldest first."""
        if not sha256s:
            return {}
        return await self._database.read(lambda tx: texts_of(tx, sha256s))

    async def note_attempts(self, records: Sequence[AttemptRecord]) -> None:
        """Store attempts to read refs, and count their cost toward the channel's daily limits."""
        tried, now = tuple(sanitized(record) for record in records), self._clock.now()
        await self._database.write(lambda tx: reading_attempts.insert_attempts(tx, tried, now))

    async def attempts(
        self,
        channel: ConversationKey | None = None,
        *,
        ref: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[tuple[int, AttemptRecord], ...]:
        """The newest attempts, of one channel or one ref, each with a number; `before` it for the next page."""
        return await self._database.read(
            lambda tx: reading_attempts.find_attempts(tx, channel=channel, ref=ref, before=before, limit=limit)
        )

    async def spent_on_readings(self, channel: ConversationKey, since: datetime) -> Spent:
        """How much of a channel's media providers have read since then."""
        return await self._database.read(lambda tx: reading_attempts.sum_costs(tx, channel, since))

    async def chat_type(self, channel: ConversationKey) -> ChatType | None:
        """The type of a channel; None if it is unknown."""
        query = "SELECT chat_type FROM channels WHERE platform = ? AND account = ? AND channel = ?"
        where = (channel.platform, channel.account, channel.channel)
        row = await self._database.read(lambda tx: tx.execute(query, where).fetchone())
        return None if row is None else ChatType(row["chat_type"])


def keep_transcript(tx: Tx, sha256: str, reader: str, window: TranscriptWindow, text: DocumentText) -> bool:
    """Store a window of a transcript, and the text that is searched; False if no ref names the bytes any more."""
    if not keep_reading(tx, sha256, reader, text):
        return False
    reading = tx.execute("SELECT id FROM readings WHERE sha256 = ? AND reader = ?", (sha256, reader)).fetchone()["id"]
    tx.execute(
        "INSERT INTO transcripts (reading, told) VALUES (?, ?) "
        "ON CONFLICT (reading) DO UPDATE SET told = excluded.told",
        (reading, packed(window)),
    )
    return True


def texts_of(tx: Tx, sha256s: Sequence[str]) -> Mapping[str, tuple[StoredText, ...]]:
    """What providers found in these bytes, oldest first; a document's own text is not among it."""
    rows = tx.execute(
        f"SELECT sha256, reader FROM readings WHERE sha256 IN ({marks(sha256s)}) ORDER BY id", tuple(sha256s)
    ).fetchall()
    found: dict[str, tuple[StoredText, ...]] = {}
    for row in rows:
        sha256, reader = row["sha256"], row["reader"]
        # Only the key of a provider's reading has colons.
        text = find_reading(tx, sha256, reader, ALL_PARTS) if ":" in reader else None
        if text is not None:
            told = StoredText(reader=reader, text=text, window=find_transcript(tx, sha256, reader))
            found[sha256] = (*found.get(sha256, ()), told)
    return found
