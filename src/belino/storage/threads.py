"""Threads and neighbours: the thread of a message, what was said around it, and the totals of a whole thread.

All is in the order in which it was sent, not stored: history that a platform delivered later is older than live
messages.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from belino.domain.context import MOST_COUNTED, OtherThread, ThreadActivity
from belino.domain.message import ConversationKey
from belino.domain.stored import Nearby, StoredMessage, Surroundings, ThreadSlice
from belino.storage.database import TableRow, Tx, maybe_from_micros, to_micros
from belino.storage.encryption import Keys
from belino.storage.messages import SELECT, load, note_changed
from belino.storage.row_ids import CHANNEL_NAME, SEQ_BITS, SEQ_MASK, find_channel
from belino.storage.short_ids import short_id
from belino.storage.thread_reports import LATEST, ThreadCount, count_threads

_HOUR = timedelta(hours=1)
OTHERS_NAMED = 3
"""Threads that are counted by name."""


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


def around(
    tx: Tx, keys: Keys, anchor: StoredMessage, *, now: datetime, limit: int, until: datetime | None = None
) -> Surroundings:
    """What was said in the channel itself before an anchor; replies sent after `until` do not count."""
    place = _channel_itself(tx, anchor.conversation)
    if place is None:
        return Surroundings(channel_name="", nearby=(), replies_elsewhere=0)
    channel, here = place["id"], (to_micros(anchor.sent), place["id"] << SEQ_BITS | anchor.seq)
    rows = _before(tx, place["place"], here, limit)
    ids = [row["platform_id"] for row in rows]
    counts = count_threads(tx, channel, ids, since=to_micros(now - _HOUR), until=_micros(until))
    nearby = tuple(
        Nearby(message=message, activity=_activity(counts[message.id]) if message.id in counts else None)
        for message in load(tx, keys, rows, until=_micros(until))
    )
    replies = _replies_elsewhere(tx, anchor.conversation.thread, rows, here)
    return Surroundings(
        channel_name=place["name"],
        nearby=nearby,
        replies_elsewhere=sum(row["replies"] for row in replies),
        older=_count_before(tx, place["place"], (rows[0]["sent"], rows[0]["id"]) if rows else here)
        if len(rows) == limit
        else 0,
        threads_elsewhere=other_threads(tx, channel, replies),
    )


LAST = 2**63 - 1


def said_before(
    tx: Tx, keys: Keys, channel: ConversationKey, *, before: int, limit: int
) -> tuple[tuple[StoredMessage, ...], int]:
    """The messages of the channel itself before a seq, oldest first, and how many there are before these."""
    place = _channel_itself(tx, channel)
    here = None
    if place is not None:
        number = place["id"] << SEQ_BITS | min(max(before, 0), SEQ_MASK)
        here = tx.execute("SELECT sent, id FROM messages WHERE id = ?", (number,)).fetchone()
    if place is None or (here is None and before <= SEQ_MASK):
        return (), 0
    # A seq beyond every possible one: the newest messages.
    rows = _before(tx, place["place"], (LAST, LAST) if here is None else (here["sent"], here["id"]), limit)
    older = _count_before(tx, place["place"], (rows[0]["sent"], rows[0]["id"])) if rows else 0
    return load(tx, keys, rows), older


def _channel_itself(tx: Tx, key: ConversationKey) -> TableRow | None:
    """The channel, and the conversation of what is in none of its threads."""
    row: TableRow | None = tx.execute(
        f"SELECT c.id, {CHANNEL_NAME} AS name, v.id AS place FROM channels c "
        "LEFT JOIN conversations v ON v.channel = c.id AND v.thread = '' "
        "WHERE c.platform = ? AND c.account = ? AND c.channel = ?",
        (key.platform, key.account, key.channel),
    ).fetchone()
    return row


def _before(tx: Tx, conversation: int | None, here: tuple[int, int], limit: int) -> Sequence[TableRow]:
    """The newest messages sent before a time and row id, oldest first."""
    rows = tx.execute(
        f"{SELECT} WHERE m.conversation = ? AND (m.sent, m.id) < (?, ?) AND m.deleted IS NULL "
        "AND m.outcome <> 'command' ORDER BY m.sent DESC, m.id DESC LIMIT ?",
        (conversation, *here, limit),
    )
    return rows.fetchall()[::-1]


def _count_before(tx: Tx, conversation: int | None, here: tuple[int, int]) -> int:
    before = "FROM messages WHERE conversation = ?1 AND deleted IS NULL AND"
    counted = tx.execute(
        f"SELECT (SELECT count(*) FROM (SELECT 1 {before} sent < ?2 LIMIT ?4) x) "
        f"+ (SELECT count(*) {before} sent = ?2 AND id < ?3)",
        (conversation, *here, MOST_COUNTED),
    )
    return min(int(counted.fetchone()[0]), MOST_COUNTED)


def other_threads(tx: Tx, channel: int, counted: Sequence[TableRow]) -> tuple[OtherThread, ...]:
    """The first of the threads whose `replies` were counted, with the short ids of their first messages."""
    return tuple(
        OtherThread(thread_id=row["thread"], short_id=thread_name(tx, channel, row["thread"]), replies=row["replies"])
        for row in counted[:OTHERS_NAMED]
    )


def thread_name(tx: Tx, channel: int, root: str) -> str:
    """The short id of a thread's first message; its full id if that is not stored."""
    row = tx.execute(
        "SELECT short, short_chars FROM messages WHERE channel = ? AND platform_id = ? AND short IS NOT NULL LIMIT 1",
        (channel, root),
    ).fetchone()
    return root if row is None else short_id(row["short"], row["short_chars"])


def thread(
    tx: Tx,
    keys: Keys,
    channel: ConversationKey,
    root: str,
    *,
    before: int | None,
    limit: int,
    until: datetime | None = None,
) -> ThreadSlice | None:
    """The newest replies under a message that are not deleted, oldest first, and how many there are in all."""
    number = find_channel(tx, channel)
    first_row = tx.execute(
        f"{SELECT} WHERE m.channel = ? AND m.platform_id = ? ORDER BY m.kind LIMIT 1", (number, root)
    ).fetchall()
    count = count_threads(tx, number, [root], since=LATEST, until=_micros(until)).get(root)
    if number is None or not (first_row or count):
        return None
    rows = _newest_replies(tx, number, root, before=before, limit=limit, until=_micros(until))
    loaded = load(tx, keys, (*first_row, *rows))
    return ThreadSlice(
        root=loaded[0] if first_row else None,
        replies=loaded[len(first_row) :],
        stored=count.stored if count else 0,
        is_reported=bool(count and count.is_reported),
        total=count.replies if count else 0,
        first=maybe_from_micros(count.first if count else None),
    )


def replies_before(
    tx: Tx, keys: Keys, channel: ConversationKey, root: str, *, before: int, limit: int
) -> tuple[StoredMessage, ...]:
    """The newest replies under a message before a seq that are not deleted, oldest first."""
    number = find_channel(tx, channel)
    if number is None:
        return ()
    return load(tx, keys, _newest_replies(tx, number, root, before=before, limit=limit, until=LATEST))


def _newest_replies(
    tx: Tx, channel: int, root: str, *, before: int | None, limit: int, until: int
) -> Sequence[TableRow]:
    earlier = "" if before is None else "AND (m.sent, m.id) < (SELECT sent, id FROM messages WHERE id = ?)"
    values = () if before is None else (channel << SEQ_BITS | min(max(before, 0), SEQ_MASK),)
    rows = tx.execute(
        f"{SELECT} WHERE m.channel = ? AND m.root = ? AND m.deleted IS NULL AND m.sent <= ? {earlier} "
        "AND m.outcome <> 'command' ORDER BY m.sent DESC, m.id DESC LIMIT ?",
        (channel, root, until, *values, limit),
    )
    return rows.fetchall()[::-1]


def _activity(count: ThreadCount) -> ThreadActivity:
    return ThreadActivity(
        reply_count=count.replies, replies_last_1h=count.recent, last_reply_ts=maybe_from_micros(count.last)
    )


def _micros(until: datetime | None) -> int:
    return LATEST if until is None else to_micros(until)


def _replies_elsewhere(
    tx: Tx, thread: str | None, nearby: Sequence[TableRow], here: tuple[int, int]
) -> Sequence[TableRow]:
    """Replies in threads other than `thread`, sent between the oldest nearby message and the anchor, by thread."""
    if not nearby:
        return ()
    sent, anchor = here
    numbers = [anchor, *(row["id"] for row in nearby)]
    return tx.execute(
        "SELECT v.thread, count(*) AS replies FROM messages m JOIN conversations v ON v.id = m.conversation "
        "WHERE m.id BETWEEN ? AND ? AND m.sent BETWEEN ? AND ? AND m.deleted IS NULL AND v.thread NOT IN ('', ?) "
        "AND m.outcome <> 'command' GROUP BY v.thread ORDER BY max(m.sent) DESC, v.thread",
        (min(numbers), max(numbers), nearby[0]["sent"], sent, thread or ""),
    ).fetchall()
