"""Changes of messages: edits, deletions and reactions, and what changed since a session last read."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime

import orjson

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import (
    ConversationKey,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Edit,
    Message,
    Reaction,
    edit_of,
)
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.reply import ParcelState
from belino.domain.stored import Happening, MissedChanges, ReadPosition, StoredMessage
from belino.storage.arrivals import ArrivalTally, count_duplicate
from belino.storage.blob_rows import use_blob
from belino.storage.database import TableRow, Tx, to_micros
from belino.storage.dialect import by_index
from belino.storage.encryption import Keys
from belino.storage.messages import MessageRow, by_number, note_media_change
from belino.storage.refs import OWN, RefOwner, author_of, refs_of_messages, replace_refs, with_ids, withdraw_refs
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, Channel, ConversationRow, RowIds, find_place
from belino.storage.thread_reports import count_deleted_reply
from belino.storage.threads import other_threads, thread_name

Change = Edit | Deletion | Reaction | DeliveryStatus
APPLIED, KEPT, REFUSED, SAME = "applied", "kept", "refused", "same as before"
_INSERT = """
INSERT INTO changes (channel, kind, platform_id, message_id, author_id, sent, received, text, refs, outcome, number)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT max(number) + 1 FROM (
    SELECT max(number) AS number FROM changes WHERE channel = ?1 AND number IS NOT NULL
    UNION ALL SELECT aged_change FROM channels WHERE id = ?1) x))
ON CONFLICT (channel, kind, platform_id) DO NOTHING
"""
# Without the index, SQLite would scan all changes of the channel for every arrival.
_KEPT = f"""
SELECT * FROM changes{by_index("changes_of_message")}
WHERE channel = ? AND message_id = ? AND outcome = 'kept' ORDER BY sent, coalesce(number, 0)
"""
# A message that a turn of this session answers is already in its prompt; a failed or stopped turn left no memory.
_UNTOLD = "m.deleted IS NULL AND m.author_marks & 2 = 0 AND (t.state IS NULL OR t.state IN ('failed', 'aborted'))"
_HAPPENINGS = {Edit.kind: Happening.EDITED, Deletion.kind: Happening.DELETED, Reaction.kind: Happening.REACTED}


def take_change(tx: Tx, keys: Keys, change: Change, now: int) -> Taken:
    """Store a change once, and apply it if its message is stored."""
    channel = tx.memo(RowIds).channel(tx, change.conversation)
    refs = with_ids(keys, change.conversation, change.media) if isinstance(change, Edit) else ()
    message = _message(tx, channel.id, change.message_id)
    trace = "" if message is None else message["trace"]
    if not _keep(tx, keys, channel, change, refs, now):
        count_duplicate(tx, channel.id)
        return Taken(outcome=MessageOutcome.DUPLICATE, reason="taken in before", trace=trace, refs=refs)
    ended = 0
    if isinstance(change, Reaction):
        _react(tx, channel.id, change)
    elif isinstance(change, DeliveryStatus):
        note_delivery(tx, channel.id, change.message_id, change.state, change.reason, now)
    elif message is not None:
        ended = apply_changes(tx, keys, message["id"], change.message_id, now)
    reason = "applied" if message is not None else "kept until its message comes"
    return Taken(outcome=MessageOutcome.NOTED, reason=reason, trace=trace, refs=refs, queued=-ended)


def take_edition(tx: Tx, keys: Keys, message: Message, row: MessageRow) -> None:
    """Apply a repeated message as an edit if it is newer than the stored version."""
    if row.edited is None or message.edited is None:
        return
    known = tx.execute(
        "SELECT edited FROM messages WHERE channel = ? AND platform_id = ? AND kind = ? AND deleted IS NULL",
        (row.channel, row.platform_id, row.kind),
    ).fetchone()
    if known is None or (known["edited"] or 0) >= row.edited:
        return
    tx.memo(ArrivalTally).add(message.conversation)
    edit_id = f"{message.id}@{message.edited.timestamp():.6f}"
    take_change(tx, keys, edit_of(message, edit_id, message.edited), row.received)


def apply_changes(tx: Tx, keys: Keys, number: int, message_id: str, now: int) -> int:
    """Apply the stored changes of a message, oldest first. Returns how many waiting turns they ended."""
    channel, ended = number >> SEQ_BITS, 0
    kept = tx.execute(_KEPT, (channel, message_id)).fetchall()
    for change in kept:
        message = tx.execute("SELECT * FROM messages WHERE id = ?", (number,)).fetchone()
        match change["kind"]:
            case Edit.kind:
                outcome = _edit(tx, keys, message, change)
            case Deletion.kind:
                outcome = APPLIED
                ended += delete_content(tx, message, change["sent"], now)
            case _:
                outcome = APPLIED
        # The text is now in the message, or nowhere: a copy would outlive its deletion.
        tx.execute(
            "UPDATE changes SET outcome = ?, text = '', refs = NULL WHERE channel = ? AND kind = ? AND platform_id = ?",
            (outcome, channel, change["kind"], change["platform_id"]),
        )
    return ended


def _message(tx: Tx, channel: int, message_id: str) -> TableRow | None:
    row: TableRow | None = tx.execute(
        "SELECT id, trace FROM messages WHERE channel = ? AND platform_id = ? ORDER BY kind LIMIT 1",
        (channel, message_id),
    ).fetchone()
    return row


def _keep(tx: Tx, keys: Keys, channel: Channel, change: Change, refs: tuple[MediaRef, ...], now: int) -> bool:
    author = change.author
    text, packed, outcome = "", None, KEPT
    if isinstance(change, Edit):
        text, packed = change.text, _pack(keys, refs, change.id)
    elif isinstance(change, DeliveryStatus):
        text, outcome = change.reason, change.state.value
    elif isinstance(change, Reaction):
        outcome = APPLIED
    kept = tx.execute(
        _INSERT,
        (
            channel.id,
            change.kind,
            change.id,
            change.message_id,
            None if author is None else author.id,
            to_micros(change.sent),
            now,
            text,
            packed,
            outcome,
        ),
    )
    return kept.rowcount == 1


def _edit(tx: Tx, keys: Keys, message: TableRow, change: TableRow) -> str:
    if change["author_id"] != message["author_id"]:
        return REFUSED  # only the author may edit
    if message["deleted"] is not None or (message["edited"] or 0) > change["sent"]:
        return APPLIED  # a later edit is already stored
    refs = _unpack(keys, change["refs"], change["platform_id"])
    before = refs_of_messages(tx, keys, [message["id"]]).get((message["id"], OWN), ())
    same = change["text"] == message["text"] and (not refs or _seen(refs) == _seen(before))
    note_media_change(tx, message["id"])
    tx.execute("UPDATE messages SET text = ?, edited = ? WHERE id = ?", (change["text"], change["sent"], message["id"]))
    if refs:
        bearer = RefOwner(
            message=message["id"],
            channel=message["channel"],
            conversation=message["conversation"],
            author=author_of(message),
            sent=message["sent"],
            stored=change["received"],
            unclaimed=message["outcome"] == MessageOutcome.OBSERVED,
        )
        replace_refs(tx, keys, refs, bearer)
    return SAME if same else APPLIED


def _seen(refs: tuple[MediaRef, ...]) -> list[tuple[str, str | None]]:
    return [(ref.id, ref.caption) for ref in refs]


def delete_content(tx: Tx, message: TableRow, at: int, now: int) -> int:
    """Delete a message, and end the turn that waits for nothing else; returns how many did."""
    note_media_change(tx, message["id"])
    tx.execute(
        "UPDATE messages SET text = '', quote = NULL, forward = NULL, deleted = ? WHERE id = ?", (at, message["id"])
    )
    withdraw_refs(tx, message["id"], now)
    if message["deleted"] is None:
        count_deleted_reply(tx, message["channel"], message["root"], message["sent"])
    if message["turn"] is None:
        return 0
    ended = tx.execute(
        "UPDATE turns SET state = 'aborted', reason = 'deleted before it was answered', ended = ? "
        "WHERE id = ? AND state = 'waiting' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.deleted IS NULL "
        "AND (m.id = turns.message OR m.turn = turns.id AND m.joined <> ''))",
        (now, message["turn"]),
    )
    return ended.rowcount


def _react(tx: Tx, channel: int, reaction: Reaction) -> None:
    at = to_micros(reaction.sent)
    if reaction.replaces:
        tx.execute(
            "UPDATE reactions SET added = 0, at = ?1 WHERE channel = ?2 AND message_id = ?3 AND author_id = ?4 "
            "AND emoji <> ?5 AND at <= ?1",
            (at, channel, reaction.message_id, reaction.author.id, reaction.emoji),
        )
    if not reaction.emoji:
        return
    tx.execute(
        "INSERT INTO reactions (channel, message_id, emoji, author_id, added, at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (channel, message_id, emoji, author_id) DO UPDATE SET added = excluded.added, at = excluded.at "
        "WHERE excluded.at >= reactions.at",
        (
            channel,
            reaction.message_id,
            reaction.emoji,
            reaction.author.id,
            int(reaction.added),
            at,
        ),
    )


def overtaken_delivery(tx: Tx, channel: int, message_id: str, now: int) -> None:
    """Apply the report that a message was not delivered, if it came before the message's receipt."""
    row = tx.execute(
        f"SELECT outcome, text FROM changes{by_index('changes_of_message')} WHERE channel = ? AND message_id = ? "
        "AND kind = 'delivery' AND outcome IN ('failed', 'held', 'window closed', 'again') "
        "ORDER BY received DESC LIMIT 1",
        (channel, message_id),
    ).fetchone()
    if row is not None:
        note_delivery(tx, channel, message_id, DeliveryState(row["outcome"]), row["text"], now)


def note_delivery(tx: Tx, channel: int, message_id: str, state: DeliveryState, reason: str, now: int) -> None:
    """End, hold or send again a parcel that the platform accepted and then did not deliver."""
    ends = {
        DeliveryState.FAILED: ParcelState.DEAD,
        DeliveryState.HELD: ParcelState.HELD,
        DeliveryState.WINDOW_CLOSED: ParcelState.HELD,
        DeliveryState.AGAIN: ParcelState.READY,
    }
    if state not in ends:
        return
    row = tx.execute(
        "UPDATE parcels SET state = ?, window_closed = ?, reason = ?, changed = ?, ready = ? WHERE channel = ? "
        "AND message_id = ? AND state = ? RETURNING id, key, files",
        (
            ends[state],
            int(state is DeliveryState.WINDOW_CLOSED),
            reason or "the platform could not deliver it",
            now,
            now,
            channel,
            message_id,
            ParcelState.SENT,
        ),
    ).fetchone()
    if row is None or state is DeliveryState.FAILED:
        return
    # It will be sent again: its files are needed, and the message that was never seen is none.
    for sha256, *_ in orjson.loads(row["files"] or b"[]"):
        use_blob(tx, str(sha256), f"parcel:{row['key']}")
    tx.execute("UPDATE parcels SET message_id = NULL, failures = 0, tried = NULL WHERE id = ?", (row["id"],))
    message = tx.execute(
        "SELECT * FROM messages WHERE channel = ? AND platform_id = ? AND kind = 'message'", (channel, message_id)
    ).fetchone()
    if message is not None:
        delete_content(tx, message, now, now)


def _pack(keys: Keys, refs: tuple[MediaRef, ...], edit_id: str) -> bytes | None:
    """The refs of a waiting edit, encrypted as a whole because parts of them must be."""
    if not refs:
        return None
    return keys.seal({"refs": orjson.dumps([_plain(ref) for ref in refs]).decode()}, edit_id)


def _unpack(keys: Keys, packed: bytes | None, edit_id: str) -> tuple[MediaRef, ...]:
    rows = orjson.loads(keys.unseal(packed, edit_id).get("refs", "[]"))
    return tuple(
        replace(MediaRef(**row), kind=MediaKind(row["kind"]), created=datetime.fromisoformat(row["created"]))
        for row in rows
    )


def _plain(ref: MediaRef) -> dict[str, object]:
    values = {field.name: getattr(ref, field.name) for field in fields(ref)}
    return values | {"locator": dict(ref.locator), "sealed": dict(ref.sealed)}


def missed_changes(
    tx: Tx,
    keys: Keys,
    conversation: ConversationKey,
    since: ReadPosition,
    *,
    until: int,
    limit: int,
) -> MissedChanges:
    """What arrived in this conversation up to a message, and all changes to earlier messages."""
    place = find_place(tx, conversation)
    if place is None:
        return MissedChanges(arrived=(), total_arrived=0, changed=(), replies_elsewhere=0, now=ReadPosition(seq=until))
    arrived = _arrived(tx, place, since.seq, until)
    elsewhere = _elsewhere(tx, place, since.seq, until)
    replies = [row for row in elsewhere if row["thread"]]
    return MissedChanges(
        arrived=_in_time(by_number(tx, keys, arrived[-limit:])) if arrived else (),
        total_arrived=len(arrived),
        changed=_changed(tx, keys, place, conversation.thread, since, limit),
        replies_elsewhere=sum(row["replies"] for row in replies),
        threads_elsewhere=other_threads(tx, place.channel, replies),
        said_in_channel=sum(row["replies"] for row in elsewhere if not row["thread"]),
        thread="" if conversation.thread is None else thread_name(tx, place.channel, conversation.thread),
        now=ReadPosition(seq=max(since.seq, until), change=_last_change(tx, place)),
    )


def _arrived(tx: Tx, place: ConversationRow, since: int, until: int) -> Sequence[int]:
    between = _between(place, since, until)
    rows = tx.execute(
        "SELECT m.sent, m.id FROM messages m LEFT JOIN turns t ON t.id = m.turn "
        f"WHERE m.conversation = ? AND m.id > ? AND m.id <= ? AND m.outcome NOT IN ('recalled', 'command') "
        f"AND {_UNTOLD}",
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


def _elsewhere(tx: Tx, place: ConversationRow, since: int, until: int) -> Sequence[TableRow]:
    """What was said in other threads and in the channel itself, except by the agent, by thread."""
    return tx.execute(
        "SELECT v.thread, count(*) AS replies FROM messages m JOIN conversations v ON v.id = m.conversation "
        "WHERE m.id > ? AND m.id <= ? AND m.conversation <> ? AND m.outcome NOT IN ('recalled', 'command') "
        "AND m.deleted IS NULL AND m.author_marks & 2 = 0 GROUP BY v.thread ORDER BY max(m.id) DESC",
        (*_between(place, since, until), place.conversation),
    ).fetchall()


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
