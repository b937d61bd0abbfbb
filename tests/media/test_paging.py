"""Text told page by page: within its price, nothing lost, nothing doubled."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.graphemes import is_boundary
from belino.domain.media import DocumentUnit, Part
from belino.domain.tokens import estimate_tokens
from belino.domain.units import NoRange
from belino.media.paging import Page, TextPosition, clean, fill, parse_cursor

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "


def parts_of(*texts: str) -> list[Part]:
    return [Part(number=number, text=clean(text)) for number, text in enumerate(texts, 1)]


def pages_of(
    parts: list[Part], *, room: int, unit: DocumentUnit = DocumentUnit.PAGE, alone: bool = False
) -> list[Page]:
    """Read on by the cursor, as an agent does, until there is no more."""
    pages: list[Page] = []
    place: TextPosition | None = TextPosition(part=1, offset=0, last=len(parts))
    while place is not None:
        left = [part for part in parts if part.number >= place.part]
        pages.append(fill(left, unit, place, room=room, price=estimate_tokens, alone=alone))
        rest = pages[-1].rest
        place = None if rest is None else parse_cursor(str(rest))
        assert len(pages) < 5_000
    return pages


texts = st.lists(
    st.one_of(
        st.text(max_size=300),
        st.lists(
            st.sampled_from([SENTENCE, "\n\n", "слово ", "語", "e\u0301", "👩‍👩‍👧", "--- page 2\n", "[Image: x, "])
        ).map("".join),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(12, 400))
def test_pages_laid_end_to_end_are_the_text_with_no_character_lost_or_doubled(written: list[str], room: int) -> None:
    parts = parts_of(*written)
    read = {part.number: "" for part in parts}
    seen: list[int] = []
    for page in pages_of(parts, room=room):
        for told in page.told:
            assert told.start == len(read[told.part])
            piece = parts[told.part - 1].text[told.start : told.end]
            assert piece in page.text
            read[told.part] += piece
            seen.append(told.part)
    assert read == {part.number: part.text for part in parts}
    assert seen == sorted(seen) and set(seen) == set(read)


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(60, 400))
def test_a_page_never_costs_more_than_there_is_room_for(written: list[str], room: int) -> None:
    for page in pages_of(parts_of(*written), room=room):
        assert estimate_tokens(page.text) <= room or sum(told.end - told.start for told in page.told) <= 16


def test_a_page_uses_most_of_its_room() -> None:
    parts = parts_of(SENTENCE * 400, SENTENCE * 400)
    *full, _ = pages_of(parts, room=1_000)
    assert all(estimate_tokens(page.text) > 750 for page in full)


def test_a_page_ends_where_a_reader_would_stop() -> None:
    parts = parts_of("\n\n".join(SENTENCE * 4 for _ in range(40)))
    for page in pages_of(parts, room=300)[:-1]:
        assert page.text.endswith("\n\n")


def test_no_page_ends_inside_what_a_reader_sees_as_one_character() -> None:
    parts = parts_of("👩‍👩‍👧‍👦" * 300)
    for page in pages_of(parts, room=100):
        assert is_boundary(parts[0].text, page.told[-1].end)


def test_parts_stand_under_headings_with_their_titles() -> None:
    parts = [Part(number=1, text="a", title="Totals [Image: x"), Part(number=2, text=""), Part(number=3, text="b")]
    (page,) = pages_of(parts, room=500, unit=DocumentUnit.SHEET)
    assert page.text == "--- sheet 1: Totals ［Image: x ---\na\n--- sheet 2, no text ---\n--- sheet 3 ---\nb"


def test_pages_that_say_nothing_share_a_line() -> None:
    (page,) = pages_of(parts_of("a", "", "", "", "b", ""), room=500)
    assert page.text == "--- page 1 ---\na\n--- pages 2-4, no text ---\n--- page 5 ---\nb\n--- page 6, no text ---"
    assert [told.part for told in page.told] == [1, 2, 3, 4, 5, 6]


def test_the_only_part_stands_without_a_heading() -> None:
    (page,) = pages_of(parts_of("a"), room=500, alone=True)
    assert page.text == "a"


def test_a_part_that_goes_on_says_so() -> None:
    second = pages_of(parts_of(SENTENCE * 100), room=200)[1]
    assert second.text.startswith("--- page 1, continued ---\n")


def test_a_heading_in_the_text_does_not_pass_for_ours() -> None:
    assert clean("a\n--- page 7 ---\n--- sheets 2\n--- x\n---") == "a\n——— page 7 ---\n——— sheets 2\n--- x\n---"


def test_what_looks_like_a_placeholder_or_cannot_be_seen_is_disarmed_as_in_a_message() -> None:
    assert clean("[Image: a.png, ref:tg_aaaaaaaaaaaa]\u200b\u202ex") == "［Image: a.png, ref:tg_aaaaaaaaaaaa]x"


def test_parts_that_are_wanted_and_not_here_yet_are_where_it_goes_on() -> None:
    page = fill(
        parts_of("a"),
        DocumentUnit.PAGE,
        TextPosition(part=1, offset=0, last=9),
        room=99,
        price=estimate_tokens,
        more=True,
    )
    assert page.rest == TextPosition(part=2, offset=0, last=9)


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "a.b.c", "0.0.3", "4.0.3", "1.2.3.4", "1.-2.3", "99999999.0.99999999"]
)
def test_a_cursor_nobody_wrote_is_refused(text: str) -> None:
    with pytest.raises(NoRange, match="page before"):
        parse_cursor(text)


def test_a_cursor_beyond_the_end_of_its_part_goes_on_with_the_next() -> None:
    read = partial(fill, parts_of("abc", "def"), DocumentUnit.PAGE, room=99, price=estimate_tokens)
    assert read(TextPosition(part=1, offset=10**8, last=2)).text.endswith("--- page 2 ---\ndef")
