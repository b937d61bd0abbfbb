"""Search vectors: one for each message, in `search_vectors`, by which results are re-ranked where that is configured.

A vector is deleted in the transaction that changes or deletes its message (`note_changed`), so that none
outlives its text. `vectorless` and `store_vectors` make those of new messages in the background; a search makes those
that it misses for itself, so that its order does not depend on what was stored.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from belino.domain.search import SearchIntent
from belino.search.ranking import SHOWN, Ranking
from belino.search.rerank import reranked
from belino.storage.database import TableRow, Tx
from belino.storage.dialect import marks
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK
from belino.storage.static_vectors import StaticVectors

AT_ONCE = 512
"""Messages whose vectors are made in one step."""


class Vector(NamedTuple):
    """A message's vector, and what it was made of."""

    message: int
    text: str
    forward: bytes | None
    vector: bytes


class ChannelVectors:
    """The vectors of one channel, in one snapshot of the store."""

    def __init__(self, tx: Tx, channel: int, static: StaticVectors) -> None:
        self._tx = tx
        self._channel = channel
        self._static = static

    def reranked(self, ranking: Ranking, intent: SearchIntent, weight: float) -> Ranking:
        """A ranking with the best in order of their similarity to the intent too."""
        numbers = [self._channel << SEQ_BITS | seq for seq in ranking.seqs[:SHOWN]]
        if len(numbers) < 2:
            return ranking
        vectors = self._of(numbers)
        question = self._static.of(intent.text)
        return reranked(ranking, self._static.similarities(question, [vectors[one] for one in numbers]), weight)

    def _of(self, numbers: Sequence[int]) -> dict[int, bytes]:
        query = f"SELECT message, vector FROM search_vectors WHERE message IN ({marks(numbers)})"
        vectors: dict[int, bytes] = dict(tuple(row) for row in self._tx.execute(query, tuple(numbers)))
        missing = [number for number in numbers if number not in vectors]
        if missing:
            rows = self._tx.execute(
                f"SELECT id, text, forward FROM messages WHERE id IN ({marks(missing)})", tuple(missing)
            )
            vectors |= {row["id"]: _vector(row, self._static).vector for row in rows}
        return vectors


def vectorless(tx: Tx, static: StaticVectors) -> list[Vector]:
    """Vectors of the next messages that have none, from the newest on in each channel that has one."""
    channels = tx.execute(
        "SELECT c.id, coalesce((SELECT max(v.message) FROM search_vectors v WHERE v.message BETWEEN c.id << ?1 AND "
        "c.id << ?1 | ?2), c.id << ?1) AS made FROM channels c ORDER BY c.id",
        (SEQ_BITS, SEQ_MASK),
    ).fetchall()
    found: list[Vector] = []
    for channel in channels:
        rows = tx.execute(
            "SELECT id, text, forward FROM messages WHERE id > ? AND id <= ? AND deleted IS NULL ORDER BY id LIMIT ?",
            (channel["made"], channel["id"] << SEQ_BITS | SEQ_MASK, AT_ONCE - len(found)),
        )
        found += [_vector(row, static) for row in rows]
        if len(found) == AT_ONCE:
            break
    return found


def store_vectors(tx: Tx, vectors: Sequence[Vector]) -> None:
    """Store vectors of messages that still say what these were made of."""
    tx.many(
        "INSERT INTO search_vectors (message, vector) SELECT id, ? FROM messages "
        "WHERE id = ? AND deleted IS NULL AND text = ? AND forward IS ? "
        "ON CONFLICT (message) DO UPDATE SET vector = excluded.vector",
        [(one.vector, one.message, one.text, one.forward) for one in vectors],
    )


def _vector(row: TableRow, static: StaticVectors) -> Vector:
    text, forward = row["text"], row["forward"]
    said = text if forward is None else f"{text}\n{orjson.loads(forward)['text']}"
    return Vector(row["id"], text, forward, static.of(said))
