"""The text of a page is read as a person reads it: columns one after the other, tables row by row."""

from hypothesis import given
from hypothesis import strategies as st

from belino.domain.reading import ReadSegment
from belino.understanding.page_text import page_text

LINE = 0.02


def block(text: str, left: float, top: float, right: float, bottom: float | None = None) -> ReadSegment:
    return ReadSegment(text=text, box=(left, top, right, top + LINE if bottom is None else bottom))


def column(prefix: str, left: float, right: float, *, top: float = 0.1, lines: int = 5) -> list[ReadSegment]:
    return [block(f"{prefix}{number}", left, top + number * 0.03, right) for number in range(lines)]


def test_columns_are_read_one_after_the_other() -> None:
    mixed = [each for pair in zip(column("a", 0.05, 0.45), column("b", 0.55, 0.95), strict=True) for each in pair]
    assert page_text(mixed).split() == ["a0", "a1", "a2", "a3", "a4", "b0", "b1", "b2", "b3", "b4"]


def test_a_heading_over_columns_comes_first() -> None:
    page = [*column("b", 0.55, 0.95), *column("a", 0.05, 0.45), block("Title", 0.05, 0.02, 0.95)]
    assert page_text(page).split()[:2] == ["Title", "a0"]
    assert page_text(page).split()[-1] == "b4"


def test_the_rows_of_a_table_are_lines() -> None:
    rows = [("Tea", "2", "3.50"), ("Cake", "1", "4.20"), ("Sum", "", "11.20")]
    cells = [
        block(text, left, 0.1 + number * 0.03, left + 0.08)
        for number, row in enumerate(rows)
        for text, left in zip(row, (0.1, 0.4, 0.7), strict=True)
        if text
    ]
    assert page_text(cells[::-1]) == "Tea\t2\t3.50\nCake\t1\t4.20\nSum\t11.20"


def test_words_of_one_line_are_joined_by_spaces_though_they_stand_a_little_askew() -> None:
    words = [block("world", 0.2, 0.105, 0.3), block("Hello", 0.1, 0.1, 0.19)]
    assert page_text(words) == "Hello world"


def test_paragraphs_are_set_apart() -> None:
    page = [block("one", 0.1, 0.1, 0.9), block("two", 0.1, 0.13, 0.9), block("three", 0.1, 0.2, 0.9)]
    assert page_text(page) == "one\ntwo\n\nthree"


def test_without_places_the_order_stays() -> None:
    assert page_text([ReadSegment(text="b "), ReadSegment(text=" "), ReadSegment(text="a")]) == "b\na"
    assert page_text([block("b", 0.5, 0.5, 0.6), ReadSegment(text="a")]) == "b\na"
    assert page_text([]) == ""


PLACE = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(PLACE, PLACE, PLACE, PLACE), max_size=25))
def test_every_block_is_in_the_text_exactly_once(boxes: list[tuple[float, float, float, float]]) -> None:
    segments = [
        ReadSegment(text=f"w{number}", box=(min(a, c), min(b, d), max(a, c), max(b, d)))
        for number, (a, b, c, d) in enumerate(boxes)
    ]
    assert sorted(page_text(segments).split()) == sorted(segment.text for segment in segments)
