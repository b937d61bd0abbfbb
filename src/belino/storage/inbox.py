"""Inbox: store arrivals and imported history, with the turns that answer them."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from belino.domain.failpoints import failpoint
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message, Unsupported
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.ports import Taken
from belino.domain.stored import ScreenedArrival, Verdict
from belino.storage.arrivals import ArrivalTally, count_denied, count_duplicate, find_cursor, move_cursor
from belino.storage.changes import apply_changes, take_change, take_edition
from belino.storage.database import Tx, to_micros
from belino.storage.encryption import Keys
from belino.storage.messages import MessageRow, insert_message, quote_row, trace_of
from belino.storage.refs import (
    FORWARDED,
    OWN,
    QUOTED,
    RefOwner,
    insert_refs,
    marks_of,
    refs_of_messages,
    succeed,
    with_ids,
)
from belino.storage.row_ids import SEQ_BITS, Conversation, RowIds, call_channel
from belino.storage.short_ids import code_of
from belino.storage.text import sanitized
from belino.storage.thread_reports import drop_reports, take_report
from belino.storage.threads import adopt_replies, find_root
from belino.storage.turns import ALBUM_WAIT, TurnVerbs

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
# Imported messages are never commands, whatever their sender: an old command must not run again.
VERDICT = Verdict(standing=Standing.OBSERVED, reason="from the platform's history")


class InboxVerbs(TurnVerbs):
    """Arrivals and the turns that answer them."""

    async def take_in(
        self,
        arrival: Arrival,
        verdict: Verdict,
        *,
        cursor: str | None = None,
        ready: datetime | None = None,
        album_wait: timedelta = ALBUM_WAIT,
    ) -> Taken:
        """Commit arrival, refs, cursor and, if `verdict.answer`, a waiting turn; detect a duplicate by its id.

        A denied arrival moves the cursor and a counter and leaves nothing else. `ready` is when its turn may start (an
        album waits for its items; a later item of a waiting album joins it and moves its time, `album_wait` at most
        from the first; one that comes later still gets a turn of its own).
        """
        judged = ScreenedArrival(arrival=arrival, verdict=verdict, cursor=cursor, ready=ready)
        return (await self.take_in_all((judged,), album_wait=album_wait))[0]

    async def take_in_all(
        self, arrivals: Sequence[ScreenedArrival], *, album_wait: timedelta = ALBUM_WAIT
    ) -> tuple[Taken, ...]:
        """The same for several, in their order, in one transaction: if one fails, none is stored."""
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        keys, arrivals = self._keys, sanitized(tuple(arrivals))

        def work(tx: Tx) -> tuple[Taken, ...]:
            return tuple(take_in(tx, keys, judged, now, wait) for judged in arrivals)

        return await self._database.write(work)

    async def take_history(
        self,
        channel: ConversationKey,
        messages: Sequence[Message],
        *,
        commanders: Container[str] = (),
        whole_thread: str | None = None,
    ) -> int:
        """Store messages from a platform's history as observed context. Returns how many were new.

        Live messages stay unchanged, and one that arrives live later replaces its imported copy. Messages of another
        channel are left out. `commanders` are the ids of the authors who may command the agent here. `whole_thread` is
        the first message of a thread that is stored whole with these.
        """
        now, said = self._now(), sanitized(tuple(messages))

        def work(tx: Tx) -> int:
            taken = take_history(tx, self._keys, channel, said, commanders, now)
            if whole_thread is not None:
                drop_reports(tx, tx.memo(RowIds).channel(tx, channel).id, [whole_thread])
            return taken

        return await self._database.write(work)

    async def cursor(self, platform: str, account: str) -> str | None:
        return await self._database.read(lambda tx: find_cursor(tx, platform, account))

    async def keep_cursor(self, platform: str, account: str, cursor: str) -> None:
        """Store a cursor without an arrival."""
        await self._database.write(lambda tx: move_cursor(tx, platform, account, cursor))


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
        return _take_unsupported(tx, keys, arrival, verdict, when)
    return take_change(tx, keys, arrival, when.now)


def _take_message(tx: Tx, keys: Keys, message: Message, verdict: Verdict, when: When) -> Taken:
    place = tx.memo(RowIds).conversation(tx, message.conversation, when.now)
    call_channel(tx, place.channel, message.channel_name, message.chat_type, message.server)
    joined = None if message.album is None else _waiting_album(tx, place, message, when)
    turn = joined or (tx.memo(RowIds).next_turn(tx) if verdict.answer else None)
    refs = with_ids(keys, message.conversation, message.media) if message.media else ()
    root = find_root(tx, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to)
    row = message_row(keys, message, verdict, place, turn, root, when.now)
    if message.thread_report is not None:
        take_report(tx, place.channel.id, message.id, message.thread_report, when.now)
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
    keys: Keys, message: Message, verdict: Verdict, place: Conversation, turn: int | None, root: str | None, now: int
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
        code_of(keys, message.conversation, message.id),
        turn,
        message.reply_to,
        quote_row(message.quote),
        quote_row(message.forward),
        message.album,
        root,
        # An agent's own message changes while it streams; that is not an edit.
        None if message.edited is None or author.is_agent else to_micros(message.edited),
        message.language,
        int(verdict.sender_may_command),
        "\n".join(author.other_names),
    )


def _take_unsupported(tx: Tx, keys: Keys, arrival: Unsupported, verdict: Verdict, when: When) -> Taken:
    """Store an unsupported message without text, with a reason that says what it was."""
    place = tx.memo(RowIds).conversation(tx, arrival.conversation, when.now)
    call_channel(tx, place.channel, arrival.channel_name, arrival.chat_type, arrival.server)
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
        short=code_of(keys, arrival.conversation, arrival.id),
        turn=tx.memo(RowIds).next_turn(tx) if verdict.answer else None,
        root=None
        if arrival.is_notice
        else find_root(tx, place.channel.id, arrival.id, thread=arrival.conversation.thread, reply_to=None),
        sender_may_command=int(verdict.sender_may_command),
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


def take_history(
    tx: Tx,
    keys: Keys,
    channel: ConversationKey,
    messages: Sequence[Message],
    commanders: Container[str],
    now: int,
) -> int:
    """Store those messages of the channel that are not stored yet, in the order they were sent."""
    own = [message for message in messages if message.conversation.whole_channel == channel.whole_channel]
    return sum(
        _recall(tx, keys, message, message.author.id in commanders, now)
        for message in sorted(own, key=lambda one: one.sent)
    )


def _recall(tx: Tx, keys: Keys, message: Message, may_command: bool, now: int) -> bool:
    place = tx.memo(RowIds).conversation(tx, message.conversation, now)
    root = find_root(tx, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to)
    if message.thread_report is not None:
        take_report(tx, place.channel.id, message.id, message.thread_report, now)
    verdict = replace(VERDICT, sender_may_command=may_command)
    row = message_row(keys, message, verdict, place, None, root, now)._replace(outcome=MessageOutcome.RECALLED)
    if insert_message(tx, row) is None:
        take_edition(tx, keys, message, row)
        return False
    place.channel.seq += 1
    tx.memo(ArrivalTally).add(message.conversation)
    insert_all_refs(tx, keys, message, with_ids(keys, message.conversation, message.media), row)
    adopt_replies(tx, row.channel, message.id, root)
    apply_changes(tx, keys, row.id, message.id, now)
    return True
