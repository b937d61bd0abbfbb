"""Expansion of a query's word that a channel does not have: to other languages, spellings, compounds and typos."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from belino.search.postings import ChannelPostings
from belino.search.tokenizer import QueryWord, stem, words_in
from belino.search.trigrams import is_misspelt
from belino.search.weights import Weights

COMPOUNDING = frozenset(("german", "dutch", "swedish", "norwegian", "danish", "finnish", "hungarian"))
"""Languages that write compounds as one word."""
SHORTEST_PART, SHORTEST_ELSEWHERE = 4, 7
"""Letters of a part of a compound, in these languages and in others, where short words are in others by chance."""
LINKS = ("", "s", "es", "n", "en", "er", "e")
"""Letters between the parts of a compound."""
FORMS, TERMS = 3, 6
"""Forms of a word that are compared, and terms that may stand for it."""
COMPARED = 8
"""The most similar terms, of which it is read how they are written."""
READ_CHARS = 2_000
"""Of a message that has one of them; a longer one has too many words."""
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"}


class Expansion(NamedTuple):
    """Terms that may stand for a word, each with the share of its weight; and words that it is made of."""

    terms: Mapping[int, float]
    parts: tuple[str, ...] = ()


def expand(index: ChannelPostings, word: QueryWord, language: str, weights: Weights) -> Expansion:
    """What may stand for a word that no message has, in a query of this language."""
    if not word.word.isalpha():
        return Expansion({})
    forms = dict.fromkeys([*word.terms, *_stems(word.word, index.spoken)])
    for alike in (forms, _respelled(word.word, index.spoken)):
        known = _known(index, alike)
        if known:
            return Expansion(dict.fromkeys(known, 1.0))
    found: dict[int, float] = {}
    similar: dict[int, float] = {}
    least = _shortest_part(index, language)
    for form in sorted(forms, key=len)[:FORMS]:
        spelling = index.spelling(form)
        if len(form) >= least:
            found.update((one.term, weights.compound) for one in index.containing(spelling))
        for one in index.similar(spelling, max(weights.alike, 1.1 - len(word.word) / 10)):
            similar[one.term] = max(similar.get(one.term, 0.0), one.likeness)
    for term in _meant(index, word.word, _best(similar, COMPARED)):
        found[term] = max(found.get(term, 0.0), similar[term])
    best = _best(found, TERMS)
    parts = () if best else _parts(index, word.word, language)
    return Expansion({term: found[term] for term in best}, parts)


def _best(found: Mapping[int, float], most: int) -> list[int]:
    return sorted(found, key=lambda term: (-found[term], term))[:most]


def _meant(index: ChannelPostings, word: str, terms: Sequence[int]) -> Iterator[int]:
    """The terms that a word may be meant for: a message that has the term writes it nearly so.

    Where its message is not read, or is long, trigrams decide.
    """
    seqs = {term: index.seq(place) for term in terms if (place := index.newest_with(term)) is not None}
    texts = index.texts(tuple(dict.fromkeys(seqs.values()))) if seqs else {}
    is_meant = {
        seq: len(text) > READ_CHARS or any(is_misspelt(word, written) for written in words_in(text))
        for seq, text in texts.items()
    }
    yield from (term for term in terms if is_meant.get(seqs.get(term, 0), True))


def compounds(index: ChannelPostings, word: QueryWord, language: str) -> list[int]:
    """The terms that begin or end with a word that messages have, where the language writes compounds."""
    least = _shortest_part(index, language)
    if least > SHORTEST_PART or not word.word.isalpha():
        return []
    forms = [form for form in word.terms if len(form) >= least][:FORMS]
    found = dict.fromkeys(similar.term for form in forms for similar in index.containing(index.spelling(form)))
    return [term for term in found if term not in set(map(index.number, word.terms))][:TERMS]


def part_languages(index: ChannelPostings, language: str) -> list[str]:
    """The languages in which the parts of a compound are stemmed, in a query of this language."""
    return sorted({language, *COMPOUNDING.intersection(index.spoken)})


def _shortest_part(index: ChannelPostings, language: str) -> int:
    compounding = COMPOUNDING.intersection((language, *index.languages))
    return SHORTEST_PART if compounding else SHORTEST_ELSEWHERE


def _stems(word: str, languages: Iterable[str]) -> Iterator[str]:
    return (stem(word, language) for language in sorted(languages))


def _respelled(word: str, languages: Iterable[str]) -> list[str]:
    """The stems of a word with its umlauts as two letters, or with two letters as an umlaut."""
    spelled = {"".join(_UMLAUTS.get(char, char) for char in word)}
    for umlaut, letters in _UMLAUTS.items():
        if letters in word:
            spelled.add(word.replace(letters, umlaut))
    spelled.discard(word)
    return [form for other in sorted(spelled) for form in _stems(other, languages)]


def _known(index: ChannelPostings, forms: Iterable[str]) -> list[int]:
    return [number for number in map(index.number, forms) if index.frequency(number)]


def _parts(index: ChannelPostings, word: str, language: str) -> tuple[str, ...]:
    """The two words of a compound that messages have, as far as possible of equal length.

    Where a language with compounds is spoken, also the one word that they have, if it is half of the compound.
    """
    compounding, languages = COMPOUNDING.intersection((language, *index.spoken)), part_languages(index, language)
    best: tuple[int, tuple[str, ...]] = (0, ())
    for at in range(SHORTEST_PART - 1, len(word) - SHORTEST_PART + 2):
        lefts = [word[:at].removesuffix(link) for link in LINKS if word[:at].endswith(link)]
        left = next((part for part in lefts if len(part) >= 3 and _known(index, _stems(part, languages))), "")
        right = word[at:] if _known(index, _stems(word[at:], languages)) else ""
        shorter, longer = sorted((len(left), len(right)))
        is_one = compounding and longer > SHORTEST_PART and 2 * longer >= len(word)
        if is_one or (shorter and (compounding or shorter >= SHORTEST_PART)):
            best = max(best, (10 * shorter + longer, tuple(filter(None, (left, right)))))
    return best[1]
