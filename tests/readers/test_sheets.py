"""A spreadsheet is read sheet by sheet as it is shown; what is hidden in it is marked."""

import io

import pytest

from belino.domain.media import DocumentText, DocumentUnit
from belino.readers import sheets
from belino.readers.parts import HIDDEN_NOTE, CannotRead, ReadOptions
from belino.testing.files import make_zip
from readers.made import make_workbook

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
STYLES = """<numFmts><numFmt numFmtId="164" formatCode="0.0%"/><numFmt numFmtId="165" formatCode=";;;"/></numFmts>
<fonts><font/><font><color rgb="FFFFFFFF"/></font></fonts>
<fills><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="solid"/></fill></fills>
<cellXfs><xf/><xf numFmtId="164"/><xf numFmtId="14"/><xf numFmtId="165"/><xf fontId="1"/><xf fontId="1" fillId="1"/>
</cellXfs>"""


def read(content: bytes, mime: str = XLSX, **options: int) -> DocumentText:
    return sheets.read(io.BytesIO(content), ReadOptions(mime=mime, **options))  # type: ignore[arg-type]


def rows(*written: str) -> str:
    return f"<sheetData>{''.join(written)}</sheetData>"


def row(number: int, *cells: str, about: str = "") -> str:
    return f'<row r="{number}" {about}>{"".join(cells)}</row>'


def cell(place: str, value: object, *, kind: str = "n", style: int = 0) -> str:
    return f'<c r="{place}" t="{kind}" s="{style}"><v>{value}</v></c>'


def test_each_sheet_is_a_table_of_what_its_cells_show() -> None:
    strings = "<si><t>Day</t></si><si><r><t>Sh</t></r><r><t>are</t></r><rPh><t>yomi</t></rPh></si>"
    first = rows(
        row(1, cell("A1", 0, kind="s"), cell("B1", 1, kind="s")),
        row(2, cell("A2", 45356, style=2), cell("B2", 0.25, style=1)),
        row(9, cell("A9", 1, kind="b"), '<c r="B9" t="inlineStr"><is><t>x|y</t></is></c>'),
        row(10, '<c r="A10"><f>SUM(A1:A2)</f></c>', cell("B10", "#N/A", kind="e")),
    )
    text = read(make_workbook(first, "", strings=strings, styles=STYLES))
    assert (text.unit, text.total, text.parts[0].title) == (DocumentUnit.SHEET, 2, "Sheet 1")
    assert text.parts[0].text.splitlines() == [
        "| Day | Share |", "| --- | --- |", "| 2024-03-05 | 25.0% |", "|  |  |", "| TRUE | x\\|y |",
        "| =SUM(A1:A2) | #N/A |",
    ]  # fmt: skip


def test_hidden_sheets_rows_columns_and_cells_are_marked() -> None:
    sheet = '<cols><col min="2" max="2" hidden="1"/></cols>' + rows(
        row(1, cell("A1", 1), cell("B1", 2), cell("C1", 3, style=3), cell("D1", 4, style=4), cell("E1", 5, style=5)),
        row(2, cell("A2", 6), about='hidden="1"'),
    )
    text = read(make_workbook(sheet, styles=STYLES, states=("veryHidden",)))
    assert text.parts[0].text.splitlines() == [
        "(hidden sheet)", "", "| 1 | (hidden column) 2 | (hidden text: 3) | (hidden text: 4) | 5 |",
        "| --- | --- | --- | --- | --- |", "| (hidden row) 6 |  |  |  |  |",
    ]  # fmt: skip
    assert HIDDEN_NOTE in text.notes


def test_a_stray_cell_far_away_does_not_make_the_table_large() -> None:
    sheet = rows(row(1, cell("A1", 1), cell("B1", 2)), row(1_048_576, cell("XFD1048576", 3)))
    assert read(make_workbook(sheet)).parts[0].text.splitlines()[-1] == "|  |  | 3 |"


def test_a_sheet_beyond_the_limit_is_read_as_far_as_there_is_room() -> None:
    content = make_workbook(rows(*(row(n, cell(f"A{n}", n)) for n in range(1, 20_000))), rows(row(1, cell("A1", 7))))
    text = read(content, max_chars=1_000)
    assert (text.total, len(text.parts), len(text.parts[0].text)) == (2, 1, 1_000)
    assert "1000 characters" in text.reason
    assert read(content, first=2).parts[0].text.startswith("| 7 |")


def test_one_long_string_in_many_cells_does_not_fill_the_memory() -> None:
    many = rows(*(row(n, cell(f"A{n}", 0, kind="s")) for n in range(1, 5_000)))
    text = read(make_workbook(many, strings=f"<si><t>{'a' * 32_000}</t></si>"), max_chars=100_000)
    assert len(text.parts[0].text) == 100_000


def test_a_broken_sheet_does_not_take_the_others_along() -> None:
    text = read(make_workbook("<sheetData><row>", rows(row(1, cell("A1", "nonsense")))))
    assert "nonsense" in text.parts[1].text
    assert "sheet 1" in text.notes[0]


def test_what_is_no_workbook_cannot_be_read() -> None:
    with pytest.raises(CannotRead):
        read(make_zip({"xl/other.xml": "<x/>"}))


def test_white_cells_are_marked_however_their_white_is_written_unless_their_ground_is_dark() -> None:
    colours = ('rgb="FF000000"', 'theme="0"', 'rgb="FFFEFEFE"', 'theme="0" tint="-1"')
    fonts = "".join(f"<font><color {colour}/></font>" for colour in colours)
    fills = "".join(
        f'<fill><patternFill patternType="{kind}"><fgColor {colour}/></patternFill></fill>'
        for kind, colour in (("none", ""), ("solid", 'rgb="FFFFFFFF"'), ("solid", 'rgb="FF1F3864"'))
    )
    kinds = ((0, 0), (1, 0), (2, 1), (1, 2), (3, 0))
    formats = "".join(f'<xf numFmtId="0" fontId="{font}" fillId="{fill}"/>' for font, fill in kinds)
    styles = f"<fonts>{fonts}</fonts><fills>{fills}</fills><cellXfs>{formats}</cellXfs>"
    cells = "".join(f'<c s="{at}" t="inlineStr"><is><t>{at}</t></is></c>' for at in range(len(kinds)))
    text = read(make_workbook(f"<sheetData><row>{cells}</row></sheetData>", styles=styles), XLSX)
    assert text.parts[0].text.splitlines()[0] == "| 0 | (hidden text: 1) | (hidden text: 2) | 3 | 4 |"


def test_a_formula_without_a_value_and_a_day_that_is_written_out_are_told() -> None:
    shared = '<c><f t="shared" ref="A1:A2" si="0">B1*2</f></c>', '<c><f t="shared" si="0"/></c>'
    days = '<c t="d"><v>2024-01-02T00:00:00</v></c>', '<c t="d"><v>2024-01-02T03:04:05</v></c>'
    rows = "".join(f"<row>{cell}{day}</row>" for cell, day in zip(shared, days, strict=True))
    text = read(make_workbook(f"<sheetData>{rows}</sheetData>"), XLSX)
    assert text.parts[0].text.splitlines()[::2] == [
        "| =B1*2 | 2024-01-02 |",
        "| (formula without a value) | 2024-01-02 03:04:05 |",
    ]
