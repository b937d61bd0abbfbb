"""The engines that the store's suite runs on: another one is one more entry."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Protocol

import pytest

from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock


class Engine(Protocol):
    """The store of a test, and what another program would see of it."""

    async def open(self) -> Store:
        """The store, as the last one that was closed left it."""
        ...

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows that are committed."""
        ...

    async def dump(self) -> str:
        """Everything that is committed, as text."""
        ...


class SqliteEngine:
    """SQLite, and a folder of blobs."""

    def __init__(self, home: Home, clock: FakeClock) -> None:
        self._home = home
        self._clock = clock

    async def open(self) -> Store:
        return await open_store(self._home, clock=self._clock)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._home.database)) as connection:
            return connection.execute(sql).fetchall()

    async def dump(self) -> str:
        with closing(sqlite3.connect(self._home.database)) as connection:
            return "\n".join(connection.iterdump())


ENGINES: Mapping[str, Callable[[Home, FakeClock], Engine]] = {"sqlite": SqliteEngine}

OF_SQLITE = frozenset(
    f"test_{name}"
    for name in (
        "audit", "checksums", "folder", "migrations", "released", "sqlite", "sqlite_opening", "sqlite_repair",
        "sqlite_writer", "strays", "syncs",
    )
)  # fmt: skip
"""Modules whose tests look into the files of SQLite, or of a folder of blobs."""

SQLITE_ONLY = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
"""For a test that looks into SQLite itself."""
