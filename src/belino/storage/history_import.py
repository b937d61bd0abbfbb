"""History import: messages from a platform's history, stored as context behind live arrivals."""

import sqlite3
from collections.abc import Sequence

from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import Verdict
from belino.storage.changes import apply_changes, take_edition
from belino.storage.encryption import Keys
from belino.storage.inbox import insert_all_refs, message_row
from belino.storage.messages import insert_message
from belino.storage.refs import with_ids
from belino.storage.row_ids import RowIds
from belino.storage.threads import adopt_replies, find_root

# Imported messages are never commands, whatever their sender: an old command must not run again.
VERDICT = Verdict(standing=Standing.OBSERVED, reason="from the platform's history")


def take_history(
    connection: sqlite3.Connection,
    keys: Keys,
    places: RowIds,
    channel: ConversationKey,
    messages: Sequence[Message],
    now: int,
) -> int:
    """Store those messages of the channel that are not stored yet, in the order they were sent."""
    own = [message for message in messages if message.conversation.whole_channel == channel.whole_channel]
    return sum(_recall(connection, keys, places, message, now) for message in sorted(own, key=lambda one: one.sent))


def _recall(connection: sqlite3.Connection, keys: Keys, places: RowIds, message: Message, now: int) -> bool:
    place = places.conversation(connection, message.conversation, now)
    root = find_root(
        connection, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to
    )
    row = message_row(message, VERDICT, place, None, root, now)._replace(outcome=MessageOutcome.RECALLED)
    if insert_message(connection, row) is None:
        take_edition(connection, keys, places, message, row)
        return False
    place.channel.seq += 1
    places.arrivals.add(message.conversation)
    insert_all_refs(connection, keys, message, with_ids(keys, message.conversation, message.media), row)
    adopt_replies(connection, row.channel, message.id, root)
    apply_changes(connection, keys, row.id, message.id, now)
    return True
