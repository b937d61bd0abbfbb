"""Trigrams: which terms have a spelling, and what it tells."""

import pytest

from belino.search.trigrams import trigrams


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
