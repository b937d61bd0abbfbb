"""Spreadsheets: each sheet as a table, values as they are shown, hidden sheets, rows and columns marked."""

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, BinaryIO

from belino.domain.document import DocumentText, Unit, Unread
from belino.media.document import container, opendocument_sheets, workbook, workbook97
from belino.media.document.grid import Grid
from belino.media.document.numerals import general
from belino.media.document.parts import CannotRead, Parts, Wish
from belino.media.document.workbook97 import Cell, Marks

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

_OLD = frozenset({"application/vnd.ms-excel", "application/vnd.ms-excel.sheet.binary.macroenabled.12"})


def prepare() -> None:
    """Import what old formats need; in the child it would be too late."""
    import python_calamine  # noqa: F401

    container.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The sheets that are asked for."""
    if wish.mime in _OLD:
        return _old(file, wish)
    if "opendocument" in wish.mime:
        return opendocument_sheets.read(file, wish)
    return workbook.read(file, wish)


def _old(file: BinaryIO, wish: Wish) -> DocumentText:
    """The binary formats; what calamine leaves out of old workbooks is read beside it."""
    import python_calamine as calamine

    parts = Parts(wish, Unit.SHEET)
    records = workbook97.opened(file)
    if records is not None and records.locked:  # calamine takes what follows for nonsense, or for text
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    file.seek(0)
    try:
        book = calamine.CalamineWorkbook.from_filelike(file)
        known = book.sheets_metadata
        for number, sheet in enumerate(known, 1):
            if parts.wants(number):
                grid = Grid(parts, sheet.name, hidden_sheet=sheet.visible != calamine.SheetVisibleEnum.Visible)
                if sheet.typ == calamine.SheetTypeEnum.WorkSheet:
                    told = records is not None and len(records.sheets) == len(known)
                    marks = records.marks(number - 1) if records and told else Marks(whole=False)
                    _fill(grid, book.get_sheet_by_name(sheet.name), marks)
                grid.add_to(number)
    except calamine.PasswordError as error:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password") from error
    except calamine.CalamineError as error:
        raise CannotRead(Unread.UNREADABLE, "the workbook is broken") from error
    return parts.document(len(known))


def _fill(grid: Grid, sheet: "CalamineSheet", marks: Marks) -> None:
    left = sheet.start[1] if sheet.start else 0  # empty rows above are handed over, empty columns before are not
    grid.hidden_columns.update(marks.columns)
    for at, row in enumerate(sheet.iter_rows(), 1):
        cells = {
            column: text
            for column, value in enumerate(row, left + 1)
            if (text := _text(grid, marks, (at, column), value))
        }
        if not grid.row(at, cells, hides=at in marks.rows):
            return


def _text(grid: Grid, marks: Marks, cell: Cell, value: object) -> str:
    if isinstance(value, (str, bool)):
        return _shown(value)
    told = marks.shown.get(cell)
    if told is None:  # a number that is not the sheet's belongs to a chart on it, which calamine does not tell apart
        return "" if marks.whole else _shown(value)
    return grid.conceal(told) if cell in marks.unseen else told


def _shown(value: object) -> str:
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
