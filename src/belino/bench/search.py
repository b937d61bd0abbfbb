"""Search: relevance, speed and memory, compared with SQLite's FTS5, and a cross-validation of the weights."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from belino.bench import Row
from belino.bench._conversations import MadeConversation, made
from belino.bench._cross_validation import cross_validated
from belino.bench._relevance import (
    Judging,
    Relevance,
    StoredCorpus,
    bench_store,
    judged,
    plain_full_text,
    read_corpora,
    stored,
)
from belino.bench._search_speed import reranked_row, speed_rows
from belino.storage.static_vectors import PACKAGE, SearchConfig

METRICS = ("recall@8", "hit@8", "nDCG@8", "MRR")
OF_ANY = ("hit@8", "MRR")
"""Those that ask for any right message."""
GOALS = {
    "locomo": Relevance(recall=0.80, hit=0.0, gain=0.62, rank=0.0),
    "zulip": Relevance(recall=0.0, hit=0.90, gain=0.0, rank=0.70),
    "qmsum": Relevance(recall=0.0, hit=0.83, gain=0.0, rank=0.0),
}
"""Goals on a public corpus, by the beginning of its name."""


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure on every corpus file of the folder; without one, on small generated conversations."""
    corpora = {"made": made()} if corpus is None else dict(read_corpora(corpus))
    rows = [*asyncio.run(_relevance_rows(corpora)), *asyncio.run(speed_rows())]
    return rows if find_spec(PACKAGE) is None else [*rows, *asyncio.run(_reranked_rows(corpora))]


async def _relevance_rows(corpora: Mapping[str, Sequence[MadeConversation]]) -> list[Row]:
    async with bench_store() as store:
        held = [await stored(store, name, conversations) for name, conversations in corpora.items()]
        found = {corpus.name: await judged(corpus, Judging()) for corpus in held}
        rows = [row for corpus in held for row in _compared(corpus, found[corpus.name])]
        for corpus in held:
            if corpus.is_of_replies:
                near = await judged(corpus, Judging(near=True))
                rows.append(_near_row(corpus.name, near.recall, found[corpus.name].recall))
                found[corpus.name] = near
        fitted = await cross_validated(held) if len(held) > 1 else {}
    return [*rows, *(row for name, other in fitted.items() for row in _fitted_rows(name, other, found[name]))]


async def _reranked_rows(corpora: Mapping[str, Sequence[MadeConversation]]) -> list[Row]:
    """The same with `search.rerank`, beside its order without."""
    rows: list[Row] = []
    for name, conversations in corpora.items():
        async with bench_store() as plain, bench_store(SearchConfig(rerank="static")) as reranked:
            before, after = [
                await judged(await stored(store, name, conversations), Judging()) for store in (plain, reranked)
            ]
        rows += (
            Row(
                metric=f"{metric}, {name}, re-ranked",
                ours=mine,
                beside_name="off",
                beside=other,
                ratio=mine / other if other else None,
            )
            for metric, mine, other in zip(METRICS, after, before, strict=True)
        )
    return [*rows, await reranked_row()]


def _compared(corpus: StoredCorpus, ours: Relevance) -> Iterable[Row]:
    """Each measure beside that of FTS5. Of a thread one message is shown: how many there are is no goal."""
    plain = plain_full_text(corpus.conversations)
    threaded = any(conversation.roots() for conversation in corpus.conversations)
    goals = next((goals for prefix, goals in GOALS.items() if corpus.name.startswith(prefix)), Relevance(0, 0, 0, 0))
    for metric, mine, other, goal in zip(METRICS, ours, plain, goals, strict=True):
        is_goal = not threaded or metric in OF_ANY
        yield Row(
            metric=f"{metric}, {corpus.name}",
            ours=mine,
            beside_name="FTS5",
            beside=other,
            ratio=mine / other if other else None,
            goal=f"not below{f', ≥ {goal:g}' if goal else ''}" if is_goal else "",
            ok=mine >= max(other, goal) if is_goal else None,
        )


def _near_row(name: str, near: float, by_words: float) -> Row:
    """How often the message that another one answers is found."""
    return Row(
        metric=f"recall@8 near the message, {name}",
        ours=near,
        beside_name="by words",
        beside=by_words,
        ratio=near / by_words if by_words else None,
        goal="better",
        ok=near > by_words,
    )


def _fitted_rows(name: str, fitted: Relevance, ours: Relevance) -> Iterable[Row]:
    """What weights find that were fitted on the other corpora only, beside those of the table."""
    for metric, mine, other in zip(METRICS, fitted, ours, strict=True):
        yield Row(
            metric=f"{metric}, {name}, fitted on the others",
            ours=mine,
            beside_name="the table",
            beside=other,
            ratio=mine / other if other else None,
        )
