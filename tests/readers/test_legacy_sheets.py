"""An old workbook shows its numbers as Excel does, and what it hides is marked."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import legacy_sheets
from belino.readers.parts import HIDDEN_NOTE, CannotRead, ReadOptions
from readers.office97 import (
    chart,
    hidden_columns,
    hidden_row,
    make_book97,
    number_cell,
    packed_cells,
    words_cell,
)
from readers.outlook import make_ole


def read(content: bytes) -> DocumentText:
    return legacy_sheets.read(io.BytesIO(content), ReadOptions(mime="application/vnd.ms-excel"))


def rows(content: bytes) -> list[str]:
    first, _, *others = read(content).parts[0].text.splitlines()
    return [first, *others]


def test_numbers_percentages_money_and_dates_are_as_they_are_shown() -> None:
    cells = words_cell(0, 1, "Share") + number_cell(0, 2, 1, 0.256) + number_cell(0, 3, 2, 1234.5)
    cells += number_cell(1, 2, 3, 45_658) + number_cell(1, 3, 0, 7)
    made = make_book97(cells, "0.0%", "$#,##0.00", "yyyy-mm-dd")
    assert rows(made) == ["| Share | 25.6% | $1,234.50 |", "|  | 2025-01-01 | 7 |"]


def test_packed_numbers_are_unpacked() -> None:
    whole, hundredth, minus, broken = 12 << 2 | 2, 1250 << 2 | 3, (-3 << 2 | 2) & 0xFFFFFFFF, 0x3FF80000
    made = make_book97(packed_cells(0, 0, (0, whole), (1, hundredth), (0, minus), (0, broken)), "0.00")
    assert rows(made) == ["| 12 | 12.50 | -3 | 1.5 |"]


def test_hidden_rows_columns_and_values_are_marked() -> None:
    cells = hidden_columns(1, 1) + hidden_row(1) + packed_cells(0, 0, (0, 1 << 2 | 2), (0, 2 << 2 | 2))
    cells += number_cell(1, 0, 0, 3) + number_cell(2, 0, 1, 4)
    text = read(make_book97(cells, ";;;"))
    assert text.parts[0].text.splitlines()[0] == "| 1 | (hidden column) 2 |"
    assert text.parts[0].text.splitlines()[2:] == ["| (hidden row) 3 |  |", "| (hidden text: 4) |  |"]
    assert HIDDEN_NOTE in text.notes


def test_the_numbers_of_a_chart_are_not_those_of_the_sheet() -> None:
    cells = words_cell(0, 0, "head") + number_cell(1, 0, 0, 5) + chart(number_cell(7, 0, 0, 99))
    assert rows(make_book97(cells)) == ["| head |", "| 5 |"]


def test_a_password_is_told_from_damage() -> None:
    with pytest.raises(CannotRead, match="broken"):
        read(make_book97(b"")[:900])
    with pytest.raises(CannotRead, match="password"):
        read(make_book97(b"", locked=True))
    with pytest.raises(CannotRead, match="password"):
        read(make_ole({"EncryptionInfo": bytes(64), "EncryptedPackage": bytes(5000)}))


def test_what_is_no_workbook_cannot_be_read() -> None:
    with pytest.raises(CannotRead) as refusal:
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert refusal.value.unread is Unread.UNREADABLE
