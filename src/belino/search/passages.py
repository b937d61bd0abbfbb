"""Passages: the parts of documents that were read, indexed by term, and the best of them for a query."""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from typing import NamedTuple, Protocol

from belino.domain.search import SearchIntent
from belino.search.postings import ChannelPostings
from belino.search.query import SearchRange, WeightedWord
from belino.search.segment import IMPACT_STEPS, MessageFlag, impacts
from belino.search.tokenizer import fold, query_words, text_flags, tokenize
from belino.search.weights import WEIGHTS, Weights

PARTS_LOOKED_AT = 5
FLAGGED = 8
"""The best documents, whose text is looked at for what the query asks for: a time, a number, a name."""
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
    """BM25 of the part, its contribution to the score of its message besides the words that it covers."""
    words: int
    """The words of the query that it has, as bits."""
    flags: int
    """The `MessageFlag` bits of its text."""


class FoundPassages(NamedTuple):
    """The best parts of documents, by the place of the message that brought each."""

    hits: Mapping[int, PassageHit]
    worths: Sequence[float]
    """The weight of each word of the query, also of those that only documents have."""


class _RankedWord(NamedTuple):
    at: int
    """The position of the word in the query."""
    worth: float
    found: PassageList


class _RankedPart(NamedTuple):
    """A part of a document; of equal ones the first is best: it is where a reader would begin."""

    value: float
    before: int
    """Its number, negated."""
    score: float
    words: int


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
        for term, impact in impacts(terms, 0, WEIGHTS.usual_part_terms).items():
            numbers, weights = postings.get(term) or postings.setdefault(term, (array("I"), array("B")))
            numbers.append(part)
            weights.append(impact)
    packed = {term: numbers.tobytes() + weights.tobytes() for term, (numbers, weights) in postings.items()}
    return IndexedParts(count=count, languages=tuple(languages), postings=packed)


def best_passages(
    index: ChannelPostings,
    documents: Passages,
    intent: SearchIntent,
    words: Sequence[WeightedWord],
    visible: SearchRange,
    weights: Weights,
) -> FoundPassages:
    """The best part of each of the best documents; `words` are those of the query, weighted for messages."""
    ranked = _words(index, documents, intent.text, words, visible)
    rarity = {word.at: word.worth for word in ranked}
    worths = [word.worth if word.exact else rarity.get(at, 0.0) for at, word in enumerate(words)]
    total = sum(worths) or 1.0
    parts: dict[int, list[_RankedPart]] = {}
    for (document, number), (score, mask) in _scores(ranked, weights).items():
        covered = sum(worth for at, worth in enumerate(worths) if mask >> at & 1)
        value = weights.body * (score + weights.coverage * covered / total)
        parts.setdefault(document, []).append(_RankedPart(value, -number, weights.body * score, mask))
    found: dict[int, PassageHit] = {}
    best: dict[int, float] = {}
    for place, document in enumerate(nlargest(weights.documents, parts, key=lambda document: max(parts[document]))):
        source = _source(index, documents, document, visible)
        if source is not None:
            at, ref = source
            part = _best(documents, document, parts[document], intent.phrases, weights)
            if at not in found or part.value > best[at]:
                flags = text_flags(documents.text(document, -part.before)) if place < FLAGGED else 0
                hit = PassageHit(
                    ref=ref, document=document, number=-part.before, score=part.score, words=part.words, flags=flags
                )
                found[at], best[at] = hit, part.value
    return FoundPassages(found, worths)


def _words(
    index: ChannelPostings,
    documents: Passages,
    text: str,
    words: Sequence[WeightedWord],
    visible: SearchRange,
) -> list[_RankedWord]:
    """The query's words that documents have, rarest first; rarity counts messages and parts together."""
    size = len(documents)
    if not size:
        return []
    size += visible.end - visible.start
    places = {word.match.word: at for at, word in enumerate(words)}
    ranked: dict[int, _RankedWord] = {}
    for word in query_words(text, {*index.languages, *documents.languages}):
        at = places.get(word.word)
        if at is None or at in ranked:
            continue
        terms = [index.number(term) for term in word.terms]
        found = documents.find(terms)
        times = len(found) + sum(len(places) for term in terms for _, places, _ in index.postings(term))
        rare = log(1 + (max(0, size - times) + 0.5) / (times + 0.5))
        ranked[at] = _RankedWord(at, words[at].share * rare, found)
    return sorted((word for word in ranked.values() if word.found), key=lambda word: len(word.found))


def _scores(words: Sequence[_RankedWord], weights: Weights) -> Mapping[tuple[int, int], tuple[float, int]]:
    """BM25 of the parts that have any of the words, and which they have; the most common words are left out."""
    scores: dict[tuple[int, int], tuple[float, int]] = {}
    read = 0
    for word in words:
        read += len(word.found)
        if scores and read > weights.postings:
            break
        for document, number, impact in word.found:
            score, mask = scores.get((document, number), (0.0, 0))
            scores[document, number] = (score + word.worth * impact / IMPACT_STEPS, mask | 1 << word.at)
    return scores


def _source(index: ChannelPostings, documents: Passages, document: int, visible: SearchRange) -> tuple[int, str] | None:
    """The newest message that may be found and brought a document, with its ref."""
    for seq, ref in reversed(documents.sources(document)):
        place = index.place(seq)
        if place is not None and visible.has(index, place) and not index.rows[place].flags & MessageFlag.GONE:
            return place, ref
    return None


def _best(
    documents: Passages, document: int, parts: Sequence[_RankedPart], phrases: Sequence[str], weights: Weights
) -> _RankedPart:
    """The best part of a document. Phrases are looked for in the text of a few."""
    if not phrases:
        return max(parts)
    scored: list[_RankedPart] = []
    for part in nlargest(PARTS_LOOKED_AT, parts):
        text = " ".join(fold(documents.text(document, -part.before)).split())
        more = weights.phrase * sum(fold(phrase) in text for phrase in phrases)
        scored.append(part._replace(value=part.value + more, score=part.score + more))
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
