"""Bytes that come piece by piece, whole or not."""

import sqlite3
from collections.abc import AsyncIterator

from belino.domain.media import Blob
from belino.storage.sqlite import SqliteDatabase
from belino.storage.store import Store


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def breaking(*pieces: bytes) -> AsyncIterator[bytes]:
    """These, and then no more."""
    for piece in pieces:
        yield piece
    raise ConnectionError("the line went dead")


async def keep(store: Store, body: bytes) -> Blob:
    return await store.keep(chunks(body), mime="a/b", limit=1000)


def raw(store: Store) -> sqlite3.Connection:
    """The writer's connection."""
    database = store._database
    assert isinstance(database, SqliteDatabase)
    return database._connection
