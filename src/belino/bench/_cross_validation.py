"""Cross-validation of the search weights: fitted on all corpora but one, and judged on that one.

It starts with half of each weight, and tries others of them in turn: none, the weight itself, and twice as much.
Where questions are messages, their answers are searched near to them, as by who asks what a message answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean

from belino.bench._relevance import Judging, Relevance, StoredCorpus, judged
from belino.search.weights import FITTED, WEIGHTS, Weights

START = 0.5
SHARES = (0.0, 1.0, 2.0)
"""Of each weight as it is in the table."""
QUESTIONS = 60
"""Of each corpus, to fit by; the corpus that is left out is judged by all."""

Worths = dict[tuple[str, Weights], float]


async def cross_validated(corpora: Sequence[StoredCorpus]) -> Mapping[str, Relevance]:
    """What is found in each corpus with weights that were fitted on the others."""
    worths: Worths = {}
    return {
        left_out.name: await judged(
            left_out,
            Judging(
                weights=await _fitted([one for one in corpora if one is not left_out], worths),
                near=left_out.is_of_replies,
            ),
        )
        for left_out in corpora
    }


async def _fitted(corpora: Sequence[StoredCorpus], worths: Worths) -> Weights:
    """The weights that are best together, each chosen once."""
    best = replace(WEIGHTS, **{name: START * getattr(WEIGHTS, name) for name in FITTED})
    most = await _worth(corpora, best, worths)
    for name in FITTED:
        for share in SHARES:
            tried = replace(best, **{name: share * getattr(WEIGHTS, name)})
            worth = await _worth(corpora, tried, worths)
            if worth > most:
                best, most = tried, worth
    return best


async def _worth(corpora: Sequence[StoredCorpus], weights: Weights, worths: Worths) -> float:
    """How often and how early the first right message is found, in the mean of the corpora."""
    for corpus in corpora:
        if (corpus.name, weights) not in worths:
            found = await judged(corpus, Judging(weights=weights, near=corpus.is_of_replies, at_most=QUESTIONS))
            worths[corpus.name, weights] = (found.hit + found.rank) / 2
    return mean(worths[corpus.name, weights] for corpus in corpora)
