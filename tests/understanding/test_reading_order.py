"""Lines found on a page are put into the order in which people read them."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from belino.understanding.local.reading_order import PlacedLine, in_reading_order


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
    placed = row.line
    assert (placed.text, placed.left, placed.top, placed.right, placed.bottom) == ("Hello world", 0, 0, 195, 21)


def test_a_wide_gap_begins_a_new_block() -> None:
    blocks = in_reading_order([line("a", 0, 0, 300), line("b", 0, 25, 300), line("c", 0, 100, 300)])
    assert [one.block for one in blocks] == [0, 0, 1]


def test_an_empty_page_has_no_lines() -> None:
    assert in_reading_order([]) == []


def column(name: str, left: float, top: float, rows: int, width: float = 300) -> list[PlacedLine]:
    return [line(f"{name} {row}", left, top + 25 * row, width) for row in range(rows)]


def test_a_heading_between_columns_is_read_where_it_stands_though_it_crosses_the_white_between_them() -> None:
    above = [*column("a", 0, 0, 4), *column("b", 330, 0, 4)]
    heading = line("Next", 200, 102, 250)
    below = [*column("c", 0, 130, 4), *column("d", 330, 130, 2)]
    page = [*above, heading, *below]
    assert texts(*sorted(page, key=lambda one: (one.top, one.left))) == [one.text for one in page]


def test_three_columns_of_which_one_begins_with_a_title_are_read_one_after_the_other() -> None:
    page = [*column("a", 0, 0, 8), line("Title", 330, 0, 640), *column("b", 330, 30, 7), *column("c", 670, 30, 7)]
    assert texts(*sorted(page, key=lambda one: (one.top, one.left))) == [one.text for one in page]


def test_what_is_set_between_two_columns_is_read_after_them() -> None:
    left = [*column("a", 0, 0, 3, 390), *column("c", 0, 75, 5, 300)]
    right = [*column("b", 410, 0, 3, 390), *column("d", 500, 75, 5, 300)]
    inset = [line(f"caption {row}", 320, 100 + 25 * row, 160) for row in range(3)]
    page = [*left, *right, *inset]
    assert texts(*sorted(page, key=lambda one: (one.top, one.left))) == [one.text for one in page]


def test_right_aligned_amounts_stay_in_their_rows() -> None:
    rows = [("Coffee, large, with oat milk", "2", "9.80"), ("Cake of the day", "1", "4.50"), ("Sum", "", "14.30"),
            ("Paid by card", "", "14.30")]  # fmt: skip
    cells = [
        PlacedLine(text=text, left=end - 11 * len(text) if end else 0, top=30 * row, right=end or 11 * len(text),
                   bottom=30 * row + 20)
        for row, cells in enumerate(rows) for text, end in zip(cells, (0, 420, 560), strict=True) if text
    ]  # fmt: skip
    assert texts(*cells[::-1]) == ["\t".join(filter(None, row)) for row in rows]


def turned(one: PlacedLine, degrees: float) -> PlacedLine:
    """The smallest upright box around a line that is turned to the right, as a recogniser gives it."""
    angle = math.radians(degrees)
    across, down = (one.left + one.right) / 2, one.middle
    across, down = across * math.cos(angle) - down * math.sin(angle), across * math.sin(angle) + down * math.cos(angle)
    wide = one.width * math.cos(angle) + one.height * abs(math.sin(angle))
    high = one.width * abs(math.sin(angle)) + one.height * math.cos(angle)
    return replace(one, left=across - wide / 2, right=across + wide / 2, top=down - high / 2, bottom=down + high / 2,
                   slant=math.tan(angle))  # fmt: skip


def test_a_slanting_scan_is_set_straight_first() -> None:
    table = [line(f"{name} {row}", left, 30 * row, width) for row in range(20)
             for name, left, width in (("Item", 0, 150), ("Price", 700, 60))]  # fmt: skip
    pages = [*column("a", 0, 0, 25), *column("b", 340, 0, 25)]
    for degrees in (-3, -1, 2, 3):
        assert texts(*(turned(one, degrees) for one in table)) == [f"Item {row}\tPrice {row}" for row in range(20)]
        assert texts(*(turned(one, degrees) for one in reversed(pages))) == [one.text for one in pages]


def test_lines_that_run_downwards_are_read_from_right_to_left() -> None:
    downwards = [PlacedLine(text=f"列 {row}", left=500 - 40 * row, top=0, right=530 - 40 * row, bottom=400)
                 for row in range(4)]  # fmt: skip
    assert texts(*reversed(downwards)) == [one.text for one in downwards]


def test_a_line_on_its_side_at_the_margin_does_not_disturb_the_others() -> None:
    margin = PlacedLine(text="Photo: somebody", left=900, top=0, right=920, bottom=300)
    assert texts(margin, *column("a", 0, 0, 5)) == [*(f"a {row}" for row in range(5)), "Photo: somebody"]


def test_hidden_lines_are_not_joined_with_visible_ones() -> None:
    rows = in_reading_order([line("Sum", 0, 0, 60), replace(line("secret", 200, 0, 60), hidden=True)])
    assert [(one.line.text, one.line.hidden) for one in rows] == [("Sum", False), ("secret", True)]


PLACE = st.floats(0, 1000)


@given(st.lists(st.tuples(PLACE, PLACE, PLACE, PLACE, st.floats(-0.1, 0.1)), max_size=25))
def test_every_line_is_read_exactly_once(boxes: list[tuple[float, float, float, float, float]]) -> None:
    lines = [
        PlacedLine(text=f"w{number}", left=min(a, c), top=min(b, d), right=max(a, c), bottom=max(b, d), slant=slant)
        for number, (a, b, c, d, slant) in enumerate(boxes)
    ]
    assert sorted(word for row in texts(*lines) for word in row.split()) == sorted(one.text for one in lines)
