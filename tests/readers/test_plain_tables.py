"""Tables of text: the separator is found, rows stay rows, all of them are counted."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import plain
from belino.readers.parts import ReadOptions


def read(content: bytes | str, mime: str = "text/csv", **options: int) -> DocumentText:
    raw = content.encode() if isinstance(content, str) else content
    return plain.read(io.BytesIO(raw), ReadOptions(mime=mime, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_the_separator_is_found(separator: str) -> None:
    rows = [["name", "price", "when"], ["tea", "1.50", "10:30"], ["bread", "2.75", "11:45"]]
    text = read("\n".join(separator.join(row) for row in rows))
    assert text.parts[0].text.split("\n") == [
        "| name | price | when |", "| --- | --- | --- |", "| tea | 1.50 | 10:30 |", "| bread | 2.75 | 11:45 |",
    ]  # fmt: skip


def test_german_tables_have_commas_in_their_numbers() -> None:
    text = read("Artikel;Preis\nTee;1,50\nBrot;2,75\n".encode("cp1252"))
    assert "| Tee | 1,50 |" in text.parts[0].text
    assert text.notes == ("3 rows, 2 columns, separated by semicolons",)


def test_quoted_cells_hold_separators_quotes_and_line_breaks() -> None:
    text = read('name,note\nAnn,"likes tea, and ""cake""\nevery day"\n')
    assert '| Ann | likes tea, and "cake" every day |' in text.parts[0].text


def test_a_bar_in_a_cell_does_not_make_a_column() -> None:
    assert r"| a\|b | c |" in read("x,y\na|b,c\n").parts[0].text


def test_tabs_are_believed_where_the_type_says_so() -> None:
    assert "| a, b | c |" in read("h, i\tj\na, b\tc\n", "text/tab-separated-values").parts[0].text


def test_japanese_tables_are_read() -> None:
    assert "| 佐藤 | 東京 |" in read("名前,住所\n佐藤,東京\n三木,大阪\n".encode("cp932")).parts[0].text


def test_a_huge_table_is_cut_by_rows_under_its_head_and_counted_truly() -> None:
    written = "number,square\n" + "".join(f"{number},{number * number}\n" for number in range(30_000))
    text = read(written, first=2, last=2)
    (part,) = text.parts
    assert part.number == 2 and part.text.startswith("| number | square |\n| --- | --- |\n")
    assert part.title.startswith("rows ")
    assert text.notes == ("30,001 rows, 2 columns, separated by commas",)
    everything = read(written)
    rows = [line for part in everything.parts for line in part.text.split("\n") if line[2].isdigit()]
    assert rows == [f"| {number} | {number * number} |" for number in range(30_000)]


def test_a_quote_that_is_never_closed_does_not_swallow_the_end() -> None:
    text = read('a,b\n"1,2\n' + "3,4\n" * 400_000 + "last,row\n", max_chars=50_000_000)
    assert "| last | row |" in text.parts[-1].text


def test_an_empty_table_has_no_text() -> None:
    assert read("").unread is Unread.NO_TEXT
    assert read("\n\n").unread is Unread.NO_TEXT


def test_the_line_that_names_the_separator_is_no_row() -> None:
    text = read("sep=;\nname;a,b\nAnn;1,5\n")
    assert text.parts[0].text == "| name | a,b |\n| --- | --- |\n| Ann | 1,5 |"
    assert text.notes == ("2 rows, 2 columns, separated by semicolons",)


def test_one_row_and_one_column_are_counted_as_such() -> None:
    assert read("only\n").notes == ("1 row, one column",)
