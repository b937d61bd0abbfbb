"""Opening checks: a database or key that is missing beside other state is reported, never replaced."""

import secrets
import sqlite3
from datetime import datetime
from pathlib import Path

from belino.domain.errors import StoreIncomplete
from belino.storage.blobs import count_blobs, sync_folder
from belino.storage.home import Home
from belino.storage.writer import primary_code

_CHANGED_NOTHING = "Nothing was changed."
_NEW_KEY = """
DELETE FROM grants;
DELETE FROM pairings_asked;
DELETE FROM search_segments;
UPDATE readings SET indexed = '';
UPDATE refs SET sealed = NULL WHERE sealed IS NOT NULL;
UPDATE changes SET refs = NULL WHERE refs IS NOT NULL;
"""


def refuse_missing_database(home: Home, *, start_empty: bool, now: datetime) -> None:
    """StoreIncomplete if the database is missing or empty beside media; before SQLite opens, or makes, the file.

    A write-ahead log without its database holds the last commits, and SQLite deletes it when it opens an empty file: it
    counts as state, and is renamed when the operator chooses to start empty.
    """
    if has_content(home.database):
        return
    log = wal_of(home.database)
    if not start_empty:
        refuse_empty(home, "is empty" if home.database.exists() else "is missing")
        if has_content(log):
            raise StoreIncomplete(_refusal(home, "is missing or empty", f"its write-ahead log {log.name} exists"))
    elif has_content(log):
        log.rename(old_name(log, now))
        sync_folder(home.path)


def refuse_empty(home: Home, what: str) -> None:
    """StoreIncomplete if there are blobs but the database has no rows."""
    count = count_blobs(home.blobs)
    if count:
        files = "one media file" if count == 1 else f"{count} media files"
        raise StoreIncomplete(_refusal(home, what, f"{home.blobs} holds {files}"))


def refuse_missing_key(home: Home, *, new_key: bool) -> None:
    """StoreIncomplete if a database with rows has lost its key file."""
    if new_key or home.key_file.exists():
        return
    raise StoreIncomplete(
        f"the key file {home.key_file} is missing, but the database has content. {_CHANGED_NOTHING} Options: copy the "
        "file `key` of a backup there; `belino restore DIR` brings a whole backup back; `belino serve --new-key` makes "
        "a new key: logins and tokens end, media whose download key is sealed cannot be fetched again, the same media "
        "sent again gets another ref id, and the search index is built again"
    )


def has_rows(connection: sqlite3.Connection) -> bool:
    """Whether any table has a row; a damaged one counts as having rows."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    return any(_has_row(connection, table) for (table,) in connection.execute(query).fetchall())


def _has_row(connection: sqlite3.Connection, table: str) -> bool:
    try:
        return connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone() is not None  # noqa: S608  a table's name
    except sqlite3.DatabaseError as error:
        if primary_code(error) == sqlite3.SQLITE_CORRUPT:
            return True
        raise


def forget_old_key(connection: sqlite3.Connection) -> None:
    """Delete everything that needs the lost key to be decrypted or checked."""
    connection.executescript(f"BEGIN IMMEDIATE;{_NEW_KEY}COMMIT;")


def has_content(path: Path) -> bool:
    """Whether a file exists and is not empty."""
    try:
        return path.stat(follow_symlinks=False).st_size > 0
    except FileNotFoundError:
        return False


def wal_of(database: Path) -> Path:
    """The write-ahead log of a database."""
    return database.with_name(f"{database.name}-wal")


def old_name(path: Path, now: datetime) -> Path:
    """A timestamped name for keeping a file that is replaced."""
    return path.with_name(f"{path.name}.before-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")


def _refusal(home: Home, what: str, but: str) -> str:
    return (
        f"the database {home.database} {what}, but {but}. {_CHANGED_NOTHING} Options: put the right file back; "
        "`belino restore DIR` brings a backup back; `belino doctor --repair` salvages what is left of a damaged "
        "database; `belino serve --start-empty` starts with an empty database and keeps the files"
    )
