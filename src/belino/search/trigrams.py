"""Trigrams: the overlapping parts of three characters by which words that are spelled alike are found."""

from array import array
from collections.abc import Callable, Sequence

SHORTEST, LONGEST = 4, 40
"""Letters of a word that has a spelling: a typo in a shorter one makes another word of it."""
_EDGE = "\x02"
"""Marks the beginning and the end of a word."""
_TRIGRAM = "\x03"
"""Begins what is hashed for a trigram, so that no trigram has the hash of a term."""


def trigrams(term: str) -> Sequence[str]:
    """The distinct trigrams of a term; none unless it is a word: codes, numbers and addresses have no spelling."""
    if not SHORTEST <= len(term) <= LONGEST or any(char < "a" or "{" <= char <= "\x7f" for char in term):
        return ()
    padded = f"{_EDGE}{term}{_EDGE}"
    return list(dict.fromkeys(padded[at : at + 3] for at in range(len(term))))


def spelling_of(term: str, number: Callable[[str], int]) -> "array[int]":
    """The trigrams of a term as keyed hashes of 32 bits: there are few of them."""
    return array("I", dict.fromkeys(number(_TRIGRAM + trigram) >> 32 for trigram in trigrams(term)))
