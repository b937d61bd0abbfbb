"""Expansion: a word that no message has is found in another language, spelling or compound, or as it was meant."""

import hashlib
from array import array

import pytest

from belino.search.expansion import compounds, expand
from belino.search.postings import ChannelPostings
from belino.search.segment import SegmentEntry
from belino.search.tokenizer import query_words, text_language, tokenize
from belino.search.trigrams import spelling_of
from belino.search.weights import WEIGHTS
from search.segments import HeldIndex


def number(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "big")


def entry(seq: int, text: str) -> SegmentEntry:
    read = tokenize(text)
    spellings = {number(term): spelling_of(term, number) for term in read.terms}
    terms = array("Q", map(number, read.terms))
    return SegmentEntry(seq, seq, "u", "Ann", 0, read.flags, terms, 0, read.language, spellings)


def channel(*texts: str) -> HeldIndex:
    made = HeldIndex(number)
    made.add(*(entry(seq, text) for seq, text in enumerate(texts, 1)))
    return made


def stands_for(index: ChannelPostings, question: str, text: str) -> bool:
    """Whether what stands for the only unknown word of a question is in a text."""
    (word,) = query_words(question, index.languages)
    found = expand(index, word, text_language(question), WEIGHTS)
    said = set(tokenize(text).terms)
    parts = {term for part in found.parts for term in tokenize(part).terms}
    return bool(set(map(number, said)) & found.terms.keys() or said & parts)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("warehose", "the warehouse is full"),
        ("acommodation", "an accommodation near the harbour"),
        ("Müller", "ask Mueller about the ladder"),
        ("boehm", "Familie Böhm zieht im Mai aus und wir haben die Wohnung"),
        ("versicherungen", "die Versicherung ist nicht bezahlt, aber das ist kein Problem"),
        ("serverraum", "wer hat den Serverraumschlüssel zuletzt gehabt?"),
        ("dampfschiffmuseum", "das Museum für Dampfschiffe öffnet erst im April"),
        ("kokous", "kokouksessamme päätettiin remontista ja se on hyvä"),
    ],
    ids=["typo", "two-letters", "umlaut", "no-umlaut", "language", "compound", "parts", "ending"],
)
def test_a_word_is_found_in_the_form_that_the_channel_has(word: str, text: str) -> None:
    index = channel("good morning", text, "see you at lunch")
    assert stands_for(index.postings, word, text)
    index.end_tail()
    assert stands_for(index.postings, word, text)


@pytest.mark.parametrize("word", ["zyzzyva", "rain", "xylophone", "E4711", "tax"])
def test_a_word_that_is_like_no_other_stands_for_nothing(word: str) -> None:
    index = channel("the train was late", "a telephone call", "E4712 again", "a taxi").postings
    (asked,) = query_words(word)
    assert expand(index, asked, "english", WEIGHTS) == ({}, ())


def test_a_part_of_a_compound_finds_it_where_the_language_has_compounds() -> None:
    index = channel("die Karte ist weg", "die Krankenversicherungskarte ist nicht mehr da", "the cart").postings
    (word,) = query_words("Karte", ["german"])
    (whole,) = tokenize("Krankenversicherungskarte und die").terms
    assert compounds(index, word, "german") == [number(whole)]
    english = channel("the cart", "a shopping cartwheel", "see you").postings
    assert compounds(english, query_words("cart")[0], "english") == []
