"""Trigrams: which terms have a spelling, and what it tells."""

import pytest

from belino.search.trigrams import is_misspelt, trigrams


def test_a_word_has_a_trigram_for_each_letter_and_its_edges_count() -> None:
    assert trigrams("boat") == ["\x02bo", "boa", "oat", "at\x02"]


def test_a_trigram_that_repeats_counts_once() -> None:
    assert len(trigrams("banana")) == 5


@pytest.mark.parametrize("term", ["cat", "room4711", "a.txt", "https://example.org", "x" * 41, "发票", "@anna"])
def test_short_words_and_codes_have_no_spelling(term: str) -> None:
    assert not trigrams(term)


@pytest.mark.parametrize("term", ["straße", "сервер", "αρχείο"])
def test_words_of_every_alphabet_have_one(term: str) -> None:
    assert len(trigrams(term)) == len(term)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("warehose", "warehouse"),
        ("termostat", "thermostat"),
        ("recieve", "receive"),
        ("fysiotherapist", "physiotherapist"),
        ("счотчик", "счётчик"),
        ("kellariavain", "kellarin"),
    ],
)
def test_a_typo_is_told_from_another_word(word: str, meant: str) -> None:
    assert is_misspelt(word, meant) and is_misspelt(meant, word)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("dessert", "assert"),
        ("purple", "purpose"),
        ("budapest", "cheapest"),
        ("hatred", "hat"),
        ("portuguese", "ported"),
    ],
)
def test_words_that_share_letters_are_other_words(word: str, other: str) -> None:
    assert not is_misspelt(word, other) and not is_misspelt(other, word)
