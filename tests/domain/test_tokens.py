"""Prices are estimates, but never silly ones."""

from functools import cache

import pytest
import splintr
from hypothesis import given
from hypothesis import strategies as st

from belino.domain import tokens
from belino.domain.tokens import estimate_image_tokens, estimate_tokens
from domain.chatter import CHATTER


@cache
def vocabulary() -> splintr.AnyTokenizer:
    return splintr.Tokenizer.from_pretrained("o200k_base")


def counted(text: str) -> int:
    return len(vocabulary().encode(text))


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize("language", CHATTER)
def test_the_estimate_is_never_far_below_o200k_nor_much_above(language: str) -> None:
    whole, lines = CHATTER[language], CHATTER[language].splitlines()
    assert 0.95 <= estimate_tokens(whole) / counted(whole) <= 1.15
    assert 0.95 <= sum(map(estimate_tokens, lines)) / sum(map(counted, lines)) <= 1.15


def test_code_tables_and_lines_of_ids_are_priced_like_words() -> None:
    json = '{"message_id":"m1","ts":"2026-11-15T20:47:00Z","author":{"user_id":"u-1","is_bot":false}},\n' * 10
    code = "    for number in range(10):\n        self._cache[number] = read_file(path, number)\n" * 10
    lines = "".join(f"17317024{n}.10{n}|11-15 20:{n}|Anna|see https://example.com/a/b?c={n}\n" for n in range(10, 40))
    for text in (json, code, lines):
        assert 0.95 <= estimate_tokens(text) / counted(text) <= 1.3


@given(st.text(), st.integers(2, 5))
def test_the_same_text_again_costs_as_much_again(text: str, times: int) -> None:
    text += "\n"  # a word must not grow together with the next
    assert abs(estimate_tokens(text * times) - times * estimate_tokens(text)) <= times * (1 + len(text) / 4)


@given(st.text(min_size=1))
def test_any_text_has_a_price(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 3 * len(text)


def test_a_picture_costs_by_its_area_up_to_what_models_shrink_it_to() -> None:
    assert estimate_image_tokens(750, 100) == 100
    assert estimate_image_tokens(8000, 8000) == 1600


def test_the_price_of_an_endless_word_is_not_remembered() -> None:
    endless = "endless" * 100
    assert estimate_tokens(f"usual {endless}") > 20
    assert "usual" in tokens._PRICES and f" {endless}" not in tokens._PRICES
