"""Prices are estimates, but never silly ones."""

from hypothesis import given
from hypothesis import strategies as st

from belino.domain.tokens import estimate_image_tokens, estimate_tokens


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == 0


def test_english_costs_about_a_token_for_every_four_or_five_characters() -> None:
    text = "The quick brown fox jumps over the lazy dog while the band plays on in the garden."
    assert len(text) / 6 <= estimate_tokens(text) <= len(text) / 3


def test_an_ideograph_costs_far_more_than_a_letter() -> None:
    assert estimate_tokens("今日は天気がいいですね") > 2 * estimate_tokens("nice weather")


@given(st.text(), st.text())
def test_more_text_never_costs_less(first: str, second: str) -> None:
    assert estimate_tokens(first + second) >= estimate_tokens(first)


def test_a_picture_costs_by_its_area_up_to_what_models_shrink_it_to() -> None:
    assert estimate_image_tokens(750, 100) == 100
    assert estimate_image_tokens(8000, 8000) == 1600
