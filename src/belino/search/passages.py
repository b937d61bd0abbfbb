"""The part of each document that serves a question best, on the scale of messages, and which message brought it."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from typing import NamedTuple

from belino.domain.concordance import Concordance, Mark, Occurrences
from belino.search.query import Visible, share_of
from belino.search.segment import IMPACT_STEPS
from belino.search.tokenizer import ask, fold
from belino.search.weights import Weights

PARTS_LOOKED_AT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A part of a document that has words of the question."""

    ref: str
    document: int
    number: int
    score: float
    """What it adds to the message that brought it."""


class _Wanted(NamedTuple):
    worth: float
    found: Occurrences


def best_passages(
    index: Concordance, text: str, phrases: Sequence[str], visible: Visible, weights: Weights
) -> Mapping[int, Hit]:
    """By the place of the message that brought it: the best part of each document, of the best documents."""
    parts: dict[int, list[tuple[float, int]]] = {}
    for (document, number), score in _scores(_wanted(index, text, visible, weights), weights).items():
        # Of parts that serve alike the first counts: it is where a reader would begin.
        parts.setdefault(document, []).append((score, -number))
    found: dict[int, Hit] = {}
    for _, document in nlargest(weights.documents, ((max(parts[document]), document) for document in parts)):
        bearer = _bearer(index, document, visible)
        if bearer is not None:
            place, ref = bearer
            best = _best(index, document, parts[document], phrases, weights)
            hit = Hit(ref=ref, document=document, number=-best[1], score=best[0])
            if place not in found or hit.score > found[place].score:
                found[place] = hit
    return found


def _wanted(index: Concordance, text: str, visible: Visible, weights: Weights) -> list[_Wanted]:
    """The question's words that documents have, rarest first; as rare as they are in all that was said or read."""
    passages = index.passages
    size = len(passages)
    if not size:
        return []
    size += visible.end - visible.start
    wanted: dict[tuple[str, ...], _Wanted] = {}
    for asked in ask(text, {*index.languages, *passages.languages}):
        if asked.terms in wanted:
            continue
        terms = [index.number(term) for term in asked.terms]
        found = passages.find(terms)
        times = len(found) + sum(len(places) for term in terms for _, places, _ in index.postings(term))
        rare = log(1 + (max(0, size - times) + 0.5) / (times + 0.5))
        wanted[asked.terms] = _Wanted(share_of(index, asked, weights) * rare, found)
    return sorted((word for word in wanted.values() if word.found), key=lambda word: len(word.found))


def _scores(wanted: Sequence[_Wanted], weights: Weights) -> Mapping[tuple[int, int], float]:
    """BM25 and coverage of the parts that have any of the words; what is too common is left out."""
    coverage = weights.coverage / (sum(word.worth for word in wanted) or 1.0)
    scores: dict[tuple[int, int], float] = {}
    read = 0
    for word in wanted:
        read += len(word.found)
        if scores and read > weights.postings:
            break
        for document, number, impact in word.found:
            part = (document, number)
            scores[part] = scores.get(part, 0.0) + word.worth * (impact / IMPACT_STEPS + coverage)
    return scores


def _bearer(index: Concordance, document: int, visible: Visible) -> tuple[int, str] | None:
    """The newest message that may be found and brought a document, with its ref."""
    for seq, ref in reversed(index.passages.bearers(document)):
        place = bisect_left(index.seqs, seq)
        here = place < len(index.seqs) and index.seqs[place] == seq
        if here and visible.has(index, place) and not index.flags[place] & Mark.GONE:
            return place, ref
    return None


def _best(
    index: Concordance, document: int, parts: Sequence[tuple[float, int]], phrases: Sequence[str], weights: Weights
) -> tuple[float, int]:
    """The best part of a document. What is asked for word for word is looked for in the text of a few."""
    if not phrases:
        return max(parts)
    told: list[tuple[float, int]] = []
    for score, number in nlargest(PARTS_LOOKED_AT, parts):
        text = " ".join(fold(index.passages.text(document, -number)).split())
        told.append((score + weights.phrase * sum(fold(phrase) in text for phrase in phrases), number))
    return max(told)
