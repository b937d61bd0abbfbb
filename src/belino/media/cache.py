"""Cache of small files in memory, by hash, limited by bytes, least recently used evicted first."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import MediaNotFound
from belino.domain.media import Blob
from belino.domain.outcome import CacheSize

if TYPE_CHECKING:
    from cachebox import LRUCache

# One file may not evict all others.
SHARE = 10


class MediaCache:
    """The bytes of recently read blobs."""

    def __init__(self, limit: int, counts: Counter[str]) -> None:
        self._limit = limit
        self._counts = counts
        self._cache: LRUCache[str, bytes] | None = None

    async def read(self, blob: Blob, limit: int) -> bytes:
        """The first `limit` bytes of a blob."""
        whole = blob.size <= self._limit // SHARE
        cache = self._opened() if whole else None
        held = None if cache is None else cache.get(blob.sha256)
        self._counts["misses" if held is None else "hits"] += 1
        if held is None:
            held = await asyncio.to_thread(_head, blob.path, blob.size if whole else limit)
            if cache is not None:
                cache.insert(blob.sha256, held)
        return held[:limit]

    @property
    def size(self) -> CacheSize:
        if self._cache is None:
            return CacheSize(entries=0, bytes=0, most_bytes=self._limit)
        return CacheSize(entries=len(self._cache), bytes=self._cache.current_size(), most_bytes=self._limit)

    def forget(self, sha256: str) -> None:
        """Drop these bytes from the cache."""
        if self._cache is not None:
            self._cache.pop(sha256, None)

    def _opened(self) -> "LRUCache[str, bytes]":
        if self._cache is None:
            from cachebox import LRUCache  # on the first read: it costs 60 ms

            self._cache = LRUCache(self._limit, getsizeof=lambda _, held: len(held))
        return self._cache


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError as error:
        raise MediaNotFound("the bytes are not here any more") from error
