"""Segment: consecutive messages of a channel, indexed together, as flat arrays of posting lists and messages' terms.

Terms are keyed hashes: the index contains no word of a message, and needs no dictionary in memory. For words that are
misspelt it has the trigrams of its distinct terms, as hashes too. Here segments are built; the store holds them in
blocks (`stored_segment.py`).
"""

import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

import orjson

from belino.search.weights import WEIGHTS

FORMAT = f"7-{sys.byteorder}"
IMPACT_STEPS = 100.0
"""An impact is stored as a byte of hundredths; it is below 2.2."""
THREAD = 1
"""The bit of a group that is a thread; other groups are sessions."""


class MessageFlag:
    """Properties of a message as bits; an enum would take half of the time of a search."""

    QUESTION = 1
    MEDIA = 2
    GONE = 4
    NUMBER = 8
    AGENT = 16
    TIME = 32
    NAME = 64
    """It contains a name: a capital letter inside a sentence."""
    BLANK = 128
    """It has neither words nor media."""


class SegmentEntry(NamedTuple):
    """One message in the index."""

    seq: int
    sent: int
    """Microseconds."""
    author: str
    name: str
    root: int
    """The seq of its thread's first message; 0 outside threads."""
    flags: int
    terms: "array[int]"
    captions: int
    """How many of the terms, counted from the end, are of captions and file names."""
    language: str
    spellings: "Spellings" = MappingProxyType({})
    """Of its terms, and maybe of others."""


Spellings = Mapping[int, Sequence[int]]
"""The trigrams of terms that are words."""
TermPostings = dict[int, tuple["array[int]", "array[int]"]]
"""Documents and impacts by term."""


class Links(NamedTuple):
    """How messages are grouped: one item for each."""

    groups: "array[int]"
    """Messages of one thread, or of one session, share a number (`thread_group`, `session_group`)."""
    before: "array[int]"
    """How many places before it the previous message of its thread or session is, maybe in another segment; 0: none."""
    after: "array[int]"
    """How many places after it the next one is, if it is in the same segment; otherwise 0."""


class Begun(NamedTuple):
    """How many groups began in a segment."""

    sessions: int = 0
    threads: int = 0


NONE_BEGUN = Begun()


class SimilarTerm(NamedTuple):
    """A term that is spelled like another."""

    term: int
    likeness: float
    """Dice's coefficient of their trigrams: 1 if they are the same."""
    times: int
    """How many messages have it."""


def thread_group(root: int) -> int:
    """The group of a thread: the seq of its first message, or the hash of one that the store does not have."""
    return (root << 1 | THREAD | (root >> 63 << 31)) & 0xFFFFFFFF


def session_group(first: int) -> int:
    """The group of the session that a message begins. Channels of a thousand million messages reuse numbers."""
    return first << 1 & 0xFFFFFFFF


def impacts(terms: Sequence[int], captions: int, usual: float = WEIGHTS.usual_terms) -> dict[int, int]:
    """The BM25 weight of each term of a text without its idf; `usual` is the average length of such texts."""
    weights: dict[int, float] = {}
    said = len(terms) - captions
    for position, term in enumerate(terms):
        weights[term] = weights.get(term, 0.0) + (1.0 if position < said else WEIGHTS.caption)
    k1, b = WEIGHTS.k1, WEIGHTS.b
    length = k1 * (1 - b + b * len(terms) / usual)
    return {term: int(IMPACT_STEPS * weight * (k1 + 1) / (weight + length) + 0.5) for term, weight in weights.items()}


SECTIONS = {
    # One item for each message; `offsets` has one more.
    "seqs": "Q",
    "sents": "q",
    "authors": "I",
    "flags": "H",
    "captions": "H",
    "spoken": "B",
    "groups": "I",
    "before": "I",
    "after": "I",
    "offsets": "I",
    # The messages' terms, as places in the vocabulary.
    "forward": "I",
    # One item for each term.
    "vocabulary": "Q",
    "starts": "I",
    "counts": "I",
    "spelled": "B",
    # The postings of all terms.
    "docs": "I",
    "impacts": "B",
    # The distinct trigrams, and the terms that have each, as places in the vocabulary.
    "grams": "I",
    "gram_starts": "I",
    "gram_counts": "I",
    "gram_terms": "I",
}
"""The arrays of a segment by name, and their types."""
Sections = dict[str, "array[int]"]


class SegmentArrays:
    """Messages that were indexed together."""

    def __init__(
        self, sections: Sections, people: list[tuple[str, str]], languages: list[str], begun: Begun = NONE_BEGUN
    ) -> None:
        self.sections = sections
        self.seqs = sections["seqs"]
        self.sents = sections["sents"]
        self.authors = sections["authors"]
        self.flags = sections["flags"]
        self.captions = sections["captions"]
        self.spoken = sections["spoken"]
        self.groups = sections["groups"]
        self.before = sections["before"]
        self.after = sections["after"]
        self.offsets = sections["offsets"]
        self.forward = sections["forward"]
        self.vocabulary = sections["vocabulary"]
        self.starts = sections["starts"]
        self.counts = sections["counts"]
        self.spelled = sections["spelled"]
        self.docs = sections["docs"]
        self.impacts = sections["impacts"]
        self.grams = sections["grams"]
        self.gram_starts = sections["gram_starts"]
        self.gram_counts = sections["gram_counts"]
        self.gram_terms = sections["gram_terms"]
        self.people = people
        self.languages = languages
        self.begun = begun
        self.edits: EditedMessages | None = None

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def bytes_held(self) -> int:
        return sum(part.itemsize * len(part) for part in self.sections.values())

    def postings(self, term: int) -> tuple["array[int]", "array[int]"]:
        """The messages with a term, by their place in the segment, and its impact on each."""
        at = _find(self.vocabulary, term)
        if at < 0:
            return array("I"), array("B")
        start = self.starts[at]
        end = start + self.counts[at]
        return self.docs[start:end], self.impacts[start:end]

    def terms(self, doc: int) -> "array[int]":
        """A message's terms in order."""
        vocabulary = self.vocabulary
        return array("Q", [vocabulary[at] for at in self.forward[self.offsets[doc] : self.offsets[doc + 1]]])

    def spellings(self) -> Spellings:
        """The trigrams of each term that is a word."""
        found: dict[int, array[int]] = {}
        for gram, start, count in zip(self.grams, self.gram_starts, self.gram_counts, strict=True):
            for term in self.gram_terms[start : start + count]:
                found.setdefault(self.vocabulary[term], array("I")).append(gram)
        return found

    def entries(self) -> Iterator[SegmentEntry]:
        """The entries it was built from, outside threads, with the spellings of all together at each."""
        spellings = self.spellings()
        for doc in range(len(self.seqs)):
            author, name = self.people[self.authors[doc]]
            yield SegmentEntry(
                self.seqs[doc],
                self.sents[doc],
                author,
                name,
                0,
                self.flags[doc],
                self.terms(doc),
                self.captions[doc],
                self.languages[self.spoken[doc]],
                spellings,
            )

    def similar(self, spelling: Sequence[int], least: float) -> Iterator[SimilarTerm]:
        """The terms that share trigrams with a word of this spelling, and are at least so much like it."""
        lists = sorted((self._spelled_with(gram) for gram in spelling), key=len)
        for at, shared in shared_counts(lists, least).items():
            likeness = 2 * shared / (len(spelling) + self.spelled[at])
            if likeness >= least:
                yield SimilarTerm(self.vocabulary[at], likeness, self.counts[at])

    def containing(self, spelling: Sequence[int]) -> Iterator[SimilarTerm]:
        """The terms that begin or end with a word of this spelling, as a compound does."""
        for at in holding([self._spelled_with(gram) for gram in spelling]):
            likeness = 2 * len(spelling) / (len(spelling) + self.spelled[at])
            yield SimilarTerm(self.vocabulary[at], likeness, self.counts[at])

    def _spelled_with(self, gram: int) -> "array[int]":
        at = _find(self.grams, gram)
        if at < 0:
            return array("I")
        start = self.gram_starts[at]
        return self.gram_terms[start : start + self.gram_counts[at]]

    def pack(self) -> bytes:
        """The arrays as bytes."""
        head = orjson.dumps(
            {
                "sections": [(name, part.typecode, len(part)) for name, part in self.sections.items()],
                "people": self.people,
                "languages": self.languages,
            }
        )
        return b"".join((len(head).to_bytes(4, "big"), head, *(part.tobytes() for part in self.sections.values())))


class EditedMessages(NamedTuple):
    """The terms of messages that changed since their segment was built, with their places in it."""

    docs: "array[int]"
    arrays: SegmentArrays

    def place(self, doc: int) -> int | None:
        """Where they have the terms of a message; None if it did not change."""
        at = _find(self.docs, doc)
        return None if at < 0 else at


def unpack(content: bytes) -> SegmentArrays:
    """The arrays of packed bytes."""
    head_end = 4 + int.from_bytes(content[:4], "big")
    head = orjson.loads(content[4:head_end])
    sections = read_sections(head["sections"], memoryview(content)[head_end:])
    return SegmentArrays(sections, [(author, name) for author, name in head["people"]], head["languages"])


def read_sections(named: Iterable[tuple[str, str, int]], content: memoryview) -> Sections:
    """Arrays with names, types and lengths that follow one another."""
    at, sections = 0, {}
    for name, typecode, length in named:
        part = sections[name] = array(typecode)
        end = at + part.itemsize * length
        part.frombytes(content[at:end])
        at = end
    return sections


def build(
    entries: Iterable[SegmentEntry],
    links: Links | None = None,
    begun: Begun = NONE_BEGUN,
    postings: TermPostings | None = None,
) -> SegmentArrays:
    """A segment of these messages. `postings`: theirs, if they are known."""
    sections = empty_sections()
    people: dict[tuple[str, str], int] = {}
    languages: dict[str, int] = {}
    spellings: dict[int, Sequence[int]] = {}
    known: Spellings | None = None
    said: list[array[int]] = []
    lists: TermPostings = {} if postings is None else postings
    for doc, entry in enumerate(entries):
        sections["seqs"].append(entry.seq)
        sections["sents"].append(entry.sent)
        sections["authors"].append(people.setdefault((entry.author, entry.name), len(people)))
        sections["flags"].append(entry.flags)
        sections["captions"].append(entry.captions)
        sections["spoken"].append(languages.setdefault(entry.language, len(languages)))
        said.append(entry.terms)
        if entry.spellings is not known:  # many messages share those of all of them
            known = entry.spellings
            spellings.update(known)
        if postings is None:
            add_postings(lists, doc, entry)
    sections["offsets"].extend(accumulate(map(len, said), initial=0))
    nothing = array("I", bytes(4 * len(said)))
    sections["groups"], sections["before"], sections["after"] = links or (nothing, nothing, nothing)
    _add_lists(sections, lists)
    number = {term: at for at, term in enumerate(sections["vocabulary"])}
    for terms in said:
        sections["forward"].extend([number[term] for term in terms])
    _add_spellings(sections, [spellings.get(term, ()) for term in sections["vocabulary"]])
    return SegmentArrays(sections, list(people), list(languages), begun)


def add_postings(postings: TermPostings, doc: int, entry: SegmentEntry) -> None:
    """Add one message to the posting list of each of its terms."""
    for term, impact in impacts(entry.terms, entry.captions).items():
        docs, weights = postings.get(term) or postings.setdefault(term, (array("I"), array("B")))
        docs.append(doc)
        weights.append(impact)


def match_terms(terms: "array[int]", bits: Mapping[int, int]) -> tuple[int, int]:
    """The bits of the terms of a message, and those whose next bit belongs to the term that follows."""
    mask = 0
    for term in bits.keys() & terms:
        mask |= bits[term]
    if not mask & mask >> 1:
        return mask, 0
    followed, last = 0, 0
    for term in terms:
        bit = bits.get(term, 0)
        followed |= last & bit >> 1
        last = bit
    return mask, followed


def shared_counts(lists: Sequence[Sequence[int]], least: float) -> Mapping[int, int]:
    """How many of the lists, shortest first, contain an item, for all items that enough of them may contain.

    A word that is as much alike as required shares so many trigrams that it has one of the rarer ones.
    """
    enough = ceil(least * len(lists) / (2 - least))
    counts: Counter[int] = Counter()
    for at, found in enumerate(lists):
        if at <= len(lists) - enough:
            counts.update(found)
        else:
            counts.update(counts.keys() & set(found))
    return counts


def holding(lists: Sequence[Sequence[int]]) -> set[int]:
    """The items that are in all lists, except that they may miss either the first or the last."""
    if len(lists) < 3:
        return set()
    first, *inner, last = lists
    inner.sort(key=len)
    found = set(inner[0]).intersection(*inner[1:])
    return found.intersection(first) | found.intersection(last)


def empty_sections() -> Sections:
    return {name: array(typecode) for name, typecode in SECTIONS.items()}


def _add_lists(sections: Sections, postings: TermPostings) -> None:
    vocabulary, starts, counts = sections["vocabulary"], sections["starts"], sections["counts"]
    docs, weights = sections["docs"], sections["impacts"]
    vocabulary.extend(sorted(postings))
    for term in vocabulary:
        starts.append(len(docs))
        docs += postings[term][0]
        weights += postings[term][1]
        counts.append(len(docs) - starts[-1])


def _add_spellings(sections: Sections, spellings: Iterable[Sequence[int]]) -> None:
    """Add the trigrams of each term of the vocabulary."""
    lists: dict[int, list[int]] = {}
    for at, grams in enumerate(spellings):
        sections["spelled"].append(len(grams))
        for gram in grams:
            lists.setdefault(gram, []).append(at)
    add_grams(sections, lists)


def add_grams(sections: Sections, lists: Mapping[int, Iterable[int]]) -> None:
    starts, counts, terms = sections["gram_starts"], sections["gram_counts"], sections["gram_terms"]
    sections["grams"].extend(sorted(lists))
    for gram in sections["grams"]:
        starts.append(len(terms))
        terms.extend(sorted(lists[gram]))
        counts.append(len(terms) - starts[-1])


def _find(ascending: "array[int]", item: int) -> int:
    at = bisect_left(ascending, item)
    return at if at < len(ascending) and ascending[at] == item else -1
