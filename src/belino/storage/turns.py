"""Turns: claim, finish and release them, recover them after a crash; and the sessions that they change.

A process that dies cannot say why. The only evidence is which turns were running: one that ran alone is counted,
several are not, because any of them, or an outside cause, may have been the reason.

A session is the agent's memory, its read position, and the manifest of media that it was shown. It changes only in the
transaction that ends a turn.
"""

import logging
from dataclasses import asdict, astuple, replace
from datetime import datetime, timedelta

import orjson

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.domain.joining import JOIN_MOST
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import Stage, Standing, Step, TurnState
from belino.domain.stored import ClaimedTurn, ManifestEntry, ReadPosition, Ready, Session, StoredMessage, TurnEnd
from belino.storage.commands import STOPPED, began_before, session_begun
from belino.storage.database import TableRow, Tx, Verbs, from_micros, to_micros
from belino.storage.encryption import Keys
from belino.storage.expiry import expire_timed
from belino.storage.messages import by_number
from belino.storage.outcomes import note
from belino.storage.parcels import insert_parcels
from belino.storage.refs import claim_refs
from belino.storage.row_ids import KEY_COLUMNS, find_channel, find_place, key_of
from belino.storage.text import sanitized

log = logging.getLogger(__name__)

ALBUM_WAIT = timedelta(seconds=10)
ATTEMPTS = 3
"""How often the process may die while a turn runs alone, before the turn is given up."""
SECOND = 1_000_000
LONGEST_WAIT_SECONDS = 3_600
MANIFEST_MOST = 1_000
"""Entries kept, the most recently shown: more pictures than any model has in its context."""
_ENDS = (TurnState.ANSWERED, TurnState.FAILED, TurnState.ABORTED)
_NEW = Session(memory=None, turns=0, manifest=())


class TurnVerbs(Verbs):
    """Turns, and the sessions they belong to."""

    async def session(self, conversation: ConversationKey) -> Session:
        return await self._database.read(lambda tx: session(tx, conversation))

    async def recover(
        self,
        owner: str = "",
        begun: datetime | None = None,
        *,
        album_wait: timedelta = ALBUM_WAIT,
        limit: int = ATTEMPTS,
    ) -> int:
        """After a crash of this owner: its turns that were running wait again, to run alone. Returns how many.

        If only one was running, its interruption is counted. From the second counted interruption on, a turn waits
        until this process has been up for 20 s, 40 s and so on; at the `limit` it is due at once, to be given up.

        A turn that waited for the rest of an album waits for it until `album_wait` after this run has `begun` (default:
        now), and less once an item joins it: no item could arrive while the gateway was down.
        """
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        at = now if begun is None else to_micros(begun)
        return await self._database.write(lambda tx: recover(tx, owner, at, wait, now, limit=limit))

    async def ready_turns(self) -> tuple[Ready, ...]:
        """Every conversation with a waiting turn, with the time its first one may start."""
        return await self._database.read(ready_turns)

    async def waiting_turns(self) -> int:
        return await self._database.read(waiting_turns)

    async def claim_turn(
        self, conversation: ConversationKey, now: datetime, *, owner: str = "", alone: bool = False
    ) -> ClaimedTurn | Ready | None:
        """Claim the conversation's oldest waiting turn for this owner; None if there is none.

        Ready if it is not due, or if it must run alone and the caller does not state that nothing else runs.
        """
        at = to_micros(now)
        return await self._database.write(
            lambda tx: claim_turn(tx, self._keys, conversation, at, owner=owner, alone=alone)
        )

    async def finish_turn(self, turn: int, end: TurnEnd) -> bool:
        """End a turn: reply parcels, manifest, memory and outcomes in one transaction.

        False, and nothing changes, if a message joined it while it ran: it waits and starts again.
        """
        now, said = self._now(), sanitized(end)
        return await self._database.write(lambda tx: finish_turn(tx, turn, said, now))

    async def let_command(self, turn: int, reason: str) -> tuple[StoredMessage, ...]:
        """Make the messages of a running turn commands, and return them: they address the agent by voice."""
        return await self._database.write(lambda tx: let_command(tx, self._keys, turn, reason))

    async def answered_together(self, message: StoredMessage) -> tuple[StoredMessage, ...]:
        """The messages of the turn that answers a message; empty if none does."""
        return await self._database.read(lambda tx: answered_together(tx, self._keys, message))

    async def release_turn(self, turn: int) -> None:
        """Return a running turn to the queue unchanged, as if it had not been claimed (shutdown)."""
        now = self._now()
        await self._database.write(lambda tx: release_turn(tx, turn, now))

    async def retry_turn(self, conversation: ConversationKey, message_id: str) -> tuple[StoredMessage, ...]:
        """Put the failed turn of a message of this channel back to waiting, with its counts reset.

        Returns the messages it answers; nothing changes, and none is returned, if the message did not fail or is gone.
        """
        now = self._now()
        return await self._database.write(lambda tx: retry_turn(tx, self._keys, conversation, message_id, now))

    async def note(self, trace: str, *steps: Step) -> None:
        """Store steps for `explain`."""
        said = sanitized(steps)
        await self._database.write(lambda tx: note(tx, trace, said))


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
    expire_timed(tx, now)  # a turn does not begin with what has just vanished
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
    kind, has_parcels = tx.execute(
        "SELECT chat_type, EXISTS (SELECT 1 FROM parcels WHERE turn = ?) FROM channels WHERE id = ?",
        (turn["id"], place.channel),
    ).fetchone()
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
        has_parcels=bool(has_parcels),
        messages=tuple(sorted(messages, key=lambda message: message.place_in_album)),
        trace=turn["trace"],
        chat_type=ChatType(kind),
    )


def messages_of_turn(tx: Tx, turn: TableRow) -> list[int]:
    """Row ids of the messages a turn answers."""
    joined = tx.execute("SELECT id FROM messages WHERE turn = ? AND joined <> ''", (turn["id"],))
    return sorted({turn["message"], *(row["id"] for row in joined)})


def answered_together(tx: Tx, keys: Keys, message: StoredMessage) -> tuple[StoredMessage, ...]:
    """The messages of the turn that answers a message, in order."""
    turn = tx.execute(
        "SELECT t.id, t.message FROM messages m JOIN turns t ON t.id = m.turn "
        "WHERE m.channel = ? AND m.platform_id = ? AND m.kind = 'message' AND (m.joined <> '' OR t.message = m.id)",
        (find_channel(tx, message.conversation), message.id),
    ).fetchone()
    return () if turn is None else by_number(tx, keys, messages_of_turn(tx, turn))


def finish_turn(tx: Tx, turn_id: int, end: TurnEnd, now: int) -> bool:
    """End a running turn, with all consequences; False if it was put back to start again."""
    if end.state not in _ENDS:
        raise StoreError(f"a turn cannot end as {end.state}")
    put_back = "SELECT 1 FROM turns WHERE id = ? AND state = 'waiting' AND restarts > 0"
    if tx.execute(put_back, (turn_id,)).fetchone() is not None:
        return False
    turn = _running(tx, turn_id)
    tx.execute(
        "UPDATE turns SET state = ?, reason = ?, ended = ?, input_tokens = ?, output_tokens = ?, cost = ?, model = ? "
        "WHERE id = ?",
        (end.state, end.reason, now, *astuple(end.usage), turn_id),
    )
    failpoint("store.finish.changed")
    insert_parcels(tx, turn, end.parcels, now)
    if not began_before(tx, turn):
        end_session_turn(tx, turn["conversation"], end)
    if end.state is TurnState.ANSWERED:
        claim_refs(tx, turn)
    return True


def let_command(tx: Tx, keys: Keys, turn_id: int, reason: str) -> tuple[StoredMessage, ...]:
    """Make the messages of a running turn commands, because it turned out that they address the agent."""
    numbers = messages_of_turn(tx, _running(tx, turn_id))
    for number in numbers:
        tx.execute("UPDATE messages SET standing = ?, reason = ? WHERE id = ?", (Standing.MAY_COMMAND, reason, number))
    return by_number(tx, keys, numbers)


def release_turn(tx: Tx, turn_id: int, now: int) -> None:
    """Return a running turn to the queue, as if it had not been claimed; one that a person stopped ends instead."""
    if _running(tx, turn_id)["reason"] == STOPPED:
        tx.execute("UPDATE turns SET state = 'aborted', ended = ? WHERE id = ?", (now, turn_id))
        return
    tx.execute("UPDATE turns SET state = 'waiting', attempt = attempt - 1, started = NULL WHERE id = ?", (turn_id,))


def _running(tx: Tx, turn_id: int) -> TableRow:
    turn: TableRow | None = tx.execute("SELECT * FROM turns WHERE id = ?", (turn_id,)).fetchone()
    if turn is None or turn["state"] != TurnState.RUNNING:
        raise StoreError(f"turn {turn_id} is not running")
    return turn


def recover(tx: Tx, owner: str, begun: int, album_wait: int, now: int, *, limit: int) -> int:
    """Put the owner's turns that were running when it died back to waiting, each as a suspect. Returns how many.

    Turns of other owners are not touched, whatever their state.

    The wait for the other items of an album, or the next piece of a split text, begins again. A turn whose ready time
    lies in the future only because the clock was set back is due now.
    """
    own = "owner IN (?, '')"
    tx.execute(
        f"UPDATE turns SET ready = ? WHERE {own} AND state = 'waiting' AND album IS NOT NULL AND attempt = 0 "
        "AND retries = 0 AND created < ?",
        (begun + album_wait, owner, begun),
    )
    tx.execute(
        f"UPDATE turns SET ready = ? WHERE {own} AND state = 'waiting' AND unfinished = 1 AND attempt = 0 "
        "AND retries = 0 AND created < ?",
        (begun + JOIN_MOST // timedelta(microseconds=1), owner, begun),
    )
    # A person stopped them, and the process died before they ended.
    tx.execute(
        f"UPDATE turns SET state = 'aborted', ended = ? WHERE {own} AND state = 'running' AND reason = ?",
        (now, owner, STOPPED),
    )
    running = tx.execute(f"SELECT * FROM turns WHERE {own} AND state = 'running' ORDER BY id", (owner,)).fetchall()
    for turn in running:
        counted = turn["interruptions"] + (len(running) == 1 and turn["interruptions"] < limit)
        tx.execute(
            "UPDATE turns SET state = 'waiting', suspect = 1, interruptions = ?, ready = ? WHERE id = ?",
            (counted, now, turn["id"]),
        )
        note(tx, turn["trace"], _interrupted(turn, counted, others=len(running) - 1, limit=limit, now=now))
    # Including those that an earlier process put back: what counts is how long this process has been up.
    query = f"SELECT id, interruptions FROM turns WHERE {own} AND state = 'waiting' AND suspect = 1"
    for turn in tx.execute(query, (owner,)).fetchall():
        if wait := wait_seconds(turn["interruptions"], limit=limit):
            tx.execute("UPDATE turns SET ready = ? WHERE id = ?", (begun + wait * SECOND, turn["id"]))
    tx.execute(f"UPDATE turns SET ready = ? WHERE {own} AND state = 'waiting' AND created > ?", (now, owner, now))
    return len(running)


def wait_seconds(interruptions: int, *, limit: int) -> int:
    """How long a process must be up before a turn with so many counted interruptions runs again: 20 s, 40 s, …

    Repeated kills from outside must not use up the limit of a turn that happens to run alone each time. The first rerun
    does not wait, because most often the process is killed once. At the limit the turn fails without being run.
    """
    if interruptions < 2 or interruptions >= limit:
        return 0
    return int(min(10 * 2 ** (interruptions - 1), LONGEST_WAIT_SECONDS))


def retry_turn(
    tx: Tx, keys: Keys, conversation: ConversationKey, message_id: str, now: int
) -> tuple[StoredMessage, ...]:
    """Put a message's failed turn back to waiting, and reset its count. Returns its messages; empty if it cannot run.

    It stays a suspect if it was one: if it crashes again, it does so alone.
    """
    turn = tx.execute(
        "SELECT t.* FROM messages m JOIN turns t ON t.id = m.turn WHERE m.channel = ? AND m.platform_id = ? "
        "AND t.state = ? AND m.deleted IS NULL ORDER BY m.kind LIMIT 1",
        (find_channel(tx, conversation), message_id, TurnState.FAILED),
    ).fetchone()
    if turn is None:
        return ()
    tx.execute(
        "UPDATE turns SET state = 'waiting', reason = '', attempt = 0, interruptions = 0, retries = retries + 1, "
        "ready = ?, started = NULL, ended = NULL WHERE id = ?",
        (now, turn["id"]),
    )
    # The row holds only its newest run; the failed one is recorded as a step.
    steps = (
        _step(turn, turn["ended"], str(TurnState.FAILED), turn["reason"]),
        _step(turn, now, "retried", "by a person"),
    )
    note(tx, turn["trace"], steps)
    return by_number(tx, keys, messages_of_turn(tx, turn))


def _interrupted(turn: TableRow, counted: int, *, others: int, limit: int, now: int) -> list[Step]:
    if others:
        beside = "1 other turn" if others == 1 else f"{others} other turns"
        return [_step(turn, now, "interrupted", f"belino stopped while it ran beside {beside}; not counted")]
    steps = [_step(turn, now, "interrupted", f"belino stopped while it ran alone; counted, {counted} of {limit}")]
    if wait := wait_seconds(counted, limit=limit):
        steps.append(_step(turn, now, "waits", f"runs again when belino has been up for {wait} s"))
    return steps


def _step(turn: TableRow, at: int, outcome: str, reason: str) -> Step:
    return Step(at=from_micros(at), stage=Stage.TURN, outcome=outcome, reason=reason, subject=f"turn {turn['number']}")


def session(tx: Tx, conversation: ConversationKey) -> Session:
    """The session of a conversation; empty for a new one."""
    place = find_place(tx, conversation)
    if place is None:
        return _NEW
    row = _row(tx, place.conversation)
    return replace(_NEW if row is None else _session(row), begun=session_begun(tx, place.conversation))


def end_session_turn(tx: Tx, conversation: int, end: TurnEnd) -> None:
    """Count the turn, and store the memory, what was shown and lost, and the read position."""
    row = _row(tx, conversation)
    before = (_NEW if row is None else _session(row)).found_by(end.agent)
    if end.forgot:
        before = before.forgotten()
    manifest = _with(before.manifest, end.shown)
    told = end.told or before.told
    tx.execute(
        "INSERT INTO sessions (conversation, memory, turns, manifest, lost, compacted, told_seq, told_change, "
        "context_turn, agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation) DO UPDATE SET memory = excluded.memory, turns = excluded.turns, "
        "manifest = excluded.manifest, lost = excluded.lost, compacted = excluded.compacted, "
        "told_seq = excluded.told_seq, told_change = excluded.told_change, context_turn = excluded.context_turn, "
        "agent = excluded.agent",
        (
            conversation,
            before.memory if end.memory is None else end.memory,
            before.turns + 1,
            orjson.dumps([asdict(entry) for entry in manifest]),
            orjson.dumps(_lost(before, end, manifest)),
            int(end.compacted or (before.compacted and end.recovered is None)),
            None if told is None else told.seq,
            None if told is None else told.change,
            before.context_turn if end.context_turn is None else end.context_turn,
            end.agent or before.agent,
        ),
    )


def _with(manifest: tuple[ManifestEntry, ...], shown: tuple[ManifestEntry, ...]) -> tuple[ManifestEntry, ...]:
    """The manifest with the newly shown items, each once, in the order they were last shown."""
    entries = {(entry.artifact_id, entry.content_hash): entry for entry in manifest}
    for entry in shown:
        entries.pop((entry.artifact_id, entry.content_hash), None)
        entries[entry.artifact_id, entry.content_hash] = entry
    return tuple(entries.values())[-MANIFEST_MOST:]


def _lost(before: Session, end: TurnEnd, manifest: tuple[ManifestEntry, ...]) -> list[str]:
    """What is in the manifest and no longer in the agent's context."""
    found = {*(end.recovered or ()), *(entry.artifact_id for entry in end.shown)}
    lost = {*before.lost} - found | {*end.lost}
    return list(dict.fromkeys(entry.artifact_id for entry in manifest if entry.artifact_id in lost))


def _row(tx: Tx, conversation: int) -> TableRow | None:
    row: TableRow | None = tx.execute("SELECT * FROM sessions WHERE conversation = ?", (conversation,)).fetchone()
    return row


def _session(row: TableRow) -> Session:
    told = None if row["told_seq"] is None else ReadPosition(seq=row["told_seq"], change=row["told_change"])
    manifest = _manifest(row)
    return Session(
        memory=row["memory"],
        turns=row["turns"],
        manifest=manifest,
        lost=_lost_refs(row, manifest),
        compacted=bool(row["compacted"]),
        told=told,
        context_turn=row["context_turn"],
        agent=row["agent"],
    )


def _manifest(row: TableRow) -> tuple[ManifestEntry, ...]:
    """The manifest; empty if it cannot be read, because the worst effect is a picture shown twice."""
    try:
        return tuple(_entry(entry) for entry in orjson.loads(row["manifest"]))
    except (ValueError, TypeError, KeyError):
        log.warning("the manifest of conversation %d cannot be read; it starts empty", row["conversation"])
        return ()


def _lost_refs(row: TableRow, manifest: tuple[ManifestEntry, ...]) -> tuple[str, ...]:
    """Refs lost from context; all if unreadable: a picture shown twice costs less than one never seen again."""
    try:
        lost = orjson.loads(row["lost"] or b"[]")
    except ValueError:
        lost = None
    if not isinstance(lost, list) or not all(isinstance(ref, str) for ref in lost):
        log.warning("what the agent of conversation %d lost cannot be read; all counts as lost", row["conversation"])
        return tuple(dict.fromkeys(entry.artifact_id for entry in manifest))
    return tuple(lost)


def _entry(stored: dict[str, object]) -> ManifestEntry:
    entry = ManifestEntry(**stored)  # type: ignore[arg-type]  # checked field by field below
    texts = (entry.artifact_id, entry.display_name, entry.media_type, entry.content_hash, entry.source_message_id)
    thread, turn = entry.source_thread_id, entry.included_at_turn
    fits = all(isinstance(text, str) for text in texts) and (thread is None or isinstance(thread, str))
    if not fits or not isinstance(turn, int):
        raise TypeError("an entry of the manifest has a value of another type")
    return entry
