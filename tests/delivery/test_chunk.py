"""Long text as parts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.delivery.chunk import TextPart, chunk
from belino.domain.graphemes import is_boundary

CLUSTERS = ("e\u0301", "👨\u200d👩\u200d👧", "👍🏽", "🇨🇭", "\u0915\u094d\u0937\u093f", "\u1112\u1161\u11ab", "\r\n")
PIECES = st.sampled_from(
    [
        *CLUSTERS,
        "a",
        "word",
        "Long sentence. ",
        " ",
        "\n",
        "\n\n",
        "。",
        "```\n",
        "```py\n",
        "~~~~\n",
        "\n```\n",
        "....",
        "\t",
    ]
)
FENCE_LINES = re.compile(r"\n?[ ]{0,3}(`{3,}|~{3,})[^\n]*\n?")

texts = st.one_of(st.lists(PIECES, max_size=200).map("".join), st.text(max_size=400))


def strings(parts: tuple[TextPart, ...]) -> list[str]:
    return [str(part) for part in parts]


@settings(max_examples=400, deadline=None)
@given(text=texts, limit=st.integers(min_value=1, max_value=120))
def test_the_parts_joined_are_the_text_and_what_was_added_are_fence_lines(text: str, limit: int) -> None:
    parts = chunk(text, limit)
    assert "".join(part.body for part in parts) == text
    for part in parts:
        assert part.body
        assert not part.opening or FENCE_LINES.fullmatch(part.opening)
        assert not part.closing or FENCE_LINES.fullmatch(part.closing)


@settings(max_examples=400, deadline=None)
@given(text=texts, limit=st.integers(min_value=1, max_value=120))
def test_no_part_is_over_the_limit(text: str, limit: int) -> None:
    assert all(len(str(part)) <= limit for part in chunk(text, limit))


@settings(max_examples=400, deadline=None)
@given(text=st.lists(PIECES, max_size=200).map("".join), limit=st.integers(min_value=40, max_value=120))
def test_no_cut_falls_inside_what_a_reader_sees_as_one_character(text: str, limit: int) -> None:
    place = 0
    for part in chunk(text, limit):
        assert is_boundary(text, place)
        place += len(part.body)


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(st.text(alphabet="ab \n", max_size=30), max_size=40), most=st.integers(min_value=3, max_value=8))
def test_no_part_has_more_lines_than_allowed(lines: list[str], most: int) -> None:
    for part in chunk("```\n" + "\n".join(lines), 1_000, lines=most):
        assert len(str(part).removesuffix("\n").split("\n")) <= most


def test_a_text_that_fits_is_one_part() -> None:
    assert strings(chunk("Hello.", 100)) == ["Hello."]


def test_an_empty_text_has_no_parts() -> None:
    assert chunk("", 100) == ()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One here.\nTwo.\n\nThree is a longer line. Four.", "One here.\nTwo.\n\n"),
        ("One here. Two.\nThree is a longer line. Four.", "One here. Two.\n"),
        ("One here it is. Two is quite a bit longer here", "One here it is. "),
        ("one here it is and two is quite a bit longer", "one here it is and two is "),
        ("one" * 20, ("one" * 20)[:28]),
    ],
    ids=["paragraph", "line", "sentence", "word", "character"],
)
def test_the_best_place_to_cut_is_chosen(text: str, first: str) -> None:
    assert str(chunk(text, 28)[0]) == first


def test_a_paragraph_that_would_leave_a_part_nearly_empty_is_not_where_it_is_cut() -> None:
    text = "Hi.\n\n" + "word " * 40
    assert len(str(chunk(text, 100)[0])) > 80


def test_a_code_fence_is_closed_at_the_cut_and_opened_again_with_its_language() -> None:
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(10)) + "```\nDone."
    first, *others = strings(chunk(code, 80))
    assert first.startswith("```python\n")
    assert first.endswith("\n```")
    assert all(part.startswith("```python\n") for part in others)
    assert others[-1].endswith("```\nDone.")
    assert all(part.count("```") == 2 for part in (first, *others))


def test_a_million_dots_are_read_once_and_not_once_per_dot() -> None:
    assert sum(len(part.body) for part in chunk("." * 1_000_000, 4_000)) == 1_000_000
