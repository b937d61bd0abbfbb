"""Turns: claim, finish and release them, and recover them after a crash.

A process that dies cannot say why. The only evidence is which turns were running: one that ran alone is counted,
several are not, because any of them, or an outside cause, may have been the reason.
"""

from dataclasses import astuple

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import Stage, Standing, Step, TurnState
from belino.domain.stored import ClaimedTurn, Ready, StoredMessage, TurnEnd
from belino.storage.database import TableRow, Tx, from_micros
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.outcomes import note
from belino.storage.parcels import insert_parcels
from belino.storage.refs import claim_refs
from belino.storage.row_ids import KEY_COLUMNS, find_channel, find_place, key_of
from belino.storage.sessions import end_session_turn

_ENDS = (TurnState.ANSWERED, TurnState.FAILED, TurnState.ABORTED)
SECOND = 1_000_000
LONGEST_WAIT_SECONDS = 3_600


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


def let_command(tx: Tx, keys: Keys, turn_id: int, reason: str) -> tuple[StoredMessage, ...]:
    """Make the messages of a running turn commands, because it turned out that they address the agent."""
    numbers = messages_of_turn(tx, _running(tx, turn_id))
    for number in numbers:
        tx.execute("UPDATE messages SET standing = ?, reason = ? WHERE id = ?", (Standing.MAY_COMMAND, reason, number))
    return by_number(tx, keys, numbers)


def release_turn(tx: Tx, turn_id: int) -> None:
    """Return a running turn to the queue, as if it had not been claimed."""
    _running(tx, turn_id)
    tx.execute("UPDATE turns SET state = 'waiting', attempt = attempt - 1, started = NULL WHERE id = ?", (turn_id,))


def _running(tx: Tx, turn_id: int) -> TableRow:
    turn: TableRow | None = tx.execute("SELECT * FROM turns WHERE id = ?", (turn_id,)).fetchone()
    if turn is None or turn["state"] != TurnState.RUNNING:
        raise StoreError(f"turn {turn_id} is not running")
    return turn


def recover(tx: Tx, owner: str, begun: int, album_wait: int, now: int, *, limit: int) -> int:
    """Put the owner's turns that were running when it died back to waiting, each as a suspect. Returns how many.

    Turns of other owners are not touched, whatever their state.

    The wait of an album for its other items begins again. A turn whose ready time lies in the future only because the
    clock was set back is due now.
    """
    own = "owner IN (?, '')"
    tx.execute(
        f"UPDATE turns SET ready = ? WHERE {own} AND state = 'waiting' AND album IS NOT NULL AND attempt = 0 "
        "AND retries = 0 AND created < ?",
        (begun + album_wait, owner, begun),
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
