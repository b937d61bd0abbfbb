"""Channel inbox as stored: the messages that were passed on to a client, and the last one that it acknowledged."""

from collections.abc import Sequence

from belino.domain.message import ConversationKey
from belino.domain.outcome import CHOSE_SILENCE, PASSED_ON
from belino.domain.stored import StoredMessage
from belino.storage import messages
from belino.storage.database import Tx, Verbs
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_place


class ChannelInboxVerbs(Verbs):
    """Messages for a client that answers in its own time."""

    async def passed_on(
        self, conversation: ConversationKey, *, after: int | None, limit: int
    ) -> tuple[StoredMessage, ...]:
        """Messages that were passed on, oldest first: after a seq, or all that are not acknowledged."""

        def work(tx: Tx) -> Sequence[StoredMessage]:
            ids = passed_on(tx, conversation, after, limit)
            return messages.messages(tx, self._keys, conversation.whole_channel, ids)

        found = await self._database.read(work)
        return tuple(sorted((each for each in found if each.deleted is None), key=lambda each: each.seq))

    async def acknowledge(self, conversation: ConversationKey, seq: int) -> None:
        """Record that the client has all messages up to this one; it never goes back."""

        def work(tx: Tx) -> None:
            place = find_place(tx, conversation)
            if place is not None:
                acknowledge(tx, place.conversation, seq)

        await self._database.write(work)

    async def choice_key(self, conversation: ConversationKey, question: str, value: str) -> str | None:
        """The key of a choice by its value; None if the question was not asked in the channel."""
        return await self._database.read(lambda tx: choice_key(tx, conversation, question, value))


def passed_on(tx: Tx, conversation: ConversationKey, after: int | None, limit: int) -> list[str]:
    """The platform's ids of messages that were passed on."""
    place = find_place(tx, conversation)
    if place is None:
        return []
    if after is None:
        row = tx.execute(
            "SELECT acknowledged FROM chat_settings WHERE conversation = ?", (place.conversation,)
        ).fetchone()
        after = 0 if row is None else int(row["acknowledged"])
    rows = tx.execute(
        "SELECT m.platform_id FROM messages m JOIN turns t ON t.id = m.turn WHERE m.conversation = ? AND m.id > ? "
        "AND m.deleted IS NULL AND t.state = 'answered' AND t.reason = ? ORDER BY m.id LIMIT ?",
        (place.conversation, (place.channel << SEQ_BITS) | (after & SEQ_MASK), f"{CHOSE_SILENCE}: {PASSED_ON}", limit),
    ).fetchall()
    return [str(row["platform_id"]) for row in rows]


def acknowledge(tx: Tx, conversation: int, seq: int) -> None:
    """Move the mark of a conversation forward."""
    tx.execute(
        "INSERT INTO chat_settings (conversation, acknowledged) VALUES (?, ?) ON CONFLICT (conversation) DO UPDATE "
        "SET acknowledged = excluded.acknowledged WHERE chat_settings.acknowledged < excluded.acknowledged",
        (conversation, seq),
    )


def choice_key(tx: Tx, conversation: ConversationKey, question: str, value: str) -> str | None:
    """The key of a choice; of a question that was asked twice, the newest."""
    row = tx.execute(
        "SELECT key FROM choices WHERE question = ? AND channel = ? AND value = ? ORDER BY created DESC, key LIMIT 1",
        (question, str(conversation.whole_channel), value),
    ).fetchone()
    return None if row is None else str(row["key"])
