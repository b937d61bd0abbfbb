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


HELP_CHANNEL = """\
kv305|14:02|jdub|xkHrdwr: dpkg won't help you, it's in universe
ab117|14:02|xkHrdwr|jdub, apt-get says libgnomevfs2-common_2.8.3-0ubuntu2 is held back :(
mc902|14:03|nomasterluka|try sudo dpkg-reconfigure xserver-xorg, then /etc/X11/xorg.conf
rt440|14:03|zzorn|lol i had the same w/ fluxbox_0.9.9-1_i386.deb
pd018|14:05|xkHrdwr|nomasterluka: ok that did smth... brb rebooting
"""
PROOFS = """\
kv305|14:02|Ida Lund|def   tautext   {  A   B   :   Prop  }   :   A   =   B   :=   propext   (  Iff.intro  )
ab117|14:04|Ida Lund|example   (  α   :   Type   u  )   (  s   :   Finset   ℝ  )   :   ∃   x   ∈   s  ,   f   x   ≤   1
pd018|14:06|Ida Lund|:=   ⟨  x  ,   rfl  ⟩
mc902|14:09|𝚠𝚘𝚕𝚏|λ   z   =>   z   _   id   z   is   irreflexive   under   ∀   Γ   Ω   ⊢   φ
"""


@pytest.mark.parametrize("text", [HELP_CHANNEL, PROOFS], ids=["nicknames and packages", "mathematics"])
def test_lines_of_names_paths_and_symbols_are_not_priced_far_below_what_they_cost(text: str) -> None:
    assert 0.95 <= estimate_tokens(text) / counted(text) <= 1.15


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
    assert "usual" in tokens._PRICES and endless not in tokens._PRICES
