"""The words of documents that were read: which term is in which part, in the store and never in memory.

They belong to the reading, not to a channel: who asks sees those that the channel's own refs lead to, at that moment.
So they need no note of what was deleted, and a document that is sent twice is indexed once.
"""

import sqlite3
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from belino.domain.concordance import Bearer, Occurrences, Passage
from belino.domain.outcome import MediaOutcome
from belino.storage import words
from belino.storage.row_ids import SEQ_MASK
from belino.storage.segment import impacts

VERSION = f"1-{words.VERSION}-{sys.byteorder}"
USUAL_TERMS = 200.0
"""Terms of a usual page."""
PIECE_CHARS = 3_500
"""Of a part are tokenized at once: a sheet of numbers must not be cut off like a pasted log."""
_ENTRY_BYTES = 5


class Indexed(NamedTuple):
    """The words of one reading on their way into the store."""

    reading: int
    edition: int
    parts: int
    languages: Collection[str]
    rows: Sequence[tuple[int, bytes]]


def unindexed(connection: sqlite3.Connection, channel: int | None) -> list[int]:
    """Readings that were made, or went on, since their words were last stored; of one channel or of all."""
    if channel is None:
        rows = connection.execute("SELECT id FROM readings WHERE indexed < ?1 OR indexed > ?1", (VERSION,))
    else:
        rows = connection.execute(
            "SELECT d.id FROM readings d WHERE (d.indexed < ?1 OR d.indexed > ?1) "
            "AND EXISTS (SELECT 1 FROM refs r WHERE r.sha256 = d.sha256 AND r.channel = ?2)",
            (VERSION, channel),
        )
    return [row["id"] for row in rows]


def index(connection: sqlite3.Connection, reading: int, number: Callable[[str], int]) -> Indexed | None:
    """The words of a reading, part by part; None if it is gone."""
    head = connection.execute("SELECT edition FROM readings WHERE id = ?", (reading,)).fetchone()
    if head is None:
        return None
    postings: dict[int, tuple[array[int], array[int]]] = {}
    languages: dict[str, None] = {}
    parts = connection.execute("SELECT * FROM reading_parts WHERE reading = ? ORDER BY number", (reading,))
    count = 0
    for part in parts:
        count += 1
        terms: list[int] = []
        for piece in _pieces(f"{part['title']}\n{part['text']}"):
            read = words.read(piece)
            terms += map(number, read.terms)
            if read.terms:
                languages[read.language] = None
        for term, impact in impacts(terms, 0, USUAL_TERMS).items():
            numbers, weights = postings.get(term) or postings.setdefault(term, (array("I"), array("B")))
            numbers.append(part["number"])
            weights.append(impact)
    rows = [(_signed(term), numbers.tobytes() + weights.tobytes()) for term, (numbers, weights) in postings.items()]
    return Indexed(reading, head["edition"], count, tuple(languages), sorted(rows))


def store(connection: sqlite3.Connection, indexed: Indexed) -> None:
    """Keep the words of a reading in the place of older ones, unless it is gone or went on meanwhile."""
    noted = connection.execute(
        "UPDATE readings SET indexed = ?, parts = ?, languages = ? WHERE id = ? AND edition = ?",
        (VERSION, indexed.parts, " ".join(indexed.languages), indexed.reading, indexed.edition),
    )
    if not noted.rowcount:
        return
    connection.execute("DELETE FROM reading_words WHERE reading = ?", (indexed.reading,))
    connection.executemany(
        "INSERT INTO reading_words VALUES (?, ?, ?)", [(term, indexed.reading, parts) for term, parts in indexed.rows]
    )


class ChannelPassages:
    """What one channel's refs lead to, as one question sees it."""

    def __init__(self, connection: sqlite3.Connection, channel: int) -> None:
        self._connection = connection
        self._channel = channel

    def __len__(self) -> int:
        return sum(self._parts.values())

    @property
    def languages(self) -> Collection[str]:
        return {language for some in {row[2] for row in self._documents} for language in some.split()}

    def find(self, numbers: Sequence[int]) -> Occurrences:
        rows = self._connection.execute(
            f"SELECT reading, parts FROM reading_words WHERE term IN ({','.join('?' * len(numbers))})",  # noqa: S608
            [_signed(number) for number in numbers],
        )
        known = self._parts
        return _Packed([(reading, parts) for reading, parts in rows if reading in known])

    def bearers(self, document: int) -> Sequence[Bearer]:
        rows = self._connection.execute(
            "SELECT b.message, r.id FROM readings d JOIN refs r ON r.sha256 = d.sha256 "
            "JOIN message_refs b ON b.ref = r.seq WHERE d.id = ? AND r.channel = ? AND r.outcome <> ? "
            "AND b.role IN ('own', 'forwarded') ORDER BY b.message",
            (document, self._channel, MediaOutcome.EXPIRED),
        )
        return [Bearer(message & SEQ_MASK, ref) for message, ref in rows]

    def unit(self, document: int) -> str:
        return str(self._connection.execute("SELECT unit FROM readings WHERE id = ?", (document,)).fetchone()["unit"])

    def text(self, document: int, number: int) -> str:
        row = self._connection.execute(
            "SELECT title, text FROM reading_parts WHERE reading = ? AND number = ?", (document, number)
        ).fetchone()
        return f"{row['title']} {row['text']}"

    @cached_property
    def _documents(self) -> Sequence[tuple[int, int, str]]:
        # In this order, whatever SQLite thinks of it (the plus keeps it from all readings): few refs were ever fetched.
        rows = self._connection.execute(
            "SELECT DISTINCT d.id, d.parts, d.languages FROM refs r INDEXED BY refs_with_bytes "
            "CROSS JOIN readings d ON d.sha256 = r.sha256 WHERE r.channel = ? AND r.sha256 IS NOT NULL "
            "AND r.outcome <> ? AND +d.indexed = ? AND d.unread IS NULL",
            (self._channel, MediaOutcome.EXPIRED, VERSION),
        )
        return [tuple(row) for row in rows]

    @cached_property
    def _parts(self) -> Mapping[int, int]:
        return {reading: parts for reading, parts, _ in self._documents}


class NoPassages:
    """What an index has that nobody asks just now."""

    languages: Collection[str] = ()

    def __len__(self) -> int:
        return 0

    def find(self, numbers: Sequence[int]) -> Occurrences:
        return ()

    def bearers(self, document: int) -> Sequence[Bearer]:
        return ()

    def unit(self, document: int) -> str:
        return ""

    def text(self, document: int, number: int) -> str:
        return ""


class _Packed:
    """Occurrences as the store keeps them: words that are in too many parts are only counted."""

    def __init__(self, rows: Sequence[tuple[int, bytes]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return sum(len(parts) for _, parts in self._rows) // _ENTRY_BYTES

    def __iter__(self) -> Iterator[Passage]:
        for reading, parts in self._rows:
            count = len(parts) // _ENTRY_BYTES
            numbers, weights = array("I"), parts[-count:]
            numbers.frombytes(parts[:-count])
            yield from (Passage(reading, number, impact) for number, impact in zip(numbers, weights, strict=True))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that end between words, where it has any."""
    start = 0
    while start < len(text):
        end = start + PIECE_CHARS
        if end < len(text):
            blank = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = blank + 1 if blank > start else end
        yield text[start:end]
        start = end


def _signed(number: int) -> int:
    """As a table can hold it."""
    return number - (1 << 64) if number >= 1 << 63 else number
