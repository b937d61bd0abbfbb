"""Search passages in tables: the postings of documents that were read, in `reading_words`.

They belong to the reading, not to a channel: a search sees those that the channel's refs lead to at that moment. So
deletions need no note, and a document that is sent twice is indexed once.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from belino.domain.outcome import MediaOutcome
from belino.search import tokenizer
from belino.search.passages import PassageList, PassageSource, index_parts
from belino.storage.database import Tx
from belino.storage.dialect import marks
from belino.storage.row_ids import SEQ_MASK

VERSION = f"1-{tokenizer.VERSION}-{sys.byteorder}"


class IndexedReading(NamedTuple):
    """The postings of one edition of a reading, to be stored."""

    reading: int
    edition: int
    parts: int
    languages: str
    rows: Sequence[tuple[int, bytes]]


def unindexed(tx: Tx, channel: int | None) -> list[int]:
    """Readings that were made, or continued, since they were last indexed; of one channel or of all."""
    if channel is None:
        rows = tx.execute("SELECT id FROM readings WHERE indexed < ?1 OR indexed > ?1", (VERSION,))
    else:
        rows = tx.execute(
            "SELECT d.id FROM readings d WHERE (d.indexed < ?1 OR d.indexed > ?1) "
            "AND EXISTS (SELECT 1 FROM refs r WHERE r.sha256 = d.sha256 AND r.channel = ?2)",
            (VERSION, channel),
        )
    return [row["id"] for row in rows]


def index_reading(tx: Tx, reading: int, number: Callable[[str], int]) -> IndexedReading | None:
    """The postings of a reading; None if it was deleted."""
    head = tx.execute("SELECT edition FROM readings WHERE id = ?", (reading,)).fetchone()
    if head is None:
        return None
    rows = tx.execute("SELECT * FROM reading_parts WHERE reading = ? ORDER BY number", (reading,))
    parts = index_parts(((row["number"], f"{row['title']}\n{row['text']}") for row in rows), number)
    postings = sorted((_signed(term), packed) for term, packed in parts.postings.items())
    return IndexedReading(reading, head["edition"], parts.count, " ".join(parts.languages), postings)


def store_reading(tx: Tx, indexed: IndexedReading) -> None:
    """Replace the postings of a reading, unless it was deleted or continued since."""
    noted = tx.execute(
        "UPDATE readings SET indexed = ?, parts = ?, languages = ? WHERE id = ? AND edition = ?",
        (VERSION, indexed.parts, indexed.languages, indexed.reading, indexed.edition),
    )
    if not noted.rowcount:
        return
    tx.execute("DELETE FROM reading_words WHERE reading = ?", (indexed.reading,))
    tx.many(
        "INSERT INTO reading_words (term, reading, parts) VALUES (?, ?, ?)",
        [(term, indexed.reading, parts) for term, parts in indexed.rows],
    )


class ChannelPassages:
    """The passages that one channel's refs lead to, in one snapshot of the store."""

    def __init__(self, tx: Tx, channel: int) -> None:
        self._tx = tx
        self._channel = channel

    def __len__(self) -> int:
        return sum(self._parts.values())

    @property
    def languages(self) -> Collection[str]:
        return {language for some in {row[2] for row in self._documents} for language in some.split()}

    def find(self, numbers: Sequence[int]) -> PassageList:
        rows = self._tx.execute(
            f"SELECT reading, parts FROM reading_words WHERE term IN ({marks(numbers)})",
            [_signed(number) for number in numbers],
        )
        known = self._parts
        return PassageList([(reading, parts) for reading, parts in rows if reading in known])

    def sources(self, document: int) -> Sequence[PassageSource]:
        rows = self._tx.execute(
            "SELECT b.message, r.id FROM readings d JOIN refs r ON r.sha256 = d.sha256 "
            "JOIN message_refs b ON b.ref = r.seq WHERE d.id = ? AND r.channel = ? AND r.outcome <> ? "
            "AND b.role IN ('own', 'forwarded') ORDER BY b.message",
            (document, self._channel, MediaOutcome.EXPIRED),
        )
        return [PassageSource(message & SEQ_MASK, ref) for message, ref in rows]

    def unit(self, document: int) -> str:
        return str(self._tx.execute("SELECT unit FROM readings WHERE id = ?", (document,)).fetchone()["unit"])

    def text(self, document: int, number: int) -> str:
        row = self._tx.execute(
            "SELECT title, text FROM reading_parts WHERE reading = ? AND number = ?", (document, number)
        ).fetchone()
        return f"{row['title']} {row['text']}"

    @cached_property
    def _documents(self) -> Sequence[tuple[int, int, str]]:
        # From the refs, of which few were fetched. The empty text keeps SQLite from scanning all readings instead.
        rows = self._tx.execute(
            "SELECT DISTINCT d.id, d.parts, d.languages FROM refs r CROSS JOIN readings d "
            "WHERE d.sha256 = r.sha256 AND r.channel = ? AND r.sha256 IS NOT NULL AND r.outcome <> ? "
            "AND d.indexed || '' = ? AND d.unread IS NULL",
            (self._channel, MediaOutcome.EXPIRED, VERSION),
        )
        return [tuple(row) for row in rows]

    @cached_property
    def _parts(self) -> Mapping[int, int]:
        return {reading: parts for reading, parts, _ in self._documents}


def _signed(number: int) -> int:
    """A term as an INTEGER column can hold it."""
    return number - (1 << 64) if number >= 1 << 63 else number
