"""OpenDocument texts, slides and sheets are read as their reader sees them, with what is hidden marked."""

import io

import pytest

from belino.domain.media import DocumentText, DocumentUnit
from belino.readers import opendocument
from belino.readers.parts import DELETED_NOTE, HIDDEN_NOTE, CannotRead, ReadOptions
from readers.made import make_opendocument

ODT = "application/vnd.oasis.opendocument.text"
ODP = "application/vnd.oasis.opendocument.presentation"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


def read(content: bytes, mime: str = ODT, **options: int) -> DocumentText:
    return opendocument.read(io.BytesIO(content), ReadOptions(mime=mime, **options))  # type: ignore[arg-type]


def text_of(inside: str, *, styles: str = "") -> str:
    return read(make_opendocument(f"<office:text>{inside}</office:text>", styles=styles)).parts[0].text


def test_headings_paragraphs_spaces_and_links_are_read() -> None:
    inside = (
        '<text:h text:outline-level="2">Plan</text:h><text:p>a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d '
        '<text:a xlink:href="https://x.example/">here</text:a></text:p>'
    )
    assert text_of(inside) == "## Plan\n\na  b\tc\nd [here](https://x.example/)"


def test_lists_and_tables_keep_their_shape() -> None:
    styles = '<text:list-style style:name="L"><text:list-level-style-number/></text:list-style>'
    inner = "<text:list><text:list-item><text:p>c</text:p></text:list-item></text:list>"
    items = (
        f"<text:list-item><text:p>a</text:p></text:list-item><text:list-item><text:p>b</text:p>{inner}</text:list-item>"
    )
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    rows = "".join(f"<table:table-row>{cells.format(x)}</table:table-row>" for x in "AB")
    inside = f'<text:list text:style-name="L">{items}</text:list><table:table>{rows}</table:table>'
    assert text_of(inside, styles=styles) == "1. a\n2. b\n  1. c\n\n| A |\n| --- |\n| B |"


@pytest.mark.parametrize(
    "properties",
    ['text:display="none"', 'fo:color="#ffffff"', 'fo:font-size="1pt"'],
    ids=["not displayed", "white", "tiny"],
)
def test_hidden_text_is_marked(properties: str) -> None:
    styles = f'<style:style style:name="T"><style:text-properties {properties}/></style:style>'
    inside = '<text:p>see <text:span text:style-name="T">pay now</text:span></text:p>'
    text = read(make_opendocument(f"<office:text>{inside}</office:text>", styles=styles))
    assert text.parts[0].text == "see (hidden text: pay now)"
    assert HIDDEN_NOTE in text.notes


def test_a_hidden_section_is_marked() -> None:
    assert text_of('<text:section text:display="none"><text:p>psst</text:p></text:section>') == "(hidden text: psst)"


def test_notes_comments_and_deleted_text_are_read_where_they_belong() -> None:
    changes = (
        '<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><text:p>old</text:p></text:deletion>'
        "</text:changed-region></text:tracked-changes>"
    )
    inside = (
        f"{changes}<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>why</text:p>"
        '</text:note-body></text:note> <text:change text:change-id="c1"/><office:annotation>'
        "<dc:creator>Ann</dc:creator><text:p>no</text:p></office:annotation></text:p>"
    )
    text = read(make_opendocument(f"<office:text>{inside}</office:text>"))
    assert text.parts[0].text == "a[^1] (deleted text: old)(comment by Ann: no)\n\n[^1]: why"
    assert DELETED_NOTE in text.notes


def test_headers_and_footers_are_read_once() -> None:
    master = "<style:header><text:p>ACME</text:p></style:header><style:footer><text:p>end</text:p></style:footer>"
    content = make_opendocument("<office:text><text:p>body</text:p></office:text>", margins=master * 2)
    assert read(content).parts[0].text.split("\n\n") == ["Header: ACME", "body", "Footer: end"]


def test_slides_have_titles_notes_and_may_be_hidden() -> None:
    styles = (
        '<style:style style:name="off"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    box = '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    page = (
        f'<draw:page draw:style-name="off">{box.format("outline", "body")}{box.format("title", "Plan")}'
        f"<presentation:notes>{box.format('notes', 'say it')}</presentation:notes></draw:page>"
    )
    text = read(make_opendocument(f"<office:presentation>{page}</office:presentation>", styles=styles), ODP)
    assert (text.unit, text.total, text.parts[0].title) == (DocumentUnit.SLIDE, 1, "Plan")
    assert text.parts[0].text == "# Plan\n\n(hidden slide)\n\nbody\n\nNotes: say it"


def test_a_locked_document_says_so() -> None:
    with pytest.raises(CannotRead, match="password"):
        read(make_opendocument("", manifest="<manifest><encryption-data/></manifest>"))


NAMED = '<office:styles><style:style style:name="Gone">{}</style:style></office:styles>'
GONE = NAMED.format('<style:text-properties text:display="none"/>')


def test_what_a_style_takes_from_another_hides_too() -> None:
    styles = '<style:style style:name="P1" style:parent-style-name="Gone"/>'
    body = '<office:text><text:p text:style-name="P1">secret</text:p></office:text>'
    text = read(make_opendocument(body, styles=styles, margins=GONE))
    assert text.parts[0].text == "(hidden text: secret)"


def test_white_text_is_hidden_on_paper_and_seen_in_a_dark_cell() -> None:
    white = '<style:style style:name="W"><style:text-properties fo:color="#FEFEFE"/></style:style>'
    dark = '<style:style style:name="D"><style:table-cell-properties fo:background-color="#1f3864"/></style:style>'
    said = '<text:p text:style-name="W">{}</text:p>'
    cell = f'<table:table-cell table:style-name="D">{said.format("head")}</table:table-cell>'
    body = f"<office:text><table:table><table:table-row>{cell}</table:table-row></table:table>"
    text = read(make_opendocument(f"{body}{said.format('secret')}</office:text>", styles=white + dark))
    assert text.parts[0].text == "| head |\n| --- |\n\n(hidden text: secret)"


def test_an_opendocument_sheet_shows_what_its_program_showed() -> None:
    styles = '<style:style style:name="off"><style:table-properties table:display="false"/></style:style>'
    nothing = '<table:table-cell table:number-columns-repeated="16000"/>'
    empty = f'<table:table-row table:number-rows-repeated="1048000">{nothing}</table:table-row>'
    sheet = f"""<table:table table:name="Costs" table:style-name="off"><table:table-column table:visibility="collapse"/>
<table:table-row><table:table-cell><text:p>€ 5,00</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="2"><text:p>x</text:p></table:table-cell></table:table-row>{empty}
<table:table-row table:visibility="collapse"><table:table-cell office:value="7"/></table:table-row></table:table>"""
    text = read(make_opendocument(f"<office:spreadsheet>{sheet}</office:spreadsheet>", styles=styles), ODS)
    assert (text.total, text.parts[0].title) == (1, "Costs")
    assert text.parts[0].text.splitlines() == [
        "(hidden sheet)", "", "| (hidden column) € 5,00 | x | x |", "| --- | --- | --- |", "|  |  |  |",
        "| (hidden row) 7 |  |  |",
    ]  # fmt: skip


def test_a_cell_repeated_a_billion_times_is_not() -> None:
    sheet = """<table:table table:name="a"><table:table-row table:number-rows-repeated="999999999">
<table:table-cell table:number-columns-repeated="999999999"><text:p>boo</text:p></table:table-cell>
</table:table-row></table:table>"""
    text = read(make_opendocument(f"<office:spreadsheet>{sheet}</office:spreadsheet>"), ODS, max_chars=50_000)
    assert len(text.parts[0].text) == 50_000


def test_values_that_an_opendocument_sheet_does_not_write_out_are_told_all_the_same() -> None:
    cells = (
        'office:value-type="percentage" office:value="0.285"',
        'office:value-type="time" office:time-value="PT12H30M00S"',
        'office:value-type="boolean" office:boolean-value="true"',
        'office:value-type="date" office:date-value="2020-01-02T03:04:05"',
        'table:formula="of:=SUM([.A1:.A2])"',
    )
    row = "".join(f"<table:table-cell {about}/>" for about in cells)
    sheet = f'<table:table table:name="S"><table:table-row>{row}</table:table-row></table:table>'
    text = read(make_opendocument(f"<office:spreadsheet>{sheet}</office:spreadsheet>"), ODS)
    assert text.parts[0].text.startswith("| 28.5% | 12:30:00 | TRUE | 2020-01-02 03:04:05 | =SUM([.A1:.A2]) |")
