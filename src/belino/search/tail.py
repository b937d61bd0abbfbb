"""Tail: the newest messages of a channel, which are in no segment yet, and messages that changed since they were."""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from belino.search.segment import (
    THREAD,
    Begun,
    Links,
    SegmentArrays,
    SegmentEntry,
    SimilarTerm,
    Spellings,
    TermPostings,
    add_postings,
    build,
    holding,
    impacts,
    shared_counts,
)
from belino.search.stored_segment import Living, living

NO_PLACE = 0xFFFFFFFF
"""In `before` and `after`: there is no such message."""


class IndexRow(NamedTuple):
    """A message by its place in the channel; places of others are NO_PLACE where there is none."""

    seq: int
    sent: int
    author: int
    """The place of its author among the channel's people."""
    flags: int
    group: int
    before: int
    after: int
    began: int
    """1 if its segment has messages of a thread that it began."""
    size: int
    """Messages of its group in its segment; 0 in the tail."""
    terms: int
    """How many terms it has."""


class SpelledWords:
    """Words by their trigrams."""

    def __init__(self) -> None:
        self.spellings: dict[int, Sequence[int]] = {}
        self._with: dict[int, list[int]] = {}
        self._known: Spellings | None = None

    @property
    def bytes_held(self) -> int:
        """An estimate."""
        return 240 * len(self.spellings) + 110 * len(self._with)

    def add(self, spellings: Spellings) -> None:
        """Add words; those of consecutive messages are often the same object, which is added once."""
        if spellings is not self._known:
            self._known = spellings
            self.spellings.update(spellings)

    def containing(self, spelling: Sequence[int]) -> Iterator[tuple[int, float]]:
        """The words that begin or end with a word of this spelling, and how much of each it is."""
        for term in holding(self._lists(spelling)):
            yield term, 2 * len(spelling) / (len(spelling) + len(self.spellings[term]))

    def _lists(self, spelling: Sequence[int]) -> list[Sequence[int]]:
        """The words that have each of the trigrams."""
        if sum(map(len, self._with.values())) != sum(map(len, self.spellings.values())):
            self._with = {}
            for term, grams in self.spellings.items():
                for gram in grams:
                    self._with.setdefault(gram, []).append(term)
        return [self._with.get(gram, ()) for gram in spelling]

    def similar(self, spelling: Sequence[int], least: float) -> Iterator[tuple[int, float]]:
        """The words that are at least so much like a word of this spelling, and how much."""
        for term, shared in shared_counts(sorted(self._lists(spelling), key=len), least).items():
            likeness = 2 * shared / (len(spelling) + len(self.spellings[term]))
            if likeness >= least:
                yield term, likeness


class Tail:
    """The newest messages, from the place `base` on."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.entries: list[SegmentEntry] = []
        self.rows: list[IndexRow] = []
        self.seqs = array("Q")
        self.sents = array("q")
        self.first_of: dict[int, int] = {}
        self.last_of: dict[int, int] = {}
        """The places of the first and the last message of each group."""
        self.sizes: Counter[int] = Counter()
        """Messages of each group."""
        self.begun = Begun()
        self.threaded = 0
        """Messages in threads."""
        self._postings: TermPostings = {}
        self._words = SpelledWords()
        self._terms = 0
        self._all: Living | None = None

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def bytes_held(self) -> int:
        """An estimate: arrays by their size, objects by their measured size."""
        lists = 13 * self._terms + 306 * len(self._postings)
        return 630 * len(self.entries) + lists + 200 * len(self.sizes) + self._words.bytes_held

    def add(self, entry: SegmentEntry, row: IndexRow) -> None:
        """Append a message."""
        doc = len(self.entries)
        self._all = None
        self._words.add(entry.spellings)
        self.entries.append(entry._replace(spellings=self._words.spellings))
        self.rows.append(row)
        self.seqs.append(row.seq)
        self.sents.append(row.sent)
        self.first_of.setdefault(row.group, self.base + doc)
        self.last_of[row.group] = self.base + doc
        self.sizes[row.group] += 1
        self.threaded += row.group & THREAD
        self._terms += len(entry.terms)
        add_postings(self._postings, doc, entry)

    def replace(self, place: int, entry: SegmentEntry, author: int) -> None:
        """Replace a message that changed."""
        doc = place - self.base
        self._all = None
        for term in set(self.entries[doc].terms):
            docs, weights = self._postings[term]
            at = bisect_left(docs, doc)
            del docs[at], weights[at]
            if not docs:
                del self._postings[term]
        for term, impact in impacts(entry.terms, entry.captions).items():
            docs, weights = self._postings.setdefault(term, (array("I"), array("B")))
            at = bisect_right(docs, doc)
            docs.insert(at, doc)
            weights.insert(at, impact)
        self._words.add(entry.spellings)
        self.entries[doc] = entry._replace(spellings=self._words.spellings)
        self.rows[doc] = self.rows[doc]._replace(author=author, flags=entry.flags, terms=len(entry.terms))

    def living(self, start: int, end: int, since: int | None) -> Living:
        """The messages from one place up to another that are not deleted, nor sent before a time."""
        if start <= self.base and end == self.base + len(self.rows) and since is None:
            if self._all is None:
                self._all = living((row.sent, row.flags) for row in self.rows)
            return self._all
        rows = self.rows[max(start - self.base, 0) : max(end - self.base, 0)]
        return living([(row.sent, row.flags) for row in rows], since)

    def postings(self, term: int) -> tuple[Sequence[int], Sequence[int]]:
        """The messages with a term, by their place in the tail, and its impact on each."""
        return self._postings.get(term, ((), ()))

    def similar(self, spelling: Sequence[int], least: float) -> Iterator[SimilarTerm]:
        """The words of its messages that are at least so much like a word of this spelling."""
        return self._used(self._words.similar(spelling, least))

    def containing(self, spelling: Sequence[int]) -> Iterator[SimilarTerm]:
        """The words of its messages that begin or end with a word of this spelling."""
        return self._used(self._words.containing(spelling))

    def frequency(self, term: int) -> int:
        """How many of its messages have a term."""
        return len(self.postings(term)[0])

    def _used(self, found: Iterable[tuple[int, float]]) -> Iterator[SimilarTerm]:
        for term, likeness in found:
            if term in self._postings:
                yield SimilarTerm(term, likeness, len(self._postings[term][0]))

    def arrays(self) -> SegmentArrays:
        """The messages as a segment."""
        groups, before, after = array("I"), array("I"), array("I")
        for place, row in enumerate(self.rows, self.base):
            groups.append(row.group)
            before.append(0 if row.before == NO_PLACE else place - row.before)
            after.append(0 if row.after == NO_PLACE else row.after - place)
        return build(self.entries, Links(groups, before, after), self.begun, self._postings)


class Patches:
    """Messages of segments that changed, or were deleted, since they were stored."""

    def __init__(self) -> None:
        self.entries: dict[int, SegmentEntry] = {}
        """By place."""
        self.notes: dict[int, int] = {}
        """The number of the note of each change, by place."""
        self.removed: dict[int, list[int]] = {}
        """The places that had a term before, ascending."""
        self._postings: dict[int, list[tuple[int, int]]] = {}
        self._words = SpelledWords()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def bytes_held(self) -> int:
        """An estimate."""
        return 430 * len(self.entries) + 250 * len(self._postings) + 120 * len(self.removed) + self._words.bytes_held

    def add(self, place: int, entry: SegmentEntry, note: int, old: Sequence[int]) -> None:
        """Add a message that changed, with the terms that its segment has."""
        previous = self.entries.get(place)
        if previous is None:
            for term in set(old):
                insort(self.removed.setdefault(term, []), place)
        else:
            for term in set(previous.terms):
                self._postings[term] = [posting for posting in self._postings[term] if posting[0] != place]
        for term, impact in impacts(entry.terms, entry.captions).items():
            insort(self._postings.setdefault(term, []), (place, impact))
        self._words.add(entry.spellings)
        self.entries[place] = entry
        self.notes[place] = note

    def postings(self, term: int, base: int, end: int) -> tuple[Sequence[int], Sequence[int]]:
        """The messages of a segment with a term, by their place in it, and its impact on each."""
        found = [posting for posting in self._postings.get(term, ()) if base <= posting[0] < end]
        return [place - base for place, _ in found], [impact for _, impact in found]

    def similar(self, spelling: Sequence[int], least: float) -> Iterator[SimilarTerm]:
        """Their words that are at least so much like a word of this spelling."""
        return self._used(self._words.similar(spelling, least))

    def containing(self, spelling: Sequence[int]) -> Iterator[SimilarTerm]:
        """Their words that begin or end with a word of this spelling."""
        return self._used(self._words.containing(spelling))

    def frequency(self, term: int) -> int:
        """How many of them have a term."""
        return len(self._postings.get(term, ()))

    def _used(self, found: Iterable[tuple[int, float]]) -> Iterator[SimilarTerm]:
        for term, likeness in found:
            if self._postings.get(term):
                yield SimilarTerm(term, likeness, len(self._postings[term]))
