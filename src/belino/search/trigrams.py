"""Trigrams: the overlapping parts of three characters by which words that are spelled alike are found.

Words that share most of them may still be different words; `is_misspelt` compares the words themselves.
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import takewhile

SHORTEST, LONGEST = 4, 40
"""Letters of a word that has a spelling: a typo in a shorter one makes another word of it."""
_EDGE = "\x02"
"""Marks the beginning and the end of a word."""
_TRIGRAM = "\x03"
"""Begins what is hashed for a trigram, so that no trigram has the hash of a term."""

LONG = 8
"""From so many letters on, two may differ, else one."""
BEGINNING, BEGINS = 5, 0.55
"""Letters, and the share of the longer word, that two forms of one word have in common at their beginning."""


def trigrams(term: str) -> Sequence[str]:
    """The distinct trigrams of a term; none unless it is a word: codes, numbers and addresses have no spelling."""
    if not SHORTEST <= len(term) <= LONGEST or any(char < "a" or "{" <= char <= "\x7f" for char in term):
        return ()
    padded = f"{_EDGE}{term}{_EDGE}"
    return list(dict.fromkeys(padded[at : at + 3] for at in range(len(term))))


def spelling_of(term: str, number: Callable[[str], int]) -> "array[int]":
    """The trigrams of a term as keyed hashes of 32 bits: there are few of them."""
    return array("I", dict.fromkeys(number(_TRIGRAM + trigram) >> 32 for trigram in trigrams(term)))


def is_misspelt(word: str, other: str) -> bool:
    """Whether a word may be meant for another: few letters differ, or only their endings do."""
    longer = max(len(word), len(other))
    most = 2 if longer >= LONG else 1
    if abs(len(word) - len(other)) > most and word[:BEGINNING] != other[:BEGINNING]:
        return False
    begins = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    if begins >= max(BEGINNING, BEGINS * longer):
        return True
    return _edits(word[begins:], other[begins:], most) <= most


def _edits(one: str, other: str, most: int) -> int:
    """The letters to add, to take away, to replace or to exchange with the next; at least one more than `most`."""
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for to, letter in enumerate(other, 1):
            fewest = min(row[-1] + 1, before[to] + 1, before[to - 1] + (char != letter))
            if at > 1 and to > 1 and char == other[to - 2] and one[at - 2] == letter:
                fewest = min(fewest, earlier[to - 2] + 1)
            row.append(fewest)
    return row[-1]
