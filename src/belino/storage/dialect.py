"""The dialect of SQL that statements are written in: the common subset of SQLite and PostgreSQL, and what it lacks.

Arguments are `?` or `?1`, and integers stand for booleans. An upsert names its columns and, in its expressions, its
table. Text is compared for equality or, if it is ASCII, for order; NULL is never in an order, because the engines sort
it to different ends. An engine returns a sum of integers as an integer.
"""

from collections.abc import Sized


def marks(values: Sized) -> str:
    """The arguments of `IN (…)`; NULL, which equals nothing, if there are none."""
    return ",".join("?" * len(values)) or "NULL"


def by_index(name: str) -> str:
    """A hint, after a table's name, for a statement that SQLite would run without the index that it needs."""
    return f" INDEXED BY {name}"
