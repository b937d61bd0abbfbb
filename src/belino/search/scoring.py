"""Scoring: the candidates of one query, and the evidence for each that adds up to its score.

Words find candidates. A candidate's own words count most; then those around it, as far as the channel is a dialogue,
those of its thread or session as a whole, its author and time, and whether it contains what the query asks for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain, islice
from math import inf, log
from typing import NamedTuple

from belino.domain.search import HitKind, SearchIntent, SearchQuery
from belino.search.dates import DayRange, micros
from belino.search.marks import asked_marks
from belino.search.near import nearness
from belino.search.passages import FoundPassages
from belino.search.people import newest_of
from belino.search.postings import ChannelPostings
from belino.search.query import (
    SearchRange,
    WeightedPostings,
    WeightedWord,
    phrase_numbers,
    wanted_flags,
)
from belino.search.segment import IMPACT_STEPS, THREAD, MessageFlag
from belino.search.tail import NO_PLACE, IndexRow
from belino.search.weights import Weights

HIDDEN = MessageFlag.GONE | MessageFlag.BLANK
DATED_AT_MOST = 300
PEOPLE_AT_MOST = 5
"""People named in a query whose newest messages are candidates."""
MANY = 800
TURN = 3
"""Messages of a turn that are looked at, nearest first."""
REACH = 8
"""Messages that are looked at to either side of a candidate."""
BEFORE, AFTER = IndexRow._fields.index("before"), IndexRow._fields.index("after")


class Turns(NamedTuple):
    """The messages around a candidate in its thread or session: a turn is what one person says without a break."""

    own: tuple[int, ...]
    """The others of its own turn."""
    before: tuple[int, ...]
    earlier: tuple[int, ...]
    after: tuple[int, ...]
    later: tuple[int, ...]
    asked: bool
    """Whether the turn before has a question."""


class Scoring:
    """The candidates of one intent, and how each is scored."""

    def __init__(
        self,
        index: ChannelPostings,
        query: SearchQuery,
        intent: SearchIntent,
        weights: Weights,
        people: Mapping[int, float],
        words: Sequence[WeightedWord],
        visible: SearchRange,
        passages: FoundPassages,
    ) -> None:
        self.index = index
        self.weights = weights
        self.words = words
        self.visible = visible
        self.passages = passages.hits
        self.worths = passages.worths
        self.is_specific = any(word.is_specific and (word.exact or word.related) for word in words)
        """Whether any message has a word that names what is searched for."""
        self.total = max(sum(self.worths), 0.0 if self.is_specific else weights.least_total) or 1.0
        self.people = people
        self.wanted = wanted_flags(intent.text, weights)
        self.spans = [(micros(first), micros(last)) for first, last in intent.spans]
        self.dated = weights.dated * self._selectivity()
        self.days = self._naming_days(intent)
        self.anchor = None if query.near is None else index.place(query.near)
        self.near = {} if self.anchor is None else nearness(index, self.anchor, visible, weights)
        self.phrases = [phrase_numbers(index, phrase) for phrase in intent.phrases]
        self.found = _added(_rarest(words, weights.postings), weights.candidates)
        related = [WeightedWord(word.match, word.worth, word.related, ()) for word in words]
        self.related = _added(related, weights.synonym_candidates)
        self.best_found = largest(self.found, weights.kept)
        self.dialogue: float = min(1.0, 2 / max(index.talkers, 1.0)) ** weights.crowd
        """The share of evidence from around a message that counts: who answers whom is clear between two people."""
        self.pool = self._pool()
        self.groups = {place: index.thread(place) or index.rows[place].group for place in self.pool}
        """The thread of each candidate, also of one that began it; else its session."""
        self.turns = {
            place: _turns(index, place)
            for place in (self.pool if self._looks_around else ())
            if self._dialogue_of(index.rows[place].author) >= weights.least_dialogue
        }
        matches = self._matches()
        self.masks = {place: mask for place, (mask, _) in matches.items()}
        self._followed = {place: followed for place, (_, followed) in matches.items() if followed}
        self.topics = self._topics(_rarest(words, weights.topic_postings))
        self.by_worth = sorted(range(len(words)), key=lambda at: -words[at].worth)
        self._worths: dict[int, float] = {}

    def scores(self) -> dict[int, float]:
        """The score of each candidate."""
        rows, people, near, passages = self.index.rows, self.people, self.near, self.passages
        leads, topic, topics, groups = self._leads(), self.weights.topic, self.topics, self.groups
        scores: dict[int, float] = {}
        for place in self.pool:
            row, group = rows[place], groups[place]
            score = self.own(place) + people.get(row.author, 0.0) + near.get(place, 0.0)
            score += topic * topics.get(group, 0.0) + leads.get(group, 0.0)
            if passages:
                score += self._file(row, place)
            if place in self.turns:
                score += self._around(row, place)
            scores[place] = score + self._kind(row, place) + self._time(place)
        return scores

    def _file(self, row: IndexRow, place: int) -> float:
        """The score of what a message brought, where documents have words of the query."""
        weights, mask, score = self.weights, self.masks.get(place, 0), 0.0
        if row.flags & MessageFlag.MEDIA:
            score += weights.named * self._worth(mask) / self.total
        return score + (self.read(place, mask) if place in self.passages else 0.0)

    def _kind(self, row: IndexRow, place: int) -> float:
        """The score of a message that has what is asked for; of a question, less."""
        flags, score = row.flags, 0.0
        if place in self.passages:
            flags |= self.passages[place].flags & ~MessageFlag.QUESTION
        for flag, weight in self.wanted:
            if flags & flag:
                score += weight
        return score + self.weights.question * self.dialogue if flags & MessageFlag.QUESTION else score

    def _time(self, place: int) -> float:
        """The score of a message of a time that the query names, or that names it; of a new message a little more."""
        weights = self.weights
        age = self.visible.end - 1 - place
        score = weights.recent * weights.recent_half / (weights.recent_half + age)
        dated = self.dated if self.spans and self._is_dated(place) else 0.0
        return score + max(dated, weights.names_day if place in self.days else 0.0)

    def own(self, place: int) -> float:
        """The part of a message's score that comes from its own words."""
        score = self.found.get(place, 0.0) + self.related.get(place, 0.0)
        mask = self.masks.get(place, 0)
        if place in self._followed:
            score += self.weights.pair * self._pairs(self._followed[place])
        for phrase in self.phrases:
            score += self.weights.phrase * any(_holds(self.index.terms(place), terms) for terms in phrase)
        return score + self.weights.coverage * self._worth(mask) / self.total

    def read(self, place: int, known: int = 0) -> float:
        """The part of its score that comes from its document; words that are `known` from itself count once."""
        hit, weights = self.passages[place], self.weights
        return hit.score + weights.body * weights.coverage * self._worth(hit.words & ~known) / self.total

    def is_visible(self, place: int) -> bool:
        """Whether a message may be found, unless it is deleted or empty."""
        return place != self.anchor and self.visible.has(self.index, place)

    def matched(self, places: Mapping[int, int]) -> Mapping[int, tuple[str, ...]]:
        """The words of the query in messages, rarest first; `places` with their seqs."""
        words: dict[int, tuple[str, ...]] = {}
        masks = {place: self.masks.get(place, 0) for place in places}
        for mask in set(masks.values()):
            words[mask] = tuple(self.words[at].match.word for at in self.by_worth if mask >> at & 1)
        return {places[place]: words[mask] for place, mask in masks.items()}

    def kind(self, place: int) -> HitKind:
        """What relates a message to the query. An author decides only where no message has the words."""
        found, row = self.found, self.index.rows[place]
        inside = place in found or place in self.related or place in self.passages or place in self.days
        if inside or (self.spans and self._is_dated(place)):
            return HitKind.FOUND
        if row.author in self.people:
            return HitKind.NEARBY if self.is_specific else HitKind.FOUND
        around = self.groups[place] in self.topics or row.before in found or row.after in found or place in self.near
        return HitKind.NEARBY if around else HitKind.RECENT

    @property
    def _looks_around(self) -> bool:
        return bool(self.people) or self.dialogue >= self.weights.least_dialogue

    def _dialogue_of(self, author: int) -> float:
        """The share of evidence from around a person's messages that counts: all of it where the query names them."""
        return 1.0 if author in self.people else self.dialogue

    def _around(self, row: IndexRow, place: int) -> float:
        """The score from the turns around it: words of the query that it answers or continues.

        A message that says little ("yes", "haha") is no answer, whatever is around it.
        """
        turns, weights, found = self.turns[place], self.weights, self.found
        mask = self.masks.get(place, 0)
        window = self._mask(chain.from_iterable(turns[:5]), mask)
        score = 0.0
        if window != mask:
            score += weights.window * (self._worth(window) - self._worth(mask))
        if turns.asked:
            score += weights.answers + weights.answer * _most(found, turns.before)
        score += weights.two_before * _most(found, turns.earlier)
        score += weights.after * _most(found, turns.after)
        score += weights.two_after * _most(found, turns.later)
        return score * self._dialogue_of(row.author) * row.terms / (row.terms + weights.slight)

    def _mask(self, places: Iterable[int], mask: int) -> int:
        for place in places:
            mask |= self.masks.get(place, 0)
        return mask

    def _pairs(self, followed: int) -> float:
        """The weight of words that follow one another in the query and in a message."""
        words = self.words
        pairs = (at for at in range(len(words) - 1) if followed >> at & 1)
        return sum((words[at].worth + words[at + 1].worth) / 2 for at in pairs)

    def _worth(self, mask: int) -> float:
        """The sum of the weights of a mask's words."""
        worth = self._worths.get(mask)
        if worth is None:
            worth = sum(worth for at, worth in enumerate(self.worths) if mask >> at & 1)
            self._worths[mask] = worth
        return worth

    def _is_dated(self, place: int) -> bool:
        sent = self.index.rows[place].sent
        return any(first <= sent < last for first, last in self.spans)

    def _pool(self) -> list[int]:
        """Candidates: messages with the words, the neighbours of the best of them, and the newest messages."""
        index, weights, visible = self.index, self.weights, self.visible
        best = self.best_found[: weights.candidates]
        pool = dict.fromkeys(best)
        pool.update(dict.fromkeys(largest(self.related, weights.synonym_candidates)))
        for link, reach in ((BEFORE, weights.led), (AFTER, weights.followed)) if self._looks_around else ():
            for place in best[: weights.surrounded]:
                for _ in range(reach):
                    place = index.rows[place][link]
                    if place == NO_PLACE:
                        break
                    pool[place] = None
        pool.update(dict.fromkeys(range(max(visible.start, visible.end - weights.latest), visible.end)))
        pool.update(dict.fromkeys(chain(self._dated(), self.days, self.near, self.passages)))
        if not self.is_specific:
            named = sorted(self.people, key=lambda person: (-self.people[person], person))[:PEOPLE_AT_MOST]
            for person in named:
                pool.update(dict.fromkeys(newest_of(index, person, visible.start, visible.end, weights.of_author)))
        return [place for place in pool if self.is_visible(place) and not index.rows[place].flags & HIDDEN]

    def _selectivity(self) -> float:
        """How much the times that the query names say, from 0 to 1: a year that all messages are from says nothing."""
        index, visible = self.index, self.visible
        if not self.spans or not index.in_time:
            return 1.0
        inside = sum(index.place_since(last) - index.place_since(first) for first, last in self.spans)
        share = min(1.0, max(inside, 1) / max(visible.scanned, 1))
        return min(1.0, log(share) / log(self.weights.dated_share))

    def _naming_days(self, intent: SearchIntent) -> set[int]:
        """Messages that name a day that the query names; of many, the newest."""
        index, visible = self.index, self.visible
        marks = dict.fromkeys(mark for first, end in intent.days for mark in asked_marks(DayRange(first, end)))
        found = [
            base + place
            for mark in marks
            for base, places, _ in index.postings(index.number(mark))
            for place in places[-DATED_AT_MOST:]
            if visible.start <= base + place < visible.end
        ]
        return set(sorted(found)[-DATED_AT_MOST:])

    def _dated(self) -> Iterator[int]:
        """Messages of a day that the query names are candidates whatever their text; of many, the newest."""
        index, visible = self.index, self.visible
        for first, last in self.spans:
            if index.in_time:
                start, end = index.place_since(first), min(index.place_since(last), visible.end)
                yield from range(max(start, end - DATED_AT_MOST), end)
            else:
                yield from [place for place in self.found if first <= index.rows[place].sent < last]

    def _matches(self) -> Mapping[int, tuple[int, int]]:
        """The words of the query in each candidate and the turns around it, as bits, and pairs of them."""
        around = set(self.pool).union(*(chain.from_iterable(turns[:5]) for turns in self.turns.values()))
        return self.index.matches(self.found.keys() & around, [word.match.terms for word in self.words])

    def _leads(self) -> Mapping[int, float]:
        """What the first messages of the candidates' threads score by their own words: they say what it is about."""
        index, weight = self.index, self.weights.lead
        firsts = {group: index.first_of_thread(group) for group in set(self.groups.values()) if group & THREAD}
        return {group: weight * self.found.get(first, 0.0) for group, first in firsts.items() if first is not None}

    def _topics(self, words: Sequence[WeightedWord]) -> Mapping[int, float]:
        """The scores of the candidates' threads and sessions as a whole."""
        index, weights = self.index, self.weights
        looked_at = {group: index.rows[place] for place, group in self.groups.items()}
        least = {
            group: weights.topic_k1 * (1 - weights.topic_b + weights.topic_b * index.relative_size(group, row))
            for group, row in looked_at.items()
        }
        # The first message of a thread is in another group, and shows what the thread is about.
        starts = index.thread_starts(looked_at)
        topics: dict[int, float] = {}
        for word in words:
            times: Counter[int] = Counter()
            for _, base, places, _ in word.exact:
                times.update(filter(looked_at.__contains__, index.groups_of(base, places)))
                if starts:
                    times.update(starts[base + at] for at in places if base + at in starts)
            for group, count in times.items():
                often = count * (weights.topic_k1 + 1) / (count + least[group])
                topics[group] = topics.get(group, 0.0) + word.worth * often
        return topics


def _turns(index: ChannelPostings, place: int) -> Turns:
    """The turns around a message."""
    author = index.rows[place].author
    own, before, earlier, asked = _turns_to(islice(index.walk(place, back=True), REACH), author)
    more, after, later, _ = _turns_to(islice(index.walk(place, back=False), REACH), author)
    return Turns(own + more, before, earlier, after, later, asked)


def _turns_to(
    walked: Iterable[tuple[int, int, int]], author: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]:
    """The rest of a message's turn to one side, the next two turns, and whether the first of these has a question."""
    turns: tuple[list[int], list[int], list[int]] = ([], [], [])
    at, asked = 0, 0
    turn = turns[0]
    for place, said_by, flags in walked:
        if said_by != author:
            author = said_by
            at += 1
            if at == len(turns):
                break
            turn = turns[at]
        if len(turn) < TURN:
            turn.append(place)
            if at == 1:
                asked |= flags
    return tuple(turns[0]), tuple(turns[1]), tuple(turns[2]), bool(asked & MessageFlag.QUESTION)


def _most(found: Mapping[int, float], places: Iterable[int]) -> float:
    most = 0.0
    for place in places:
        if place in found and found[place] > most:
            most = found[place]
    return most


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


def largest(scores: Mapping[int, float], count: int) -> list[int]:
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
