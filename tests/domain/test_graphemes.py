"""Where text may be cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.graphemes import cut, cut_before, is_boundary

ONE_CHARACTER_TO_A_READER = {
    "a letter and its accent": "e\u0301",
    "a letter and many accents": "e" + "\u0301" * 5,
    "a family": "👨\u200d👩\u200d👧\u200d👦",
    "a skin tone": "👍🏽",
    "a heart in colour": "❤\ufe0f",
    "a flag": "🇨🇭",
    "a flag of tags": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "a keycap": "1\ufe0f\u20e3",
    "a Hangul syllable in pieces": "\u1112\u1161\u11ab",
    "a Hangul syllable with a tail": "\uac00\u11a8",
    "a Devanagari conjunct": "\u0915\u094d\u0937\u093f",
    "a Tamil syllable": "\u0ba8\u0bbf",
    "a Thai syllable": "\u0e01\u0e33",
    "a line end": "\r\n",
    "a surrogate pair": "\ud83d\ude00",
}


@pytest.mark.parametrize("cluster", ONE_CHARACTER_TO_A_READER.values(), ids=ONE_CHARACTER_TO_A_READER)
def test_what_a_reader_sees_as_one_character_is_not_cut(cluster: str) -> None:
    text = f"a{cluster}b"
    places = [index for index in range(len(text) + 1) if is_boundary(text, index)]
    assert places == [0, 1, len(text) - 1, len(text)]


def test_two_flags_are_cut_between_them_and_not_inside() -> None:
    flags = "🇨🇭🇫🇷🇮🇹"
    assert [index for index in range(len(flags) + 1) if is_boundary(flags, index)] == [0, 2, 4, 6]


def test_a_cut_moves_back_to_the_start_of_the_character_it_would_split() -> None:
    assert cut_before("ab👍🏽", 3) == 2


def test_a_character_that_fills_the_whole_room_is_cut_after_all() -> None:
    assert cut_before("e" + "\u0301" * 50, 20) == 20


@given(st.text(alphabet="ab\u0301\u200d👩🇩🇪가각\u1100\u1161 \n"), st.integers(1, 12))
def test_a_cut_text_is_no_longer_than_asked_and_ends_between_two_characters(text: str, limit: int) -> None:
    shown = cut(text, limit)
    if len(text) <= limit:
        assert shown == text
    else:
        kept = shown.removesuffix("…")
        assert len(kept) <= limit and text.startswith(kept) and is_boundary(text, len(kept))
