"""Legacy sheets of Excel, before 2007 (BIFF) or binary (XLSB): numbers as displayed, hidden content marked."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import ole
from belino.readers.number_format import GENERAL, NumberFormat, format_of, general, seen
from belino.readers.ole import number
from belino.readers.parts import CannotRead, Parts, ReadOptions
from belino.readers.sheets import Grid

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

CELLS_AT_MOST = 500_000
"""Per sheet: more than fit into one read."""
RECORDS_AT_MOST = 2_000_000

_BEGIN, _END, _SHEET, _FORMAT, _FORMAT_BEFORE, _STYLE, _SINCE = 0x809, 0x0A, 0x85, 0x41E, 0x1E, 0xE0, 0x22
_LOCK = 0x2F
_NUMBER, _PACKED, _PACKED_ROW, _FORMULA, _ROW, _COLUMNS = 0x203, 0x27E, 0xBD, 0x06, 0x208, 0x7D
_BIFF_5, _BIFF_8 = 0x0500, 0x0600
_ROW_HIDDEN, _COLUMN_HIDDEN = 0x20, 0x01
_NO_NUMBER = 0xFFFF

_Cell = tuple[int, int]
"""Row and column, from 1."""


@dataclass(slots=True)
class _Marks:
    """The displayed numbers of one sheet, those that a format hides, and its hidden rows and columns."""

    shown: dict[_Cell, str] = field(default_factory=dict)
    unseen: set[_Cell] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    columns: set[int] = field(default_factory=set)
    whole: bool = True
    """Whether they include every number of the sheet."""


@dataclass(slots=True)
class _Workbook:
    """A workbook's own records."""

    content: bytes
    wide: bool
    """Whether text may use two bytes per character."""
    sheets: list[int] = field(default_factory=list)
    codes: dict[int, str] = field(default_factory=dict)
    styles: list[NumberFormat] = field(default_factory=list)
    since_1904: bool = False
    locked: bool = False

    def marks(self, sheet: int) -> _Marks:
        """The marks of a sheet, counted from 0."""
        found, content = _Marks(), self.content
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


def prepare() -> None:
    """Import the parsers before the sandbox forks: its child cannot."""
    import python_calamine  # noqa: F401

    ole.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The requested sheets; what calamine leaves out of old workbooks is read from their records."""
    import python_calamine as calamine

    parts = Parts(options, DocumentUnit.SHEET)
    records = _opened(file)
    if records is not None and records.locked:  # calamine takes encrypted content for garbage or text
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    file.seek(0)
    try:
        book = calamine.CalamineWorkbook.from_filelike(file)
        known = book.sheets_metadata
        for place, sheet in enumerate(known, 1):
            if parts.wants(place):
                grid = Grid(parts, sheet.name, hidden_sheet=sheet.visible != calamine.SheetVisibleEnum.Visible)
                if sheet.typ == calamine.SheetTypeEnum.WorkSheet:
                    told = records is not None and len(records.sheets) == len(known)
                    marks = records.marks(place - 1) if records and told else _Marks(whole=False)
                    _fill(grid, book.get_sheet_by_name(sheet.name), marks)
                grid.add_to(place)
    except calamine.PasswordError as error:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password") from error
    except calamine.CalamineError as error:
        raise CannotRead(Unread.UNREADABLE, "the workbook is broken") from error
    return parts.document(len(known))


def _fill(grid: Grid, sheet: "CalamineSheet", marks: _Marks) -> None:
    left = sheet.start[1] if sheet.start else 0  # calamine returns empty rows above, but not empty columns on the left
    grid.hidden_columns.update(marks.columns)
    for at, row in enumerate(sheet.iter_rows(), 1):
        cells = {
            column: text
            for column, value in enumerate(row, left + 1)
            if (text := _text(grid, marks, (at, column), value))
        }
        if not grid.row(at, cells, hides=at in marks.rows):
            return


def _text(grid: Grid, marks: _Marks, cell: _Cell, value: object) -> str:
    if isinstance(value, (str, bool)):
        return _value_text(value)
    told = marks.shown.get(cell)
    if told is None:  # calamine mixes the numbers of a chart on the sheet with those of the sheet
        return "" if marks.whole else _value_text(value)
    return grid.conceal(told) if cell in marks.unseen else told


def _value_text(value: object) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float() | int():
            return general(value)
        case datetime():
            return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
        case date() | time() | timedelta():
            return str(value)
        case _:
            return str(value)


def _opened(file: BinaryIO) -> _Workbook | None:
    """The records of a workbook of Excel 5 to 2003; None for any other."""
    try:
        container = ole.opened(file)
    except CannotRead:
        return None
    ole.require_open(container)  # a newer workbook that is encrypted may have an old name
    try:
        content = ole.top_stream(container, "Workbook") or ole.top_stream(container, "Book")
    except CannotRead:
        return None
    version = number(content, 4, 2)
    if number(content, 0, 2) != _BEGIN or version not in (_BIFF_5, _BIFF_8):
        return None
    book, numbers = _Workbook(content, wide=version == _BIFF_8), list[int]()
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


def _code(book: _Workbook, at: int, size: int) -> str:
    """The code of a number format."""
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
    """Decode an RK number: two of its bits say whether it is an integer, and whether it is multiplied by 100."""
    whole = packed >> 2
    value = float(whole - (1 << 30) if whole >= 1 << 29 else whole)
    if not packed & 2:
        value = struct.unpack("<d", struct.pack("<Q", (packed & ~3) << 32))[0]
    return value / 100 if packed & 1 else value


def _records(content: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Kind, offset and size of each record from here to the end of its substream."""
    depth = 0
    for _ in range(RECORDS_AT_MOST):
        if at + 4 > len(content):
            return
        kind, size = number(content, at, 2), number(content, at + 2, 2)
        depth += (kind == _BEGIN) - (kind == _END)
        if depth <= 0:
            return
        if depth == 1:  # a chart in a sheet has its own records
            yield kind, at + 4, min(size, len(content) - at - 4)
        at += 4 + size
