"""The words of documents that were read: which term is in which part, in the store and never in memory.

They belong to the reading, not to a channel: who asks sees those that the channel's own refs lead to, at that moment.
So they need no note of what was deleted, and a document that is sent twice is indexed once.
"""

import sqlite3
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from belino.domain.concordance import Bearer, Passage
from belino.domain.outcome import MediaOutcome
from belino.storage import words
from belino.storage.places import SEQ_MASK
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


class _Document(NamedTuple):
    unit: str
    languages: str
    parts: int
    bearers: list[Bearer]


class ChannelPassages:
    """What one channel's refs lead to, as one question sees it; nothing is read before a word is found anywhere."""

    def __init__(self, connection: sqlite3.Connection, channel: int) -> None:
        self._connection = connection
        self._channel = channel
        self._known: Mapping[int, _Document] | None = None

    def __len__(self) -> int:
        return sum(document.parts for document in self._documents.values())

    @property
    def languages(self) -> Collection[str]:
        return {language for document in self._documents.values() for language in document.languages.split()}

    def find(self, numbers: Sequence[int]) -> Sequence[Passage]:
        rows = self._connection.execute(
            f"SELECT reading, parts FROM reading_words WHERE term IN ({','.join('?' * len(numbers))})",  # noqa: S608
            [_signed(number) for number in numbers],
        ).fetchall()
        return [passage for row in rows if row["reading"] in self._documents for passage in _unpacked(*row)]

    def bearers(self, document: int) -> Sequence[Bearer]:
        return self._documents[document].bearers

    def unit(self, document: int) -> str:
        return self._documents[document].unit

    def text(self, document: int, number: int) -> str:
        row = self._connection.execute(
            "SELECT title, text FROM reading_parts WHERE reading = ? AND number = ?", (document, number)
        ).fetchone()
        return f"{row['title']} {row['text']}" if row is not None and document in self._documents else ""

    @property
    def _documents(self) -> Mapping[int, _Document]:
        if self._known is None:
            self._known = _documents(self._connection, self._channel)
        return self._known


class NoPassages:
    """What an index has that nobody asks just now."""

    languages: Collection[str] = ()

    def __len__(self) -> int:
        return 0

    def find(self, numbers: Sequence[int]) -> Sequence[Passage]:
        return ()

    def bearers(self, document: int) -> Sequence[Bearer]:
        return ()

    def unit(self, document: int) -> str:
        return ""

    def text(self, document: int, number: int) -> str:
        return ""


def _documents(connection: sqlite3.Connection, channel: int) -> Mapping[int, _Document]:
    # From the readings, which are few: a channel may have a hundred thousand refs that nobody ever fetched.
    rows = connection.execute(
        "SELECT d.id, d.unit, d.parts, d.languages, r.id AS ref, b.message FROM readings d "
        "CROSS JOIN refs r ON r.sha256 = d.sha256 AND r.channel = ? JOIN message_refs b ON b.ref = r.seq "
        "WHERE d.indexed = ? AND d.unread IS NULL AND r.outcome <> ? "
        "AND b.role IN ('own', 'forwarded') ORDER BY b.message",
        (channel, VERSION, MediaOutcome.EXPIRED),
    )
    found: dict[int, _Document] = {}
    for row in rows:
        document = found.setdefault(row["id"], _Document(row["unit"], row["languages"], row["parts"], []))
        document.bearers.append(Bearer(row["message"] & SEQ_MASK, row["ref"]))
    return found


def _unpacked(reading: int, parts: bytes) -> Iterator[Passage]:
    count = len(parts) // _ENTRY_BYTES
    numbers, weights = array("I"), parts[-count:]
    numbers.frombytes(parts[:-count])
    return (Passage(reading, number, impact) for number, impact in zip(numbers, weights, strict=True))


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
