"""What a question asks for: its words and what each is worth, the people it names, the sort of answer it wants."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from belino.domain.concordance import Concordance, Mark
from belino.search.synonyms import alike, derived
from belino.search.tokenizer import Asked, ask, fold, in_a_row, name_parts
from belino.search.weights import Weights

# Words that frame a question in English more than they are part of its answer.
_FRAMING = """
    according activities activity based became become both came certain come consider considered current currently
    decide decided describe described different discuss discussed discussion do done during enjoy event events example
    experience experienced favorite feel feels felt find first found gave get getting give go goes going gone got
    happen happened kind kinds last like liked likes long look looking made main make making many mention mentioned
    name names new often particular plan planned planning reason receive received recent recently regarding related
    said say says see seen share shared sort specific start started take taken talk talked tell think thing things
    thought time times took told tried try two type types use used using various visit want wanted wants way ways went
"""
_VAGUE = frozenset(_FRAMING.split())
_WHEN = re.compile(
    r"^\W*(when|wann|quand|cuándo|quando|когда)\b|\bhow (long|recently)\b|什么时候|什麼時候|いつ|متى", re.IGNORECASE
)
_COUNT = re.compile(
    r"\bhow (many|much|often|old)\b|\b(wie ?viele?|combien|cuánt\w+|quant[oi]|сколько)\b|多少|几个|いくつ|كم",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"^\W*(who|which|whose|wer|qui|quién|chi|кто)\b|\b(names?|called|nicknames?)\b|谁|誰|من هو", re.IGNORECASE
)


class Postings(NamedTuple):
    """The messages of one stretch that have a term."""

    worth: float
    """What the term is worth, once."""
    base: int
    places: Sequence[int]
    impacts: Sequence[int]


class Reason(NamedTuple):
    """A word of the question that is in the channel."""

    word: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: what it is worth, and where it and its kin are."""

    reason: Reason
    worth: float
    exact: Sequence[Postings]
    kin: Sequence[Postings]

    @property
    def times(self) -> int:
        return sum(len(postings.places) for postings in self.exact)


class Visible(NamedTuple):
    """The messages that may be found: those from `start` up to `end`, and not older than `since` if that is given."""

    start: int
    end: int
    since: int | None
    scanned: int
    first: int
    last: int

    def has(self, index: Concordance, place: int) -> bool:
        return self.start <= place < self.end and (self.since is None or index.sents[place] >= self.since)


def words_of(index: Concordance, text: str, visible: Visible, weights: Weights) -> list[Word]:
    """The question's words, each once."""
    words: dict[tuple[str, ...], Word] = {}
    for asked in ask(text, index.languages):
        if asked.terms not in words:
            share, kin = share_of(index, asked, weights), not _is_name(index, asked)
            words[asked.terms] = _word(index, asked, share, visible, weights, kin=kin)
    return list(words.values())


def share_of(index: Concordance, asked: Asked, weights: Weights) -> float:
    """How much of a word's worth counts, for what it is in a question."""
    return weights.name if _is_name(index, asked) else weights.vague if asked.word in _VAGUE else 1.0


def _is_name(index: Concordance, asked: Asked) -> bool:
    return asked.word.removesuffix("'s").lstrip("@") in index.called


def _word(index: Concordance, asked: Asked, share: float, visible: Visible, weights: Weights, *, kin: bool) -> Word:
    own = [index.number(term) for term in asked.terms]
    exact = _postings(index, own, share, visible)
    others: list[Postings] = []
    times = sum(len(postings.places) for postings in exact)
    if kin and times < weights.rare and asked.word.isascii() and asked.word.isalpha():
        seen = set(own)
        for terms, worth in ((derived(asked.word), weights.derived), (alike(asked.word), weights.alike)):
            numbers = [number for number in map(index.number, terms) if number not in seen]
            seen.update(numbers)
            others += _postings(index, numbers, share * worth, visible)
    worth = max((postings.worth for postings in exact), default=0.0)
    return Word(Reason(asked.word, frozenset(asked.terms)), worth, exact, others)


def _postings(index: Concordance, numbers: Iterable[int], share: float, visible: Visible) -> list[Postings]:
    """Where terms are, cut to what may be found; the rarer they are together, the more each place is worth."""
    found = [lists for number in numbers for lists in index.postings(number)]
    if visible.start or visible.end < len(index):
        found = [_cut(*lists, visible) for lists in found]
    times = sum(len(places) for _, places, _ in found)
    size = visible.end - visible.start
    worth = share * log(1 + (max(0, size - times) + 0.5) / (times + 0.5))
    return [Postings(worth, *lists) for lists in found if lists[1]]


def _cut(
    base: int, places: Sequence[int], impacts: Sequence[int], visible: Visible
) -> tuple[int, Sequence[int], Sequence[int]]:
    start, end = bisect_left(places, visible.start - base), bisect_left(places, visible.end - base)
    return base, places[start:end], impacts[start:end]


def phrase_of(index: Concordance, phrase: str) -> list[tuple[int, ...]]:
    """The rows of terms that a phrase may be kept as."""
    return [tuple(map(index.number, terms)) for terms in in_a_row(phrase, index.languages)]


def named_people(index: Concordance, text: str, wanted: Sequence[str], weights: Weights) -> Mapping[int, float]:
    """What it adds that somebody said it whom the question names, or the caller asks for."""
    people: dict[int, float] = {}
    for part in dict.fromkeys(name_parts(text)):
        for place in index.called.get(part, ()):
            share = 1 / max(1, len(name_parts(index.names[place])))
            people[place] = min(weights.author, people.get(place, 0.0) + weights.author * share)
    asked = {fold(author).lstrip("@") for author in wanted}
    for place, (author, name) in enumerate(zip(index.ids, index.names, strict=True)) if asked else ():
        if asked & {fold(author), fold(name), *name_parts(name)}:
            people[place] = people.get(place, 0.0) + weights.wanted
    return people


def wanted_marks(text: str, weights: Weights) -> list[tuple[int, float]]:
    """Marks of messages that have the sort of thing the question asks for."""
    wanted = [(Mark.NAME, weights.informative)]
    if _WHEN.search(text):
        wanted.append((Mark.TIME, weights.time_asked))
    if _COUNT.search(text):
        wanted.append((Mark.NUMBER, weights.number_asked))
    if _NAME.search(text):
        wanted.append((Mark.NAME, weights.name_asked))
    return wanted
