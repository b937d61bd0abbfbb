"""What a search found, read back: messages by their seq, and the threads they belong to."""

import sqlite3
from collections.abc import Mapping, Sequence

from belino.domain.context import ThreadSummary
from belino.domain.message import ConversationKey
from belino.domain.record import StoredMessage
from belino.storage.messages import by_number
from belino.storage.places import SEQ_BITS, SEQ_MASK, find_channel
from belino.storage.seal import Keys
from belino.storage.stamps import from_micros

PEOPLE_NAMED = 5


def numbered(
    connection: sqlite3.Connection, keys: Keys, channel: ConversationKey, seqs: Sequence[int]
) -> tuple[StoredMessage, ...]:
    """Those of these seqs that the channel has, oldest first; a seq cannot reach into another channel."""
    number = find_channel(connection, channel)
    own = [seq for seq in seqs if 0 < seq <= SEQ_MASK]
    if number is None or not own:
        return ()
    return by_number(connection, keys, [number << SEQ_BITS | seq for seq in own])


def thread_summaries(
    connection: sqlite3.Connection, channel: ConversationKey, roots: Sequence[str]
) -> Mapping[str, ThreadSummary]:
    """The threads under these messages at a glance: living replies, and who wrote most of them."""
    number = find_channel(connection, channel)
    asked = tuple(dict.fromkeys(roots))
    rows = connection.execute(
        "SELECT root, author_name, count(*) AS replies, max(sent) AS last FROM messages "  # noqa: S608
        f"WHERE channel = ? AND root IN ({','.join('?' * len(asked))}) AND deleted IS NULL "
        "GROUP BY root, author_id ORDER BY root, replies DESC, min(id)",
        (number, *asked),
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
