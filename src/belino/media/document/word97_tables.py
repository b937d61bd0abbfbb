"""The tables of a Word document before 2007 (MS-DOC): where its text lies, and what is said of stretches of it."""

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from belino.domain.document import Unread
from belino.media.document.container import number
from belino.media.document.parts import CannotRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PIECES_AT_MOST = 200_000
RUNS_AT_MOST = 1_000_000

_PIECES, _CHARACTERS, _PARAGRAPHS = 0x1A2, 0xFA, 0x102
"""Where the header tells the place of a table."""
_PAGE = 512
_COMPRESSED = 0x4000_0000
_OPERANDS = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
"""Bytes of what a property is set to, by the first bits of its number; the missing kind tells its own length."""
_LONG = frozenset({0xD606, 0xD608})
"""The definition of a table tells its length in two bytes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text, from one character to another, and where it lies."""

    first: int
    last: int
    offset: int
    codec: str

    @property
    def width(self) -> int:
        return 2 if self.codec == "utf-16-le" else 1


@dataclass(frozen=True, slots=True)
class Runs:
    """What is said of stretches of the file, in their order."""

    starts: list[int] = field(default_factory=list)
    _told: list[bytes] = field(default_factory=list)
    _skips: int = 0

    def at(self, offset: int) -> "Mapping[int, int]":
        """The properties of what lies there, by their numbers."""
        return properties(self._raw(offset)[self._skips :])

    def style(self, offset: int) -> int:
        """The style of the paragraph that lies there: 1 to 9 are headings."""
        return number(self._raw(offset), 0, 2)

    def _raw(self, offset: int) -> bytes:
        found = bisect_right(self.starts, offset) - 1
        return self._told[found] if found >= 0 else b""


def pieces(main: bytes, tables: bytes) -> list[Piece]:
    """The stretches of the text in their order."""
    at, size = number(main, _PIECES), number(main, _PIECES + 4)
    end = at + size
    while at < end and tables[at : at + 1] == b"\x01":  # properties that pieces share
        at += 3 + number(tables, at + 1, 2)
    if tables[at : at + 1] != b"\x02":
        raise CannotRead(Unread.UNREADABLE, "the document is broken")
    count = min((number(tables, at + 1) - 4) // 12, PIECES_AT_MOST)
    if count < 1 or at + 5 + 12 * count + 4 > len(tables):
        raise CannotRead(Unread.UNREADABLE, "the document is broken")
    places = struct.unpack_from(f"<{count + 1}I", tables, at + 5)
    found = []
    for each in range(count):
        offset = number(tables, at + 5 + 4 * (count + 1) + 8 * each + 2)
        codec = "cp1252" if offset & _COMPRESSED else "utf-16-le"
        offset = (offset & ~_COMPRESSED) // 2 if offset & _COMPRESSED else offset
        found.append(Piece(places[each], places[each + 1], offset, codec))
    return found


def characters(main: bytes, tables: bytes) -> Runs:
    """What is said of characters."""
    found = sorted(_runs(main, tables, _CHARACTERS, entry=1))
    return Runs([start for start, _ in found], [told for _, told in found])


def paragraphs(main: bytes, tables: bytes) -> Runs:
    """What is said of paragraphs, each beginning with its style."""
    found = sorted(_runs(main, tables, _PARAGRAPHS, entry=13))
    return Runs([start for start, _ in found], [told for _, told in found], 2)


def _runs(main: bytes, tables: bytes, where: int, *, entry: int) -> "Iterator[tuple[int, bytes]]":
    """Start and properties of each run, from pages of 512 bytes that are listed in a table."""
    at, size = number(main, where), number(main, where + 4)
    count, left = (min(size, len(tables)) - 4) // 8, RUNS_AT_MOST
    for each in range(max(0, count)):
        begin = _PAGE * (number(tables, at + 4 * (count + 1) + 4 * each) & 0x3FFFFF)
        page = main[begin : begin + _PAGE]
        held = page[-1] if len(page) == _PAGE else 0
        left -= held
        if left < 0:
            return
        for run in range(held):
            place = 2 * number(page, 4 * (held + 1) + entry * run, 1)
            yield number(page, 4 * run), _told(page, place, long=entry > 1) if place else b""


def _told(page: bytes, place: int, *, long: bool) -> bytes:
    size = number(page, place, 1)
    if not long:
        return page[place + 1 : place + 1 + size]
    if size:
        return page[place + 1 : place + 2 * size]
    return page[place + 2 : place + 2 + 2 * number(page, place + 1, 1)]


@lru_cache(maxsize=4096)
def properties(told: bytes) -> "Mapping[int, int]":
    """Properties by their numbers, as far as they are understood."""
    found: dict[int, int] = {}
    at = 0
    while at + 2 < len(told):
        name = number(told, at, 2)
        at += 2
        if (size := _OPERANDS.get(name >> 13)) is None:
            size = number(told, at, 2) + 1 if name in _LONG else number(told, at, 1) + 1
            found[name] = 1
        else:
            found[name] = number(told, at, size)
        at += size
    return MappingProxyType(found)
