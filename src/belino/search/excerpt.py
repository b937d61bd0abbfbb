"""Excerpt of a text around the words that were searched for: of one line, or the best lines of many."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

from belino.domain.graphemes import cut_before, is_boundary
from belino.search.tokenizer import query_words, tokenize

AROUND = 8
"""Lines before and after a match that are shown where there is room."""
BESIDE = 0.3
"""The share of the scores of the lines beside it by which a line is ranked: an answer stands beside its heading."""
WORTH = 0.4
"""A line that scores less than this share of the best one is no match: it has only a common word."""
GAP_TOKENS, HEADING_TOKENS = 2, 10
_LEAD = 6
"""An excerpt has one part in this many before the first wanted word."""
_HITS_AT_MOST = 200
_SOFT = 5
"""An excerpt may be a fifth shorter than possible, to end well."""


def excerpt(line: str, wanted: Sequence[str], limit: int) -> str:
    """At most `limit` characters of a line, where most of the wanted words (folded) are close together."""
    return Excerpts(line, wanted).of(limit)


class Excerpts:
    """Excerpts of one line in several lengths; the wanted words are located once."""

    def __init__(self, line: str, wanted: Sequence[str]) -> None:
        self._line = line
        self._wanted = wanted

    def of(self, limit: int) -> str:
        """At most `limit` characters."""
        line = self._line
        if len(line) <= limit:
            return line
        room = max(limit - 2, 1)
        start = self._start(room)
        end = min(start + room, len(line))
        if end < len(line):
            end = _word_end(line, start, cut_before(line, end, start=start))
        return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"

    @cached_property
    def _hits(self) -> list[tuple[int, str]]:
        return sorted(_hits(self._line, self._wanted))[:_HITS_AT_MOST]

    def _start(self, room: int) -> int:
        line, hits = self._line, self._hits
        if not hits:
            return 0
        shown = [len(set(_within(hits[place:], room))) for place in range(len(hits))]
        first = hits[shown.index(max(shown))][0]
        start = min(max(first - room // _LEAD, 0), max(len(line) - room, 0))
        blank = line.find(" ", start, first)
        if start and blank >= 0:
            start = blank + 1
        while start and not is_boundary(line, start):
            start -= 1
        return start


def _word_end(line: str, start: int, end: int) -> int:
    """A little earlier, to end with a sentence or at least with a word, in scripts that have spaces."""
    if line[end].isspace():
        return end
    reach = end - (end - start) // _SOFT
    sentence = max(line.rfind(mark, reach, end) for mark in (". ", "! ", "? "))
    blank = line.rfind(" ", reach, end)
    return sentence + 1 if sentence > 0 else blank if blank > start else end


def _within(hits: Sequence[tuple[int, str]], room: int) -> Iterator[str]:
    """The words that fit into `room` characters from the first on."""
    end = hits[0][0] + room
    for at, word in hits:
        if at > end:
            return
        if at <= end - len(word):
            yield word


def _hits(line: str, wanted: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where wanted words begin: at the start of a word, or anywhere in scripts without spaces."""
    lowered = line.lower()
    if len(lowered) != len(line):
        lowered = line
    for word in dict.fromkeys(wanted):
        at = lowered.find(word)
        while word and at >= 0:
            if not at or not word.isascii() or not lowered[at - 1].isalnum():
                yield at, word
            at = lowered.find(word, at + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A line of a text, and the section that it belongs to."""

    text: str
    section: int
    """Only lines of one section are beside each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestLines:
    """The lines that have the wanted words, and those around them."""

    chosen: frozenset[int]
    """Their positions."""
    words: tuple[str, ...]
    """The words that were found, rarest first."""
    left: int
    """Matches for which there was no room."""


def best_lines(lines: Sequence[TextLine], wanted: str, *, room: int, price: Callable[[str], int]) -> BestLines:
    """The best lines for the wanted words, as far as their price stays within `room`."""
    words, scores = _line_scores([line.text for line in lines], wanted)
    ranks = {at: _rank(lines, scores, at) for at, score in enumerate(scores) if score}
    found = sorted(ranks, key=lambda at: (-ranks[at], at))
    good = [at for at in found if ranks[at] >= WORTH * ranks[found[0]]]
    chosen = _chosen(lines, good, room, price)
    return BestLines(chosen=frozenset(chosen), words=words, left=sum(at not in chosen for at in good))


def _line_scores(lines: Sequence[str], wanted: str) -> tuple[tuple[str, ...], list[float]]:
    """The wanted words that are in some line, rarest first; and of each line the sum of how rare its words are."""
    tokenized = [tokenize(line) for line in lines]
    terms = [frozenset(each.terms) for each in tokenized]
    worths: dict[str, float] = {}
    scores = [0.0] * len(lines)
    for word in query_words(wanted, {each.language for each in tokenized}):
        having = [at for at, own in enumerate(terms) if not own.isdisjoint(word.terms)]
        if having and word.word not in worths:
            worths[word.word] = log(1 + (len(lines) - len(having) + 0.5) / (len(having) + 0.5))
            for at in having:
                scores[at] += worths[word.word]
    return tuple(sorted(worths, key=lambda word: -worths[word])), scores


def _rank(lines: Sequence[TextLine], scores: Sequence[float], at: int) -> float:
    return scores[at] + BESIDE * sum(scores[near] for near in (at - 1, at + 1) if _is_beside(lines, at, near))


def _is_beside(lines: Sequence[TextLine], at: int, near: int) -> bool:
    return 0 <= near < len(lines) and lines[near].section == lines[at].section


def _chosen(lines: Sequence[TextLine], found: Sequence[int], room: int, price: Callable[[str], int]) -> set[int]:
    """The matches, best first, each with the lines beside it; then what is further around them."""
    chosen: set[int] = set()
    headed: set[int] = set()
    for at, near in _in_order(found):
        if near in chosen or not _is_beside(lines, at, near):
            continue
        section = lines[near].section
        cost = price(lines[near].text) + GAP_TOKENS + (0 if section in headed else HEADING_TOKENS)
        if cost > room and chosen:
            break
        room -= cost
        chosen.add(near)
        headed.add(section)
    return chosen


def _in_order(found: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each match with a line that is wanted for it, the most wanted first: an answer follows."""
    for at in found:
        yield from ((at, near) for near in (at, at + 1, at - 1))
    for distance in range(2, AROUND + 1):
        for at in found:
            yield from ((at, near) for near in (at + distance, at - distance))
