"""Words of one root, and words that are said instead of one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search.synonyms import alike, derived
from belino.search.tokenizer import stem


def kin_of(word: str) -> set[str]:
    return {*derived(word), *alike(word)}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("allergies", "allergic"),
        ("encouragement", "encourages"),
        ("education", "educated"),
        ("religious", "religion"),
        ("decision", "decided"),
        ("photography", "photographs"),
        ("children", "kids"),
        ("film", "movie"),
        ("failure", "error"),
    ],
)
def test_a_question_reaches_the_words_of_its_answer(asked: str, said: str) -> None:
    assert stem(said, "english") in {stem(asked, "english"), *kin_of(asked)}


@pytest.mark.parametrize(("one", "other"), [("bus", "business"), ("car", "care"), ("tea", "team"), ("pan", "panic")])
def test_short_words_have_no_accidental_relatives(one: str, other: str) -> None:
    assert stem(other, "english") not in derived(one)


def test_being_said_instead_is_mutual() -> None:
    for word in ("kid", "movie", "job", "error", "trip"):
        for other in alike(word):
            assert stem(word, "english") in alike(other) or stem(word, "english") in alike(f"{other}s")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_no_word_is_its_own_kin_and_none_has_too_many(word: str) -> None:
    assert stem(word, "english") not in kin_of(word)
    assert len(derived(word)) <= 150
