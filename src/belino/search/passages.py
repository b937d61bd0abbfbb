"""Passages: the parts of documents that were read, indexed by term, and the best of them for a query."""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from typing import NamedTuple, Protocol

from belino.domain.search import SearchQuery
from belino.search.postings import ChannelPostings
from belino.search.query import SearchRange, share_of
from belino.search.segment import IMPACT_STEPS, MessageFlag, impacts
from belino.search.tokenizer import fold, query_words, tokenize
from belino.search.weights import Weights

PARTS_LOOKED_AT = 5
USUAL_TERMS = 200.0
"""Terms of an average page."""
PIECE_CHARS = 3_500
"""Characters that are tokenized at once: the limit of terms per text must not cut off a sheet of numbers."""
_ENTRY_BYTES = 5


class PassageSource(NamedTuple):
    """A message of the channel and the ref by which it brought a document."""

    seq: int
    ref: str


class Passage(NamedTuple):
    """A part of a document, and a term's impact on it in hundredths."""

    document: int
    number: int
    impact: int


class PassageList:
    """The parts that have a term, packed per document; a list that is too long is counted and never unpacked."""

    def __init__(self, rows: Sequence[tuple[int, bytes]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return sum(len(parts) for _, parts in self._rows) // _ENTRY_BYTES

    def __iter__(self) -> Iterator[Passage]:
        for document, parts in self._rows:
            count = len(parts) // _ENTRY_BYTES
            numbers, weights = array("I"), parts[-count:]
            numbers.frombytes(parts[:-count])
            yield from (Passage(document, number, impact) for number, impact in zip(numbers, weights, strict=True))


class Passages(Protocol):
    """The documents of one channel, as the store finds them. Their postings are not held in memory."""

    def __len__(self) -> int:
        """Parts of all documents."""
        ...

    @property
    def languages(self) -> Collection[str]: ...

    def find(self, numbers: Sequence[int]) -> PassageList:
        """The parts that have any of these terms, once for each term."""
        ...

    def sources(self, document: int) -> Sequence[PassageSource]:
        """The messages that brought a document, oldest first."""
        ...

    def unit(self, document: int) -> str:
        """What its parts are: pages, sheets."""
        ...

    def text(self, document: int, number: int) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedParts:
    """The postings of one document: packed parts by term."""

    count: int
    languages: Collection[str]
    postings: Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageHit:
    """A part of a document that has words of the query."""

    ref: str
    document: int
    number: int
    score: float
    """Its contribution to the score of its message."""


class _RankedWord(NamedTuple):
    worth: float
    found: PassageList


def index_parts(parts: Iterable[tuple[int, str]], number: Callable[[str], int]) -> IndexedParts:
    """Index the parts of a document, given by number and text."""
    postings: dict[int, tuple[array[int], array[int]]] = {}
    languages: dict[str, None] = {}
    count = 0
    for part, text in parts:
        count += 1
        terms: list[int] = []
        for piece in _pieces(text):
            tokenized = tokenize(piece)
            terms += map(number, tokenized.terms)
            if tokenized.terms:
                languages[tokenized.language] = None
        for term, impact in impacts(terms, 0, USUAL_TERMS).items():
            numbers, weights = postings.get(term) or postings.setdefault(term, (array("I"), array("B")))
            numbers.append(part)
            weights.append(impact)
    packed = {term: numbers.tobytes() + weights.tobytes() for term, (numbers, weights) in postings.items()}
    return IndexedParts(count=count, languages=tuple(languages), postings=packed)


def best_passages(
    index: ChannelPostings, documents: Passages, query: SearchQuery, visible: SearchRange, weights: Weights
) -> Mapping[int, PassageHit]:
    """The best part of each of the best documents, by the place of the message that brought it."""
    parts: dict[int, list[tuple[float, int]]] = {}
    for (document, number), score in _scores(_words(index, documents, query.text, visible, weights), weights).items():
        # Of parts with the same score the first counts: it is where a reader would begin.
        parts.setdefault(document, []).append((score, -number))
    found: dict[int, PassageHit] = {}
    for _, document in nlargest(weights.documents, ((max(parts[document]), document) for document in parts)):
        source = _source(index, documents, document, visible)
        if source is not None:
            place, ref = source
            best = _best(documents, document, parts[document], query.phrases, weights)
            hit = PassageHit(ref=ref, document=document, number=-best[1], score=best[0])
            if place not in found or hit.score > found[place].score:
                found[place] = hit
    return found


def _words(
    index: ChannelPostings, documents: Passages, text: str, visible: SearchRange, weights: Weights
) -> list[_RankedWord]:
    """The query's words that documents have, rarest first; rarity counts messages and parts together."""
    size = len(documents)
    if not size:
        return []
    size += visible.end - visible.start
    words: dict[tuple[str, ...], _RankedWord] = {}
    for word in query_words(text, {*index.languages, *documents.languages}):
        if word.terms in words:
            continue
        terms = [index.number(term) for term in word.terms]
        found = documents.find(terms)
        times = len(found) + sum(len(places) for term in terms for _, places, _ in index.postings(term))
        rare = log(1 + (max(0, size - times) + 0.5) / (times + 0.5))
        words[word.terms] = _RankedWord(share_of(index, word, weights) * rare, found)
    return sorted((word for word in words.values() if word.found), key=lambda word: len(word.found))


def _scores(words: Sequence[_RankedWord], weights: Weights) -> Mapping[tuple[int, int], float]:
    """BM25 and coverage of the parts that have any of the words; the most common words are left out."""
    coverage = weights.coverage / (sum(word.worth for word in words) or 1.0)
    scores: dict[tuple[int, int], float] = {}
    read = 0
    for word in words:
        read += len(word.found)
        if scores and read > weights.postings:
            break
        for document, number, impact in word.found:
            part = (document, number)
            scores[part] = scores.get(part, 0.0) + word.worth * (impact / IMPACT_STEPS + coverage)
    return scores


def _source(index: ChannelPostings, documents: Passages, document: int, visible: SearchRange) -> tuple[int, str] | None:
    """The newest message that may be found and brought a document, with its ref."""
    for seq, ref in reversed(documents.sources(document)):
        place = index.place(seq)
        if place is not None and visible.has(index, place) and not index.flags[place] & MessageFlag.GONE:
            return place, ref
    return None


def _best(
    documents: Passages, document: int, parts: Sequence[tuple[float, int]], phrases: Sequence[str], weights: Weights
) -> tuple[float, int]:
    """The best part of a document. Phrases are looked for in the text of a few."""
    if not phrases:
        return max(parts)
    scored: list[tuple[float, int]] = []
    for score, number in nlargest(PARTS_LOOKED_AT, parts):
        text = " ".join(fold(documents.text(document, -number)).split())
        scored.append((score + weights.phrase * sum(fold(phrase) in text for phrase in phrases), number))
    return max(scored)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that end between words, where it has any blanks."""
    start = 0
    while start < len(text):
        end = start + PIECE_CHARS
        if end < len(text):
            blank = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = blank + 1 if blank > start else end
        yield text[start:end]
        start = end
