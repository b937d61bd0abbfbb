"""Reading verbs of the store: readings, renditions and image prints, with their blobs."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from belino.domain.errors import MediaNotFound
from belino.domain.media import Blob, DocumentText, Likeness, Printed
from belino.domain.message import ConversationKey
from belino.domain.reading import AttemptRecord, Spent, StoredText, TranscriptWindow
from belino.storage import garbage, reading_attempts, reading_texts, readings, transcripts
from belino.storage.blob_rows import find_blob, insert_blob
from belino.storage.blob_verbs import TOUCH_EVERY, BlobVerbs
from belino.storage.database import Tx
from belino.storage.text import sanitized

_ALL_PARTS = (1, (1 << 63) - 1)


class ReadingVerbs(BlobVerbs):
    """What was derived from blobs."""

    async def reading(self, sha256: str, reader: str, *, parts: tuple[int, int] | None = None) -> DocumentText | None:
        """The text a reader has found in these bytes so far; only the parts from … to, if they are given."""
        return await self._database.read(lambda tx: readings.find_reading(tx, sha256, reader, parts or _ALL_PARTS))

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> bool:
        """Store a reading, with the parts that were read before.

        False, and nothing is stored, if no ref names the bytes any more: they were deleted in between.
        """
        read = sanitized(text)
        return await self._database.write(lambda tx: readings.keep_reading(tx, sha256, reader, read))

    async def transcript(self, sha256: str, reader: str) -> TranscriptWindow | None:
        """A window of the transcript of these bytes, if it was read."""
        return await self._database.read(lambda tx: transcripts.find_transcript(tx, sha256, reader))

    async def keep_transcript(self, sha256: str, reader: str, window: TranscriptWindow, text: DocumentText) -> bool:
        """Store a window of a transcript, and the same as a text that is searched; False as for `keep_reading`."""
        heard, read = sanitized(window), sanitized(text)
        return await self._database.write(lambda tx: transcripts.keep_transcript(tx, sha256, reader, heard, read))

    async def texts_of(self, sha256s: Sequence[str]) -> Mapping[str, tuple[StoredText, ...]]:
        """What providers found in these bytes, each under its reader's key, oldest first."""
        if not sha256s:
            return {}
        return await self._database.read(lambda tx: reading_texts.texts_of(tx, sha256s))

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

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        """Those of these bytes in which some reader has found text."""
        return await self._database.read(lambda tx: readings.read_before(tx, sha256s))

    async def rendition(self, sha256: str, name: str) -> Blob | None:
        """The rendition of these bytes with this name, if it is still stored."""
        row = await self._database.read(lambda tx: readings.find_rendition(tx, sha256, name))
        blob = None if row is None else await self._proven(row)
        if blob is not None:
            now = self._now()
            await self._database.write(lambda tx: garbage.touch(tx, blob.sha256, now, TOUCH_EVERY))
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
                named = all(readings.is_named(tx, source) for source in sources)
                if named:
                    insert_blob(tx, blob.sha256, mime, blob.size, now, declared=True)
                    for source in sources:
                        readings.keep_rendition(tx, source, name, blob)
                return named, find_blob(tx, blob.sha256) is not None

            named, known = await self._database.write(work)
        if not known:
            await self._blobs.delete((blob.sha256,))
        if not named:
            raise MediaNotFound("the bytes it was made of were deleted in the meantime")
        return blob

    async def keep_print(self, sha256: str, bits: bytes) -> bool:
        """Store the image print of a picture; False, and nothing is stored, if no ref names the bytes any more."""
        return await self._database.write(lambda tx: readings.keep_print(tx, sha256, bits))

    async def has_print(self, sha256: str) -> bool:
        query = "SELECT 1 FROM prints WHERE sha256 = ?"
        return await self._database.read(lambda tx: tx.execute(query, (sha256,)).fetchone() is not None)

    async def prints(self, channel: ConversationKey, *, limit: int = 2_000) -> tuple[Printed, ...]:
        """The channel's pictures with image prints, oldest first; only the newest if there are too many."""
        return await self._database.read(lambda tx: readings.prints(tx, channel, limit))

    async def keep_likenesses(self, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
        """Store how a picture relates to others, by their hashes; those that no ref names any more are skipped."""
        await self._database.write(lambda tx: readings.keep_likenesses(tx, sha256, likenesses))

    async def likenesses(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
        """For those of these refs that repeat an earlier picture of the channel: its ref, and the relation."""
        return await self._database.read(lambda tx: readings.likenesses(tx, channel, refs))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
