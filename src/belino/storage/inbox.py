"""Inbox: store arrivals, claim turns and end them."""

from dataclasses import astuple
from typing import NamedTuple

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.domain.media import MediaRef
from belino.domain.message import ChatType, ConversationKey, Message, Unsupported
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.ports import Taken
from belino.domain.stored import ClaimedTurn, Ready, ScreenedArrival, TurnEnd, Verdict
from belino.storage.access import count_denied, move_cursor
from belino.storage.arrivals import ArrivalTally, count_duplicate
from belino.storage.changes import apply_changes, take_change, take_edition
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.encryption import Keys
from belino.storage.messages import MessageRow, by_number, insert_message, quote_row, trace_of
from belino.storage.outbox import insert_parcels
from belino.storage.refs import (
    FORWARDED,
    OWN,
    QUOTED,
    RefOwner,
    claim_refs,
    insert_refs,
    marks_of,
    refs_of_messages,
    succeed,
    with_ids,
)
from belino.storage.row_ids import KEY_COLUMNS, SEQ_BITS, Conversation, RowIds, call_channel, find_place, key_of
from belino.storage.sessions import end_session_turn
from belino.storage.threads import adopt_replies, find_root

_INSERT_TURN = """
INSERT INTO turns (id, channel, conversation, number, message, author_id, album, trace, state, reason, attempt,
    created, ready, input_tokens, output_tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', '', 0, ?, ?, 0, 0)
"""
# At the new time, but not later than an album's whole wait or the time that is set already.
_AWAIT_ALBUM = """
UPDATE turns SET ready = CASE
    WHEN ?1 <= ready OR ?1 <= created + ?2 THEN ?1 WHEN ready > created + ?2 THEN ready ELSE created + ?2 END
WHERE id = ?3
"""
_ENDS = (TurnState.ANSWERED, TurnState.FAILED, TurnState.ABORTED)


class When(NamedTuple):
    """The times of an arrival, in microseconds."""

    now: int
    ready: int
    album_wait: int
    """How long an album waits for its items, counted from the first."""


def take_in(
    tx: Tx,
    keys: Keys,
    judged: ScreenedArrival,
    now: int,
    album_wait: int,
) -> Taken:
    """Store one arrival, in full or not at all."""
    arrival, verdict = judged.arrival, judged.verdict
    tx.memo(ArrivalTally).add(arrival.conversation)
    when = When(now=now, ready=now if judged.ready is None else to_micros(judged.ready), album_wait=album_wait)
    if judged.cursor is not None:
        move_cursor(tx, arrival.conversation.platform, arrival.conversation.account, judged.cursor)
        failpoint("store.take_in.cursor")
    if verdict.standing is Standing.DENIED:
        count_denied(tx, arrival.conversation, verdict.reason)
        return Taken(outcome=MessageOutcome.DENIED, reason=verdict.reason)
    if isinstance(arrival, Message):
        return _take_message(tx, keys, arrival, verdict, when)
    if isinstance(arrival, Unsupported):
        return _take_unsupported(tx, arrival, verdict, when)
    return take_change(tx, keys, arrival, when.now)


def _take_message(tx: Tx, keys: Keys, message: Message, verdict: Verdict, when: When) -> Taken:
    place = tx.memo(RowIds).conversation(tx, message.conversation, when.now)
    call_channel(tx, place.channel, message.channel_name, message.chat_type)
    joined = None if message.album is None else _waiting_album(tx, place, message, when)
    turn = joined or (tx.memo(RowIds).next_turn(tx) if verdict.answer else None)
    refs = with_ids(keys, message.conversation, message.media) if message.media else ()
    root = find_root(tx, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to)
    row = message_row(message, verdict, place, turn, root, when.now)
    if (inserted := insert_message(tx, row)) is None:
        take_edition(tx, keys, message, row)
        return _duplicate(tx, row, refs)
    if inserted.is_older:
        refs = refs_of_messages(tx, keys, [inserted.recalled]).get((inserted.recalled, OWN), ())
    failpoint("store.take_in.row")
    place.channel.seq += 1
    if joined is not None:
        latest = (when.ready, when.album_wait, joined)
        tx.execute(_AWAIT_ALBUM, latest)
    elif turn is not None:
        _insert_turn(tx, place, row, when.ready)
    if refs or message.quote is not None or message.forward is not None:
        insert_all_refs(tx, keys, message, refs, row)
    if inserted.recalled:
        succeed(tx, inserted.recalled, row.id, unclaimed=row.outcome == MessageOutcome.OBSERVED, now=when.now)
    adopt_replies(tx, row.channel, message.id, root)
    apply_changes(tx, keys, row.id, message.id, when.now)
    return Taken(outcome=MessageOutcome(row.outcome), reason=verdict.reason, trace=row.trace, refs=refs)


def message_row(
    message: Message, verdict: Verdict, place: Conversation, turn: int | None, root: str | None, now: int
) -> MessageRow:
    number = place.channel.id << SEQ_BITS | place.channel.seq + 1
    author = message.author
    return MessageRow(
        number,
        place.channel.id,
        place.id,
        message.kind,
        message.id,
        author.id,
        author.name,
        marks_of(author),
        to_micros(message.sent),
        now,
        message.text,
        verdict.standing,
        MessageOutcome.OBSERVED if turn is None else MessageOutcome.WAITING,
        verdict.reason,
        trace_of(number),
        turn,
        message.reply_to,
        quote_row(message.quote),
        quote_row(message.forward),
        message.album,
        root,
        # An agent's own message changes while it streams; that is not an edit.
        None if message.edited is None or author.is_agent else to_micros(message.edited),
    )


def _take_unsupported(tx: Tx, arrival: Unsupported, verdict: Verdict, when: When) -> Taken:
    """Store an unsupported message without text, with a reason that says what it was."""
    place = tx.memo(RowIds).conversation(tx, arrival.conversation, when.now)
    call_channel(tx, place.channel, arrival.channel_name, arrival.chat_type)
    number = place.channel.id << SEQ_BITS | place.channel.seq + 1
    row = MessageRow(
        id=number,
        channel=place.channel.id,
        conversation=place.id,
        kind=arrival.kind,
        platform_id=arrival.id,
        author_id=arrival.author.id,
        author_name=arrival.author.name,
        author_marks=marks_of(arrival.author),
        sent=to_micros(arrival.sent),
        received=when.now,
        text="",
        standing=verdict.standing,
        outcome=MessageOutcome.UNSUPPORTED,
        reason=arrival.what,
        trace=trace_of(number),
        turn=tx.memo(RowIds).next_turn(tx) if verdict.answer else None,
        root=find_root(tx, place.channel.id, arrival.id, thread=arrival.conversation.thread, reply_to=None),
    )
    if insert_message(tx, row) is None:
        return _duplicate(tx, row, ())
    place.channel.seq += 1
    if row.turn is not None:
        _insert_turn(tx, place, row, when.ready)
    return Taken(outcome=MessageOutcome.UNSUPPORTED, reason=arrival.what, trace=row.trace)


def _duplicate(tx: Tx, row: MessageRow, refs: tuple[MediaRef, ...]) -> Taken:
    first = tx.execute(
        "SELECT trace FROM messages WHERE channel = ? AND platform_id = ? AND kind = ?",
        (row.channel, row.platform_id, row.kind),
    ).fetchone()
    count_duplicate(tx, row.channel)
    return Taken(outcome=MessageOutcome.DUPLICATE, reason="taken in before", trace=first["trace"], refs=refs)


def _insert_turn(tx: Tx, place: Conversation, row: MessageRow, ready: int) -> None:
    place.turns += 1
    tx.execute(
        _INSERT_TURN,
        (
            row.turn,
            row.channel,
            row.conversation,
            place.turns,
            row.id,
            row.author_id,
            row.album,
            row.trace,
            row.received,
            ready,
        ),
    )


def _waiting_album(tx: Tx, place: Conversation, message: Message, when: When) -> int | None:
    """The turn that waits for more of this author's album.

    Whether the item itself addresses the agent does not matter: in a group only the first carries the mention. After a
    restart it may wait past `album_wait`, for items that could not come before.
    """
    row = tx.execute(
        "SELECT id FROM turns WHERE state = 'waiting' AND conversation = ?1 AND album = ?2 AND author_id = ?3 "
        "AND (created + ?4 >= ?5 OR ready >= ?5) ORDER BY id DESC LIMIT 1",
        (place.id, message.album, message.author.id, when.album_wait, when.now),
    ).fetchone()
    return None if row is None else int(row["id"])


def insert_all_refs(tx: Tx, keys: Keys, message: Message, refs: tuple[MediaRef, ...], row: MessageRow) -> None:
    for role, quote in ((OWN, None), (QUOTED, message.quote), (FORWARDED, message.forward)):
        if quote is None and role != OWN:
            continue
        bearer = RefOwner(
            message=row.id,
            channel=row.channel,
            conversation=row.conversation,
            author=message.author if quote is None else quote.author or message.author,
            sent=row.sent if quote is None or quote.sent is None else to_micros(quote.sent),
            stored=row.received,
            unclaimed=row.outcome == MessageOutcome.OBSERVED and quote is None,
        )
        media = refs if quote is None else with_ids(keys, message.conversation, quote.media)
        insert_refs(tx, keys, media, bearer, role)


def ready_turns(tx: Tx) -> tuple[Ready, ...]:
    """Every conversation with a waiting turn, and when its first one may start; the likeliest to crash come last."""
    rows = tx.execute(
        f"SELECT {KEY_COLUMNS}, t.ready, t.suspect FROM (SELECT min(id) AS first FROM turns "
        "WHERE state = 'waiting' GROUP BY conversation) f JOIN turns t ON t.id = f.first "
        "JOIN conversations v ON v.id = t.conversation JOIN channels c ON c.id = t.channel "
        "ORDER BY t.interruptions, t.ready, t.id"
    )
    return tuple(
        Ready(conversation=key_of(row), at=from_micros(row["ready"]), alone=bool(row["suspect"])) for row in rows
    )


def waiting_turns(tx: Tx) -> int:
    """The number of waiting turns."""
    return int(tx.execute("SELECT count(*) FROM turns WHERE state = 'waiting'").fetchone()[0])


def claim_turn(
    tx: Tx, keys: Keys, conversation: ConversationKey, now: int, *, owner: str, alone: bool
) -> ClaimedTurn | Ready | None:
    """Claim the conversation's oldest waiting turn; None while another runs, which keeps the order.

    A turn that must run alone keeps waiting unless the caller runs nothing else.
    """
    place = find_place(tx, conversation)
    if place is None:
        return None
    open_turns = "SELECT * FROM turns WHERE state = ? AND conversation = ? ORDER BY id LIMIT 1"
    if tx.execute(open_turns, ("running", place.conversation)).fetchone() is not None:
        return None
    turn = tx.execute(open_turns, ("waiting", place.conversation)).fetchone()
    if turn is None:
        return None
    # A turn from the future is not waited for: the clock was set back.
    early = turn["created"] <= now < turn["ready"]
    if early or (turn["suspect"] and not alone):
        at = from_micros(turn["ready"] if early else now)
        return Ready(conversation=conversation, at=at, alone=bool(turn["suspect"]))
    tx.execute(
        "UPDATE turns SET state = 'running', attempt = attempt + 1, started = ?, owner = ?, fence = fence + 1 "
        "WHERE id = ?",
        (now, owner, turn["id"]),
    )
    (kind,) = tx.execute("SELECT chat_type FROM channels WHERE id = ?", (place.channel,)).fetchone()
    messages = by_number(tx, keys, messages_of_turn(tx, turn))
    return ClaimedTurn(
        id=turn["id"],
        conversation=conversation,
        number=turn["number"],
        attempt=turn["attempt"] + 1,
        fence=turn["fence"] + 1,
        suspect=bool(turn["suspect"]),
        interruptions=turn["interruptions"],
        retries=turn["retries"],
        messages=tuple(sorted(messages, key=lambda message: message.place_in_album)),
        trace=turn["trace"],
        chat_type=ChatType(kind),
    )


def messages_of_turn(tx: Tx, turn: TableRow) -> list[int]:
    """Row ids of the messages a turn answers."""
    joined = tx.execute(
        "SELECT id FROM messages WHERE turn = ? AND album IS NOT NULL AND turn IS NOT NULL", (turn["id"],)
    )
    return sorted({turn["message"], *(row["id"] for row in joined)})


def finish_turn(tx: Tx, turn_id: int, end: TurnEnd, now: int) -> None:
    """End a running turn, with all consequences."""
    if end.state not in _ENDS:
        raise StoreError(f"a turn cannot end as {end.state}")
    turn = _running(tx, turn_id)
    tx.execute(
        "UPDATE turns SET state = ?, reason = ?, ended = ?, input_tokens = ?, output_tokens = ?, cost = ?, model = ? "
        "WHERE id = ?",
        (end.state, end.reason, now, *astuple(end.usage), turn_id),
    )
    failpoint("store.finish.changed")
    insert_parcels(tx, turn, end.parcels, now)
    end_session_turn(tx, turn["conversation"], end)
    if end.state is TurnState.ANSWERED:
        claim_refs(tx, turn)


def release_turn(tx: Tx, turn_id: int) -> None:
    """Return a running turn to the queue, as if it had not been claimed."""
    _running(tx, turn_id)
    tx.execute("UPDATE turns SET state = 'waiting', attempt = attempt - 1, started = NULL WHERE id = ?", (turn_id,))


def _running(tx: Tx, turn_id: int) -> TableRow:
    turn: TableRow | None = tx.execute("SELECT * FROM turns WHERE id = ?", (turn_id,)).fetchone()
    if turn is None or turn["state"] != TurnState.RUNNING:
        raise StoreError(f"turn {turn_id} is not running")
    return turn
