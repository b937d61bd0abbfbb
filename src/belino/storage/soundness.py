"""Database soundness: tell corruption, as SQLite reports it, from a check that could not be made."""

import os
import re
import sqlite3
from pathlib import Path

from belino.storage.writer import CORRUPTION, primary_code

_ERROR_CODE = re.compile(r"error code=(\d+)")


def quick_check(connection: sqlite3.Connection, *, with_indexes: bool = False) -> str:
    """The first corruption that `PRAGMA quick_check` reports, or empty; sqlite3.Error if the check itself failed.

    `with_indexes` compares every index with its table, too, which takes much longer.
    """
    try:
        pragma = "integrity_check" if with_indexes else "quick_check"
        found: str = connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if primary_code(error) in CORRUPTION:
            return str(error)
        raise
    # A page that could not be read is reported as a row, too; its code tells a damaged page from a failed read.
    code = _ERROR_CODE.search(found)
    if code is not None and int(code.group(1)) & 0xFF not in CORRUPTION:
        raise sqlite3.OperationalError(found)
    return "" if found == "ok" else found


def why_unreadable(error: sqlite3.Error, database: Path) -> str:
    """The reason that a database could not be checked; the system's own if SQLite only says that it could not."""
    if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        try:
            os.close(os.open(database, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
        except OSError as reason:
            return f"{error}: {reason.strerror}"
    return str(error)
