"""Text in SQLite: stored as it is, and escaped if it contains a lone surrogate.

SQLite stores every other text, NUL included, and the driver refuses a surrogate with UnicodeEncodeError. Few databases
ever meet one, so nothing is checked until then. The engine then runs the refused work again with escaped arguments, and
stores the mark of the escapes in the same transaction. From then on every text is compared with the mark.

The mark is random, and made for one database: a text that was stored earlier cannot contain it, and a later one that
does is escaped. So no text is read as another.
"""

import secrets
import sqlite3
from collections.abc import Mapping

from belino.storage.database import Args
from belino.storage.text import MARK, escape, unescape


class SqliteText:
    """How a database stores text; one for all its connections."""

    def __init__(self) -> None:
        self.mark = MARK + secrets.token_hex(8)
        self.in_use = False
        """Whether the database has, or is about to have, escaped text."""

    def load(self, connection: sqlite3.Connection) -> None:
        """Load the mark that the database has."""
        row = connection.execute("SELECT mark FROM text_escape").fetchone()
        if row is not None:
            self.mark, self.in_use = row[0], True

    def store(self, connection: sqlite3.Connection) -> None:
        """Store the mark, in the transaction that stores the first escaped text."""
        connection.execute("INSERT INTO text_escape (mark) VALUES (?)", (self.mark,))

    def escaped(self, args: Args) -> Args:
        """The arguments of a statement as SQLite can store them."""
        if isinstance(args, Mapping):
            return {name: self._escaped(value) for name, value in args.items()}
        return tuple(self._escaped(value) for value in args)

    def read(self, stored: bytes) -> str:
        """A stored text as it was written."""
        try:
            text = stored.decode()
        except UnicodeDecodeError as error:
            raise sqlite3.OperationalError(f"could not decode a text: {error}") from error
        return unescape(text, self.mark) if self.mark in text else text

    def _escaped(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        # The same text must always be stored in the same way: one with NUL alone is stored as it is, as before.
        return escape(value, self.mark) if self.mark in value or _has_surrogate(value) else value


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
