"""Lines found on a page are put into the order in which people read them."""

from belino.understanding.local.reading_order import PlacedLine, as_answer, in_reading_order


def line(text: str, left: float, top: float, width: float) -> PlacedLine:
    return PlacedLine(text=text, left=left, top=top, right=left + width, bottom=top + 20)


def texts(*lines: PlacedLine) -> list[str]:
    return [one.line.text for one in in_reading_order(lines)]


def test_lines_are_read_from_top_to_bottom() -> None:
    assert texts(line("c", 0, 60, 300), line("a", 0, 0, 300), line("b", 0, 30, 300)) == ["a", "b", "c"]


def test_columns_of_running_text_are_read_one_after_the_other_below_their_heading() -> None:
    heading = line("Heading across both columns", 100, 0, 500)
    left = [line(f"left {row}", 0, 60 + 25 * row, 300) for row in range(5)]
    right = [line(f"right {row}", 360, 60 + 25 * row, 300) for row in range(5)]
    mixed = [heading, *(one for pair in zip(left, right, strict=True) for one in pair)]
    assert texts(*mixed) == [heading.text, *(one.text for one in left), *(one.text for one in right)]


def test_the_rows_of_a_table_are_read_across() -> None:
    names = [line(name, 0, 30 * row, width) for row, (name, width) in enumerate([("Tea", 40), ("Green coffee", 160)])]
    prices = [line(price, 400, 30 * row + 2, 60) for row, price in enumerate(["1.20", "13.50"])]
    assert texts(*names, *prices) == ["Tea\t1.20", "Green coffee\t13.50"]


def test_words_of_one_line_are_joined_by_a_space_and_keep_their_place() -> None:
    (row,) = in_reading_order([line("world", 105, 1, 90), line("Hello", 0, 0, 95)])
    assert row.line == PlacedLine(text="Hello world", left=0, top=0, right=195, bottom=21)


def test_a_wide_gap_begins_a_new_block() -> None:
    blocks = in_reading_order([line("a", 0, 0, 300), line("b", 0, 25, 300), line("c", 0, 100, 300)])
    assert [one.block for one in blocks] == [0, 0, 1]


def test_places_are_shares_of_the_picture_and_never_beyond_it() -> None:
    answer = as_answer(in_reading_order([line("a", -3, 90, 110)]), 100, 100)
    assert answer == {"lines": [{"text": "a", "block": 0, "confidence": 1.0, "box": [0.0, 0.9, 1.0, 1.0]}]}


def test_an_empty_page_has_no_lines() -> None:
    assert in_reading_order([]) == []
