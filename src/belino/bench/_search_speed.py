"""Search speed: CPU and wall time, memory and first searches, of long channels and of many, compared with FTS5."""

import gc
import os
import sqlite3
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import NamedTuple

from belino.bench import Row
from belino.bench._conversations import Said, full_text_query, long_questions, long_talk, said_message
from belino.context.search import search
from belino.domain.message import ConversationKey
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.static_vectors import SearchConfig
from belino.storage.store import Store, open_store

RESULTS = 8
LONG, LONG_SOAK = 100_000, 1_000_000
"""Messages of the longest channel; a million takes several minutes to store and to index."""
IN_TURN, IN_TURN_SOAK = 2, 7
"""Channels of LONG messages that are searched in turn, with a small one."""
CHANNELS, CHANNELS_SOAK = 50, 1_000
CHANNEL_MESSAGES = 1_000
QUESTIONS = 200
ROUNDS = 3
"""Runs per question; the median counts, as the machine may be busy, except for the most that any search costs."""
GOAL_CPU_MS, GOAL_CPU_SOAK_MS, GOAL_CPU_RERANKED_MS = 4.0, 5.0, 5.0
GOAL_FIRST_MS = 300.0
GOAL_IN_TURN_MS = 50.0
GOAL_MB = 135.0
GOAL_SLOWER = 1.5


class SpentTime(NamedTuple):
    """Milliseconds of some work: CPU of all threads together, and of the clock on the wall."""

    cpu: float
    wall: float


class Stopwatch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    @property
    def spent(self) -> SpentTime:
        return SpentTime((time.process_time() - self._cpu) * 1e3, (time.perf_counter() - self._wall) * 1e3)


async def speed_rows() -> list[Row]:
    """The rows of a long channel, of several in turn, and of one among many; with BELINO_SOAK=1 of longer ones too."""
    soak = os.environ.get("BELINO_SOAK") == "1"
    rows = await _long_rows(LONG, GOAL_CPU_MS)
    if soak:
        rows += await _long_rows(LONG_SOAK, GOAL_CPU_SOAK_MS)
    rows.append(await _in_turn_row(IN_TURN_SOAK if soak else IN_TURN))
    return rows + await _crowd_rows(CHANNELS_SOAK if soak else CHANNELS)


async def _long_rows(messages: int, goal_ms: float) -> list[Row]:
    """One long channel: indexed, stored, and searched as after a restart."""
    questions = _questions(messages)
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        home = Home.at(Path(folder) / "state")
        async with _opened(home) as store:
            await _fill(store, _channel(0), messages)
            await _fill(store, _channel(1), CHANNEL_MESSAGES)
            watch = Stopwatch()
            await store.index_ahead()
            indexing = watch.spent
        # A restart leaves nothing behind; what the closed store leaves would be collected during some search.
        gc.collect()
        async with _opened(home) as store:
            first = await _ask(store, questions[0])
            taken = _medians(await _rounds(store, questions))
            in_turn = await _rounds(store, questions, channels=2)
        async with _opened(home) as store:
            held = await _held_mb(store, questions)
    where = f"of {messages:,} messages"
    p50, p95 = _percentiles(taken, 9), _percentiles(taken, 18)
    return [
        _timed(f"CPU ms per search {where}, p50", p50),
        _timed(f"CPU ms per search {where}, p95", p95, goal_ms),
        _timed(f"CPU ms per search {where} and of a small channel in turn, most", _most(in_turn), GOAL_IN_TURN_MS),
        _timed(f"CPU ms of the first search {where} after a restart", first, GOAL_FIRST_MS),
        Row(
            metric=f"MB in memory after {len(questions)} searches {where}",
            ours=held,
            goal=f"≤ {GOAL_MB:g} MB",
            ok=held <= GOAL_MB,
        ),
        Row(
            metric=f"CPU µs to index one {where}",
            ours=indexing.cpu / messages * 1e3,
            beside_name="µs on the wall",
            beside=indexing.wall / messages * 1e3,
        ),
        *([] if messages > LONG else [_beside_full_text(messages, questions, p95.cpu)]),
    ]


async def reranked_row() -> Row:
    """A long channel, searched with results put in order by word vectors too."""
    questions = _questions(LONG)
    async with _new_store(SearchConfig(rerank="static")) as store:
        await _fill(store, _channel(0), LONG)
        await store.index_ahead()
        await _ask(store, questions[0])
        taken = _percentiles(_medians(await _rounds(store, questions)), 18)
    return _timed(f"CPU ms per search of {LONG:,} messages, p95, re-ranked", taken, GOAL_CPU_RERANKED_MS)


def _beside_full_text(messages: int, questions: Sequence[str], ours: float) -> Row:
    """The same questions to SQLite's own full-text search, stemmed, stop words dropped, any of the words."""
    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE said USING fts5 (text, tokenize = 'porter unicode61')")
    table.executemany("INSERT INTO said (text) VALUES (?)", ((text,) for _, text in long_talk(messages)))
    taken = []
    for question in filter(None, map(full_text_query, questions)):
        watch = Stopwatch()
        query = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said), rowid LIMIT ?"
        table.execute(query, (question, RESULTS)).fetchall()
        taken.append(watch.spent)
    beside = _percentiles(taken, 18).cpu
    return Row(
        metric=f"CPU ms per search of {messages:,} messages, p95, compared",
        ours=ours,
        beside_name="FTS5",
        beside=beside,
        ratio=ours / beside,
    )


async def _in_turn_row(channels: int) -> Row:
    """Long channels and a small one, searched in turn once each was searched: nothing is loaded as a whole again."""
    questions = _questions(LONG)[:: QUESTIONS // 20]
    async with _new_store() as store:
        for number in range(channels):
            await _fill(store, _channel(number), LONG)
        await _fill(store, _channel(channels), CHANNEL_MESSAGES)
        await store.index_ahead()
        await _rounds(store, questions, channels=channels + 1)
        taken = await _rounds(store, questions, channels=channels + 1)
    return _timed(
        f"CPU ms per search of {channels} channels of {LONG:,} messages and a small one in turn, most",
        _most(taken),
        GOAL_IN_TURN_MS,
    )


async def _crowd_rows(channels: int) -> list[Row]:
    """One channel among many, compared with the same channel alone."""
    questions = _questions(CHANNEL_MESSAGES)
    async with _new_store() as store:
        await _fill(store, _channel(0), CHANNEL_MESSAGES)
        await store.index_ahead()
        alone = _percentiles(_medians(await _rounds(store, questions)), 18).cpu
        for number in range(1, channels):
            await _fill(store, _channel(number), CHANNEL_MESSAGES, seed=1 + number)
        await store.index_ahead()
        among = _percentiles(_medians(await _rounds(store, questions)), 18)
    where = f"of {CHANNEL_MESSAGES:,} messages, p95, among {channels * CHANNEL_MESSAGES:,} in {channels:,} channels"
    return [
        _timed(f"CPU ms per search {where}", among),
        Row(
            metric=f"CPU ms per search {where}, compared",
            ours=among.cpu,
            beside_name="alone",
            beside=alone,
            ratio=among.cpu / alone,
            goal=f"≤ {GOAL_SLOWER:g}×",
            ok=among.cpu / alone <= GOAL_SLOWER,
        ),
    ]


def _timed(metric: str, taken: SpentTime, goal: float | None = None) -> Row:
    return Row(
        metric=metric,
        ours=taken.cpu,
        beside_name="ms on the wall",
        beside=taken.wall,
        goal="" if goal is None else f"≤ {goal:g} ms",
        ok=None if goal is None else taken.cpu <= goal,
    )


def _percentiles(taken: Sequence[SpentTime], at: int) -> SpentTime:
    """A twentieth of CPU and of wall time."""
    return SpentTime(*(quantiles(column, n=20)[at] for column in zip(*taken, strict=True)))


def _most(rounds: Sequence[Sequence[SpentTime]]) -> SpentTime:
    return SpentTime(*(max(column) for column in zip(*chain.from_iterable(rounds), strict=True)))


async def _rounds(store: Store, questions: Sequence[str], channels: int = 1) -> list[list[SpentTime]]:
    """All questions to each channel in turn, several times."""
    each = [(question, number) for question in questions for number in range(channels)]
    return [[await _ask(store, question, number) for question, number in each] for _ in range(ROUNDS)]


def _medians(rounds: Sequence[Sequence[SpentTime]]) -> list[SpentTime]:
    return [SpentTime(*map(median, zip(*runs, strict=True))) for runs in zip(*rounds, strict=True)]


async def _ask(store: Store, question: str, channel: int = 0) -> SpentTime:
    watch = Stopwatch()
    await search(store, _channel(channel), question, now=datetime(2025, 1, 1, tzinfo=UTC), limit=RESULTS)
    return watch.spent


async def _held_mb(store: Store, questions: Sequence[str]) -> float:
    """Memory that searches leave allocated, by Python's count: the system's would include memory that was used
    before."""
    gc.collect()
    tracemalloc.start()
    try:
        for question in questions:
            await _ask(store, question)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


async def _fill(store: Store, channel: ConversationKey, messages: int, seed: int = 1) -> None:
    talk = enumerate(long_talk(messages, seed=seed))
    while some := list(islice(talk, 5_000)):
        await store.take_history(
            channel,
            [
                said_message(channel, Said(id=str(place), ts=1_600_000_000.0 + 40 * place, author=author, text=text))
                for place, (author, text) in some
            ],
        )


def _questions(messages: int) -> list[str]:
    return long_questions(list(long_talk(min(messages, LONG))), QUESTIONS)


def _channel(number: int) -> ConversationKey:
    return ConversationKey(platform="bench", account="default", channel=str(number))


@asynccontextmanager
async def _opened(home: Home, config: SearchConfig | None = None) -> AsyncIterator[Store]:
    store = await open_store(home, clock=SystemClock(), search=config or SearchConfig())
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def _new_store(config: SearchConfig | None = None) -> AsyncIterator[Store]:
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        async with _opened(Home.at(Path(folder) / "state"), config) as store:
            yield store
