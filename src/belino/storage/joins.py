"""Joins: find the open turn that a new message is answered with, and add the message to it."""

from datetime import timedelta
from typing import NamedTuple

from belino.domain.commands import parse_command
from belino.domain.joining import JOINED_AT_MOST, JOINED_CHARS, SOON, Joining, JoinReason
from belino.domain.message import Message
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.stored import Verdict
from belino.storage.database import TableRow, Tx
from belino.storage.row_ids import Conversation

JOINED = "m.turn = t.id AND m.joined <> ''"
"""Condition for the messages that joined a turn, for a query that names its messages m and its turns t."""
_MICRO = timedelta(microseconds=1)
_OPEN = """
SELECT * FROM turns WHERE state IN ('waiting', 'running') AND conversation = ? ORDER BY id DESC LIMIT 1
"""
_SAID = """
SELECT id, text, edited, received, standing FROM messages WHERE id = ?1
UNION ALL SELECT id, text, edited, received, standing FROM messages WHERE turn = ?2 AND joined <> ''
"""
_PUT_BACK = "state = 'waiting', attempt = attempt - 1, started = NULL, restarts = restarts + 1"


class When(NamedTuple):
    """The times of an arrival, in microseconds, and the turns of the arrivals that came with it."""

    now: int
    ready: int
    album_wait: int
    """How long an album waits for its items, counted from the first."""
    batch: set[int]


class Join(NamedTuple):
    """An open turn that a message joins."""

    turn: TableRow
    why: JoinReason

    @property
    def restarts(self) -> bool:
        """Whether the turn runs already, and starts again."""
        return bool(self.turn["state"] == TurnState.RUNNING)


def find_join(
    tx: Tx, place: Conversation, message: Message, verdict: Verdict, joining: Joining | None, when: When
) -> Join | None:
    """The turn to join; None if the message begins one, or is not answered."""
    if message.album is not None and (album := _waiting_album(tx, place, message, when)) is not None:
        return Join(album, JoinReason.ALBUM)
    if joining is None or not verdict.sender_may_command:
        return None
    turn = tx.execute(_OPEN, (place.id,)).fetchone()
    if turn is None or not _is_fresh(turn, joining):
        return None
    said = tx.execute(_SAID, (turn["message"], turn["id"])).fetchall()
    if not said or _is_closed(tx, said, message):
        return None
    is_own = turn["author_id"] == message.author.id
    if is_own and (why := _by_content(turn, said, message, joining, when)) is not None:
        return Join(turn, why)
    if turn["state"] == TurnState.RUNNING or not joining.is_line:
        return None
    why = _as_line(tx, turn, joining, when, is_own=is_own)
    return None if why is None else Join(turn, why)


def add_to_turn(tx: Tx, join: Join, message: Message, joining: Joining | None, when: When) -> None:
    """Set when the turn starts; one that runs already waits again."""
    turn = join.turn
    if message.album is not None:
        ready = _later(turn, when.ready, when.album_wait)
    elif joining is None or (turn["album"] is not None and not join.restarts):
        ready = turn["ready"]
    else:
        # Of several forwards the first starts at once, the second starts it again, and more may follow.
        waits = joining.fills or join.restarts or (join.why is JoinReason.FORWARD and turn["restarts"])
        ready = _later(turn, when.now + (joining.wait // _MICRO if waits else 0), joining.most // _MICRO)
    again = f"{_PUT_BACK}, " if join.restarts else ""
    unfinished = int(joining is not None and joining.fills)
    tx.execute(f"UPDATE turns SET {again}ready = ?, unfinished = ? WHERE id = ?", (ready, unfinished, turn["id"]))
    when.batch.add(turn["id"])


def start_again(tx: Tx, turn_id: int | None, joining: Joining | None, when: When) -> bool:
    """Put a running turn back that may start again, because its message is complete only now."""
    if joining is None or turn_id is None or turn_id != joining.restarts:
        return False
    changed = tx.execute(
        f"UPDATE turns SET {_PUT_BACK}, ready = ? WHERE id = ? AND state = 'running' AND restarts = 0 "
        "AND created + ? >= ?",
        (when.now, turn_id, SOON // _MICRO, when.now),
    )
    return changed.rowcount == 1


def first_ready(joining: Joining | None, when: When) -> int:
    """When the turn of a message starts that joins none."""
    return when.now + joining.wait // _MICRO if joining is not None and joining.fills else when.ready


def _later(turn: TableRow, ready: int, most: int) -> int:
    """At the new time, but not later than the whole wait or the time that is set already."""
    last = turn["created"] + most
    return ready if ready <= turn["ready"] or ready <= last else max(turn["ready"], last)


def _is_fresh(turn: TableRow, joining: Joining) -> bool:
    """Whether a turn may be joined: it waits and has not run before, or runs and has done nothing visible yet."""
    if turn["suspect"] or turn["retries"]:
        return False
    if turn["state"] == TurnState.RUNNING:
        return bool(turn["id"] == joining.restarts and not turn["restarts"] and not turn["reason"])
    return bool(turn["attempt"] == 0)


def _is_closed(tx: Tx, said: list[TableRow], message: Message) -> bool:
    """Whether nothing joins these: they are many, one was edited, is a command or is to be heard, or one came since."""
    if len(said) >= JOINED_AT_MOST or sum(len(one["text"]) for one in said) > JOINED_CHARS:
        return True
    if any(one["edited"] is not None or parse_command(one["text"]) is not None for one in said):
        return True
    if said[0]["standing"] != Standing.MAY_COMMAND:
        return True
    since = tx.execute(
        "SELECT text, outcome FROM messages WHERE conversation = (SELECT conversation FROM messages WHERE id = ?1) "
        "AND id > ?1 AND author_id = ?2",
        (max(one["id"] for one in said), message.author.id),
    )
    return any(row["outcome"] == MessageOutcome.COMMAND or parse_command(row["text"]) is not None for row in since)


def _by_content(
    turn: TableRow, said: list[TableRow], message: Message, joining: Joining, when: When
) -> JoinReason | None:
    is_soon = when.now - max(one["received"] for one in said) <= SOON // _MICRO
    if turn["unfinished"] and (is_soon or turn["state"] == TurnState.WAITING):
        return JoinReason.CONTINUATION
    if not is_soon:
        return None
    if message.album is not None and message.album == turn["album"]:
        return JoinReason.ALBUM
    return JoinReason.FORWARD if joining.is_forward else None


def _as_line(tx: Tx, turn: TableRow, joining: Joining, when: When, *, is_own: bool) -> JoinReason | None:
    if is_own and turn["id"] in when.batch:
        return JoinReason.BATCH
    running = "SELECT 1 FROM turns WHERE state = 'running' AND conversation = ? LIMIT 1"
    if tx.execute(running, (turn["conversation"],)).fetchone() is None or joining.while_busy == "interrupt":
        return JoinReason.WAITING if is_own else None
    return JoinReason.BUSY if joining.while_busy == "join" else None


def _waiting_album(tx: Tx, place: Conversation, message: Message, when: When) -> TableRow | None:
    """The turn that waits for more of this author's album.

    Whether the item itself addresses the agent does not matter: in a group only the first carries the mention. After a
    restart it may wait past `album_wait`, for items that could not come before.
    """
    turn: TableRow | None = tx.execute(
        "SELECT * FROM turns WHERE state = 'waiting' AND conversation = ?1 AND album = ?2 AND author_id = ?3 "
        "AND (created + ?4 >= ?5 OR ready >= ?5) ORDER BY id DESC LIMIT 1",
        (place.id, message.album, message.author.id, when.album_wait, when.now),
    ).fetchone()
    return turn
