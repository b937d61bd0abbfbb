"""An excerpt shows the words that mattered, and breaks none of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search.excerpt import excerpt

LINE = " ".join(f"word{number}" for number in range(100)) + " the rollout waits for the migration " + "tail " * 50


def test_a_short_line_is_told_whole() -> None:
    assert excerpt("the rollout waits", ["rollout"], 17) == "the rollout waits"


def test_a_long_line_is_told_around_the_words_that_were_wanted() -> None:
    told = excerpt(LINE, ["rollout", "migration"], 60)
    assert len(told) <= 60 and "the rollout waits for the migration" in told
    assert told.startswith("…") and told.endswith("…")


def test_the_place_where_most_of_them_stand_together_wins() -> None:
    line = f"rollout {'x ' * 100}rollout of the cluster {'y ' * 100}cluster"
    assert "rollout of the cluster" in excerpt(line, ["rollout", "cluster"], 50)


def test_without_any_of_them_it_is_the_beginning() -> None:
    assert excerpt(LINE, ["xylophone"], 20) == "word0 word1 word2…"


def test_a_word_inside_another_is_not_meant() -> None:
    line = f"category {'x ' * 100}go home"
    assert "go home" in excerpt(line, ["go"], 30)


@pytest.mark.parametrize("word", ["部署", "配備"])
def test_scripts_without_spaces_have_words_anywhere(word: str) -> None:
    assert word in excerpt("前" * 200 + word + "後" * 200, [word], 20)


@given(st.text(max_size=400), st.lists(st.text(max_size=5), max_size=5), st.integers(min_value=2, max_value=120))
def test_it_is_never_longer_than_allowed_and_always_part_of_the_line(line: str, wanted: list[str], limit: int) -> None:
    told = excerpt(line, wanted, limit)
    assert len(told) <= max(limit, 3)
    assert told.removeprefix("…").removesuffix("…") in line
