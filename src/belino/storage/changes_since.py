"""Changes since a read position: new messages, edits, deletions and reactions of a channel."""

from collections.abc import Sequence

from belino.domain.message import ConversationKey, Deletion, Edit, Reaction
from belino.domain.stored import Happening, Meanwhile, ReadPosition, StoredMessage
from belino.storage.database import Tx
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, ConversationRow, find_place

# A message that a turn of this session answers is already in its prompt; a failed or stopped turn left no memory.
_UNTOLD = "m.deleted IS NULL AND m.author_marks & 2 = 0 AND (t.state IS NULL OR t.state IN ('failed', 'aborted'))"
_HAPPENINGS = {Edit.kind: Happening.EDITED, Deletion.kind: Happening.DELETED, Reaction.kind: Happening.REACTED}


def meanwhile(
    tx: Tx,
    keys: Keys,
    conversation: ConversationKey,
    since: ReadPosition,
    *,
    until: int,
    limit: int,
) -> Meanwhile:
    """What arrived in this conversation up to a message, and all changes to earlier messages."""
    place = find_place(tx, conversation)
    if place is None:
        return Meanwhile(arrived=(), total_arrived=0, changed=(), replies_elsewhere=0, now=ReadPosition(seq=until))
    arrived = _arrived(tx, place, since.seq, until)
    return Meanwhile(
        arrived=_in_time(by_number(tx, keys, arrived[-limit:])) if arrived else (),
        total_arrived=len(arrived),
        changed=_changed(tx, keys, place, conversation.thread, since, limit),
        replies_elsewhere=_elsewhere(tx, place, since.seq, until),
        now=ReadPosition(seq=max(since.seq, until), change=_last_change(tx, place)),
    )


def _arrived(tx: Tx, place: ConversationRow, since: int, until: int) -> Sequence[int]:
    between = _between(place, since, until)
    rows = tx.execute(
        "SELECT m.sent, m.id FROM messages m LEFT JOIN turns t ON t.id = m.turn "
        f"WHERE m.conversation = ? AND m.id > ? AND m.id <= ? AND m.outcome <> 'recalled' AND {_UNTOLD}",
        (place.conversation, *between),
    )
    # Imported history has late numbers: the time it was sent shows whether the session missed it.
    recalled = tx.execute(
        "SELECT m.sent, m.id FROM messages m LEFT JOIN turns t ON t.id = m.turn "
        "WHERE m.conversation = ? AND m.sent > (SELECT sent FROM messages WHERE id = ?) "
        f"AND m.sent <= (SELECT sent FROM messages WHERE id = ?) AND m.outcome = 'recalled' AND {_UNTOLD}",
        (place.conversation, *between),
    )
    return [number for _, number in sorted(map(tuple, (*rows, *recalled)))]


def _in_time(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    return tuple(sorted(messages, key=lambda message: (message.sent, message.seq)))


def _elsewhere(tx: Tx, place: ConversationRow, since: int, until: int) -> int:
    """Replies in other threads, except the agent's own."""
    found = tx.execute(
        "SELECT count(*) FROM messages m JOIN conversations v ON v.id = m.conversation WHERE m.id > ? AND m.id <= ? "
        "AND m.conversation <> ? AND v.thread <> '' AND m.outcome <> 'recalled' AND m.deleted IS NULL "
        "AND m.author_marks & 2 = 0",
        (*_between(place, since, until), place.conversation),
    )
    return int(found.fetchone()[0])


def _changed(
    tx: Tx,
    keys: Keys,
    place: ConversationRow,
    thread: str | None,
    since: ReadPosition,
    limit: int,
) -> tuple[tuple[StoredMessage, Happening], ...]:
    """Each message once per kind of change, in its current form; a deleted one only as deleted."""
    rows = tx.execute(
        "SELECT c.kind, m.id, m.deleted FROM changes c "
        "JOIN messages m ON m.channel = c.channel AND m.platform_id = c.message_id "
        "WHERE c.channel = ? AND c.number > ? AND c.outcome = 'applied' AND c.kind <> 'delivery' AND m.id <= ? "
        "AND (m.conversation = ? OR m.platform_id = ?) ORDER BY c.number",
        (place.channel, since.change, _between(place, 0, since.seq)[1], place.conversation, thread),
    )
    happened: dict[tuple[int, Happening], None] = {}
    for row in rows:
        what = Happening.DELETED if row["deleted"] is not None else _HAPPENINGS[row["kind"]]
        happened.pop((row["id"], what), None)
        happened[row["id"], what] = None
    last = list(happened)[-limit:]
    if not last:
        return ()
    messages = {message.seq: message for message in by_number(tx, keys, [number for number, _ in last])}
    return tuple((messages[seq], what) for number, what in last if (seq := number & SEQ_MASK) in messages)


def _last_change(tx: Tx, place: ConversationRow) -> int:
    found = tx.execute("SELECT max(number) FROM changes WHERE channel = ? AND number IS NOT NULL", (place.channel,))
    return int(found.fetchone()[0] or 0)


def _between(place: ConversationRow, since: int, until: int) -> tuple[int, int]:
    first = place.channel << SEQ_BITS
    return first + min(max(since, 0), SEQ_MASK), first + min(max(until, 0), SEQ_MASK)
