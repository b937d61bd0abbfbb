"""Bytes that come piece by piece, whole or not."""

from collections.abc import AsyncIterator

from belino.domain.media import Blob
from belino.storage.sqlite import SqliteStore


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def breaking(*pieces: bytes) -> AsyncIterator[bytes]:
    """These, and then no more."""
    for piece in pieces:
        yield piece
    raise ConnectionError("the line went dead")


async def keep(store: SqliteStore, body: bytes) -> Blob:
    return await store.keep(chunks(body), mime="a/b", limit=1000)
