"""Error rates: how many words or characters of a text were read wrongly."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELLINGS = {"mr": "mister", "mrs": "missis", "dr": "doctor", "ok": "okay"}
_WORD = re.compile(r"\d+|[^\W\d_]+(?:'[^\W\d_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadErrors:
    """Wrong, missing and additional words or characters, and how many there are in the true text."""

    wrong: int
    total: int

    def __add__(self, other: "ReadErrors") -> "ReadErrors":
        return ReadErrors(wrong=self.wrong + other.wrong, total=self.total + other.total)

    @property
    def percent(self) -> float:
        return 100 * self.wrong / max(1, self.total)


NO_ERRORS = ReadErrors(wrong=0, total=0)


def word_errors(true: str, read: str) -> ReadErrors:
    """Case, punctuation and the spelling of numbers do not count."""
    words = spoken_words(true)
    return ReadErrors(wrong=_distance(words, spoken_words(read)), total=len(words))


def character_errors(true: str, read: str) -> ReadErrors:
    """Line breaks and the number of spaces do not count."""
    characters = " ".join(unicodedata.normalize("NFKC", true).split())
    found = " ".join(unicodedata.normalize("NFKC", read).split())
    return ReadErrors(wrong=_distance(characters, found), total=len(characters))


def spoken_words(text: str) -> list[str]:
    """The words of a text without case, punctuation and different spellings of small numbers."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).replace("’", "'").lower())
    return [part for word in found for part in _spoken(_SPELLINGS.get(word, word))]


def _spoken(word: str) -> list[str]:
    """A number up to 99 as it is said."""
    if not word.isdecimal() or len(word) > 2:
        return [word]
    number = int(word)
    if number < len(_ONES):
        return [_ONES[number]]
    tens, ones = divmod(number, 10)
    return [_TENS[tens], *([_ONES[ones]] if ones else [])]


def _distance(true: Sequence[str], read: Sequence[str]) -> int:
    """The least insertions, deletions and substitutions."""
    row = list(range(len(read) + 1))
    for number, one in enumerate(true, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(read, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (one != other))
    return row[-1]
