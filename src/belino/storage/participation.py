"""Participation: when the agent last spoke in a thread, and how many messages of bots it answered in a row."""

from datetime import datetime

from belino.domain.context import AgentSpoke, ChannelFacts
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import MessageOutcome
from belino.storage.database import Tx, Verbs, from_micros, to_micros
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_channel, find_place
from belino.storage.threads import find_root

MOST_READ = 2_000
"""Messages of a conversation that are read to find the last one of a person."""
_BOT, _AGENT = 1, 2
_LIVE = f"AND outcome <> '{MessageOutcome.RECALLED}'"
_SPOKE = """
SELECT m.sent, m.platform_id FROM messages m WHERE m.channel = ?1 AND m.root = ?2 AND m.deleted IS NULL
    AND m.sent BETWEEN ?3 AND ?4 AND m.author_marks & 2 = 2
UNION ALL SELECT m.sent, m.platform_id FROM messages m WHERE m.channel = ?1 AND m.platform_id = ?2
    AND m.kind = 'message' AND m.deleted IS NULL AND m.sent BETWEEN ?3 AND ?4 AND m.author_marks & 2 = 2
ORDER BY 1 DESC LIMIT 1
"""
_TURN = """
SELECT t.number FROM parcels p JOIN turns t ON t.id = p.turn WHERE p.channel = ? AND p.message_id = ?
ORDER BY p.id DESC LIMIT 1
"""
_ANSWERING = """
SELECT number FROM turns WHERE conversation = ?1 AND state IN ('waiting', 'running') AND created >= ?2
UNION ALL SELECT t.number FROM parcels p JOIN turns t ON t.id = p.turn
    WHERE p.conversation = ?1 AND p.state IN ('ready', 'sending') AND t.created >= ?2
ORDER BY 1 DESC LIMIT 1
"""


class ParticipationVerbs(Verbs):
    """What the store knows about a channel and its threads that decides who addresses the agent there."""

    async def channel_facts(self, channel: ConversationKey) -> ChannelFacts:
        return await self._database.read(lambda tx: channel_facts(tx, channel))

    async def agent_spoke(
        self, conversation: ConversationKey, *, reply_to: str | None, since: datetime, until: datetime
    ) -> AgentSpoke | None:
        """The agent's last message in a time, in the thread of a conversation or the chain of a replied-to message.

        An answer that is on its way to the thread counts as said at the end of that time.
        """
        times = (to_micros(since), to_micros(until))
        return await self._database.read(lambda tx: agent_spoke(tx, conversation, reply_to, times))

    async def bot_turns(self, conversation: ConversationKey) -> int:
        """How many messages of bots the agent answered in a conversation since a person last wrote there."""
        return await self._database.read(lambda tx: bot_turns(tx, conversation))


def channel_facts(tx: Tx, channel: ConversationKey) -> ChannelFacts:
    """The server and the type of a channel, as far as they are known."""
    row = tx.execute(
        "SELECT server, chat_type FROM channels WHERE platform = ? AND account = ? AND channel = ?",
        (channel.platform, channel.account, channel.channel),
    ).fetchone()
    if row is None:
        return ChannelFacts()
    return ChannelFacts(server=row["server"], is_direct=row["chat_type"] == ChatType.DIRECT)


def agent_spoke(
    tx: Tx, conversation: ConversationKey, reply_to: str | None, times: tuple[int, int]
) -> AgentSpoke | None:
    """The agent's last message in a thread or chain of replies, also if it begins it."""
    if (number := _answering(tx, conversation, times[0])) is not None:
        return AgentSpoke(at=from_micros(times[1]), turn=number)
    channel = find_channel(tx, conversation)
    root = None if channel is None else find_root(tx, channel, "", thread=conversation.thread, reply_to=reply_to)
    if channel is None or root is None:
        return None
    said = tx.execute(_SPOKE, (channel, root, *times)).fetchone()
    if said is None:
        return None
    turn = tx.execute(_TURN, (channel, said["platform_id"])).fetchone()
    return AgentSpoke(at=from_micros(said["sent"]), turn=None if turn is None else turn["number"])


def _answering(tx: Tx, conversation: ConversationKey, since: int) -> int | None:
    """The turn whose answer a thread waits for; None if there is none."""
    place = None if conversation.thread is None else find_place(tx, conversation)
    if place is None:
        return None
    row = tx.execute(_ANSWERING, (place.conversation, since)).fetchone()
    return None if row is None else row["number"]


def bot_turns(tx: Tx, conversation: ConversationKey) -> int:
    """Counted over the whole channel for a thread that has no message yet: each one might begin its own.

    What was imported from the platform's history was written before the messages that came since.
    """
    place, channel = find_place(tx, conversation), find_channel(tx, conversation)
    if channel is None:
        return 0
    first = channel << SEQ_BITS
    rows = tx.execute(
        f"SELECT author_marks, turn FROM messages WHERE conversation = ? {_LIVE} ORDER BY id DESC LIMIT ?"
        if place is not None
        else f"SELECT author_marks, turn FROM messages WHERE id BETWEEN ? AND ? {_LIVE} ORDER BY id DESC LIMIT ?",
        (first, first | SEQ_MASK, MOST_READ) if place is None else (place.conversation, MOST_READ),
    )
    counted = 0
    for marks, turn in rows:
        if not marks & (_BOT | _AGENT):
            break
        counted += turn is not None and not marks & _AGENT
    return counted
