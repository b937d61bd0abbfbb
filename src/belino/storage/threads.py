"""Threads and neighbours: the thread of a message, what was said around it, and the totals of a whole thread.

All is in the order in which it was sent, not stored: history that a platform delivered later is older than live
messages.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from belino.domain.context import ThreadActivity
from belino.domain.message import ConversationKey
from belino.domain.stored import Nearby, StoredMessage, Surroundings, ThreadSlice
from belino.storage.database import TableRow, Tx, from_micros, maybe_from_micros, to_micros
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.messages import SELECT, load, note_changed
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_channel

_HOUR = timedelta(hours=1)


def find_root(tx: Tx, channel: int, message_id: str, *, thread: str | None, reply_to: str | None) -> str | None:
    """The root of a new message's thread: its thread's, or the start of its chain of replies."""
    if thread is not None:
        return thread if thread != message_id else None
    if reply_to is None:
        return None
    row = tx.execute(
        "SELECT root FROM messages WHERE channel = ? AND platform_id = ? ORDER BY kind LIMIT 1", (channel, reply_to)
    ).fetchone()
    root: str = reply_to if row is None or row["root"] is None else row["root"]
    return root if root != message_id else None


def adopt_replies(tx: Tx, channel: int, message_id: str, root: str | None) -> None:
    """Move replies that came before the message they answer to its root; those in a thread of their own stay there."""
    if root is not None:
        adopted = tx.execute(
            "UPDATE messages SET root = ?1 WHERE channel = ?2 AND root = ?3 AND platform_id <> ?1 "
            "AND conversation = (SELECT id FROM conversations WHERE channel = ?2 AND thread = '') RETURNING id",
            (root, channel, message_id),
        )
        note_changed(tx, [row["id"] for row in adopted.fetchall()])


def around(tx: Tx, keys: Keys, anchor: StoredMessage, *, now: datetime, limit: int) -> Surroundings:
    """What was said in the channel itself before an anchor."""
    key = anchor.conversation
    channel = tx.execute(
        "SELECT c.id, c.name, v.id AS place FROM channels c LEFT JOIN conversations v ON v.channel = c.id "
        "AND v.thread = '' WHERE c.platform = ? AND c.account = ? AND c.channel = ?",
        (key.platform, key.account, key.channel),
    ).fetchone()
    if channel is None:
        return Surroundings(channel_name="", nearby=(), replies_elsewhere=0)
    number = channel["id"] << SEQ_BITS | anchor.seq
    rows = tx.execute(
        f"{SELECT} WHERE m.conversation = ? AND (m.sent, m.id) < (?, ?) AND m.deleted IS NULL "
        "ORDER BY m.sent DESC, m.id DESC LIMIT ?",
        (channel["place"], to_micros(anchor.sent), number, limit),
    ).fetchall()[::-1]
    activity = _activity(tx, channel["id"], [row["platform_id"] for row in rows], now)
    nearby = tuple(Nearby(message=message, activity=activity.get(message.id)) for message in load(tx, keys, rows))
    elsewhere = _replies_elsewhere(tx, key.thread, rows, number, to_micros(anchor.sent))
    return Surroundings(channel_name=channel["name"], nearby=nearby, replies_elsewhere=elsewhere)


def thread(
    tx: Tx, keys: Keys, channel: ConversationKey, root: str, *, before: int | None, limit: int
) -> ThreadSlice | None:
    """The newest replies under a message that are not deleted, oldest first, and how many there are in all."""
    number = find_channel(tx, channel)
    first_row = tx.execute(
        f"{SELECT} WHERE m.channel = ? AND m.platform_id = ? ORDER BY m.kind LIMIT 1", (number, root)
    ).fetchall()
    replies = "m.channel = ? AND m.root = ? AND m.deleted IS NULL"
    total, first = tx.execute(
        f"SELECT count(*), min(m.sent) FROM messages m WHERE {replies}",
        (number, root),
    ).fetchone()
    if number is None or not (first_row or total):
        return None
    earlier = "" if before is None else "AND (m.sent, m.id) < (SELECT sent, id FROM messages WHERE id = ?)"
    values = () if before is None else (number << SEQ_BITS | min(max(before, 0), SEQ_MASK),)
    rows = tx.execute(
        f"{SELECT} WHERE {replies} {earlier} ORDER BY m.sent DESC, m.id DESC LIMIT ?", (number, root, *values, limit)
    ).fetchall()
    loaded = load(tx, keys, (*first_row, *rows[::-1]))
    return ThreadSlice(
        root=loaded[0] if first_row else None,
        replies=loaded[len(first_row) :],
        total=total,
        first=maybe_from_micros(first),
    )


def _activity(tx: Tx, channel: int, ids: Sequence[str], now: datetime) -> Mapping[str, ThreadActivity]:
    rows = tx.execute(
        "SELECT root, count(*) AS replies, count(CASE WHEN sent > ? THEN 1 END) AS recent, max(sent) AS last "
        f"FROM messages WHERE channel = ? AND root IN ({marks(ids)}) AND deleted IS NULL GROUP BY root",
        (to_micros(now - _HOUR), channel, *ids),
    )
    return {
        row["root"]: ThreadActivity(
            reply_count=row["replies"], replies_last_1h=row["recent"], last_reply_ts=from_micros(row["last"])
        )
        for row in rows
    }


def _replies_elsewhere(tx: Tx, thread: str | None, nearby: Sequence[TableRow], anchor: int, sent: int) -> int:
    """Replies in threads other than `thread`, sent between the oldest nearby message and the anchor."""
    if not nearby:
        return 0
    numbers = [anchor, *(row["id"] for row in nearby)]
    counted = tx.execute(
        "SELECT count(*) FROM messages m JOIN conversations v ON v.id = m.conversation "
        "WHERE m.id BETWEEN ? AND ? AND m.sent BETWEEN ? AND ? AND m.deleted IS NULL AND v.thread NOT IN ('', ?)",
        (min(numbers), max(numbers), nearby[0]["sent"], sent, thread or ""),
    )
    return int(counted.fetchone()[0])
