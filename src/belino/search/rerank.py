"""Rerank: the best results of a search, put in order by their similarity to the question too."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from statistics import fmean, pstdev

from belino.search.ranking import SHOWN, Ranking


def reranked(ranking: Ranking, similarities: Sequence[float], weight: float) -> Ranking:
    """A ranking whose best are in order of rank and similarity: `weight` places, halved or doubled, per deviation."""
    best = ranking.seqs[:SHOWN]
    middle, deviation = fmean(similarities), pstdev(similarities)
    worths = [weight * (one - middle) / (deviation or 1.0) for one in similarities]
    order = sorted(range(len(best)), key=lambda at: (log2(at + 1) - worths[at], at))
    raised = frozenset(best[was] for now, was in enumerate(order) if now < was and worths[was] > 0)
    return replace(ranking, seqs=tuple(best[at] for at in order) + ranking.seqs[SHOWN:], raised=raised)
