"""Blocks: long tables and lists in parts of a few kilobytes, which are loaded when a search needs them.

A block does not change: where a message changed, a new one with a new number takes its place.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar, overload

ENTRIES = 512
"""Entries of a block of a table."""
ITEMS = 2_048
"""Postings, or trigrams' terms, of a block."""

T = TypeVar("T")


class Load(Protocol):
    """Loads a block of a segment by its number, or takes it from a cache."""

    def __call__(self, number: int, decode: Callable[[bytes], T], /) -> T: ...


class PackedSegment(NamedTuple):
    """A segment for the store. Blocks with other numbers stay as they are."""

    first: int
    last: int
    """The seqs of its first and last message."""
    head: bytes
    blocks: Mapping[int, bytes]
    dropped: Sequence[int] = ()
    """Numbers of the blocks that are not needed any more."""


class BlockWriter:
    """New blocks, and the numbers they get."""

    def __init__(self, number: int = 0) -> None:
        self.blocks: dict[int, bytes] = {}
        self.number = number
        """The next one."""

    def add(self, content: bytes) -> int:
        """Add a block; returns its number."""
        number = self.number
        self.blocks[number] = content
        self.number += 1
        return number

    def table(self, columns: Sequence["array[int]"]) -> tuple["array[int]", "array[int]"]:
        """Add a table, sorted by its first column; returns the numbers of its blocks and their first keys."""
        return self.lists(columns, ENTRIES), columns[0][::ENTRIES]

    def lists(self, columns: Sequence["array[int]"], items: int = ITEMS) -> "array[int]":
        """Add arrays of the same length; returns the numbers of their blocks."""
        begins = range(0, len(columns[0]), items)
        return array("I", [self.add(pack_columns([part[at : at + items] for part in columns])) for at in begins])


def pack_columns(columns: Sequence["array[int]"]) -> bytes:
    """Encode a block of a table or of lists."""
    return b"".join([column.tobytes() for column in columns])


class BlockColumns:
    """Columns of these types, in blocks."""

    def __init__(self, load: Load, numbers: Sequence[int], types: str) -> None:
        self._load = load
        self.numbers = numbers
        self._decode = Columns(types)

    def block(self, at: int) -> tuple["array[int]", ...]:
        """The columns of one block."""
        return self._load(self.numbers[at], self._decode)


class Table(BlockColumns):
    """Entries of several columns, sorted by the first."""

    def __init__(self, load: Load, numbers: Sequence[int], tops: "array[int]", types: str) -> None:
        super().__init__(load, numbers, types)
        self._tops = tops
        """The first key of each block."""

    def find(self, key: int) -> tuple[int, ...] | None:
        """The place of a key's entry, and the values of its other columns."""
        at = bisect_right(self._tops, key) - 1
        if at < 0:
            return None
        keys, *columns = self._load(self.numbers[at], self._decode)
        place = bisect_left(keys, key)
        if place == len(keys) or keys[place] != key:
            return None
        return (at * ENTRIES + place, *[column[place] for column in columns])

    def at(self, place: int) -> tuple[int, ...]:
        """The entry of a place."""
        at, place = divmod(place, ENTRIES)
        return tuple([column[place] for column in self._load(self.numbers[at], self._decode)])


class Lists(BlockColumns):
    """One long array, or several side by side."""

    def __init__(self, load: Load, numbers: Sequence[int], types: str, items: int = ITEMS) -> None:
        super().__init__(load, numbers, types)
        self._items = items

    def slice(self, start: int, count: int) -> tuple["array[int]", ...]:
        """The items from one place on."""
        at, start = divmod(start, self._items)
        columns = self.block(at)
        end = start + count
        if end <= self._items:
            return tuple([column[start:end] for column in columns])
        found = tuple([column[start:] for column in columns])
        while end > self._items:
            at, end = at + 1, end - self._items
            for column, more in zip(found, self.block(at), strict=True):
                column.extend(more[:end])
        return found


class Columns:
    """Reads a block of columns of these types."""

    def __init__(self, types: str) -> None:
        self.types = types
        self._sizes = [array(typecode).itemsize for typecode in types]
        self._size = sum(self._sizes)

    def __call__(self, content: bytes) -> tuple["array[int]", ...]:
        count, at, columns = len(content) // self._size, 0, []
        for typecode, size in zip(self.types, self._sizes, strict=True):
            column = array(typecode)
            column.frombytes(content[at : at + size * count])
            columns.append(column)
            at += size * count
        return tuple(columns)


class LongList(Sequence[int]):
    """A column of a posting list that is too long to be loaded as a whole."""

    def __init__(self, lists: Lists, start: int, count: int, column: int) -> None:
        self._lists = lists
        self._start = start
        self._count = count
        self._column = column

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> "array[int]": ...
    def __getitem__(self, at: int | slice) -> "int | array[int]":
        if isinstance(at, slice):
            start, end, step = at.indices(self._count)
            if step != 1:
                raise ValueError("a list is read in order")
            return self._lists.slice(self._start + start, max(0, end - start))[self._column]
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return self._lists.slice(self._start + at % self._count, 1)[self._column][0]

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])
