"""Reading verbs of the store: readings, renditions and image prints, with their blobs."""

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence

from belino.domain.document import DocumentText
from belino.domain.errors import MediaNotFound
from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.domain.readings import Likeness, Printed
from belino.storage import eviction, readings
from belino.storage.blob_verbs import TOUCH_EVERY, BlobVerbs
from belino.storage.blobs import find_blob, insert_blob, on_disk
from belino.storage.sanitize import NOT_TEXT, mended

_ALL_PARTS = (1, (1 << 63) - 1)


class ReadingVerbs(BlobVerbs):
    """What was derived from blobs."""

    async def reading(self, sha256: str, reader: str, *, parts: tuple[int, int] | None = None) -> DocumentText | None:
        return await self._readers.read(
            lambda connection: readings.find_reading(connection, sha256, reader, parts or _ALL_PARTS)
        )

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            return readings.keep_reading(connection, sha256, reader, text)

        try:
            return await self._writer.write(work)
        except NOT_TEXT:
            text = mended(text)
            return await self._writer.write(work)

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        return await self._readers.read(lambda connection: readings.read_before(connection, sha256s))

    async def rendition(self, sha256: str, name: str) -> Blob | None:
        row = await self._readers.read(lambda connection: readings.find_rendition(connection, sha256, name))
        blob = None if row is None else await self._proven(row)
        if blob is not None:
            now = self._now()
            await self._writer.write(lambda connection: eviction.touch(connection, blob.sha256, now, TOUCH_EVERY))
        return blob

    async def keep_rendition(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> Blob:
        partial, now = await self._folder.receive(_once(data), limit=len(data)), self._now()
        blob = Blob(sha256=partial.sha256, mime=mime, size=partial.size, path=self._folder.place(partial.sha256))

        def work(connection: sqlite3.Connection) -> tuple[bool, bool]:
            sources = dict.fromkeys((sha256, *also))
            named = all(readings.is_named(connection, source) for source in sources)
            if named:
                insert_blob(connection, blob.sha256, mime, blob.size, now, declared=True)
                for source in sources:
                    readings.keep_rendition(connection, source, name, blob)
            return named, find_blob(connection, blob.sha256) is not None

        try:
            with self._folder.settling(blob.sha256):
                await on_disk(self._folder.adopt, partial.path, blob.sha256)
                named, known = await self._writer.write(work)
        finally:
            partial.discard()
        if not known:
            await self._folder.let_go((blob.sha256,))
        if not named:
            raise MediaNotFound("the bytes it was made of were deleted meanwhile")
        return blob

    async def keep_print(self, sha256: str, bits: bytes) -> bool:
        return await self._writer.write(lambda connection: readings.keep_print(connection, sha256, bits))

    async def has_print(self, sha256: str) -> bool:
        query = "SELECT 1 FROM prints WHERE sha256 = ?"
        return await self._readers.read(lambda connection: connection.execute(query, (sha256,)).fetchone() is not None)

    async def prints(self, channel: ConversationKey, *, limit: int = 2_000) -> tuple[Printed, ...]:
        return await self._readers.read(lambda connection: readings.prints(connection, channel, limit))

    async def keep_likenesses(self, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
        await self._writer.write(lambda connection: readings.keep_likenesses(connection, sha256, likenesses))

    async def likenesses(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
        return await self._readers.read(lambda connection: readings.likenesses(connection, channel, refs))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
