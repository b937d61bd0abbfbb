"""Rendition cache: one maker at a time for each rendition, and nothing is made twice."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from belino.domain.errors import MediaNotFound, StoreError
from belino.domain.failpoints import failpoint
from belino.domain.media import DocumentText
from belino.storage.reading_verbs import ReadingVerbs

log = logging.getLogger(__name__)

Make = Callable[[], Awaitable[tuple[bytes, str]]]


class RenditionCache:
    """Renditions and readings by the hash of their source; without a store nothing is kept."""

    def __init__(self, store: ReadingVerbs | None) -> None:
        self._store = store
        self._makers: dict[tuple[str, str], _Maker] = {}

    async def once(self, sha256: str, name: str, make: Make, *, also: Sequence[str] = ()) -> tuple[bytes, str]:
        """The rendition of this name and its type: cached, or made now and cached; `also` are its other sources."""
        async with self.alone(sha256, name):
            found = await self.found(sha256, name)
            if found is not None:
                return found
            data, mime = await make()
            failpoint("rendition.made")
            await self.keep(sha256, name, data, mime, also=also)
            failpoint("rendition.kept")
            return data, mime

    async def found(self, sha256: str, name: str) -> tuple[bytes, str] | None:
        """The cached rendition, if it exists and is intact."""
        blob = await self._store.rendition(sha256, name) if self._store else None
        if self._store is None or blob is None:
            return None
        try:
            async with self._store.local(blob.sha256) as path:
                data = await asyncio.to_thread(path.read_bytes)
        except (OSError, MediaNotFound):
            return None
        if hashlib.sha256(data).hexdigest() != blob.sha256:
            log.warning("the rendition %s of %s is damaged; it is made again", name, sha256)
            return None
        return data, blob.mime

    async def keep(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> None:
        """Store a rendition; if that fails, it is made again next time."""
        if self._store is None:
            return
        try:
            await self._store.keep_rendition(sha256, name, data, mime, also=also)
        except MediaNotFound:
            raise  # deleted while it was made: it may no longer be used
        except StoreError as error:
            log.warning("the rendition %s of %s is not kept: %s", name, sha256, type(error).__name__)

    async def reading(self, sha256: str, reader: str, parts: tuple[int, int]) -> DocumentText | None:
        """The stored reading of these bytes, with its parts from … to."""
        return None if self._store is None else await self._store.reading(sha256, reader, parts=parts)

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        """The hashes with a stored reading."""
        return await self._store.read_before(sha256s) if self._store and sha256s else frozenset()

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> None:
        """Store a reading beside earlier ones."""
        if self._store is None:
            return
        try:
            named = await self._store.keep_reading(sha256, reader, text)
        except StoreError as error:
            log.warning("the text of %s is not kept: %s", sha256, type(error).__name__)
            return
        if not named:
            raise MediaNotFound("the bytes it was read from were deleted in the meantime")

    @asynccontextmanager
    async def alone(self, sha256: str, name: str) -> AsyncIterator[None]:
        """Concurrent callers wait, and find it made."""
        key = (sha256, name)
        maker = self._makers.setdefault(key, _Maker())
        maker.users += 1
        try:
            async with maker.lock:
                yield
        finally:
            maker.users -= 1
            if not maker.users:
                self._makers.pop(key, None)


class _Maker:
    """A rendition being made, and its number of waiters."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
