"""What a search found, read back: messages by their seq, and the threads they belong to."""

import sqlite3
from collections.abc import Mapping, Sequence

from belino.domain.context import ThreadSummary
from belino.domain.stored import StoredMessage
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK
from belino.storage.timestamps import from_micros

PEOPLE_NAMED = 5


class ChannelRecords:
    """One channel's messages, as one question sees them."""

    def __init__(self, connection: sqlite3.Connection, keys: Keys, channel: int) -> None:
        self._connection = connection
        self._keys = keys
        self._channel = channel

    def numbered(self, seqs: Sequence[int]) -> tuple[StoredMessage, ...]:
        """A seq cannot reach into another channel."""
        own = [self._channel << SEQ_BITS | seq for seq in seqs if 0 < seq <= SEQ_MASK]
        return by_number(self._connection, self._keys, own) if own else ()

    def thread_summaries(self, roots: Sequence[str]) -> Mapping[str, ThreadSummary]:
        """Living replies, and who wrote most of them."""
        asked = tuple(dict.fromkeys(roots))
        rows = self._connection.execute(
            "SELECT root, author_name, count(*) AS replies, max(sent) AS last FROM messages "  # noqa: S608
            f"WHERE channel = ? AND root IN ({','.join('?' * len(asked))}) AND deleted IS NULL "
            "GROUP BY root, author_id ORDER BY root, replies DESC, min(id)",
            (self._channel, *asked),
        ).fetchall()
        by_root: dict[str, list[sqlite3.Row]] = {}
        for row in rows:
            by_root.setdefault(row["root"], []).append(row)
        return {
            root: ThreadSummary(
                reply_count=sum(row["replies"] for row in people),
                last_reply_ts=from_micros(max(row["last"] for row in people)),
                participant_names=tuple(row["author_name"] for row in people[:PEOPLE_NAMED]),
            )
            for root, people in by_root.items()
        }


class NoRecords:
    """What an index has that nobody asks just now."""

    def numbered(self, seqs: Sequence[int]) -> tuple[StoredMessage, ...]:
        return ()

    def thread_summaries(self, roots: Sequence[str]) -> Mapping[str, ThreadSummary]:
        return {}
