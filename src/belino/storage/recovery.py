"""Recovery of turns: those that a crash interrupted, and failed ones that a person retries.

A process that dies cannot say why. The only evidence is which turns were running: one that ran alone is counted,
several are not, because any of them, or an outside cause, may have been the reason.
"""

from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage, Step, TurnState
from belino.domain.stored import StoredMessage
from belino.storage.database import TableRow, Tx, from_micros
from belino.storage.encryption import Keys
from belino.storage.inbox import messages_of_turn
from belino.storage.messages import by_number
from belino.storage.outcomes import note
from belino.storage.row_ids import find_channel

SECOND = 1_000_000
LONGEST_WAIT_SECONDS = 3_600


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
