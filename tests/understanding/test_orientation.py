"""Lines that were recognised tell whether the page lies on its side."""

from belino.understanding.local.orientation import certainty, falls, reads_better, upright
from belino.understanding.local.reading_order import FoundPage, PlacedLine


def across(text: str, confidence: float) -> PlacedLine:
    return PlacedLine(text=text, left=0, top=0, right=300, bottom=30, confidence=confidence)


def down(text: str, confidence: float) -> PlacedLine:
    return PlacedLine(text=text, left=0, top=0, right=30, bottom=300, confidence=confidence)


def test_certainty_is_weighted_by_letters() -> None:
    assert certainty([across("long line of words", 0.9), across("x", 0.1)]) > 0.85
    assert certainty([]) == 0.0


def test_lines_that_run_downwards_are_noticed_and_single_letters_are_none() -> None:
    assert falls([down("words", 0.9), down("more", 0.9), across("words", 0.9)])
    assert not falls([down("1", 0.9), across("words", 0.9)])
    assert not falls([])


def test_an_upright_page_is_preferred_to_one_on_its_side_that_is_recognised_as_well() -> None:
    assert reads_better([across("all the words", 0.95)], [down("all the words", 0.95)])


def test_a_page_that_is_written_downwards_stays_as_it_is() -> None:
    assert not reads_better([across("天地玄黄宇宙洪荒", 0.95)], [down("天地玄黄宇宙洪荒", 0.95)])


def test_a_page_is_turned_only_if_that_reads_much_better() -> None:
    assert reads_better([across("all the words", 0.95)], [across("sp.ow eyt lle", 0.6)])
    assert not reads_better([across("all the words", 0.95)], [across("all the words", 0.93)])
    assert not reads_better([down("all the words", 0.99)], [down("all the words", 0.6)])


def page(*lines: PlacedLine) -> FoundPage:
    return FoundPage(lines=lines, width=300, height=300)


async def test_turning_ends_with_the_first_certain_page() -> None:
    tried: list[int] = []

    async def read(quarters: int) -> FoundPage:
        tried.append(quarters)
        return page(across("all the words", 0.95 if quarters == 3 else 0.3))

    best = await upright(page(across("sp.ow eyt lle", 0.4)), (1, 3, 2), read)
    assert (best.lines[0].text, tried) == ("all the words", [1, 3])
