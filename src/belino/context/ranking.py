"""Rank a channel's messages for a question: a pure function of the word index, the question and the weights."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from belino.context.weights import WEIGHTS, Weights
from belino.domain.concordance import NOBODY, Concordance, Mark
from belino.storage.segment import IMPACT_STEPS
from belino.storage.words import ask, name_parts

_VAGUE = frozenset(
    ("kind", "kinds", "type", "types", "name", "names", "many", "long", "often", "way", "ways", "thing", "things")
)
MEDIA_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody wants to find."""

    text: str
    since: int | None = None
    """Microseconds: nothing older."""
    authors: tuple[str, ...] = ()
    """Names or ids of people whose messages are preferred."""
    spans: tuple[tuple[int, int], ...] = ()
    """Times the text names, in microseconds."""
    until: int | None = None
    """The newest seq that counts, so that later pages belong to the first."""


class Reason(NamedTuple):
    """A word of the question that is in the channel."""

    word: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Seqs, best first, and what was looked through."""

    seqs: tuple[int, ...]
    scanned: int
    first: int
    last: int
    """When the oldest and the newest message were sent that were looked at."""
    newest: int
    """The newest seq there was."""
    recent_media: tuple[int, ...]
    reasons: tuple[Reason, ...]
    """The words it was looked for by, what says most first."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question, what it is worth, and the messages it is in."""

    reason: Reason
    numbers: frozenset[int]
    worth: float
    found: Sequence[tuple[int, Sequence[int], Sequence[int]]]


def rank(index: Concordance, question: Question, weights: Weights = WEIGHTS) -> Ranking | None:
    """The messages that answer a question best; None if there are none at all."""
    end = len(index) if question.until is None else _place_after(index, question.until)
    start = 0 if question.since is None else _first_since(index, question.since, end)
    if start >= end:
        return None
    words = _words(index, question, weights, end)
    found = _found(words, start, end)
    best = sorted(found, key=lambda place: (-found[place], -place))[: weights.candidates]
    scores = _Scores(index, question, weights, words, found).of(_with_neighbours(index, best, start, end))
    places = sorted(scores, key=lambda place: (-scores[place], -place)) or _recent(index, start, end)
    return Ranking(
        seqs=tuple(index.seqs[place] for place in places),
        scanned=end - start,
        first=index.sents[start],
        last=index.sents[end - 1],
        newest=index.seqs[end - 1],
        recent_media=_media(index, start, end),
        reasons=tuple(word.reason for word in sorted(words, key=lambda word: -word.worth) if word.found),
    )


def _place_after(index: Concordance, seq: int) -> int:
    return bisect_right(index.seqs, seq)


def _first_since(index: Concordance, since: int, end: int) -> int:
    place = end
    while place and index.sents[place - 1] >= since:
        place -= 1
    return place


def _recent(index: Concordance, start: int, end: int, count: int = 50) -> list[int]:
    return [place for place in range(end - 1, start - 1, -1) if not index.flags[place] & Mark.GONE][:count]


def _media(index: Concordance, start: int, end: int) -> tuple[int, ...]:
    found: list[int] = []
    for place in range(end - 1, max(start, end - 2_000) - 1, -1):
        if index.flags[place] & (Mark.MEDIA | Mark.GONE) == Mark.MEDIA:
            found.append(index.seqs[place])
            if len(found) == MEDIA_SHOWN:
                break
    return tuple(found)


def _words(index: Concordance, question: Question, weights: Weights, end: int) -> list[_Word]:
    names = {part for name in index.names for part in name_parts(name)}
    words: dict[tuple[str, ...], _Word] = {}
    for asked in ask(question.text, index.languages):
        if asked.terms in words:
            continue
        numbers = frozenset(index.number(term) for term in asked.terms)
        found = [lists for number in sorted(numbers) for lists in index.postings(number)]
        times = sum(len(places) for _, places, _ in found)
        share = weights.name if asked.word in names else weights.vague if asked.word in _VAGUE else 1.0
        idf = math.log(1 + (end - times + 0.5) / (times + 0.5))
        words[asked.terms] = _Word(Reason(asked.word, frozenset(asked.terms)), numbers, idf * share, found)
    return list(words.values())


def _found(words: Sequence[_Word], start: int, end: int) -> dict[int, float]:
    scores: dict[int, float] = {}
    for word in words:
        worth = word.worth / IMPACT_STEPS
        for base, places, impacts in word.found:
            for place, impact in zip(places, impacts, strict=True):
                scores[base + place] = scores.get(base + place, 0.0) + worth * impact
    if start or end < max(scores, default=0) + 1:
        return {place: score for place, score in scores.items() if start <= place < end}
    return scores


def _with_neighbours(index: Concordance, places: Sequence[int], start: int, end: int) -> set[int]:
    pool = set(places)
    for link in (index.before, index.after):
        for place in places:
            for _ in range(2):
                place = link[place]
                if place == NOBODY or not start <= place < end:
                    break
                pool.add(place)
    return {place for place in pool if not index.flags[place] & Mark.GONE}


class _Scores:
    """One question's closer look at its candidates."""

    def __init__(
        self,
        index: Concordance,
        question: Question,
        weights: Weights,
        words: Sequence[_Word],
        found: Mapping[int, float],
    ) -> None:
        self.index = index
        self.question = question
        self.weights = weights
        self.words = words
        self.found = found
        self.total = sum(word.worth for word in words) or 1.0
        self.order = {number: at for at, word in enumerate(words) for number in word.numbers}
        self.people = self._people()
        self.topics = self._topics()

    def of(self, pool: set[int]) -> dict[int, float]:
        own = {place: self._own(place) for place in pool}
        return {place: self._around(place, own) for place in pool}

    def _people(self) -> Mapping[int, float]:
        """What the authors that are named or wanted add."""
        said = set(name_parts(self.question.text))
        wanted = {author.casefold().lstrip("@") for author in self.question.authors}
        people: dict[int, float] = {}
        for place, (author, name) in enumerate(zip(self.index.ids, self.index.names, strict=True)):
            parts = name_parts(name)
            share = sum(part in said for part in parts) / len(parts) if parts else 0.0
            weight = self.weights.author * share
            if wanted & {author.casefold(), name.casefold(), *parts}:
                weight += self.weights.wanted
            if weight:
                people[place] = weight
        return people

    def _topics(self) -> Mapping[int, float]:
        """What threads and sessions score as a whole."""
        topics: dict[int, float] = {}
        groups = self.index.groups
        for word in self.words:
            times: dict[int, int] = {}
            for base, places, _ in word.found:
                for place in places:
                    group = groups[base + place]
                    times[group] = times.get(group, 0) + 1
            for group, count in times.items():
                topics[group] = topics.get(group, 0.0) + word.worth * count * 2.2 / (count + 1.2)
        return topics

    def _own(self, place: int) -> float:
        score = self.found.get(place, 0.0)
        if score:
            at = [self.order.get(number, -9) for number in self.index.terms(place)]
            covered = sum(self.words[word].worth for word in set(at) if word >= 0)
            pairs = sum(second == first + 1 for first, second in pairwise(at))
            score += self.weights.pair * pairs * self.total / len(self.words)
            score *= 1 + self.weights.coverage * covered / self.total
        return score + self.people.get(self.index.authors[place], 0.0)

    def _around(self, place: int, own: Mapping[int, float]) -> float:
        index, weights, found = self.index, self.weights, self.found
        score = own[place]
        before = index.before[place]
        for link in (index.before, index.after):
            next_to = link[place]
            if next_to != NOBODY:
                score += weights.beside * found.get(next_to, 0.0)
                two_away = link[next_to]
                if two_away != NOBODY:
                    score += weights.near * found.get(two_away, 0.0)
        if before != NOBODY and index.flags[before] & Mark.QUESTION and index.authors[before] != index.authors[place]:
            score += weights.answer * own.get(before, found.get(before, 0.0))
        score += weights.topic * self.topics.get(index.groups[place], 0.0)
        if index.flags[place] & Mark.QUESTION:
            score *= weights.question
        if any(first <= index.sents[place] < last for first, last in self.question.spans):
            score *= weights.dated
        return score
