"""Media refs: their rows, their owners and outcomes, and the bytes fetched for a channel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import orjson

from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import RefRecord, StoredMessage
from belino.storage.blob_rows import note_file_id, use_blob
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.deletions import forsake, is_gone, note_gone
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.reading_attempts import forget_attempts
from belino.storage.row_ids import KEY_COLUMNS, SEQ_BITS, RowIds, find_channel, find_place, key_of

OWN, QUOTED, FORWARDED = "own", "quoted", "forwarded"
_BOT, _AGENT = 1, 2
SELECT_REFS = (
    f"SELECT r.*, {KEY_COLUMNS} FROM refs r JOIN conversations v ON v.id = r.conversation "
    "JOIN channels c ON c.id = r.channel"
)
# A reply to an old picture brings its ref again: an expired one can then be fetched again, like a new one.
_INSERT = """
INSERT INTO refs (id, public_name, channel, conversation, message, channel_id, message_id, item,
    author_id, author_name, author_marks, sent, kind, mime, file_name, size, duration, width, height,
    caption, locator, sealed, sha256, created, stored, unclaimed, outcome, file_id,
    transcript, is_transcript_partial, alt, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')
ON CONFLICT (id) DO UPDATE SET locator = excluded.locator, sealed = excluded.sealed, file_id = excluded.file_id,
    transcript = coalesce(excluded.transcript, refs.transcript),
    is_transcript_partial = CASE WHEN excluded.transcript IS NULL THEN refs.is_transcript_partial
        ELSE excluded.is_transcript_partial END,
    stored = CASE WHEN refs.outcome = 'expired' AND excluded.locator IS NOT NULL THEN excluded.stored
        ELSE refs.stored END,
    reason = CASE WHEN refs.outcome = 'expired' AND excluded.locator IS NOT NULL THEN '' ELSE refs.reason END,
    outcome = CASE WHEN refs.outcome = 'expired' AND excluded.locator IS NOT NULL THEN 'referenced'
        ELSE refs.outcome END
RETURNING seq
"""
_LINK = "INSERT INTO message_refs (message, role, position, ref) VALUES (?, ?, ?, ?)"
KEPT = timedelta(days=7)
"""Longer than any limit looks back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefOwner:
    """The message that brings refs, and the sender to name."""

    message: int
    channel: int
    conversation: int
    author: Author
    sent: int
    stored: int
    unclaimed: bool


def marks_of(author: Author) -> int:
    """An author's flags in one number."""
    return (_BOT if author.is_bot else 0) | (_AGENT if author.is_agent else 0)


def author_of(row: TableRow) -> Author:
    """The author of a row."""
    return make_author(row["author_id"], row["author_name"], row["author_marks"])


def make_author(author_id: str, name: str, marks: int) -> Author:
    """An author with flags."""
    return Author(id=author_id, name=name, is_bot=bool(marks & _BOT), is_agent=bool(marks & _AGENT))


def with_ids(keys: Keys, conversation: ConversationKey, refs: Iterable[MediaRef]) -> tuple[MediaRef, ...]:
    """The refs with their ids. The id includes the channel they came to, so that it is never valid in another one."""
    return tuple(
        replace(
            ref,
            id=keys.ref_id(conversation.platform, conversation.account, conversation.channel, ref.message_id, ref.item),
        )
        for ref in refs
    )


def insert_refs(tx: Tx, keys: Keys, refs: Sequence[MediaRef], bearer: RefOwner, role: str = OWN) -> None:
    """Store a message's refs; a known item keeps its row, and a withdrawn one is not quoted again."""
    for position, ref in enumerate(refs):
        if is_gone(tx, ref.id):
            if role != OWN:
                continue
            tx.execute("DELETE FROM refs_gone WHERE id = ?", (ref.id,))  # an edit may restore an item
        held = ref.sha256 if ref.sha256 is not None and _is_held(tx, ref.sha256) else None
        seq = tx.execute(_INSERT, _row(keys, ref, bearer, held=held is not None)).fetchone()[0]
        tx.execute(_LINK, (bearer.message, role, position, seq))
        if held is not None:
            use_blob(tx, held, f"ref:{ref.id}")


def replace_refs(tx: Tx, keys: Keys, refs: Sequence[MediaRef], bearer: RefOwner) -> None:
    """Replace a message's own refs; items it keeps keep their outcome, under their new caption."""
    before = _unlink(tx, bearer.message, OWN)
    insert_refs(tx, keys, refs, bearer)
    for ref in refs:
        tx.execute("UPDATE refs SET caption = ? WHERE channel = ? AND id = ?", (ref.caption, bearer.channel, ref.id))
    kept = tx.execute("SELECT ref FROM message_refs WHERE message = ? AND role = ?", (bearer.message, OWN))
    _withdraw(tx, set(before) - {row["ref"] for row in kept}, bearer.stored)


def withdraw_refs(tx: Tx, message: int, now: int) -> None:
    """Withdraw a message's media, also where others quote it."""
    _withdraw(tx, _unlink(tx, message, OWN), now)
    for role in (QUOTED, FORWARDED):
        _forget_unlinked(tx, _unlink(tx, message, role), now)


def drop_refs(tx: Tx, message: int, now: int) -> None:
    """Unlink a message's refs; one that no other message has is deleted, with its use of a blob."""
    for role in (OWN, QUOTED, FORWARDED):
        _forget_unlinked(tx, _unlink(tx, message, role), now)


def succeed(tx: Tx, recalled: int, message: int, *, unclaimed: bool, now: int) -> None:
    """Move refs from an imported copy to the message that replaces it, with the bytes they have."""
    tx.execute(
        "UPDATE refs SET message = ?1, stored = ?2, unclaimed = CASE WHEN seq IN "
        "(SELECT ref FROM message_refs WHERE message = ?1 AND role = 'own') THEN ?3 ELSE 0 END "
        "WHERE channel = ?4 AND message = ?5",
        (message, now, int(unclaimed), message >> SEQ_BITS, recalled),
    )
    drop_refs(tx, recalled, now)


def refs_of_messages(tx: Tx, keys: Keys, messages: Sequence[int]) -> Mapping[tuple[int, str], tuple[MediaRef, ...]]:
    """The refs of many messages, by message and role, in order."""
    found: dict[tuple[int, str], tuple[MediaRef, ...]] = {}
    rows = tx.execute(
        f"SELECT m.message AS bearer, m.role, r.*, {KEY_COLUMNS} FROM message_refs m JOIN refs r ON r.seq = m.ref "
        "JOIN conversations v ON v.id = r.conversation JOIN channels c ON c.id = r.channel "
        f"WHERE m.message IN ({marks(messages)}) ORDER BY m.message, m.role, m.position",
        tuple(messages),
    )
    for row in rows:
        place = (row["bearer"], row["role"])
        found[place] = (*found.get(place, ()), _ref(keys, row))
    return found


def ref(tx: Tx, keys: Keys, channel: ConversationKey, ref_id: str) -> RefRecord | None:
    """A ref of this channel."""
    number = find_channel(tx, channel)
    row = tx.execute(f"{SELECT_REFS} WHERE r.channel = ? AND r.id = ?", (number, ref_id)).fetchone()
    return None if row is None else record_of(keys, row)


def find_ref(tx: Tx, keys: Keys, ref_id: str) -> RefRecord | None:
    """A ref of any channel: for the operator, never for a channel's tools."""
    row = tx.execute(f"{SELECT_REFS} WHERE r.id = ?", (ref_id,)).fetchone()
    return None if row is None else record_of(keys, row)


def ref_by_public_name(tx: Tx, keys: Keys, public_name: str) -> RefRecord | None:
    """The ref that is served under this name."""
    row = tx.execute(f"{SELECT_REFS} WHERE r.public_name = ?", (public_name,)).fetchone()
    return None if row is None else record_of(keys, row)


def refs(
    tx: Tx,
    keys: Keys,
    channel: ConversationKey | None,
    *,
    kind: MediaKind | None,
    since: datetime | None,
    before: int | None,
    limit: int,
) -> tuple[RefRecord, ...]:
    """Refs of a channel, or of all, newest first."""
    terms, values = _conditions(None if channel is None else find_channel(tx, channel) or -1, kind, since, before)
    query = f"{SELECT_REFS} WHERE {terms} ORDER BY r.seq DESC LIMIT ?"
    return tuple(record_of(keys, row) for row in tx.execute(query, (*values, limit)))


def _conditions(
    channel: int | None, kind: MediaKind | None, since: datetime | None, before: int | None = None
) -> tuple[str, list[object]]:
    """The conditions that are given, and their values."""
    wanted: tuple[tuple[str, object], ...] = (
        ("r.channel = ?", channel),
        ("r.kind = ?", kind),
        ("r.sent >= ?", None if since is None else to_micros(since)),
        ("r.seq < ?", before),
    )
    given = [(term, value) for term, value in wanted if value is not None]
    return " AND ".join(["true", *(term for term, _ in given)]), [value for _, value in given]


def refs_near(
    tx: Tx, keys: Keys, message: StoredMessage, *, kind: MediaKind | None, since: datetime | None, limit: int
) -> tuple[RefRecord, ...]:
    """Refs around a message: those that it brings or quotes, then those of its conversation, each by time."""
    place = find_place(tx, message.conversation)
    if place is None:
        return ()
    terms, values = _conditions(place.channel, kind, since)
    query = (
        f"{SELECT_REFS} WHERE {terms} ORDER BY r.seq NOT IN (SELECT ref FROM message_refs WHERE message = ?), "
        "r.conversation <> ?, abs(r.sent - ?), r.seq LIMIT ?"
    )
    nearness = (place.channel << SEQ_BITS | message.seq, place.conversation, to_micros(message.sent), limit)
    return tuple(record_of(keys, row) for row in tx.execute(query, (*values, *nearness)))


def refs_of_message(tx: Tx, keys: Keys, message: int) -> tuple[RefRecord, ...]:
    """All refs of a message."""
    query = f"{SELECT_REFS} WHERE r.seq IN (SELECT ref FROM message_refs WHERE message = ?) ORDER BY r.seq"
    return tuple(record_of(keys, row) for row in tx.execute(query, (message,)))


def unclaimed_refs(
    tx: Tx,
    keys: Keys,
    conversation: ConversationKey,
    author_id: str,
    *,
    since: datetime,
    limit: int,
) -> tuple[RefRecord, ...]:
    """Refs the author sent here without a request, that no turn has answered since."""
    place = find_place(tx, conversation)
    if place is None:
        return ()
    query = (
        f"{SELECT_REFS} WHERE r.channel = ? AND r.conversation = ? AND r.author_id = ? AND r.unclaimed = 1 "
        "AND r.stored >= ? ORDER BY r.seq DESC LIMIT ?"
    )
    values = (place.channel, place.conversation, author_id, to_micros(since), limit)
    return tuple(record_of(keys, row) for row in tx.execute(query, values))


def claim_refs(tx: Tx, turn: TableRow) -> None:
    """Mark as answered what the author of a turn had sent before it."""
    tx.execute(
        "UPDATE refs SET unclaimed = 0 WHERE conversation = ? AND author_id = ? AND unclaimed = 1 AND message < ?",
        (turn["conversation"], turn["author_id"], turn["message"]),
    )


def end_media(
    tx: Tx, ref_id: str, outcome: MediaOutcome, reason: str, blob: Blob | None, now: int, *, reused: bool = False
) -> bool:
    """Record a ref's outcome; with a blob, the ref holds those bytes and drops others.

    False if the ref no longer exists, or `reused` bytes do not: they are then not held for it.
    """
    if reused and blob is not None and not _is_held(tx, blob.sha256):
        return False
    row = tx.execute(
        "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ? RETURNING sha256",
        (outcome, reason, now, ref_id),
    ).fetchone()
    if row is None and blob is not None:
        forsake(tx, (blob.sha256,), now)
    if row is None or blob is None:
        return row is not None
    tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["sha256"], f"ref:{ref_id}"))
    use_blob(tx, blob.sha256, f"ref:{ref_id}")
    tx.execute(
        "UPDATE refs SET sha256 = ?, size = ?, fetched = ?, fetched_bytes = ? WHERE id = ?",
        (blob.sha256, blob.size, now, 0 if reused else blob.size, ref_id),
    )
    note_file_id(tx, blob.sha256, ref_id)
    return True


def _is_held(tx: Tx, sha256: str) -> bool:
    return tx.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (sha256,)).fetchone() is not None


def _unlink(tx: Tx, message: int, role: str) -> list[int]:
    linked = tx.execute("SELECT ref FROM message_refs WHERE message = ? AND role = ?", (message, role)).fetchall()
    tx.execute("DELETE FROM message_refs WHERE message = ? AND role = ?", (message, role))
    return [row[0] for row in linked]


def _withdraw(tx: Tx, seqs: Iterable[int], now: int) -> None:
    """Delete refs, also where other messages have them, and record them as withdrawn."""
    for seq in seqs:
        row = tx.execute("SELECT id, channel FROM refs WHERE seq = ?", (seq,)).fetchone()
        tx.execute("DELETE FROM message_refs WHERE ref = ?", (seq,))
        _forget_unlinked(tx, (seq,), now)
        note_gone(tx, row["id"], row["channel"], now)


def _forget_unlinked(tx: Tx, seqs: Iterable[int], now: int) -> None:
    let_go = []
    for seq in seqs:
        row = tx.execute(
            "DELETE FROM refs WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM message_refs m WHERE m.ref = refs.seq) "
            "RETURNING id, sha256",
            (seq,),
        ).fetchone()
        if row is not None:
            forget_attempts(tx, row["id"])
        if row is not None and row["sha256"] is not None:
            let_go.append(row["sha256"])
            tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["sha256"], f"ref:{row['id']}"))
    forsake(tx, let_go, now)


def _row(keys: Keys, ref: MediaRef, bearer: RefOwner, *, held: bool) -> tuple[object, ...]:
    author = bearer.author
    return (
        ref.id,
        keys.public_name(ref.id),
        bearer.channel,
        bearer.conversation,
        bearer.message,
        ref.channel_id,
        ref.message_id,
        ref.item,
        author.id,
        author.name,
        marks_of(author),
        bearer.sent,
        ref.kind,
        ref.mime,
        ref.file_name,
        _within(ref.size),
        ref.duration,
        _within(ref.width),
        _within(ref.height),
        ref.caption,
        orjson.dumps(dict(ref.locator)) if ref.locator else None,
        keys.seal(ref.sealed, ref.id),
        ref.sha256,
        to_micros(ref.created),
        bearer.stored,
        int(bearer.unclaimed),
        MediaOutcome.HELD if held else MediaOutcome.REFERENCED,
        ref.file_id,
        ref.transcript,
        int(ref.is_transcript_partial),
        ref.alt,
    )


def _within(number: int | None) -> int | None:
    """A number that a column can hold; None if it is absurd."""
    return number if number is not None and 0 <= number < 1 << 53 else None


def _ref(keys: Keys, row: TableRow) -> MediaRef:
    return MediaRef(
        platform=row["platform"],
        account=row["account"],
        channel_id=row["channel_id"],
        message_id=row["message_id"],
        item=row["item"],
        kind=MediaKind(row["kind"]),
        mime=row["mime"],
        created=from_micros(row["created"]),
        id=row["id"],
        file_name=row["file_name"],
        size=row["size"],
        duration=row["duration"],
        width=row["width"],
        height=row["height"],
        caption=row["caption"],
        alt=row["alt"],
        locator={} if row["locator"] is None else orjson.loads(row["locator"]),
        sealed=keys.unseal(row["sealed"], row["id"]),
        sha256=row["sha256"],
        file_id=row["file_id"],
        transcript=row["transcript"],
        is_transcript_partial=bool(row["is_transcript_partial"]),
    )


def record_of(keys: Keys, row: TableRow) -> RefRecord:
    """The ref of a row of `SELECT_REFS`."""
    return RefRecord(
        ref=_ref(keys, row),
        conversation=key_of(row),
        author=author_of(row),
        sent=from_micros(row["sent"]),
        outcome=MediaOutcome(row["outcome"]),
        reason=row["reason"],
        public_name=row["public_name"],
        seq=row["seq"],
    )


def note_fetched(tx: Tx, channel: ConversationKey, size: int, now: datetime) -> None:
    """Count bytes that were fetched now."""
    count_bytes(tx, tx.memo(RowIds).channel(tx, channel).id, size, to_micros(now))


def count_bytes(tx: Tx, channel: int, size: int, now: int) -> None:
    """Count bytes toward a channel's daily limit, and delete counts that no limit needs."""
    tx.execute("INSERT INTO fetches (channel, at, bytes) VALUES (?, ?, ?)", (channel, now, size))
    tx.execute("DELETE FROM fetches WHERE channel = ? AND at < ?", (channel, now - KEPT // timedelta(microseconds=1)))


def bytes_fetched(tx: Tx, channel: ConversationKey, since: datetime) -> tuple[int, int]:
    """Bytes received since then, with the announced size of open uploads, and when the last of them came."""
    number = find_channel(tx, channel)
    return (0, 0) if number is None else bytes_counted(tx, number, to_micros(since))


def bytes_counted(tx: Tx, channel: int, since: int) -> tuple[int, int]:
    """The same by a channel's row id. An open upload counts in full until it ends: its bytes may all still come."""
    size, last = tx.execute(
        "SELECT coalesce(sum(bytes), 0), coalesce(max(at), 0) FROM fetches WHERE channel = ? AND at >= ?",
        (channel, since),
    ).fetchone()
    announced = tx.execute(
        "SELECT coalesce(sum(size), 0) FROM uploads WHERE channel = ? AND sha256 IS NULL", (channel,)
    ).fetchone()[0]
    return int(size) + int(announced), int(last)


def turn_back(tx: Tx, channel: int | None, now: int) -> None:
    """Move counts from the future, left by a clock that was set back, to now."""
    tx.execute("UPDATE fetches SET at = ? WHERE channel = ? AND at > ?", (now, channel, now))
