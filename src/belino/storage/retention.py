"""Retention: delete messages and their media after the configured days."""

from collections.abc import Iterable, Sequence
from functools import partial

import orjson

from belino.storage.arrivals import OWN, count_forgotten
from belino.storage.database import Database, TableRow, Tx
from belino.storage.dialect import marks
from belino.storage.messages import note_changed, trace_of
from belino.storage.refs import drop_refs
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK
from belino.storage.thread_reports import drop_reports

AT_ONCE = 200
"""Messages per transaction, so that arrivals need not wait for a month of them."""

# A turn is unfinished while it waits or runs, and while any of its parcels is still to be sent.
_AT_WORK = """
SELECT 1 FROM turns t WHERE t.id = m.turn AND (t.state IN ('waiting', 'running') OR EXISTS (
    SELECT 1 FROM parcels p WHERE p.turn = t.id AND p.state IN ('ready', 'sending', 'held')))
"""
_ENDED_WITHOUT_MESSAGES = """
SELECT * FROM turns t WHERE t.id = ? AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = t.message)
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn = t.id AND m.joined <> '')
"""


async def expire_messages(database: Database, before: int, now: int) -> int:
    """Delete messages stored before then, in small steps. Returns how many."""
    count = 0
    for channel in await database.read(_channels):
        past = channel << SEQ_BITS
        while aged := await database.read(partial(_aged, after=past, before=before)):
            past = aged[-1]
            count += await database.write(partial(forget_messages, numbers=aged, now=now))
    while strays := await database.read(partial(_stray_changes, before=before)):
        await database.write(partial(_forget_strays, strays=strays))
    return count


def forget_messages(tx: Tx, numbers: Sequence[int], now: int) -> int:
    """Delete messages of one channel and all that belongs to them, except of unfinished turns. Returns how many."""
    going = tx.execute(
        f"SELECT id, channel, platform_id, turn, {OWN} AS own FROM messages m WHERE id IN ({marks(numbers)}) "
        f"AND NOT EXISTS ({_AT_WORK}) ORDER BY id",
        tuple(numbers),
    ).fetchall()
    if not going:
        return 0
    gone = [row["id"] for row in going]
    _forget_refs(tx, gone, now)
    _forget_changes(tx, going[0]["channel"], [row["platform_id"] for row in going])
    drop_reports(tx, going[0]["channel"], [row["platform_id"] for row in going])
    tx.many("DELETE FROM steps WHERE trace = ?", [(trace_of(number),) for number in gone])
    tx.execute(f"DELETE FROM messages WHERE id IN ({marks(gone)})", gone)
    note_changed(tx, gone)
    last = (gone[-1] & SEQ_MASK, gone[-1] >> SEQ_BITS)
    tx.execute("UPDATE channels SET aged_seq = ?1 WHERE id = ?2 AND aged_seq < ?1", last)
    count_forgotten(tx, going[0]["channel"], sum(not row["own"] for row in going))
    for turn in sorted({row["turn"] for row in going if row["turn"] is not None}):
        _forget_turn(tx, turn)
    return len(gone)


def _channels(tx: Tx) -> tuple[int, ...]:
    return tuple(row["id"] for row in tx.execute("SELECT id FROM channels ORDER BY id"))


def _aged(tx: Tx, after: int, before: int) -> Sequence[int]:
    """The next of a channel's messages. They are in the order they were stored, so the first young one is the end."""
    rows = tx.execute(
        "SELECT id, received FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        (after, after | SEQ_MASK, AT_ONCE),
    ).fetchall()
    young = next((position for position, row in enumerate(rows) if row["received"] >= before), len(rows))
    return [row["id"] for row in rows[:young]]


def _forget_refs(tx: Tx, messages: Sequence[int], now: int) -> None:
    bearers = tx.execute(
        f"SELECT DISTINCT message FROM message_refs WHERE message IN ({marks(messages)})",
        tuple(messages),
    ).fetchall()
    for row in bearers:
        drop_refs(tx, row["message"], now)


def _forget_changes(tx: Tx, channel: int, message_ids: Iterable[str]) -> None:
    last = count = 0
    for message_id in message_ids:
        what = (channel, message_id)
        tx.execute("DELETE FROM reactions WHERE channel = ? AND message_id = ?", what)
        changes = tx.execute(
            "DELETE FROM changes WHERE channel = ? AND message_id = ? RETURNING number",
            what,
        ).fetchall()
        count += len(changes)
        last = max(last, *(row["number"] or 0 for row in changes), 0)
    count_forgotten(tx, channel, count)
    tx.execute("UPDATE channels SET aged_change = ?1 WHERE id = ?2 AND aged_change < ?1", (last, channel))


def _forget_turn(tx: Tx, number: int) -> None:
    """Delete a turn after the last of its messages, with its parcels; the sent message itself ages on its own."""
    turn = tx.execute(_ENDED_WITHOUT_MESSAGES, (number,)).fetchone()
    if turn is None:
        return
    for parcel in tx.execute("DELETE FROM parcels WHERE turn = ? RETURNING key, files", (number,)).fetchall():
        for file in orjson.loads(parcel["files"] or b"[]"):
            tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (file[0], f"parcel:{parcel['key']}"))
    tx.execute("DELETE FROM turns WHERE id = ?", (number,))
    last = (turn["number"], turn["conversation"])
    tx.execute("UPDATE conversations SET aged_turns = ?1 WHERE id = ?2 AND aged_turns < ?1", last)


def _stray_changes(tx: Tx, before: int) -> Sequence[TableRow]:
    """Changes to messages that never came, or are deleted."""
    return tx.execute(
        "SELECT channel, message_id FROM changes c WHERE received < ? AND NOT EXISTS "
        "(SELECT 1 FROM messages m WHERE m.channel = c.channel AND m.platform_id = c.message_id) LIMIT ?",
        (before, AT_ONCE),
    ).fetchall()


def _forget_strays(tx: Tx, strays: Sequence[TableRow]) -> None:
    for channel, message_id in {tuple(row) for row in strays}:
        _forget_changes(tx, channel, [message_id])
