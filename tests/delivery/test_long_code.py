"""Long code and tables as files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.delivery.long_code import BLOCKS_AT_MOST, FIRST_CHARS, FIRST_LINES, long_blocks, shortened


def code(lines: int, language: str = "python") -> str:
    return f"```{language}\n" + "".join(f"line {number}\n" for number in range(lines)) + "```\n"


def test_code_over_the_limit_becomes_a_file_and_its_first_lines_stay() -> None:
    source = f"Here it is.\n\n{code(61)}\nThat is all."
    (block,) = long_blocks(source, lines=60)
    assert (block.name, block.content.count("\n")) == ("code.py", 61)
    first = "".join(f"line {number}\n" for number in range(FIRST_LINES))
    assert shortened(source, [block]) == (
        f"Here it is.\n\n```python\n{first}```\n\n"
        f"The first {FIRST_LINES} of 61 lines; all of them are in `code.py`.\n\nThat is all."
    )


@pytest.mark.parametrize("lines", [0, 60])
def test_code_within_the_limit_and_any_code_without_one_stays(lines: int) -> None:
    assert long_blocks(code(60 if lines else 500), lines=lines) == ()


def test_a_few_endless_lines_become_a_file_too() -> None:
    source = "Here:\n\n```json\n" + '{"a": 1}, ' * 2_000 + "\n```\n\nDone."
    (block,) = long_blocks(source, lines=60)
    text = shortened(source, (block,))
    assert block.name == "code.json" and len(block.content) >= 20_000
    assert len(text) < 800 and "Only the beginning; all of it is in `code.json`." in text and "Done." in text
    assert long_blocks("```\n" + "x" * 5_999 + "\n```", lines=60) == ()


def test_a_long_table_becomes_a_file_and_keeps_its_header() -> None:
    rows = "".join(f"| {number} | x |\n" for number in range(80))
    (block,) = long_blocks(f"| no | what |\n|---|---|\n{rows}\nDone.", lines=60)
    assert block.name == "table.md"
    assert block.shown.startswith("| no | what |\n|---|---|\n| 0 | x |\n")
    assert f"The first {FIRST_LINES + 2} of 82 lines" in block.shown


def test_each_file_has_a_name_of_its_own_and_there_are_not_too_many() -> None:
    source = "\n\n".join([code(70), code(70), code(70, "weird"), *[code(70, "sh")] * BLOCKS_AT_MOST])
    names = [block.name for block in long_blocks(source, lines=60)]
    assert names == ["code.py", "code-2.py", "code.txt", "code.sh", "code-2.sh"]


def test_what_is_shown_of_code_with_fences_and_long_lines_is_bounded_and_closed() -> None:
    inside = "```\nnot the end\n" + "x" * 5_000 + "\nline" * 70
    (block,) = long_blocks(f"`````\n{inside}\n`````", lines=60)
    assert len(block.shown) < FIRST_CHARS + 200
    assert block.shown.startswith("````\n```\nnot the end\n````\n")


@given(st.text(alphabet="`~|-ab \n>*", max_size=400), st.integers(1, 5))
def test_what_is_outside_of_long_blocks_stays_as_it_is(source: str, lines: int) -> None:
    blocks = long_blocks(source, lines=lines)
    text, at = shortened(source, blocks), 0
    for before, block in zip((0, *(block.end for block in blocks)), blocks, strict=False):
        kept = source[before : block.start] + block.shown
        assert text[at : at + len(kept)] == kept
        at += len(kept)
    assert text[at:] == source[blocks[-1].end if blocks else 0 :]
