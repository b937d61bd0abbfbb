"""Inbox: store arrivals and imported history, with the turns that answer them."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from belino.domain.failpoints import failpoint
from belino.domain.joining import Joining
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message, Unsupported
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.ports import Taken
from belino.domain.stored import ScreenedArrival, Verdict
from belino.storage.arrivals import ArrivalTally, count_denied, count_duplicate, find_cursor, move_cursor
from belino.storage.changes import apply_changes, take_change, take_edition
from belino.storage.commands import carry_out
from belino.storage.database import TableRow, Tx, to_micros
from belino.storage.deletions import is_gone
from belino.storage.encryption import Keys
from belino.storage.joins import Join, When, add_to_turn, find_join, first_ready, start_again
from belino.storage.messages import (
    MessageRow,
    insert_message,
    note_changed,
    note_media_change,
    quote_row,
    trace_of,
)
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
    created, ready, unfinished, input_tokens, output_tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', '', 0, ?, ?, ?, 0, 0)
"""
# Imported messages are never commands, whatever their sender: an old command must not run again.
COMPLETED_WITHIN = timedelta(minutes=1)
"""How long after a message a second copy of it may still say that it addresses the agent."""
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
        joining: Joining | None = None,
    ) -> Taken:
        """Commit arrival, refs, cursor and, if `verdict.answer`, a waiting turn; detect a duplicate by its id.

        A denied arrival moves the cursor and a counter and leaves nothing else. `ready` is when its turn may start (an
        album waits for its items; a later item of a waiting album joins it and moves its time, `album_wait` at most
        from the first; one that comes later still gets a turn of its own). `joining` says how it may join others.
        """
        judged = ScreenedArrival(arrival=arrival, verdict=verdict, cursor=cursor, ready=ready, joining=joining)
        return (await self.take_in_all((judged,), album_wait=album_wait))[0]

    async def take_in_all(
        self, arrivals: Sequence[ScreenedArrival], *, album_wait: timedelta = ALBUM_WAIT
    ) -> tuple[Taken, ...]:
        """The same for several, in their order, in one transaction: if one fails, none is stored."""
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        keys, arrivals = self._keys, sanitized(tuple(arrivals))

        def work(tx: Tx) -> tuple[Taken, ...]:
            batch: set[int] = set()
            return tuple(take_in(tx, keys, judged, now, wait, batch) for judged in arrivals)

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


def take_in(
    tx: Tx,
    keys: Keys,
    judged: ScreenedArrival,
    now: int,
    album_wait: int,
    batch: set[int],
) -> Taken:
    """Store one arrival, in full or not at all. `batch` collects the turns of arrivals that came together."""
    arrival, verdict = judged.arrival, judged.verdict
    tx.memo(ArrivalTally).add(arrival.conversation)
    ready = now if judged.ready is None else to_micros(judged.ready)
    when = When(now=now, ready=ready, album_wait=album_wait, batch=batch)
    if judged.cursor is not None:
        move_cursor(tx, arrival.conversation.platform, arrival.conversation.account, judged.cursor)
        failpoint("store.take_in.cursor")
    if verdict.standing is Standing.DENIED:
        count_denied(tx, arrival.conversation, verdict.reason)
        return Taken(outcome=MessageOutcome.DENIED, reason=verdict.reason)
    if isinstance(arrival, Message):
        return _take_message(tx, keys, arrival, judged, when)
    if isinstance(arrival, Unsupported):
        return _take_unsupported(tx, keys, arrival, verdict, when)
    return take_change(tx, keys, arrival, when.now)


def _take_message(tx: Tx, keys: Keys, message: Message, judged: ScreenedArrival, when: When) -> Taken:
    verdict = judged.verdict
    place = tx.memo(RowIds).conversation(tx, message.conversation, when.now)
    call_channel(tx, place.channel, message.channel_name, message.chat_type, message.server)
    join = find_join(tx, place, message, verdict, judged.joining, when)
    turn = _turn(tx, join, verdict)
    refs = with_ids(keys, message.conversation, message.media) if message.media else ()
    root = find_root(tx, place.channel.id, message.id, thread=message.conversation.thread, reply_to=message.reply_to)
    row = message_row(keys, message, verdict, place, turn, root, when.now)
    row = row if join is None else row._replace(joined=join.why)
    if judged.command is not None:
        row = row._replace(outcome=MessageOutcome.COMMAND, reason=judged.command.reason)
    if message.thread_report is not None:
        take_report(tx, place.channel.id, message.id, message.thread_report, when.now)
    if (inserted := insert_message(tx, row)) is None:
        take_edition(tx, keys, message, row)
        return _complete(tx, keys, message, judged, row, refs, when)
    if inserted.is_older:
        refs = refs_of_messages(tx, keys, [inserted.recalled]).get((inserted.recalled, OWN), ())
    failpoint("store.take_in.row")
    place.channel.seq += 1
    queued = int(turn is not None and (join is None or join.restarts))
    if join is not None:
        add_to_turn(tx, join, message, judged.joining, when)
    elif turn is not None:
        _insert_turn(tx, place, row, judged.joining, when)
    elif judged.command is not None:
        queued -= carry_out(tx, row, judged.command, when.now)
    if refs or message.quote is not None or message.forward is not None:
        insert_all_refs(tx, keys, message, refs, row)
    if inserted.recalled:
        succeed(tx, inserted.recalled, row.id, unclaimed=row.outcome == MessageOutcome.OBSERVED, now=when.now)
    adopt_replies(tx, row.channel, message.id, root)
    queued -= apply_changes(tx, keys, row.id, message.id, when.now)
    outcome = MessageOutcome(row.outcome)
    return Taken(outcome=outcome, reason=row.reason, trace=row.trace, refs=refs, turn=turn, queued=queued)


def _turn(tx: Tx, join: Join | None, verdict: Verdict) -> int | None:
    """The turn that answers a message: one that it joins, or a new one."""
    if join is not None:
        return int(join.turn["id"])
    return tx.memo(RowIds).next_turn(tx) if verdict.answer else None


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
        expires=None if message.expires is None else to_micros(message.expires),
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
        _insert_turn(tx, place, row, None, when)
    return Taken(outcome=MessageOutcome.UNSUPPORTED, reason=arrival.what, trace=row.trace)


def _duplicate(tx: Tx, row: MessageRow, refs: tuple[MediaRef, ...]) -> Taken:
    first = tx.execute(
        "SELECT trace FROM messages WHERE channel = ? AND platform_id = ? AND kind = ?",
        (row.channel, row.platform_id, row.kind),
    ).fetchone()
    count_duplicate(tx, row.channel)
    return Taken(outcome=MessageOutcome.DUPLICATE, reason="taken in before", trace=first["trace"], refs=refs)


def _complete(
    tx: Tx,
    keys: Keys,
    message: Message,
    judged: ScreenedArrival,
    row: MessageRow,
    refs: tuple[MediaRef, ...],
    when: When,
) -> Taken:
    """Add to a stored message what a second copy of it has besides: files, what it quotes, words, that it is addressed.

    A copy of an edited or deleted message adds nothing: the edit is newer.
    """
    taken = _duplicate(tx, row, refs)
    first = tx.execute(
        "SELECT * FROM messages WHERE channel = ? AND platform_id = ? AND kind = ? AND author_id = ? "
        "AND conversation = ? AND deleted IS NULL AND edited IS NULL AND outcome <> 'recalled'",
        (row.channel, row.platform_id, row.kind, row.author_id, row.conversation),
    ).fetchone()
    if first is None:
        return taken
    added = [*_add_words(tx, first, row), *_add_media(tx, keys, message, first, refs, when)]
    turn = first["turn"] if added and start_again(tx, first["turn"], judged.joining, when) else None
    if _is_addressed_now(first, judged.verdict, when):
        turn = _add_turn(tx, first, row, judged, when)
        added.append("that it addresses the agent")
    if not added:
        return taken
    queued = int(turn is not None)
    return replace(taken, reason=f"completes it: {', '.join(added)}", completes=True, turn=turn, queued=queued)


def _add_words(tx: Tx, first: TableRow, row: MessageRow) -> Iterator[str]:
    """Set the text and the quotes of the copy where the stored message has less."""
    before, now = first["text"], row.text
    if before != now and before in now:
        note_changed(tx, [first["id"]])
        tx.execute("UPDATE messages SET text = ? WHERE id = ?", (now, first["id"]))
        yield "text"
    for name, quote in (("quote", row.quote), ("forward", row.forward)):
        if first[name] is None and quote is not None:
            tx.execute(f"UPDATE messages SET {name} = ? WHERE id = ?", (quote, first["id"]))
            yield f"a {name}"


def _add_media(
    tx: Tx, keys: Keys, message: Message, first: TableRow, refs: tuple[MediaRef, ...], when: When
) -> Iterator[str]:
    known = refs_of_messages(tx, keys, [first["id"]])
    before = known.get((first["id"], OWN), ())
    # A page that sends again names its uploads otherwise: only a message without files gets those of a copy.
    new = () if before else [ref for ref in refs if not is_gone(tx, ref.id)]
    waits = tx.execute("SELECT 1 FROM turns WHERE id = ? AND state = 'waiting'", (first["turn"],)).fetchone()
    bearer = RefOwner(
        message=first["id"],
        channel=first["channel"],
        conversation=first["conversation"],
        author=message.author,
        sent=first["sent"],
        stored=when.now,
        unclaimed=waits is None,  # its turn has not seen it: the sender's next question has it
    )
    if new:
        note_media_change(tx, first["id"])
        insert_refs(tx, keys, new, bearer)
        yield "1 file" if len(new) == 1 else f"{len(new)} files"
    for role, quote in ((QUOTED, message.quote), (FORWARDED, message.forward)):
        if quote is not None and quote.media and (first["id"], role) not in known:
            carried = replace(bearer, author=quote.author or message.author, unclaimed=False)
            insert_refs(tx, keys, with_ids(keys, message.conversation, quote.media), carried, role)
            yield f"media that is {role}"


def _is_addressed_now(first: TableRow, verdict: Verdict, when: When) -> bool:
    """Whether only the copy shows that a sender who might command the agent addresses it."""
    is_overheard = first["outcome"] == MessageOutcome.OBSERVED and first["turn"] is None and first["sender_may_command"]
    is_soon = when.now - first["received"] <= COMPLETED_WITHIN // timedelta(microseconds=1)
    return bool(is_overheard and is_soon and verdict.answer and verdict.standing is Standing.MAY_COMMAND)


def _add_turn(tx: Tx, first: TableRow, row: MessageRow, judged: ScreenedArrival, when: When) -> int:
    place = tx.memo(RowIds).conversation(tx, judged.arrival.conversation, when.now)
    turn = tx.memo(RowIds).next_turn(tx)
    tx.execute(
        "UPDATE messages SET standing = ?, reason = ?, outcome = ?, turn = ? WHERE id = ?",
        (judged.verdict.standing, judged.verdict.reason, MessageOutcome.WAITING, turn, first["id"]),
    )
    tx.execute("UPDATE refs SET unclaimed = 0 WHERE channel = ? AND message = ?", (first["channel"], first["id"]))
    own = row._replace(id=first["id"], conversation=first["conversation"], trace=first["trace"], turn=turn)
    _insert_turn(tx, place, own, judged.joining, when)
    return turn


def _insert_turn(tx: Tx, place: Conversation, row: MessageRow, joining: Joining | None, when: When) -> None:
    place.turns += 1
    when.batch.add(row.turn or 0)
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
            first_ready(joining, when),
            int(joining is not None and joining.fills),
        ),
    )


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
