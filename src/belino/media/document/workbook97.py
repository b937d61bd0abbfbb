"""What workbooks of before 2007 (BIFF) say of cells beyond values: numbers as they are shown, and what is hidden."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from belino.media.document import container
from belino.media.document.container import number
from belino.media.document.formats import GENERAL, Format, format_of, seen
from belino.media.document.parts import CannotRead

CELLS_AT_MOST = 500_000
"""Of one sheet: more than fit into what is read at once."""
RECORDS_AT_MOST = 2_000_000

_BEGIN, _END, _SHEET, _FORMAT, _FORMAT_BEFORE, _STYLE, _SINCE = 0x809, 0x0A, 0x85, 0x41E, 0x1E, 0xE0, 0x22
_LOCK = 0x2F
_NUMBER, _PACKED, _PACKED_ROW, _FORMULA, _ROW, _COLUMNS = 0x203, 0x27E, 0xBD, 0x06, 0x208, 0x7D
_BIFF_5, _BIFF_8 = 0x0500, 0x0600
_ROW_HIDDEN, _COLUMN_HIDDEN = 0x20, 0x01
_NO_NUMBER = 0xFFFF

Cell = tuple[int, int]
"""Row and column, from 1."""


@dataclass(slots=True)
class Marks:
    """Of one sheet: what its numbers look like, which of them a format hides, which rows and columns are hidden."""

    shown: dict[Cell, str] = field(default_factory=dict)
    unseen: set[Cell] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    columns: set[int] = field(default_factory=set)
    whole: bool = True
    """Whether every number of the sheet is among them."""


@dataclass(slots=True)
class Book:
    """A workbook's own records."""

    content: bytes
    wide: bool
    """Text takes two bytes for a character where it must."""
    sheets: list[int] = field(default_factory=list)
    codes: dict[int, str] = field(default_factory=dict)
    styles: list[Format] = field(default_factory=list)
    since_1904: bool = False
    locked: bool = False

    def marks(self, sheet: int) -> Marks:
        """What is said of the cells of a sheet, the first of which is 0."""
        found, content = Marks(), self.content
        for kind, at, size in _records(content, self.sheets[sheet]):
            if len(found.shown) >= CELLS_AT_MOST:
                found.whole = False
                break
            if kind == _ROW and number(content, at + 12, 1) & _ROW_HIDDEN:
                found.rows.add(number(content, at, 2) + 1)
            elif kind == _COLUMNS and number(content, at + 8, 1) & _COLUMN_HIDDEN:
                first, last = number(content, at, 2), min(number(content, at + 2, 2), 255)
                found.columns.update(range(first + 1, last + 2))
            for row, column, style, value in _numbers(content, kind, at, size):
                form = self.styles[style] if style < len(self.styles) else GENERAL
                text, hides = seen(value, form, since_1904=self.since_1904)
                found.shown[row + 1, column + 1] = text
                if hides:
                    found.unseen.add((row + 1, column + 1))
        return found


def opened(file: BinaryIO) -> Book | None:
    """The records of a workbook of Excel 5 to 2003; of no other."""
    try:
        ole = container.opened(file)
        content = container.top_stream(ole, "Workbook") or container.top_stream(ole, "Book")
    except CannotRead:
        return None
    version = number(content, 4, 2)
    if number(content, 0, 2) != _BEGIN or version not in (_BIFF_5, _BIFF_8):
        return None
    book, numbers = Book(content, wide=version == _BIFF_8), list[int]()
    for kind, at, size in _records(content, 0):
        if kind == _SHEET:
            book.sheets.append(number(content, at))
        elif kind in (_FORMAT, _FORMAT_BEFORE):
            book.codes[number(content, at, 2)] = _code(book, at, size)
        elif kind == _STYLE:
            numbers.append(number(content, at + 2, 2))
        elif kind == _SINCE:
            book.since_1904 = number(content, at, 2) == 1
        elif kind == _LOCK:
            book.locked = True
    book.styles = [format_of(each, book.codes.get(each)) for each in numbers]
    return book


def _code(book: Book, at: int, size: int) -> str:
    """A number format as it is written."""
    content = book.content
    if not book.wide:
        return content[at + 3 : at + 3 + content[at + 2]].decode("cp1252", "replace") if size > 2 else ""
    length, is_wide = number(content, at + 2, 2), number(content, at + 4, 1) & 1
    raw = content[at + 5 : min(at + 5 + length * (2 if is_wide else 1), at + size)]
    return raw.decode("utf-16-le" if is_wide else "latin-1", "replace")


def _numbers(content: bytes, kind: int, at: int, size: int) -> Iterator[tuple[int, int, int, float]]:
    """Row, column, style and value of each number in a record."""
    row, column, style = (number(content, at + 2 * each, 2) for each in range(3))
    result = kind == _FORMULA and number(content, at + 12, 2) != _NO_NUMBER
    if (kind == _NUMBER or result) and size >= 14:
        yield row, column, style, struct.unpack_from("<d", content, at + 6)[0]
    elif kind == _PACKED and size >= 10:
        yield row, column, style, _unpacked(number(content, at + 6))
    elif kind == _PACKED_ROW:
        for each in range((size - 6) // 6):
            place = at + 4 + 6 * each
            yield row, column + each, number(content, place, 2), _unpacked(number(content, place + 2))


def _unpacked(packed: int) -> float:
    """Four bytes for a number: two of its bits say whether it is whole, and a hundred times what is meant."""
    whole = packed >> 2
    value = float(whole - (1 << 30) if whole >= 1 << 29 else whole)
    if not packed & 2:
        value = struct.unpack("<d", struct.pack("<Q", (packed & ~3) << 32))[0]
    return value / 100 if packed & 1 else value


def _records(content: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Kind, place and size of each record from here to the end of its part."""
    depth = 0
    for _ in range(RECORDS_AT_MOST):
        if at + 4 > len(content):
            return
        kind, size = number(content, at, 2), number(content, at + 2, 2)
        depth += (kind == _BEGIN) - (kind == _END)
        if depth <= 0:
            return
        if depth == 1:  # a chart in a sheet has records of its own
            yield kind, at + 4, min(size, len(content) - at - 4)
        at += 4 + size
