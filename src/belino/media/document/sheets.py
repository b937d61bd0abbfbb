"""Spreadsheets: each sheet as a table, values as they are shown, hidden sheets, rows and columns marked."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import BinaryIO

from belino.domain.document import DocumentText, Unit, Unread
from belino.media.document import container, opendocument_sheets, workbook
from belino.media.document.formats import general
from belino.media.document.grid import Grid
from belino.media.document.parts import CannotRead, Parts, Wish

_FILE_PASS = 0x2F
_RECORDS_AT_MOST = 20
"""A lock is stated among the first records of a workbook."""
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
    """The binary formats, whose number formats nobody tells us."""
    import python_calamine as calamine

    parts = Parts(wish, Unit.SHEET)
    try:
        book = calamine.CalamineWorkbook.from_filelike(file)
        known = book.sheets_metadata
        for number, sheet in enumerate(known, 1):
            if parts.wants(number):
                grid = Grid(parts, sheet.name, hidden_sheet=sheet.visible != calamine.SheetVisibleEnum.Visible)
                if sheet.typ == calamine.SheetTypeEnum.WorkSheet:
                    _fill(grid, book.get_sheet_by_name(sheet.name).iter_rows())
                grid.add_to(number)
    except calamine.PasswordError as error:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password") from error
    except calamine.CalamineError as error:
        locked = is_locked(file)
        raise CannotRead(
            Unread.UNREADABLE, "it is protected by a password" if locked else "the workbook is broken"
        ) from error
    return parts.document(len(known))


def is_locked(file: BinaryIO) -> bool:
    """Whether an old workbook states that its records are encrypted, which calamine takes for nonsense."""
    try:
        ole = container.opened(file)
        start = container.top_stream(ole, "Workbook") or container.top_stream(ole, "Book")
    except CannotRead:
        return False
    at = 0
    for _ in range(_RECORDS_AT_MOST):
        kind, size = (int.from_bytes(start[at + side : at + side + 2], "little") for side in (0, 2))
        if kind == _FILE_PASS:
            return True
        at += 4 + size
    return False


def _fill(grid: Grid, rows: Iterable[Sequence[object]]) -> None:
    for at, row in enumerate(rows, 1):
        if not grid.row(at, {column: text for column, value in enumerate(row, 1) if (text := _shown(value))}):
            return


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
