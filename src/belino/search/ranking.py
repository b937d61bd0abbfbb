"""Rank a channel's messages for a question: a pure function of the word index, the question and the weights.

Words find candidates; a closer look at each adds up what speaks for it: its own words, those around it, who said it
and when, and whether it has what the question asks for.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from math import inf
from typing import NamedTuple

from belino.domain.concordance import NOBODY, Concordance, Mark
from belino.search.passages import Hit, best_passages
from belino.search.query import Postings, Reason, Visible, Word, named_people, phrase_of, wanted_marks, words_of
from belino.search.segment import IMPACT_STEPS
from belino.search.weights import WEIGHTS, Weights

SHOWN = 50
"""Results of which it is kept what they matched: no page is longer."""
FEW = 8
"""Fewer results than a page holds leave room for the latest media."""
HIDDEN = Mark.GONE | Mark.BLANK
MEDIA_SHOWN = 3
MEDIA_LOOKED_AT = 2_000
DATED_AT_MOST = 300
MANY = 800
LOOK_UP = 8
TOPIC_AT_MOST = 2.2
"""However often a thread repeats a word, it counts for no more than this many."""


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
    phrases: tuple[str, ...] = ()
    """What is to be found word for word."""
    of_media: bool = False
    """It is about something that was sent rather than said."""
    until: int | None = None
    """The newest seq that counts, so that later pages belong to the first."""


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
    lately: frozenset[int]
    """Seqs for which only speaks that they are new."""
    matched: Mapping[int, tuple[str, ...]]
    """The question's words in those seqs that were looked at closely, captions included, what says most first."""
    reasons: tuple[Reason, ...]
    """The words it was looked for by, what says most first."""
    passages: Mapping[int, Hit]
    """The parts of documents that speak for seqs."""
    read_rather_than_said: frozenset[int]
    """Seqs for which a document speaks more than their own words do."""


def rank(index: Concordance, question: Question, weights: Weights = WEIGHTS) -> Ranking | None:
    """The messages that serve a question best; None if there are none at all."""
    visible = _visible(index, question)
    if not visible.scanned:
        return None
    words = words_of(index, question.text, visible, weights)
    passages = best_passages(index, question.text, question.phrases, visible, weights)
    look = _Look(index, question, weights, words, visible, passages)
    scores = look.scores()
    best = _largest(scores, len(scores))
    # Who turns pages wants the rest too, though nobody looked at it closely; the first page counts it already.
    best += [place for place in look.best_found if place not in scores and look.may(place)]
    return Ranking(
        seqs=tuple(index.seqs[place] for place in best),
        scanned=visible.scanned,
        first=visible.first,
        last=visible.last,
        newest=index.seqs[visible.end - 1],
        recent_media=_media(index, visible) if question.of_media or len(best) < FEW else (),
        lately=frozenset(index.seqs[place] for place in look.latest() if not look.speaks_for(place)),
        matched=look.matched(best[:SHOWN]),
        reasons=tuple(word.reason for word in sorted(words, key=lambda word: -word.worth) if word.exact),
        passages={index.seqs[place]: hit for place, hit in passages.items()},
        read_rather_than_said=frozenset(
            index.seqs[place] for place, hit in passages.items() if hit.score > look.said(place)
        ),
    )


def _visible(index: Concordance, question: Question) -> Visible:
    """What may be found. Places are in the order of arrival, which is nearly always that of the times."""
    end = len(index) if question.until is None else bisect_right(index.seqs, question.until)
    since, times = question.since, index.sents
    if not end:
        return Visible(0, 0, None, 0, 0, 0)
    if index.in_time:
        return _in_time(index, 0 if since is None else bisect_left(times, since, 0, end), end)
    gone = set(index.gone)
    seen = [sent for place, sent in enumerate(times[:end]) if (since is None or sent >= since) and place not in gone]
    return Visible(0, end, since, len(seen), min(seen, default=0), max(seen, default=0))


def _in_time(index: Concordance, start: int, end: int) -> Visible:
    gone = bisect_left(index.gone, end) - bisect_left(index.gone, start)
    first, last = start, end - 1
    while first < last and index.flags[first] & Mark.GONE:
        first += 1
    while first < last and index.flags[last] & Mark.GONE:
        last -= 1
    return Visible(start, end, None, end - start - gone, index.sents[min(first, end - 1)], index.sents[last])


def _media(index: Concordance, visible: Visible) -> tuple[int, ...]:
    found: list[int] = []
    for place in range(visible.end - 1, max(visible.start, visible.end - MEDIA_LOOKED_AT) - 1, -1):
        if index.flags[place] & (Mark.MEDIA | Mark.GONE) == Mark.MEDIA and visible.has(index, place):
            found.append(index.seqs[place])
            if len(found) == MEDIA_SHOWN:
                break
    return tuple(found)


class _Near(NamedTuple):
    """A candidate, and the places of the two messages before and after it in its thread or session, or NOBODY."""

    place: int
    before: int
    earlier: int
    after: int
    later: int


class _Look:
    """One question's closer look at its candidates."""

    def __init__(
        self,
        index: Concordance,
        question: Question,
        weights: Weights,
        words: Sequence[Word],
        visible: Visible,
        passages: Mapping[int, Hit],
    ) -> None:
        self.index = index
        self.question = question
        self.weights = weights
        self.words = words
        self.visible = visible
        self.passages = passages
        self.total = sum(word.worth for word in words if word.exact) or 1.0
        self.people = named_people(index, question.text, question.authors, weights)
        self.wanted = wanted_marks(question.text, weights)
        self.phrases = [phrase_of(index, phrase) for phrase in question.phrases]
        self.found = _added(_rarest(words, weights.postings), weights.candidates)
        self.kin = _added([Word(word.reason, word.worth, word.kin, ()) for word in words], weights.kin_candidates)
        self.best_found = _largest(self.found, weights.kept)
        self.pool = _among(index, self._pool())
        self.masks = self._masks()
        self.topics = self._topics(_rarest(words, weights.topic_postings))
        self.by_worth = sorted(range(len(words)), key=lambda at: -words[at].worth)
        self._worths: dict[int, float] = {}

    def scores(self) -> dict[int, float]:
        """What speaks for each candidate, all in all."""
        index, weights, people, topics = self.index, self.weights, self.people, self.topics
        newest = self.visible.end - 1
        scores: dict[int, float] = {}
        for near in self.pool:
            place = near[0]
            flags = index.flags[place]
            score = self.said(place)
            if place in self.passages:
                score += self.passages[place].score
            score += people.get(index.authors[place], 0.0)
            score += self._around(near)
            score += weights.topic * topics.get(index.groups[place], 0.0)
            for mark, weight in self.wanted:
                if flags & mark:
                    score += weight
            if flags & Mark.QUESTION:
                score += weights.question
            if self.question.spans and self._is_dated(place):
                score += weights.dated
            for phrase in self.phrases:
                score += weights.phrase * any(_holds(index.terms(place), terms) for terms in phrase)
            scores[place] = score + weights.recent * weights.recent_half / (weights.recent_half + newest - place)
        return scores

    def said(self, place: int) -> float:
        """What a message's own words speak for it."""
        score = self.found.get(place, 0.0) + self.kin.get(place, 0.0)
        return score + self.weights.coverage * self._worth(self.masks.get(place, 0)) / self.total

    def may(self, place: int) -> bool:
        """Whether a message may be found at all."""
        return self.visible.has(self.index, place) and not self.index.flags[place] & HIDDEN

    def latest(self) -> range:
        """The newest messages."""
        return range(max(self.visible.start, self.visible.end - self.weights.latest), self.visible.end)

    def matched(self, places: Iterable[int]) -> Mapping[int, tuple[str, ...]]:
        """The words of the question that messages have, what says most first."""
        told: dict[int, tuple[str, ...]] = {}
        masks = {place: self.masks.get(place, 0) for place in places}
        for mask in set(masks.values()):
            told[mask] = tuple(self.words[at].reason.word for at in self.by_worth if mask >> at & 1)
        return {self.index.seqs[place]: told[mask] for place, mask in masks.items()}

    def speaks_for(self, place: int) -> bool:
        """Whether any word of the question is in a message, in what it brought, next to it, or in its thread."""
        index, found = self.index, self.found
        near = (place, index.before[place], index.after[place])
        told = place in self.passages or place in self.kin or index.groups[place] in self.topics
        return told or any(at in found for at in near)

    def _around(self, near: _Near) -> float:
        """What the messages around it add: words of the question that it answers or goes on about."""
        place, before, earlier, after, later = near
        index, weights, found, masks = self.index, self.weights, self.found, self.masks
        mask = masks.get(place, 0)
        led = mask | masks.get(before, 0)
        window = led | masks.get(earlier, 0) | masks.get(after, 0) | masks.get(later, 0)
        score = 0.0
        if led != mask:
            score += weights.led_by * (self._worth(led) - self._worth(mask))
        if before != NOBODY and index.flags[before] & Mark.QUESTION and index.authors[before] != index.authors[place]:
            score += weights.answers + weights.answer * found.get(before, 0.0)
        score += weights.two_before * found.get(earlier, 0.0)
        score += weights.after * found.get(after, 0.0)
        score += weights.two_after * found.get(later, 0.0)
        if window != mask:
            score += weights.window * (self._worth(window) - self._worth(mask))
        return score

    def _worth(self, mask: int) -> float:
        """What the words of a mask are worth together."""
        worth = self._worths.get(mask)
        if worth is None:
            worth = sum(word.worth for at, word in enumerate(self.words) if mask >> at & 1)
            self._worths[mask] = worth
        return worth

    def _is_dated(self, place: int) -> bool:
        sent = self.index.sents[place]
        return any(first <= sent < last for first, last in self.question.spans)

    def _pool(self) -> list[int]:
        """Candidates: what the words found, what stands around the best of it, and what was said lately."""
        index, weights, visible = self.index, self.weights, self.visible
        best = self.best_found[: weights.candidates]
        pool = dict.fromkeys(best)
        pool.update(dict.fromkeys(_largest(self.kin, weights.kin_candidates)))
        for link in (index.before, index.after):
            for place in best[: weights.surrounded]:
                for _ in range(2):
                    place = link[place]
                    if place == NOBODY:
                        break
                    pool[place] = None
        pool.update(dict.fromkeys(self.latest()))
        pool.update(dict.fromkeys(self._dated()))
        pool.update(dict.fromkeys(self.passages))
        if visible.start or visible.since is not None or visible.end < len(index):
            return [place for place in pool if self.may(place)]
        return [place for place in pool if not index.flags[place] & HIDDEN]

    def _dated(self) -> Iterator[int]:
        """Messages of a day that the question names are candidates whatever they say, the newest if they are many."""
        times, visible = self.index.sents, self.visible
        for first, last in self.question.spans:
            if self.index.in_time:
                start, end = bisect_left(times, first, 0, visible.end), bisect_left(times, last, 0, visible.end)
                yield from range(max(start, end - DATED_AT_MOST), end)
            else:
                yield from [place for place in self.found if first <= times[place] < last]

    def _masks(self) -> Mapping[int, int]:
        """Which words of the question each candidate and its neighbours hold, as bits."""
        around = sorted(self.found.keys() & set(chain.from_iterable(self.pool)))
        masks: dict[int, int] = {}
        for at, word in enumerate(self.words):
            for _, base, places, _ in word.exact:
                few = around[bisect_left(around, base + places[0]) : bisect_right(around, base + places[-1])]
                for place in _both([place - base for place in few], places):
                    masks[base + place] = masks.get(base + place, 0) | 1 << at
        return masks

    def _topics(self, words: Sequence[Word]) -> Mapping[int, float]:
        """What the threads and sessions of the candidates say of the question as a whole."""
        groups, threads = self.index.groups, self.index.threads
        looked_at = {groups[near.place] for near in self.pool}
        topics: dict[int, float] = {}
        for word in words:
            times: Counter[int] = Counter()
            for _, base, places, _ in word.exact:
                said_in = map(groups.__getitem__, places) if not base else [groups[base + at] for at in places]
                times.update(filter(looked_at.__contains__, said_in))
                if threads:  # what began a thread is said in its own place, and is what the thread is about
                    began = [threads[base + at] for at in places if base + at in threads]
                    times.update(filter(looked_at.__contains__, began))
            for group, count in times.items():
                often = count * TOPIC_AT_MOST / (count + TOPIC_AT_MOST - 1)
                topics[group] = topics.get(group, 0.0) + word.worth * often
        return topics


def _among(index: Concordance, pool: Iterable[int]) -> list[_Near]:
    """Candidates among what stands around them."""
    before, after = index.before, index.after
    nears: list[_Near] = []
    for place in pool:
        led, on = before[place], after[place]
        earlier, later = NOBODY if led == NOBODY else before[led], NOBODY if on == NOBODY else after[on]
        nears.append(_Near(place, led, earlier, on, later))
    return nears


def _rarest(words: Sequence[Word], most: int) -> list[Word]:
    """The rarest words whose messages are no more than that together; if even one is in too many, the newest of it."""
    chosen: list[Word] = []
    spent = 0
    for word in sorted((word for word in words if word.exact), key=lambda word: word.times):
        spent += word.times
        if spent <= most:
            chosen.append(word)
        elif not chosen:
            return [Word(word.reason, word.worth, _newest(word.exact, most), word.kin)]
        else:
            break
    return chosen


def _newest(exact: Sequence[Postings], most: int) -> list[Postings]:
    """The last places of all. Stretches follow one another, and what was changed since comes at the end."""
    kept: list[Postings] = []
    for postings in reversed(exact):
        if most > 0:
            cut = postings._replace(places=postings.places[-most:], impacts=postings.impacts[-most:])
            kept.append(cut)
            most -= len(cut.places)
    return kept[::-1]


def _added(words: Sequence[Word], enough: int) -> dict[int, float]:
    """BM25 of the messages that have any of the words, rarest words first.

    Once `enough` of many messages score more than the words that are left, these only add to what others have found.
    """
    scores: dict[int, float] = {}
    left = sum(word.worth for word in words)
    for word in words:
        found = len(scores) > MANY and nlargest(enough, scores.values())[-1] >= left
        left -= word.worth
        for postings in word.exact:
            if found:
                _add_to_found(scores, postings)
            else:
                _add(scores, postings)
    return scores


def _add(scores: dict[int, float], postings: Postings) -> None:
    each, base, get = postings.worth / IMPACT_STEPS, postings.base, scores.get
    if not scores:
        scores.update({base + place: each * impact for place, impact in zip(*postings[2:], strict=True)})
        return
    for place, impact in zip(postings.places, postings.impacts, strict=True):
        at = base + place
        scores[at] = get(at, 0.0) + each * impact


def _add_to_found(scores: dict[int, float], postings: Postings) -> None:
    each, base = postings.worth / IMPACT_STEPS, postings.base
    impact_of = dict(zip(postings.places, postings.impacts, strict=True))
    found = scores.keys() & impact_of.keys() if not base else [at for at in impact_of if base + at in scores]
    for place in found:
        scores[base + place] += each * impact_of[place]


def _both(few: Sequence[int], places: Sequence[int]) -> Iterable[int]:
    """What is in both of two ascending lists; looking up a few is quicker than walking through many."""
    if len(places) < LOOK_UP * len(few):
        return set(few).intersection(places)
    found = [bisect_left(places, place) for place in few]
    return [place for place, at in zip(few, found, strict=True) if at < len(places) and places[at] == place]


def _largest(scores: Mapping[int, float], count: int) -> list[int]:
    """The places that score most, best first; of those that score alike the newest."""
    least = sorted(scores.values())[-count] if len(scores) > count else -inf
    return [
        place
        for _, place in sorted(((score, place) for place, score in scores.items() if score >= least), reverse=True)
    ][:count]


def _holds(terms: Sequence[int], phrase: Sequence[int]) -> bool:
    """Whether the terms of a phrase stand side by side."""
    length = len(phrase)
    return any(tuple(terms[at : at + length]) == tuple(phrase) for at in range(len(terms) - length + 1))
