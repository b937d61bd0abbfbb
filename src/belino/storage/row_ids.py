"""Row ids of channels and conversations, cached so that intake does not look them up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import CacheSize
from belino.storage.database import TableRow, Tx

SEQ_BITS = 40
SEQ_MASK = (1 << SEQ_BITS) - 1
_REMEMBERED = 50_000


class Channel:
    """A cached channel, with its last seq."""

    __slots__ = ("chat_type", "id", "name", "seq", "server")

    def __init__(self, id: int, name: str, chat_type: str, seq: int, server: str = "") -> None:  # noqa: A002
        self.id = id
        self.name = name
        self.chat_type = chat_type
        self.seq = seq
        self.server = server


class Conversation:
    """A cached conversation, with its last turn number."""

    __slots__ = ("channel", "id", "turns")

    def __init__(self, id: int, channel: Channel, turns: int) -> None:  # noqa: A002
        self.id = id
        self.channel = channel
        self.turns = turns


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """Row ids for reading; a read must not leave `channel`."""

    channel: int
    conversation: int


class RowIds:
    """The ids and last numbers of channels and conversations that a transaction has seen."""

    def __init__(self) -> None:
        self._channels: dict[tuple[str, str, str], Channel] = {}
        self._conversations: dict[ConversationKey, Conversation] = {}
        self.turn: int | None = None
        """The last turn id."""

    def flush(self, tx: Tx) -> None:
        """Nothing is left to write: rows are inserted when they are first needed."""

    def undo(self) -> None:
        """Drop the cache: rows that it knows may be rolled back."""
        self._channels.clear()
        self._conversations.clear()
        self.turn = None

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        known = len(self._channels) + len(self._conversations)
        return {"row_ids": CacheSize.of_entries(known, most=2 * _REMEMBERED, each=300)}

    def next_turn(self, tx: Tx) -> int:
        if self.turn is None:
            self.turn = int(tx.execute("SELECT coalesce(max(id), 0) FROM turns").fetchone()[0])
        self.turn += 1
        return self.turn

    def conversation(self, tx: Tx, key: ConversationKey, now: int) -> Conversation:
        """The conversation, created if it is new."""
        known = self._conversations.get(key)
        if known is not None:
            return known
        if len(self._conversations) >= _REMEMBERED:
            self.undo()
        channel = self.channel(tx, key)
        row = tx.execute(
            "INSERT INTO conversations (channel, thread, name, created) VALUES (?, ?, '', ?) "
            "ON CONFLICT (channel, thread) DO UPDATE SET created = conversations.created RETURNING id, aged_turns",
            (channel.id, key.thread or "", now),
        ).fetchone()
        turns = tx.execute(
            "SELECT coalesce(max(number), 0) FROM turns WHERE conversation = ? "
            "AND state IN ('waiting', 'running', 'answered', 'failed', 'aborted')",
            (row[0],),
        ).fetchone()[0]
        made = self._conversations[key] = Conversation(row[0], channel, max(turns, row["aged_turns"]))
        return made

    def channel(self, tx: Tx, key: ConversationKey) -> Channel:
        """The channel, created if it is new."""
        names = (key.platform, key.account, key.channel)
        known = self._channels.get(names)
        if known is not None:
            return known
        row = tx.execute(
            "INSERT INTO channels (platform, account, channel, name, chat_type) VALUES (?, ?, ?, '', ?) "
            "ON CONFLICT (platform, account, channel) DO UPDATE SET name = channels.name "
            "RETURNING id, name, chat_type, aged_seq, server",
            (*names, ChatType.DIRECT.value),
        ).fetchone()
        first = row["id"] << SEQ_BITS
        last = tx.execute("SELECT max(id) FROM messages WHERE id BETWEEN ? AND ?", (first, first | SEQ_MASK))
        seq = max((last.fetchone()[0] or 0) & SEQ_MASK, row["aged_seq"])
        made = self._channels[names] = Channel(row["id"], row["name"], row["chat_type"], seq, row["server"])
        return made


def call_channel(tx: Tx, channel: Channel, name: str | None, chat_type: str, server: str = "") -> None:
    """Store a channel's latest name, type and server."""
    chosen = (name or channel.name, chat_type, server or channel.server)
    if chosen != (channel.name, channel.chat_type, channel.server):
        tx.execute("UPDATE channels SET name = ?, chat_type = ?, server = ? WHERE id = ?", (*chosen, channel.id))
        channel.name, channel.chat_type, channel.server = chosen


def find_channel(tx: Tx, key: ConversationKey) -> int | None:
    """The channel's row id, also by the place that it moved to; None if it is unknown."""
    row = tx.execute(
        "SELECT id FROM channels WHERE platform = ? AND account = ? AND channel = ?",
        (key.platform, key.account, key.channel),
    ).fetchone()
    if row is None and (first := find_moved(tx, key.platform, key.account, key.channel)) is not None:
        return find_channel(tx, replace(key, channel=first))
    return None if row is None else int(row[0])


def find_moved(tx: Tx, platform: str, account: str, place: str) -> str | None:
    """The first id of the channel that moved to a place; None if none did."""
    row = tx.execute(
        "SELECT channel FROM moved_channels WHERE platform = ? AND account = ? AND place = ?",
        (platform, account, place),
    ).fetchone()
    return None if row is None else str(row["channel"])


def find_place(tx: Tx, key: ConversationKey) -> ConversationRow | None:
    """The conversation's row ids, also by the place that its channel moved to; None if it is unknown."""
    row = tx.execute(
        "SELECT v.channel, v.id FROM channels c JOIN conversations v ON v.channel = c.id "
        "WHERE c.platform = ? AND c.account = ? AND c.channel = ? AND v.thread = ?",
        (key.platform, key.account, key.channel, key.thread or ""),
    ).fetchone()
    if row is None and (first := find_moved(tx, key.platform, key.account, key.channel)) is not None:
        return find_place(tx, replace(key, channel=first))
    return None if row is None else ConversationRow(row[0], row[1])


def key_of(row: TableRow) -> ConversationKey:
    """The conversation a row with platform, account, channel_key and thread belongs to."""
    return ConversationKey(
        platform=row["platform"], account=row["account"], channel=row["channel_key"], thread=row["thread"] or None
    )


# What `key_of` needs, for a query that names its conversations table v and its channels table c.
KEY_COLUMNS = "c.platform, c.account, c.channel AS channel_key, v.thread"

# The name of the channel c; direct messages that their platform does not name have that of the person who writes them.
CHANNEL_NAME = """
CASE WHEN c.name <> '' OR c.chat_type <> 'direct' THEN c.name ELSE coalesce((
    SELECT p.author_name FROM messages p WHERE p.id BETWEEN c.id << 40 AND (c.id + 1 << 40) - 1
    AND p.author_marks & 2 = 0 ORDER BY p.id DESC LIMIT 1), '') END
"""
