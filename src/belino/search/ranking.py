"""Ranking of a channel's messages: a pure function of the postings, the query and the weights.

Words find candidates; each candidate's score adds up the evidence for it: its own words, those around it, its author
and time, and whether it contains what the query asks for.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from math import inf
from typing import NamedTuple

from belino.domain.search import SearchQuery
from belino.search.dates import micros
from belino.search.passages import PassageHit, Passages, best_passages
from belino.search.postings import NO_PLACE, ChannelPostings
from belino.search.query import (
    MatchedWord,
    SearchRange,
    WeightedPostings,
    WeightedWord,
    named_people,
    phrase_numbers,
    wanted_flags,
    weighted_words,
)
from belino.search.segment import IMPACT_STEPS, MessageFlag
from belino.search.weights import WEIGHTS, Weights

SHOWN = 50
"""Results whose matched words are returned: no page is longer."""
FEW = 8
"""With fewer results than this, the latest media are added."""
HIDDEN = MessageFlag.GONE | MessageFlag.BLANK
MEDIA_SHOWN = 3
MEDIA_LOOKED_AT = 2_000
DATED_AT_MOST = 300
MANY = 800
LOOK_UP = 8
TOPIC_AT_MOST = 2.2
"""The most that repetitions of a word in a thread count for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Seqs, best first, and what was searched."""

    seqs: tuple[int, ...]
    scores: tuple[float, ...]
    """Of the first seqs; those that follow were found by words and not scored in full."""
    scanned: int
    first: int
    last: int
    """When the oldest and the newest message that was searched were sent, in microseconds."""
    newest: int
    """The newest seq that was searched."""
    recent_media: tuple[int, ...]
    only_recent: frozenset[int]
    """Seqs that are candidates only because they are new."""
    matched: Mapping[int, tuple[str, ...]]
    """The query's words in the first seqs, captions included, rarest first."""
    words: tuple[MatchedWord, ...]
    """The query's words that are in the channel, rarest first."""
    passages: Mapping[int, PassageHit]
    """The best part of a document by the seq of its message."""
    found_by_passage: frozenset[int]
    """Seqs whose document scores higher than their own words."""


def rank(index: ChannelPostings, documents: Passages, query: SearchQuery, weights: Weights = WEIGHTS) -> Ranking | None:
    """The messages that match a query best; None if there are none at all."""
    visible = _visible(index, query)
    if not visible.scanned:
        return None
    words = weighted_words(index, query.text, visible, weights)
    passages = best_passages(index, documents, query, visible, weights)
    scoring = _Scoring(index, query, weights, words, visible, passages)
    scores = scoring.scores()
    scored = _largest(scores, len(scores))
    # Later pages show the other matches too; the first page already counts them.
    best = scored + [place for place in scoring.best_found if place not in scores and scoring.may(place)]
    return Ranking(
        seqs=tuple(index.seqs[place] for place in best),
        scores=tuple(scores[place] for place in scored),
        scanned=visible.scanned,
        first=visible.first,
        last=visible.last,
        newest=index.seqs[visible.end - 1],
        recent_media=_media(index, visible) if query.of_media or len(best) < FEW else (),
        only_recent=frozenset(index.seqs[place] for place in scoring.latest() if not scoring.has_match(place)),
        matched=scoring.matched(best[:SHOWN]),
        words=tuple(word.match for word in sorted(words, key=lambda word: -word.worth) if word.exact),
        passages={index.seqs[place]: hit for place, hit in passages.items()},
        found_by_passage=frozenset(
            index.seqs[place] for place, hit in passages.items() if hit.score > scoring.own(place)
        ),
    )


def _visible(index: ChannelPostings, query: SearchQuery) -> SearchRange:
    """The places that may be found. They are in order of arrival, which is nearly always that of the times."""
    end = len(index) if query.until is None else bisect_right(index.seqs, query.until)
    since, times = None if query.since is None else micros(query.since), index.sents
    if not end:
        return SearchRange(0, 0, None, 0, 0, 0)
    if index.in_time:
        return _in_time(index, 0 if since is None else bisect_left(times, since, 0, end), end)
    gone = set(index.gone)
    seen = [sent for place, sent in enumerate(times[:end]) if (since is None or sent >= since) and place not in gone]
    return SearchRange(0, end, since, len(seen), min(seen, default=0), max(seen, default=0))


def _in_time(index: ChannelPostings, start: int, end: int) -> SearchRange:
    gone = bisect_left(index.gone, end) - bisect_left(index.gone, start)
    first, last = start, end - 1
    while first < last and index.flags[first] & MessageFlag.GONE:
        first += 1
    while first < last and index.flags[last] & MessageFlag.GONE:
        last -= 1
    return SearchRange(start, end, None, end - start - gone, index.sents[min(first, end - 1)], index.sents[last])


def _media(index: ChannelPostings, visible: SearchRange) -> tuple[int, ...]:
    found: list[int] = []
    for place in range(visible.end - 1, max(visible.start, visible.end - MEDIA_LOOKED_AT) - 1, -1):
        is_there = index.flags[place] & (MessageFlag.MEDIA | MessageFlag.GONE) == MessageFlag.MEDIA
        if is_there and visible.has(index, place):
            found.append(index.seqs[place])
            if len(found) == MEDIA_SHOWN:
                break
    return tuple(found)


class _Neighbours(NamedTuple):
    """A candidate, and the two messages before and after it in its thread or session, or NO_PLACE."""

    place: int
    before: int
    earlier: int
    after: int
    later: int


class _Scoring:
    """The candidates of one query, and how each is scored."""

    def __init__(
        self,
        index: ChannelPostings,
        query: SearchQuery,
        weights: Weights,
        words: Sequence[WeightedWord],
        visible: SearchRange,
        passages: Mapping[int, PassageHit],
    ) -> None:
        self.index = index
        self.weights = weights
        self.words = words
        self.visible = visible
        self.passages = passages
        self.total = sum(word.worth for word in words if word.exact) or 1.0
        self.people = named_people(index, query.text, query.authors, weights)
        self.wanted = wanted_flags(query.text, weights)
        self.spans = [(micros(first), micros(last)) for first, last in query.spans]
        self.phrases = [phrase_numbers(index, phrase) for phrase in query.phrases]
        self.found = _added(_rarest(words, weights.postings), weights.candidates)
        related = [WeightedWord(word.match, word.worth, word.related, ()) for word in words]
        self.related = _added(related, weights.synonym_candidates)
        self.best_found = _largest(self.found, weights.kept)
        self.pool = _among(index, self._pool())
        self.masks = self._masks()
        self.topics = self._topics(_rarest(words, weights.topic_postings))
        self.by_worth = sorted(range(len(words)), key=lambda at: -words[at].worth)
        self._worths: dict[int, float] = {}

    def scores(self) -> dict[int, float]:
        """The score of each candidate."""
        index, weights, people, topics = self.index, self.weights, self.people, self.topics
        newest = self.visible.end - 1
        scores: dict[int, float] = {}
        for near in self.pool:
            place = near[0]
            flags = index.flags[place]
            score = self.own(place)
            if place in self.passages:
                score += self.passages[place].score
            score += people.get(index.authors[place], 0.0)
            score += self._around(near)
            score += weights.topic * topics.get(index.groups[place], 0.0)
            for flag, weight in self.wanted:
                if flags & flag:
                    score += weight
            if flags & MessageFlag.QUESTION:
                score += weights.question
            if self.spans and self._is_dated(place):
                score += weights.dated
            for phrase in self.phrases:
                score += weights.phrase * any(_holds(index.terms(place), terms) for terms in phrase)
            scores[place] = score + weights.recent * weights.recent_half / (weights.recent_half + newest - place)
        return scores

    def own(self, place: int) -> float:
        """The part of a message's score that comes from its own words."""
        score = self.found.get(place, 0.0) + self.related.get(place, 0.0)
        return score + self.weights.coverage * self._worth(self.masks.get(place, 0)) / self.total

    def may(self, place: int) -> bool:
        """Whether a message may be found at all."""
        return self.visible.has(self.index, place) and not self.index.flags[place] & HIDDEN

    def latest(self) -> range:
        """The newest messages."""
        return range(max(self.visible.start, self.visible.end - self.weights.latest), self.visible.end)

    def matched(self, places: Iterable[int]) -> Mapping[int, tuple[str, ...]]:
        """The words of the query in messages, rarest first."""
        words: dict[int, tuple[str, ...]] = {}
        masks = {place: self.masks.get(place, 0) for place in places}
        for mask in set(masks.values()):
            words[mask] = tuple(self.words[at].match.word for at in self.by_worth if mask >> at & 1)
        return {self.index.seqs[place]: words[mask] for place, mask in masks.items()}

    def has_match(self, place: int) -> bool:
        """Whether any word of the query is in a message, its document, its neighbours or its thread."""
        index, found = self.index, self.found
        near = (place, index.before[place], index.after[place])
        inside = place in self.passages or place in self.related or index.groups[place] in self.topics
        return inside or any(at in found for at in near)

    def _around(self, near: _Neighbours) -> float:
        """The score from its neighbours: words of the query that it answers or continues."""
        place, before, earlier, after, later = near
        index, weights, found, masks = self.index, self.weights, self.found, self.masks
        mask = masks.get(place, 0)
        led = mask | masks.get(before, 0)
        window = led | masks.get(earlier, 0) | masks.get(after, 0) | masks.get(later, 0)
        score = 0.0
        if led != mask:
            score += weights.led_by * (self._worth(led) - self._worth(mask))
        follows_question = before != NO_PLACE and index.flags[before] & MessageFlag.QUESTION
        if follows_question and index.authors[before] != index.authors[place]:
            score += weights.answers + weights.answer * found.get(before, 0.0)
        score += weights.two_before * found.get(earlier, 0.0)
        score += weights.after * found.get(after, 0.0)
        score += weights.two_after * found.get(later, 0.0)
        if window != mask:
            score += weights.window * (self._worth(window) - self._worth(mask))
        return score

    def _worth(self, mask: int) -> float:
        """The sum of the weights of a mask's words."""
        worth = self._worths.get(mask)
        if worth is None:
            worth = sum(word.worth for at, word in enumerate(self.words) if mask >> at & 1)
            self._worths[mask] = worth
        return worth

    def _is_dated(self, place: int) -> bool:
        sent = self.index.sents[place]
        return any(first <= sent < last for first, last in self.spans)

    def _pool(self) -> list[int]:
        """Candidates: messages with the words, the neighbours of the best of them, and the newest messages."""
        index, weights, visible = self.index, self.weights, self.visible
        best = self.best_found[: weights.candidates]
        pool = dict.fromkeys(best)
        pool.update(dict.fromkeys(_largest(self.related, weights.synonym_candidates)))
        for link in (index.before, index.after):
            for place in best[: weights.surrounded]:
                for _ in range(2):
                    place = link[place]
                    if place == NO_PLACE:
                        break
                    pool[place] = None
        pool.update(dict.fromkeys(self.latest()))
        pool.update(dict.fromkeys(self._dated()))
        pool.update(dict.fromkeys(self.passages))
        if visible.start or visible.since is not None or visible.end < len(index):
            return [place for place in pool if self.may(place)]
        return [place for place in pool if not index.flags[place] & HIDDEN]

    def _dated(self) -> Iterator[int]:
        """Messages of a day that the query names are candidates whatever their text; of many, the newest."""
        times, visible = self.index.sents, self.visible
        for first, last in self.spans:
            if self.index.in_time:
                start, end = bisect_left(times, first, 0, visible.end), bisect_left(times, last, 0, visible.end)
                yield from range(max(start, end - DATED_AT_MOST), end)
            else:
                yield from [place for place in self.found if first <= times[place] < last]

    def _masks(self) -> Mapping[int, int]:
        """The words of the query in each candidate and its neighbours, as bits."""
        around = sorted(self.found.keys() & set(chain.from_iterable(self.pool)))
        masks: dict[int, int] = {}
        for at, word in enumerate(self.words):
            for _, base, places, _ in word.exact:
                few = around[bisect_left(around, base + places[0]) : bisect_right(around, base + places[-1])]
                for place in _both([place - base for place in few], places):
                    masks[base + place] = masks.get(base + place, 0) | 1 << at
        return masks

    def _topics(self, words: Sequence[WeightedWord]) -> Mapping[int, float]:
        """The scores of the candidates' threads and sessions as a whole."""
        groups, threads = self.index.groups, self.index.threads
        looked_at = {groups[near.place] for near in self.pool}
        topics: dict[int, float] = {}
        for word in words:
            times: Counter[int] = Counter()
            for _, base, places, _ in word.exact:
                said_in = map(groups.__getitem__, places) if not base else [groups[base + at] for at in places]
                times.update(filter(looked_at.__contains__, said_in))
                if threads:  # the first message of a thread is in another group, and shows what the thread is about
                    began = [threads[base + at] for at in places if base + at in threads]
                    times.update(filter(looked_at.__contains__, began))
            for group, count in times.items():
                often = count * TOPIC_AT_MOST / (count + TOPIC_AT_MOST - 1)
                topics[group] = topics.get(group, 0.0) + word.worth * often
        return topics


def _among(index: ChannelPostings, pool: Iterable[int]) -> list[_Neighbours]:
    """Candidates with their neighbours."""
    before, after = index.before, index.after
    nears: list[_Neighbours] = []
    for place in pool:
        led, on = before[place], after[place]
        earlier, later = NO_PLACE if led == NO_PLACE else before[led], NO_PLACE if on == NO_PLACE else after[on]
        nears.append(_Neighbours(place, led, earlier, on, later))
    return nears


def _rarest(words: Sequence[WeightedWord], most: int) -> list[WeightedWord]:
    """The rarest words with at most `most` messages together; if the rarest has more, its newest messages."""
    chosen: list[WeightedWord] = []
    spent = 0
    for word in sorted((word for word in words if word.exact), key=lambda word: word.times):
        spent += word.times
        if spent <= most:
            chosen.append(word)
        elif not chosen:
            return [WeightedWord(word.match, word.worth, _newest(word.exact, most), word.related)]
        else:
            break
    return chosen


def _newest(exact: Sequence[WeightedPostings], most: int) -> list[WeightedPostings]:
    """The last places. Segments follow one another, and patches come at the end."""
    kept: list[WeightedPostings] = []
    for postings in reversed(exact):
        if most > 0:
            cut = postings._replace(places=postings.places[-most:], impacts=postings.impacts[-most:])
            kept.append(cut)
            most -= len(cut.places)
    return kept[::-1]


def _added(words: Sequence[WeightedWord], enough: int) -> dict[int, float]:
    """BM25 of the messages that have any of the words, rarest words first.

    Once `enough` messages score more than all remaining words can add, those words find no new messages.
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


def _add(scores: dict[int, float], postings: WeightedPostings) -> None:
    each, base, get = postings.worth / IMPACT_STEPS, postings.base, scores.get
    if not scores:
        scores.update({base + place: each * impact for place, impact in zip(*postings[2:], strict=True)})
        return
    for place, impact in zip(postings.places, postings.impacts, strict=True):
        at = base + place
        scores[at] = get(at, 0.0) + each * impact


def _add_to_found(scores: dict[int, float], postings: WeightedPostings) -> None:
    each, base = postings.worth / IMPACT_STEPS, postings.base
    impact_of = dict(zip(postings.places, postings.impacts, strict=True))
    found = scores.keys() & impact_of.keys() if not base else [at for at in impact_of if base + at in scores]
    for place in found:
        scores[base + place] += each * impact_of[place]


def _both(few: Sequence[int], places: Sequence[int]) -> Iterable[int]:
    """The intersection of two ascending lists; a few look-ups are faster than a scan of many."""
    if len(places) < LOOK_UP * len(few):
        return set(few).intersection(places)
    found = [bisect_left(places, place) for place in few]
    return [place for place, at in zip(few, found, strict=True) if at < len(places) and places[at] == place]


def _largest(scores: Mapping[int, float], count: int) -> list[int]:
    """The places with the highest scores, best first; of equal ones the newest first."""
    least = sorted(scores.values())[-count] if len(scores) > count else -inf
    return [
        place
        for _, place in sorted(((score, place) for place, score in scores.items() if score >= least), reverse=True)
    ][:count]


def _holds(terms: Sequence[int], phrase: Sequence[int]) -> bool:
    """Whether the terms of a phrase follow one another."""
    length = len(phrase)
    return any(tuple(terms[at : at + length]) == tuple(phrase) for at in range(len(terms) - length + 1))
