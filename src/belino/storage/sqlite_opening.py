"""Opening a state folder's SQLite database: under a lock, and never in place of one that is missing."""

import os
import secrets
import sqlite3
from contextlib import AsyncExitStack, ExitStack, closing
from datetime import datetime
from pathlib import Path

from belino.domain.errors import StoreIncomplete
from belino.domain.failpoints import failpoint
from belino.storage.disk import sync_folder
from belino.storage.encryption import Keys, load_keys
from belino.storage.folder import count_blobs
from belino.storage.home import Home, lock_folder
from belino.storage.restore import finish_restore
from belino.storage.sqlite import SqliteDatabase, as_store_error, connect, primary_code

_CHANGED_NOTHING = "Nothing was changed."
_NEW_KEY = """
DELETE FROM grants;
DELETE FROM pairings_asked;
DELETE FROM search_segments;
DELETE FROM search_blocks;
UPDATE readings SET indexed = '';
UPDATE refs SET sealed = NULL WHERE sealed IS NOT NULL;
UPDATE changes SET refs = NULL WHERE refs IS NOT NULL;
"""


async def open_sqlite(home: Home, *, now: datetime, start_empty: bool, new_key: bool) -> tuple[SqliteDatabase, Keys]:
    """The state folder's database, migrated, and its keys.

    StoreInUse while another process has it, StoreTooNew if a newer belino wrote it. StoreIncomplete if its database or
    key is missing beside other state, unless the operator chose to `start_empty` or to continue with a `new_key`.
    """
    try:
        with ExitStack() as opening:
            opening.callback(os.close, lock_folder(home))
            failpoint("start.locked")
            opening.callback(lambda: failpoint("stop.closed"))
            finish_restore(home)
            refuse_missing_database(home, start_empty=start_empty, now=now)
            connection = opening.enter_context(closing(_make_database(home)))
            has_content = has_rows(connection)
            if has_content:
                refuse_missing_key(home, new_key=new_key)
            elif not start_empty:
                refuse_empty(home, "has no rows")
            database = SqliteDatabase(home.database, connection, opening.pop_all())
        async with AsyncExitStack() as failing:
            failing.push_async_callback(database.close)
            await database.migrate()
            # A key is made only for a new database, or when requested.
            if has_content and not home.key_file.exists():
                forget_old_key(connection)
            keys = load_keys(home.key_file)
            failing.pop_all()
            return database, keys
    except (sqlite3.Error, OSError) as error:
        raise as_store_error(error) from error


def _make_database(home: Home) -> sqlite3.Connection:
    # Created here first: SQLite would follow the umask, and gives its side files the mode of the database.
    os.close(os.open(home.database, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    home.database.chmod(0o600)
    return connect(home.database)


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
        return connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone() is not None
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
