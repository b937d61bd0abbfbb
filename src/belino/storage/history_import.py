"""History import: messages from a platform's history, stored as context behind live arrivals."""

from collections.abc import Sequence

from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import Verdict
from belino.storage.arrivals import ArrivalTally
from belino.storage.changes import apply_changes, take_edition
from belino.storage.database import Tx
from belino.storage.encryption import Keys
from belino.storage.inbox import insert_all_refs, message_row
from belino.storage.messages import insert_message
from belino.storage.refs import with_ids
from belino.storage.row_ids import RowIds
from belino.storage.threads import adopt_replies, find_root

# Imported messages are never commands, whatever their sender: an old command must not run again.
VERDICT = Verdict(standing=Standing.OBSERVED, reason="from the platform's history")


def take_history(
    tx: Tx,
    keys: Keys,
    channel: ConversationKey,
    messages: Sequence[Message],
    now: int,
) -> int:
    """Store those messages of the channel that are not stored yet, in the order they were sent."""
    own = [message for message in messages if message.conversation.whole_channel == channel.whole_channel]
    return sum(_recall(tx, keys, message, now) for message in sorted(own, key=lambda one: one.sent))


def _recall(tx: Tx, keys: Keys, message: Message, now: int) -> bool:
    place = tx.memo(RowIds).conversation(tx, message.conversation, now)
    root = find_root(tx, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to)
    row = message_row(message, VERDICT, place, None, root, now)._replace(outcome=MessageOutcome.RECALLED)
    if insert_message(tx, row) is None:
        take_edition(tx, keys, message, row)
        return False
    place.channel.seq += 1
    tx.memo(ArrivalTally).add(message.conversation)
    insert_all_refs(tx, keys, message, with_ids(keys, message.conversation, message.media), row)
    adopt_replies(tx, row.channel, message.id, root)
    apply_changes(tx, keys, row.id, message.id, now)
    return True
