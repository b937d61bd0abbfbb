"""Relevance: how good the messages are that a search finds for questions with known answers, beside SQLite's FTS5."""

import math
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import NamedTuple

import orjson

from belino.bench._conversations import Asked, MadeConversation, Said, full_text_query, moment, said_message
from belino.domain.message import ConversationKey
from belino.domain.search import SearchQuery
from belino.net.clock import SystemClock
from belino.search.query import parse_intent
from belino.search.weights import WEIGHTS, Weights
from belino.storage.home import Home
from belino.storage.static_vectors import SearchConfig
from belino.storage.store import Store, open_store

RESULTS = 8


class Relevance(NamedTuple):
    """The means of the measures of some answers, of the first eight results each."""

    recall: float
    """The share of the right messages that is found."""
    hit: float
    """Whether any of them is."""
    gain: float
    """Normalised discounted cumulative gain."""
    rank: float
    """The reciprocal rank of the first."""


class StoredCorpus(NamedTuple):
    """A corpus in a store, which can be searched again and again."""

    name: str
    conversations: Sequence[MadeConversation]
    store: Store
    seqs: Sequence[Sequence[int]]
    """The seqs of the messages of each conversation."""

    @property
    def is_of_replies(self) -> bool:
        """Whether each question is a message itself, for which the one that it answers is looked for."""
        return all(asked.window for one in self.conversations for asked in one.asked)

    def channel(self, number: int) -> ConversationKey:
        return ConversationKey(platform="bench", account=self.name, channel=str(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How a corpus is searched."""

    weights: Weights = WEIGHTS
    near: bool = False
    """Each question is the message after those that may be found, and is searched near to."""
    at_most: int | None = None
    """Questions of a corpus, evenly chosen; None for all."""


def read_corpora(folder: Path) -> Iterator[tuple[str, tuple[MadeConversation, ...]]]:
    """The conversations of every corpus file of a folder, by the name of the corpus."""
    for file in sorted(folder.glob("*.json")):
        content = orjson.loads(file.read_bytes())
        yield content["name"], tuple(_read_channel(channel) for channel in content["channels"])


def _read_channel(channel: dict[str, list[dict[str, object]]]) -> MadeConversation:
    fields = ("id", "ts", "author", "text", "caption", "thread_id")
    asked = ("intent", "gold", "before", "window")
    return MadeConversation(
        said=tuple(Said(**{name: one[name] for name in fields}) for one in channel["messages"]),  # type: ignore[arg-type]
        asked=tuple(Asked(**{name: one.get(name) for name in asked}) for one in channel["queries"]),  # type: ignore[arg-type]
    )


@asynccontextmanager
async def bench_store(config: SearchConfig | None = None) -> AsyncIterator[Store]:
    """An empty store."""
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        store = await open_store(Home.at(Path(folder) / "state"), clock=SystemClock(), search=config or SearchConfig())
        try:
            yield store
        finally:
            await store.close()


async def stored(store: Store, name: str, conversations: Sequence[MadeConversation]) -> StoredCorpus:
    """Store a corpus, each conversation in a channel of its own."""
    corpus = StoredCorpus(name, conversations, store, [])
    seqs: list[list[int]] = []
    for number, conversation in enumerate(conversations):
        channel, roots = corpus.channel(number), conversation.roots()
        await store.take_history(channel, [said_message(channel, one, roots) for one in conversation.said])
        messages = await store.messages(channel, [one.id for one in conversation.said])
        seq_of = {message.id: message.seq for message in messages}
        seqs.append([seq_of[one.id] for one in conversation.said])
    return corpus._replace(seqs=seqs)


async def judged(corpus: StoredCorpus, judging: Judging) -> Relevance:
    """How good the results are. A question finds only messages before it, where it has a place."""
    numbered = [(number, asked) for number, one in enumerate(corpus.conversations) for asked in one.asked]
    step = 1 if judging.at_most is None else max(1, len(numbered) // judging.at_most)
    scores = [await _judged(corpus, number, asked, judging) for number, asked in numbered[::step]]
    return _means(scores)


async def _judged(corpus: StoredCorpus, number: int, asked: Asked, judging: Judging) -> Relevance:
    said, seqs = corpus.conversations[number].said, corpus.seqs[number]
    end = asked.before or len(said)
    now = moment(said[end - 1].ts) + timedelta(minutes=1)
    query = SearchQuery(
        intents=(parse_intent(asked.intent, now=now),),
        since=moment(said[max(0, end - asked.window)].ts) if asked.window else None,
        near=seqs[end] if judging.near else None,
        until=seqs[end - 1],
        limit=RESULTS,
    )
    found = await corpus.store.search(corpus.channel(number), query, judging.weights)
    return _score([hit.message.id for hit in found.hits[:RESULTS]], asked.gold)


def plain_full_text(conversations: Sequence[MadeConversation]) -> Relevance:
    """The same of SQLite's own full-text search: stemmed, stop words dropped, any of the words."""
    searches = [(one, _full_text(one)) for one in conversations]
    return _means([_score(find(asked), asked.gold) for one, find in searches for asked in one.asked])


def _full_text(conversation: MadeConversation) -> Callable[[Asked], Sequence[str]]:
    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE said USING fts5 (text, tokenize = 'porter unicode61')")
    table.executemany(
        "INSERT INTO said (rowid, text) VALUES (?, ?)",
        [(place, f"{one.text} {one.caption}") for place, one in enumerate(conversation.said)],
    )

    def find(asked: Asked) -> Sequence[str]:
        query = full_text_query(asked.intent)
        if not query:
            return ()
        end = asked.before or len(conversation.said)
        rows = table.execute(
            "SELECT rowid FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ? ORDER BY bm25(said), rowid LIMIT ?",
            (query, max(0, end - (asked.window or end)), end - 1, RESULTS),
        )
        return [conversation.said[row[0]].id for row in rows]

    return find


def _means(scores: Sequence[Relevance]) -> Relevance:
    return Relevance(*(mean(column) for column in zip(*scores, strict=True)))


def _score(found: Sequence[str], gold: Sequence[str]) -> Relevance:
    hits = [message in gold for message in found]
    gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(RESULTS, len(gold))))
    first = next((1 / (place + 1) for place, hit in enumerate(hits) if hit), 0.0)
    return Relevance(sum(hits) / len(gold), float(any(hits)), gain / ideal, first)
