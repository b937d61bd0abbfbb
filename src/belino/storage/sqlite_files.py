"""SQLite files: copy a database for a backup, and examine and change one that is not trusted."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from belino.domain.errors import StoreError, StoreTooNew
from belino.storage.migrations import STEPS
from belino.storage.sqlite import SqliteTx, connect, migrate


def copy_database(source: Path, target: Path) -> int:
    """Copy one consistent state into an empty file, also while others write. Returns the version of its schema."""
    try:
        with closing(connect(source, read_only=True)) as original, closing(sqlite3.connect(target)) as copy:
            original.backup(copy)  # in one step: does not block writers, and is not restarted by them
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("VACUUM")  # free pages still contain deleted content
            schema: int = copy.execute("PRAGMA user_version").fetchone()[0]
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"the database could not be backed up: {error}") from error
    if found != "ok":
        raise StoreError(f"the database is damaged and was not backed up: {found}")
    return schema


@contextmanager
def read_database(path: Path) -> Iterator[SqliteTx]:
    """Read a database that is not trusted, after it was examined."""
    with _open(path, "ro") as connection:
        _examine(connection)
        yield SqliteTx(connection)


@contextmanager
def change_database(path: Path) -> Iterator[SqliteTx]:
    """Change a database that was examined, in one transaction."""
    with _open(path, "rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield SqliteTx(connection)
        connection.execute("COMMIT")


def prepare_database(path: Path) -> None:
    """Examine a database that is not trusted, and migrate it to this program's version."""
    with _open(path, "rw") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        _examine(connection)
        migrate(connection)


@contextmanager
def _open(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            # An untrusted database may contain triggers and views: none may run before its schema is checked.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA mmap_size = 0")
            yield connection
    except sqlite3.Error as error:
        raise StoreError(f"the database of this backup cannot be used: {error}") from error


def _examine(connection: sqlite3.Connection) -> None:
    """Check that it is intact, and has exactly the tables, indexes and triggers of its belino version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(STEPS):
        raise StoreTooNew(f"the database is of version {version} and this belino knows version {len(STEPS)}")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate(ours, STEPS[:version])
        query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
        wanted = {tuple(row) for row in ours.execute(query)}
    if version < 1 or {tuple(row) for row in connection.execute(query)} != wanted:
        raise StoreError("the database of this backup is not one that belino made; nothing was changed")
    problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if problem != "ok":
        raise StoreError(f"the database of this backup is damaged: {problem}")
