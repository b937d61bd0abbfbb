"""Segment: an immutable part of a channel's index as flat arrays, with its posting lists and its messages' terms.

Terms are keyed hashes: the index contains no word of a message, and needs no dictionary in memory.
"""

import heapq
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, count, groupby, repeat
from operator import itemgetter
from typing import NamedTuple

import orjson

FORMAT = f"1-{sys.byteorder}"
CAPTION_SHARE = 0.8
"""The weight of a word in a caption or file name, relative to one in the text."""
K1, B = 1.2, 0.3
"""BM25: term frequency saturation, and a low penalty for long messages."""
USUAL_TERMS = 10.0
"""Terms of an average message. A constant, so that an impact does not depend on how segments were merged."""
IMPACT_STEPS = 100.0
"""An impact is stored as a byte of hundredths; it is below 2.2."""


class MessageFlag:
    """Properties of a message as bits of one byte; an enum would take half of the time of a search."""

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


TermPostings = dict[int, tuple["array[int]", "array[int]"]]
"""Documents and impacts by term."""


def impacts(terms: Sequence[int], captions: int, usual: float = USUAL_TERMS) -> dict[int, int]:
    """The BM25 weight of each term of a text without its idf; `usual` is the average length of such texts."""
    weights: dict[int, float] = {}
    said = len(terms) - captions
    for position, term in enumerate(terms):
        weights[term] = weights.get(term, 0.0) + (1.0 if position < said else CAPTION_SHARE)
    length = K1 * (1 - B + B * len(terms) / usual)
    return {term: int(IMPACT_STEPS * weight * (K1 + 1) / (weight + length) + 0.5) for term, weight in weights.items()}


class Segment:
    """Messages that were indexed together; replaced as a whole, never changed."""

    def __init__(self, arrays: Sequence["array[int]"], people: list[tuple[str, str]], languages: list[str]) -> None:
        (
            self.seqs,
            self.sents,
            self.authors,
            self.roots,
            self.flags,
            self.captions,
            self.spoken,
            self.offsets,
            self.forward,
            self.vocabulary,
            self.starts,
            self.docs,
            self.impacts,
        ) = self._arrays = tuple(arrays)
        self.stored = False
        """Whether the store holds it."""
        self.people = people
        self.languages = languages

    def __len__(self) -> int:
        return len(self.seqs)

    def local(self, term: int) -> int:
        """The place of a term in the vocabulary; -1 if no message has it."""
        at = bisect_left(self.vocabulary, term)
        return at if at < len(self.vocabulary) and self.vocabulary[at] == term else -1

    def postings(self, term: int) -> tuple[Sequence[int], Sequence[int]]:
        """The messages with a term, by their place in the segment, and its impact on each."""
        at = self.local(term)
        if at < 0:
            return (), ()
        start, end = self.starts[at], self.starts[at + 1]
        return self.docs[start:end], self.impacts[start:end]

    def terms(self, doc: int) -> "array[int]":
        """A message's terms in order."""
        vocabulary = self.vocabulary
        return array("Q", [vocabulary[at] for at in self.forward[self.offsets[doc] : self.offsets[doc + 1]]])

    def entries(self) -> Iterator[SegmentEntry]:
        """The entries it was built from."""
        for doc in range(len(self.seqs)):
            author, name = self.people[self.authors[doc]]
            yield SegmentEntry(
                self.seqs[doc],
                self.sents[doc],
                author,
                name,
                self.roots[doc],
                self.flags[doc],
                self.terms(doc),
                self.captions[doc],
                self.languages[self.spoken[doc]],
            )

    @property
    def bytes_held(self) -> int:
        return sum(part.itemsize * len(part) for part in self._arrays)

    def pack(self) -> bytes:
        """The segment as bytes, for the store."""
        head = orjson.dumps(
            {
                "format": FORMAT,
                "arrays": [(part.typecode, len(part)) for part in self._arrays],
                "people": self.people,
                "languages": self.languages,
            }
        )
        return b"".join((len(head).to_bytes(4, "big"), head, *(part.tobytes() for part in self._arrays)))


_TYPES = "QqIQBHBII"


def unpack(content: bytes) -> Segment | None:
    """The segment of packed bytes; None if their format differs."""
    head_end = 4 + int.from_bytes(content[:4], "big")
    head = orjson.loads(content[4:head_end])
    if head["format"] != FORMAT:
        return None
    view, at, arrays = memoryview(content), head_end, []
    for typecode, length in head["arrays"]:
        part = array(typecode)
        end = at + part.itemsize * length
        part.frombytes(view[at:end])
        arrays.append(part)
        at = end
    return Segment(arrays, [(author, name) for author, name in head["people"]], head["languages"])


def build(entries: Iterable[SegmentEntry]) -> Segment:
    """A segment of these messages."""
    columns = seqs, sents, authors, roots, flags, captions, spoken, offsets, forward = [array(code) for code in _TYPES]
    people: dict[tuple[str, str], int] = {}
    languages: dict[str, int] = {}
    postings: dict[int, tuple[array[int], array[int]]] = {}
    said: list[array[int]] = []
    offsets.append(0)
    for doc, entry in enumerate(entries):
        seqs.append(entry.seq)
        sents.append(entry.sent)
        authors.append(people.setdefault((entry.author, entry.name), len(people)))
        roots.append(entry.root)
        flags.append(entry.flags)
        captions.append(entry.captions)
        spoken.append(languages.setdefault(entry.language, len(languages)))
        offsets.append(offsets[-1] + len(entry.terms))
        said.append(entry.terms)
        add_postings(postings, doc, entry)
    vocabulary, *lists = _flat(postings)
    number = {term: at for at, term in enumerate(vocabulary)}
    for terms in said:
        forward.extend([number[term] for term in terms])
    return Segment((*columns, vocabulary, *lists), list(people), list(languages))


def merge(segments: Sequence[Segment]) -> Segment:
    """Merge consecutive segments, with the same result as `build` from all their messages.

    It works on the arrays: entries of long segments would take several times their memory.
    """
    columns = seqs, sents, authors, roots, flags, captions, spoken, offsets, forward = [array(code) for code in _TYPES]
    people: dict[tuple[str, str], int] = {}
    languages: dict[str, int] = {}
    offsets.append(0)
    vocabulary, starts, docs, weights, numbers = _merge_postings(segments)
    for segment, number in zip(segments, numbers, strict=True):
        own_people = [people.setdefault(person, len(people)) for person in segment.people]
        own_languages = [languages.setdefault(language, len(languages)) for language in segment.languages]
        seqs += segment.seqs
        sents += segment.sents
        roots += segment.roots
        flags += segment.flags
        captions += segment.captions
        authors.extend(map(own_people.__getitem__, segment.authors))
        spoken.extend(map(own_languages.__getitem__, segment.spoken))
        offsets.extend(map(offsets[-1].__add__, segment.offsets[1:]))
        forward.extend(map(number.__getitem__, segment.forward))
    return Segment((*columns, vocabulary, starts, docs, weights), list(people), list(languages))


def _merge_postings(
    segments: Sequence[Segment],
) -> tuple["array[int]", "array[int]", "array[int]", "array[int]", list["array[int]"]]:
    """Vocabulary, starts, docs and impacts of all segments, and the new number of each segment's terms."""
    vocabulary, starts, docs, weights = array("Q"), array("I", [0]), array("I"), array("B")
    numbers = [array("I") for _ in segments]
    bases = [0, *accumulate(map(len, segments))]
    ordered = heapq.merge(*(zip(segment.vocabulary, repeat(at), count()) for at, segment in enumerate(segments)))
    for term, of_term in groupby(ordered, itemgetter(0)):
        for _, at, local in of_term:
            segment, base = segments[at], bases[at]
            numbers[at].append(len(vocabulary))
            start, end = segment.starts[local], segment.starts[local + 1]
            docs.extend(map(base.__add__, segment.docs[start:end]))
            weights += segment.impacts[start:end]
        vocabulary.append(term)
        starts.append(len(docs))
    return vocabulary, starts, docs, weights, numbers


def add_postings(postings: TermPostings, doc: int, entry: SegmentEntry) -> None:
    """Add one message to the posting list of each of its terms."""
    for term, impact in impacts(entry.terms, entry.captions).items():
        docs, weights = postings.get(term) or postings.setdefault(term, (array("I"), array("B")))
        docs.append(doc)
        weights.append(impact)


def _flat(postings: TermPostings) -> tuple["array[int]", "array[int]", "array[int]", "array[int]"]:
    vocabulary, starts, docs, weights = array("Q", sorted(postings)), array("I", [0]), array("I"), array("B")
    for term in vocabulary:
        docs += postings[term][0]
        weights += postings[term][1]
        starts.append(len(docs))
    return vocabulary, starts, docs, weights
