"""Speeches: which blob is the voice message of a text; a row does not keep its blob from being deleted."""

from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.storage import garbage, reading_attempts
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import TableRow, Tx


class SpeechVerbs(BlobVerbs):
    """Voice messages that were made of texts."""

    async def speech(self, key: str) -> Blob | None:
        """The voice message under this key, if some message or parcel still has it; it stays for an hour from now."""
        row = await self._database.read(lambda tx: find_speech(tx, key))
        blob = None if row is None else await self._proven(row)
        if blob is not None:
            now = self._now()
            await self._database.write(lambda tx: garbage.touch(tx, blob.sha256, now, 0))
        return blob

    async def keep_speech(self, key: str, blob: Blob) -> None:
        """Record a stored blob as the voice message under this key; it is deleted when nothing else uses it."""
        await self._database.write(lambda tx: keep_speech(tx, key, blob.sha256))

    async def note_speech_cost(self, channel: ConversationKey, usd: float) -> None:
        """Count the price of speech toward the channel's daily limit."""
        now = self._clock.now()
        await self._database.write(lambda tx: reading_attempts.insert_cost(tx, channel, usd, now))


def find_speech(tx: Tx, key: str) -> TableRow | None:
    """The blob of a voice message that was made before, if it is still stored."""
    row: TableRow | None = tx.execute(
        "SELECT b.sha256, b.mime, b.size FROM speeches s JOIN blobs b ON b.sha256 = s.blob WHERE s.key = ?", (key,)
    ).fetchone()
    return row


def keep_speech(tx: Tx, key: str, sha256: str) -> None:
    """Record the blob of a voice message; rows whose blob is gone are deleted."""
    tx.execute("DELETE FROM speeches WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = speeches.blob)")
    tx.execute(
        "INSERT INTO speeches (key, blob) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET blob = excluded.blob",
        (key, sha256),
    )
