"""Words of one root, and words that are said instead of one another."""

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search.stopwords import STOP_WORDS
from belino.search.synonyms import _read_groups, derived, synonyms
from belino.search.tokenizer import stem


def related_to(word: str) -> set[str]:
    return {*derived(word), *synonyms(word)}


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
    assert stem(said, "english") in {stem(asked, "english"), *related_to(asked)}


@pytest.mark.parametrize(("one", "other"), [("bus", "business"), ("car", "care"), ("tea", "team"), ("pan", "panic")])
def test_short_words_have_no_accidental_relatives(one: str, other: str) -> None:
    assert stem(other, "english") not in derived(one)


def test_being_said_instead_is_mutual() -> None:
    for word in ("kid", "movie", "job", "error", "trip"):
        for other in synonyms(word):
            assert stem(word, "english") in synonyms(other) or stem(word, "english") in synonyms(f"{other}s")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_no_word_is_related_to_itself_and_none_has_too_many(word: str) -> None:
    assert stem(word, "english") not in related_to(word)
    assert len(derived(word)) <= 150


def test_every_file_of_synonyms_is_in_a_language_that_is_stemmed() -> None:
    files = [file.name for file in resources.files("belino.search.synonyms").iterdir() if file.name.endswith(".txt")]
    assert "english.txt" in files
    assert {file.removesuffix(".txt") for file in files} <= set(STOP_WORDS)


def test_a_line_of_a_file_is_a_group_and_a_comment_is_none() -> None:
    groups = _read_groups("# big words\nhouse home flat\n\nhome land\n", "english")
    assert groups == {
        "hous": ("home", "flat"),
        "home": ("hous", "flat", "land"),
        "flat": ("hous", "home"),
        "land": ("home",),
    }
