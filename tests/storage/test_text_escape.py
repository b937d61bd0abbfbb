"""Escaped text can be stored anywhere, and is unescaped to the same text."""

from hypothesis import example, given
from hypothesis import strategies as st

from belino.storage.text import MARK, escape, unescape

LONG_MARK = f"{MARK}0123"
ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from("\0\ud800\udfff\x1a0123-")))
"""Any Python string, often with what an escape is made of."""


@given(ANY_TEXT, st.sampled_from([MARK, LONG_MARK]))
@example("\x1a0000", MARK)
@example("\x1a012\x1a0123-\ud8000", LONG_MARK)
def test_every_text_comes_back_as_it_was(text: str, mark: str) -> None:
    escaped = escape(text, mark)
    assert unescape(escaped, mark) == text
    assert "\0" not in escaped
    escaped.encode()


@given(ANY_TEXT, ANY_TEXT)
def test_what_is_joined_is_escaped_as_its_parts_are(first: str, second: str) -> None:
    assert escape(first) + escape(second) == escape(first + second)


def test_ordinary_text_is_left_as_it_is() -> None:
    text = "Grüße, 世界 🌄\n"
    assert escape(text) == text
    assert unescape(text) == text
