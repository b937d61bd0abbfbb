"""Parcels on their way: made with the end of a turn, sent in order, and kept as messages once confirmed."""

import sqlite3
from collections.abc import Callable, Sequence

import orjson

from belino.domain.errors import StoreError
from belino.domain.limits import Markup, SendAs
from belino.domain.media import MediaRef, kind_of
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.record import ClaimedParcel, ParcelRecord, Ready, StoredMessage
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt
from belino.storage.changes import apply_changes
from belino.storage.messages import MessageRow, by_number, insert_message
from belino.storage.places import KEY_COLUMNS, SEQ_BITS, Places, find_place, key_of
from belino.storage.refs import Bearer, insert_refs, marks_of, with_ids
from belino.storage.seal import Keys
from belino.storage.stamps import from_micros, to_micros
from belino.storage.threads import adopt_replies, find_root

OpenFile = Callable[[str, str, str, int], OutgoingFile]
"""(sha256, name, mime, size) → a held blob as a file to send."""

_SELECT = f"""
SELECT p.*, {KEY_COLUMNS}
FROM parcels p JOIN conversations v ON v.id = p.conversation JOIN channels c ON c.id = p.channel
"""  # noqa: S608  only our own words are put together
_ON_THEIR_WAY = "('ready', 'sending')"
_INSERT = """
INSERT INTO parcels (key, channel, conversation, turn, kind, text, markup, files, reply_to, edits, trace, state,
    attempts, reason, created, changed, ready)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', 0, '', ?, ?, ?) ON CONFLICT (key) DO NOTHING
"""


def insert_parcels(
    connection: sqlite3.Connection, places: Places, turn: sqlite3.Row | None, parcels: Sequence[Parcel], now: int
) -> None:
    """Put parcels into the outbox, a turn's or the gateway's own; a key that is there already stays as it is."""
    for parcel in parcels:
        place = places.conversation(connection, parcel.conversation, now)
        files = [[file.sha256, file.name, file.mime, file.size, file.send_as, file.caption] for file in parcel.files]
        connection.execute(
            _INSERT,
            (
                parcel.key,
                place.channel.id,
                place.id,
                None if turn is None else turn["id"],
                parcel.kind,
                parcel.text,
                parcel.markup,
                orjson.dumps(files) if files else None,
                parcel.reply_to,
                parcel.edits,
                parcel.trace or ("" if turn is None else turn["trace"]),
                now,
                now,
                now,
            ),
        )
        for file in parcel.files:
            connection.execute("INSERT OR IGNORE INTO blob_uses VALUES (?, ?)", (file.sha256, f"parcel:{parcel.key}"))


def ready_parcels(connection: sqlite3.Connection) -> tuple[Ready, ...]:
    """Every conversation with a parcel to send, and when its first one may go."""
    rows = connection.execute(
        f"{_SELECT} WHERE p.id IN (SELECT min(id) FROM parcels "  # noqa: S608
        f"WHERE state IN {_ON_THEIR_WAY} GROUP BY conversation) ORDER BY p.ready, p.id"
    )
    return tuple(Ready(conversation=key_of(row), at=from_micros(row["ready"])) for row in rows)


def claim_parcel(
    connection: sqlite3.Connection, conversation: ConversationKey, now: int, open_file: OpenFile
) -> ClaimedParcel | Ready | None:
    """The conversation's oldest unsent parcel. One found `sending` is claimed again: whoever sent it is gone."""
    place = find_place(connection, conversation)
    if place is None:
        return None
    row = connection.execute(
        f"{_SELECT} WHERE p.state IN {_ON_THEIR_WAY} AND p.conversation = ? ORDER BY p.id LIMIT 1",
        (place.conversation,),
    ).fetchone()
    if row is None:
        return None
    if row["ready"] > now:
        return Ready(conversation=conversation, at=from_micros(row["ready"]))
    connection.execute(
        "UPDATE parcels SET state = 'sending', attempts = attempts + 1, changed = ? WHERE id = ?", (now, row["id"])
    )
    return ClaimedParcel(
        parcel=_parcel(row, open_file), attempt=row["attempts"] + 1, created=from_micros(row["created"])
    )


def confirm_parcel(
    connection: sqlite3.Connection, keys: Keys, places: Places, key: str, receipt: Receipt, author: Author, now: int
) -> StoredMessage | None:
    """`sent`, and a message of the conversation; confirmed twice it is still one message."""
    row = _parcel_row(connection, key)
    if row["state"] != ParcelState.SENT:
        connection.execute(
            "UPDATE parcels SET state = 'sent', reason = '', changed = ?, message_id = ? WHERE id = ?",
            (now, receipt.message_id, row["id"]),
        )
        for file in orjson.loads(row["files"] or b"[]"):
            connection.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (file[0], f"parcel:{key}"))
        if row["kind"] == ParcelKind.EDIT:
            _edit_sent(connection, row, to_micros(receipt.sent))
        elif row["turn"] is not None:
            _insert_sent(connection, keys, places, row, receipt, author, now)
    if row["kind"] == ParcelKind.EDIT or row["turn"] is None:
        # What the gateway tells a stranger answers nothing that was kept, and is no part of a conversation.
        return None
    number = connection.execute(
        "SELECT id FROM messages WHERE channel = ? AND platform_id = ? AND kind = 'message'",
        (row["channel"], row["message_id"] or receipt.message_id),
    ).fetchone()
    return by_number(connection, keys, (number["id"],))[0]


def delay_parcel(connection: sqlite3.Connection, key: str, ready: int, reason: str, now: int) -> None:
    """Not sent this time: ready again, later."""
    row = _parcel_row(connection, key)
    _refuse_sent(row)
    connection.execute(
        "UPDATE parcels SET state = 'ready', ready = ?, reason = ?, changed = ? WHERE id = ?",
        (ready, reason, now, row["id"]),
    )


def end_parcel(connection: sqlite3.Connection, key: str, state: ParcelState, reason: str, now: int) -> None:
    """Not sent and not to be tried again by itself; later parcels of the conversation may go."""
    row = _parcel_row(connection, key)
    _refuse_sent(row)
    connection.execute(
        "UPDATE parcels SET state = ?, reason = ?, changed = ? WHERE id = ?", (state, reason, now, row["id"])
    )


def parcels(connection: sqlite3.Connection, *, limit: int, state: ParcelState | None) -> tuple[ParcelRecord, ...]:
    """The newest parcels, newest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE (? IS NULL OR p.state = ?) ORDER BY p.id DESC LIMIT ?", (state, state, limit)
    )
    return tuple(parcel_record(row) for row in rows)


def parcels_of_turn(connection: sqlite3.Connection, turn: int | None) -> tuple[sqlite3.Row, ...]:
    """A turn's parcels, in order."""
    return tuple(connection.execute(f"{_SELECT} WHERE p.turn = ? ORDER BY p.id", (turn,)))


def parcel_record(row: sqlite3.Row) -> ParcelRecord:
    """A row as a value."""
    return ParcelRecord(
        key=row["key"],
        conversation=key_of(row),
        kind=ParcelKind(row["kind"]),
        text=row["text"],
        state=ParcelState(row["state"]),
        attempts=row["attempts"],
        reason=row["reason"],
        created=from_micros(row["created"]),
        changed=from_micros(row["changed"]),
        ready=from_micros(row["ready"]),
        message_id=row["message_id"],
    )


def _parcel_row(connection: sqlite3.Connection, key: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(f"{_SELECT} WHERE p.key = ?", (key,)).fetchone()
    if row is None:
        raise StoreError(f"there is no parcel {key}")
    return row


def _refuse_sent(row: sqlite3.Row) -> None:
    if row["state"] == ParcelState.SENT:
        raise StoreError(f"parcel {row['key']} is sent already")


def _parcel(row: sqlite3.Row, open_file: OpenFile) -> Parcel:
    return Parcel(
        key=row["key"],
        conversation=key_of(row),
        kind=ParcelKind(row["kind"]),
        text=row["text"],
        markup=Markup(row["markup"]),
        files=tuple(_file(file, open_file) for file in orjson.loads(row["files"] or b"[]")),
        reply_to=row["reply_to"],
        edits=row["edits"],
        trace=row["trace"],
    )


def _file(stored: list[str], open_file: OpenFile) -> OutgoingFile:
    sha256, name, mime, size, send_as, caption = stored
    file = open_file(sha256, name, mime, int(size))
    return OutgoingFile(
        name=name,
        mime=mime,
        size=file.size,
        sha256=sha256,
        send_as=SendAs(send_as),
        caption=caption,
        chunks=file.chunks,
    )


def _edit_sent(connection: sqlite3.Connection, row: sqlite3.Row, at: int) -> None:
    connection.execute(
        "UPDATE messages SET text = ?, edited = ? WHERE channel = ? AND platform_id = ? AND kind = 'message' "
        "AND deleted IS NULL",
        (row["text"], at, row["channel"], row["edits"]),
    )


def _insert_sent(
    connection: sqlite3.Connection,
    keys: Keys,
    places: Places,
    parcel: sqlite3.Row,
    receipt: Receipt,
    author: Author,
    now: int,
) -> None:
    place = places.conversation(connection, key_of(parcel), now)
    row = MessageRow(
        id=place.channel.id << SEQ_BITS | place.channel.seq + 1,
        channel=place.channel.id,
        conversation=place.id,
        kind="message",
        platform_id=receipt.message_id,
        author_id=author.id,
        author_name=author.name,
        author_marks=marks_of(author),
        sent=to_micros(receipt.sent),
        received=now,
        text=parcel["text"],
        standing=Standing.MAY_COMMAND,
        outcome=MessageOutcome.ANSWERED,
        reason="",
        trace=parcel["trace"],
        reply_to=parcel["reply_to"],
        root=find_root(
            connection,
            place.channel.id,
            receipt.message_id,
            thread=parcel["thread"] or None,
            reply_to=parcel["reply_to"],
        ),
    )
    if not insert_message(connection, row):
        _adopt_echo(connection, row)
        return
    place.channel.seq += 1
    _insert_sent_files(connection, keys, parcel, row, author)
    adopt_replies(connection, row.channel, row.platform_id, row.root)
    apply_changes(connection, keys, row.id, row.platform_id, now)


def _adopt_echo(connection: sqlite3.Connection, row: MessageRow) -> None:
    """The platform showed us our own message before its receipt came: it is the agent's."""
    connection.execute(
        "UPDATE messages SET author_id = ?, author_name = ?, author_marks = ?, standing = ?, outcome = ?, reason = '', "
        "trace = ?, root = coalesce(root, ?) WHERE channel = ? AND platform_id = ? AND kind = 'message' "
        "AND turn IS NULL",
        (
            row.author_id,
            row.author_name,
            row.author_marks,
            row.standing,
            row.outcome,
            row.trace,
            row.root,
            row.channel,
            row.platform_id,
        ),
    )


def _insert_sent_files(
    connection: sqlite3.Connection, keys: Keys, parcel: sqlite3.Row, row: MessageRow, author: Author
) -> None:
    conversation = key_of(parcel)
    sent = tuple(
        MediaRef(
            platform=conversation.platform,
            account=conversation.account,
            channel_id=conversation.channel,
            message_id=row.platform_id,
            item=str(position),
            kind=kind_of(mime),
            mime=mime,
            created=from_micros(row.sent),
            file_name=name,
            size=int(size),
            caption=caption or None,
            sha256=sha256,
        )
        for position, (sha256, name, mime, size, _, caption) in enumerate(orjson.loads(parcel["files"] or b"[]"))
    )
    bearer = Bearer(
        message=row.id,
        channel=row.channel,
        conversation=row.conversation,
        author=author,
        sent=row.sent,
        stored=row.received,
        unclaimed=False,
    )
    insert_refs(connection, keys, with_ids(keys, conversation, sent), bearer)
