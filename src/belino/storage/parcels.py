"""Parcels as rows: inserted, confirmed, listed; drafts, and the files that parcels carry."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import orjson

from belino.domain.choice import Button
from belino.domain.errors import StoreError
from belino.domain.limits import Markup, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, DeliveryState
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.reply import DRAFT_OF, Doubt, OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt, kind_sent
from belino.domain.stored import ParcelFile, ParcelRecord, StoredMessage
from belino.storage.arrivals import count_duplicate
from belino.storage.blob_rows import use_blob
from belino.storage.changes import apply_changes, overtaken_delivery
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.encryption import Keys
from belino.storage.messages import MessageRow, by_number, insert_message, note_changed
from belino.storage.refs import RefOwner, insert_refs, marks_of, succeed, with_ids
from belino.storage.row_ids import KEY_COLUMNS, SEQ_BITS, RowIds, find_channel, find_place, key_of
from belino.storage.short_ids import code_of
from belino.storage.threads import adopt_replies, find_root

OpenFile = Callable[[str, str, str, int], OutgoingFile]
"""(sha256, name, mime, size) → a held blob as a file to send."""
SELECT = f"""
SELECT p.*, {KEY_COLUMNS}, (SELECT d.outcome FROM changes d WHERE d.channel = p.channel AND d.message_id = p.message_id
    AND d.kind = 'delivery' ORDER BY CASE d.outcome WHEN 'sent' THEN 1 WHEN 'delivered' THEN 2 WHEN 'read' THEN 3 ELSE 4
    END DESC LIMIT 1) AS delivery
FROM parcels p JOIN conversations v ON v.id = p.conversation JOIN channels c ON c.id = p.channel
"""
UNASKED = 0
"""The turn of parcels that answer no message and yet are messages of the conversation."""
COMMANDED = -1
"""The turn of parcels that answer a command: messages of the conversation that no agent is told about."""
CARRIED_AT_MOST = 2_000
QUOTE_CHARS = 300
_INSERT = """
INSERT INTO parcels (key, channel, conversation, turn, kind, text, markup, plain, rich, files, reply_to, edits, trace,
    only_to, state, attempts, reason, created, changed, ready)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', 0, '', ?, ?, ?) ON CONFLICT (key) DO NOTHING
"""
OVERTAKEN = "the answer itself was sent in its place"


def insert_parcels(tx: Tx, turn: TableRow | None, parcels: Sequence[Parcel], now: int) -> None:
    """Put parcels into the outbox, a turn's or the gateway's own; an existing key is left unchanged."""
    for parcel in parcels:
        place = tx.memo(RowIds).conversation(tx, parcel.conversation, now)
        files = [stored_file(file) for file in parcel.files]
        tx.execute(
            _INSERT,
            (
                parcel.key,
                place.channel.id,
                place.id,
                None if turn is None else turn["id"],
                parcel.kind,
                parcel.text,
                parcel.markup,
                parcel.plain,
                parcel.rich,
                orjson.dumps(files) if files else None,
                parcel.reply_to,
                parcel.edits,
                parcel.trace or ("" if turn is None else turn["trace"]),
                parcel.only_to,
                now,
                now,
                now,
            ),
        )
        take_up_files(tx, parcel.key, files)
        if parcel.edits is not None and parcel.edits.startswith(DRAFT_OF):
            # A draft that was never attempted is superseded.
            key = parcel.edits.removeprefix(DRAFT_OF)
            tx.execute("DELETE FROM parcels WHERE key = ? AND state = 'ready' AND attempts = 0", (key,))


def insert_unasked(tx: Tx, parcels: Sequence[Parcel], now: int, *, turn: int = UNASKED) -> None:
    """Insert parcels that belong to no turn."""
    insert_parcels(tx, None, parcels, now)
    for parcel in parcels:
        tx.execute("UPDATE parcels SET turn = ? WHERE key = ? AND turn IS NULL", (turn, parcel.key))


def take_up_files(tx: Tx, key: str, files: Sequence[Sequence[object]]) -> None:
    """Keep the bytes of a parcel's files for as long as it may be sent."""
    for sha256, *_ in files:
        use_blob(tx, str(sha256), f"parcel:{key}")


def lay_down_files(tx: Tx, key: str, files: Sequence[Sequence[object]]) -> None:
    """Release the bytes of a parcel's files."""
    for sha256, *_ in files:
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (sha256, f"parcel:{key}"))


def carried_files(tx: Tx, conversation: ConversationKey) -> tuple[tuple[str, ParcelState, str, datetime], ...]:
    """Files from the folder `pending` that parcels of a conversation carry, newest first."""
    place = find_place(tx, conversation)
    rows = tx.execute(
        "SELECT files, state, reason, changed FROM parcels WHERE conversation = ? AND files IS NOT NULL "
        "ORDER BY id DESC LIMIT ?",
        (-1 if place is None else place.conversation, CARRIED_AT_MOST),
    )
    carried = []
    for row in rows:
        told = (more for *_, more in orjson.loads(row["files"]) if isinstance(more, dict))
        marks = (more.get("pending") for more in told)
        fate = ParcelState(row["state"]), str(row["reason"]), from_micros(row["changed"])
        carried += [(str(mark), *fate) for mark in marks if mark]
    return tuple(carried)


def confirm_parcel(
    tx: Tx,
    keys: Keys,
    key: str,
    receipt: Receipt,
    author: Author,
    now: int,
    *,
    reason: str = "",
) -> StoredMessage | None:
    """Mark a parcel as sent, and insert or update its message; confirming it twice has no further effect."""
    row = parcel_row(tx, key)
    if row["state"] != ParcelState.SENT:
        tx.execute(
            "UPDATE parcels SET state = 'sent', dropped = 0, reason = ?, changed = ?, message_id = ? WHERE id = ?",
            (reason, now, receipt.message_id, row["id"]),
        )
        lay_down_files(tx, key, orjson.loads(row["files"] or b"[]"))
        if row["kind"] == ParcelKind.EDIT and receipt.message_id != row["edits"]:
            detach_edit(tx, row, now)  # the platform could not edit the message, and posted a new one
            row = parcel_row(tx, key)
        if row["kind"] == ParcelKind.EDIT:
            _edit_sent(tx, row, to_micros(receipt.sent))
        elif row["turn"] is not None:
            _insert_sent(tx, keys, row, receipt, author, now)
        overtaken_delivery(tx, row["channel"], receipt.message_id, now)
    if row["turn"] is None:
        # A notice to an unpaired sender answers no stored message, and is not part of a conversation.
        return None
    shown = row["message_id"] or receipt.message_id
    number = tx.execute(
        "SELECT id FROM messages WHERE channel = ? AND platform_id = ? AND kind = 'message'", (row["channel"], shown)
    ).fetchone()
    return None if number is None else by_number(tx, keys, (number["id"],))[0]


def detach_edit(tx: Tx, row: TableRow, now: int) -> None:
    """Turn an edit of a message that no longer exists into a new message."""
    gone = tx.execute(
        "UPDATE messages SET text = '', deleted = ? WHERE channel = ? AND platform_id = ? AND kind = 'message' "
        "AND deleted IS NULL RETURNING id",
        (now, row["channel"], row["edits"]),
    )
    note_changed(tx, [message["id"] for message in gone.fetchall()])
    tx.execute("UPDATE parcels SET kind = ?, edits = NULL WHERE id = ?", (ParcelKind.TEXT, row["id"]))


def parcels(
    tx: Tx,
    *,
    limit: int,
    state: ParcelState | None,
    conversation: ConversationKey | None,
    unsent: bool,
) -> tuple[ParcelRecord, ...]:
    """The newest parcels, newest first."""
    terms, values = ["p.state <> 'sent' AND p.dropped = 0" if unsent else "true"], list[object]()
    if state is not None:
        terms.append("p.state = ?")
        values.append(state)
    if conversation is not None:
        if (place := find_place(tx, conversation)) is None:
            return ()
        terms.append("p.conversation = ?")
        values.append(place.conversation)
    query = f"{SELECT} WHERE {' AND '.join(terms)} ORDER BY p.id DESC LIMIT ?"
    return tuple(parcel_record(row) for row in tx.execute(query, (*values, limit)))


def parcel(tx: Tx, key: str) -> ParcelRecord | None:
    """One parcel; None if the key is unknown."""
    row = tx.execute(f"{SELECT} WHERE p.key = ?", (key,)).fetchone()
    return None if row is None else parcel_record(row)


def parcel_of_message(tx: Tx, channel: ConversationKey, message_id: str) -> ParcelRecord | None:
    """The parcel that made a message of this channel; edits are not considered."""
    row = tx.execute(
        f"{SELECT} WHERE p.channel = ? AND p.message_id = ? AND p.kind <> 'edit' ORDER BY p.id DESC LIMIT 1",
        (find_channel(tx, channel), message_id),
    ).fetchone()
    return None if row is None else parcel_record(row)


def parcels_of_turn(tx: Tx, turn: int | None) -> tuple[TableRow, ...]:
    """A turn's parcels, in order."""
    return tuple(tx.execute(f"{SELECT} WHERE p.turn = ? ORDER BY p.id", (turn,)))


def parcels_of_command(tx: Tx, trace: str) -> tuple[TableRow, ...]:
    """The parcels that answer a command, in order."""
    query = f"{SELECT} WHERE p.trace = ? AND p.turn = ? ORDER BY p.id"
    return tuple(tx.execute(query, (trace, COMMANDED)))


def parcel_record(row: TableRow) -> ParcelRecord:
    """A row as a record."""
    return ParcelRecord(
        key=row["key"],
        conversation=key_of(row),
        kind=ParcelKind(row["kind"]),
        text=row["plain"] or row["text"],
        state=ParcelState(row["state"]),
        attempts=row["attempts"],
        reason=row["reason"],
        created=from_micros(row["created"]),
        changed=from_micros(row["changed"]),
        ready=from_micros(row["ready"]),
        message_id=row["message_id"],
        trace=row["trace"],
        files=tuple(
            ParcelFile(name=name, mime=mime, size=int(size), send_as=SendAs(send_as), caption=_said(caption, *more))
            for _, name, mime, size, send_as, caption, *more in orjson.loads(row["files"] or b"[]")
        ),
        doubt=Doubt(row["doubt"]),
        dropped=bool(row["dropped"]),
        delivery=None if row["delivery"] is None else DeliveryState(row["delivery"]),
    )


def parcel_row(tx: Tx, key: str) -> TableRow:
    """A parcel's row; StoreError if there is none."""
    row: TableRow | None = tx.execute(f"{SELECT} WHERE p.key = ?", (key,)).fetchone()
    if row is None:
        raise StoreError(f"there is no parcel {key}")
    return row


def buttons_of(tx: Tx, key: str) -> tuple[Button, ...]:
    """The buttons of a parcel; none once a choice was made, or where they are numbers in its text."""
    rows = tx.execute(
        "SELECT key, label, style FROM choices WHERE parcel = ?1 AND is_numbered = 0 AND NOT EXISTS "
        "(SELECT 1 FROM choices x WHERE x.parcel = ?1 AND x.chosen IS NOT NULL) ORDER BY position",
        (key,),
    )
    return tuple(Button(key=row["key"], label=row["label"], style=row["style"]) for row in rows)


def quoted_by(tx: Tx, row: TableRow) -> str:
    """The beginning of the message that a parcel replies to; empty if it is not stored, or is gone."""
    found = tx.execute(
        "SELECT text FROM messages WHERE channel = ? AND platform_id = ? AND kind = 'message'",
        (row["channel"], row["reply_to"]),
    ).fetchone()
    return "" if found is None else str(found["text"])[:QUOTE_CHARS]


def parcel_of(row: TableRow, open_file: OpenFile, buttons: tuple[Button, ...] = (), quoted: str = "") -> Parcel:
    """A row as a parcel to send."""
    return Parcel(
        key=row["key"],
        conversation=key_of(row),
        kind=ParcelKind(row["kind"]),
        text=row["text"],
        markup=Markup(row["markup"]),
        plain=row["plain"],
        rich=row["rich"],
        files=tuple(_file(file, open_file) for file in orjson.loads(row["files"] or b"[]")),
        reply_to=row["reply_to"],
        edits=row["edits"],
        trace=row["trace"],
        buttons=buttons,
        only_to=row["only_to"],
        quoted=quoted,
        created=from_micros(row["created"]),
    )


def stored_file(file: OutgoingFile) -> list[object]:
    """A file in its stored form."""
    more = {"plain": file.plain, "width": file.width, "height": file.height, "seconds": file.seconds}
    more |= {"waveform": file.waveform.hex(), "pending": file.pending, "source": file.source, "alt": file.alt}
    told = {name: value for name, value in more.items() if value}
    return [file.sha256, file.name, file.mime, file.size, file.send_as, file.caption, told]


def _file(stored: list[Any], open_file: OpenFile) -> OutgoingFile:
    sha256, name, mime, size, send_as, caption, *more = stored
    told = dict(more[0]) if more else {}
    file = open_file(sha256, name, mime, int(size))
    return OutgoingFile(
        name=name,
        mime=mime,
        size=file.size,
        sha256=sha256,
        send_as=SendAs(send_as),
        caption=caption,
        chunks=file.chunks,
        waveform=bytes.fromhex(told.pop("waveform", "")),
        **told,
    )


def _said(caption: str, more: dict[str, Any] | None = None) -> str:
    """A caption as readable text."""
    return str((more or {}).get("plain") or caption)


def _told(more: list[dict[str, Any]], name: str) -> Any:
    return more[0].get(name) if more else None


def _edit_sent(tx: Tx, row: TableRow, at: int) -> None:
    edited = tx.execute(
        "UPDATE messages SET text = ?, edited = ? WHERE channel = ? AND platform_id = ? AND kind = 'message' "
        "AND deleted IS NULL RETURNING id",
        (row["plain"] or row["text"], at, row["channel"], row["edits"]),
    )
    note_changed(tx, [message["id"] for message in edited.fetchall()])


def _insert_sent(
    tx: Tx,
    keys: Keys,
    parcel: TableRow,
    receipt: Receipt,
    author: Author,
    now: int,
) -> None:
    place = tx.memo(RowIds).conversation(tx, key_of(parcel), now)
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
        text=parcel["plain"] or parcel["text"],
        standing=Standing.MAY_COMMAND,
        outcome=MessageOutcome.COMMAND if parcel["turn"] == COMMANDED else MessageOutcome.ANSWERED,
        reason="",
        trace=parcel["trace"],
        short=code_of(keys, key_of(parcel), receipt.message_id),
        reply_to=parcel["reply_to"],
        root=find_root(
            tx,
            place.channel.id,
            receipt.message_id,
            thread=parcel["thread"] or None,
            reply_to=parcel["reply_to"],
        ),
        expires=None if receipt.expires is None else to_micros(receipt.expires),
    )
    if (inserted := insert_message(tx, row)) is None:
        _adopt_echo(tx, row)
        return
    place.channel.seq += 1
    _insert_sent_files(tx, keys, parcel, row, author)
    if inserted.recalled:
        succeed(tx, inserted.recalled, row.id, unclaimed=False, now=now)
    adopt_replies(tx, row.channel, row.platform_id, row.root)
    apply_changes(tx, keys, row.id, row.platform_id, now)


def _adopt_echo(tx: Tx, row: MessageRow) -> None:
    """Mark our own message, which the platform reported before its receipt came, as the agent's."""
    echo = tx.execute(
        "SELECT 1 FROM messages WHERE channel = ? AND platform_id = ? AND kind = 'message' AND turn IS NULL "
        "AND outcome <> ?",
        (row.channel, row.platform_id, row.outcome),
    ).fetchone()
    if echo is not None:
        count_duplicate(tx, row.channel)  # an arrival until now; from here on a sent message
    ours = tx.execute(
        "UPDATE messages SET author_id = ?, author_name = ?, author_marks = ?, standing = ?, outcome = ?, reason = '', "
        "trace = ?, root = coalesce(root, ?) WHERE channel = ? AND platform_id = ? AND kind = 'message' "
        "AND turn IS NULL RETURNING id",
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
    note_changed(tx, [message["id"] for message in ours.fetchall()])


def _insert_sent_files(tx: Tx, keys: Keys, parcel: TableRow, row: MessageRow, author: Author) -> None:
    conversation = key_of(parcel)
    sent = tuple(
        MediaRef(
            platform=conversation.platform,
            account=conversation.account,
            channel_id=conversation.channel,
            message_id=row.platform_id,
            item=str(position),
            kind=kind_sent(mime, send_as),
            mime=mime,
            created=from_micros(row.sent),
            file_name=name,
            size=int(size),
            caption=_said(caption, *more) or None,
            alt=_told(more, "alt"),
            duration=_told(more, "seconds"),
            width=_told(more, "width"),
            height=_told(more, "height"),
            sha256=sha256,
        )
        for position, (sha256, name, mime, size, send_as, caption, *more) in enumerate(
            orjson.loads(parcel["files"] or b"[]")
        )
    )
    bearer = RefOwner(
        message=row.id,
        channel=row.channel,
        conversation=row.conversation,
        author=author,
        sent=row.sent,
        stored=row.received,
        unclaimed=False,
    )
    insert_refs(tx, keys, with_ids(keys, conversation, sent), bearer)


def start_draft(tx: Tx, turn_id: int, parcel: Parcel, now: int) -> None:
    """Put a running turn's draft into the outbox; an existing one is left unchanged."""
    turn = tx.execute("SELECT * FROM turns WHERE id = ? AND state = ?", (turn_id, TurnState.RUNNING)).fetchone()
    if turn is None:
        raise StoreError(f"turn {turn_id} is not running")
    insert_parcels(tx, turn, [parcel], now)


def settled(tx: Tx, row: TableRow, now: int) -> TableRow:
    """Resolve a parcel before it is claimed: an edit of a draft gets the draft's message id, or becomes a new message.

    The draft was sent before it or never will be: parcels leave in order.
    """
    if not (row["edits"] or "").startswith(DRAFT_OF):
        return row
    draft = tx.execute("SELECT * FROM parcels WHERE key = ?", (row["edits"].removeprefix(DRAFT_OF),)).fetchone()
    message = draft["message_id"] if draft is not None and draft["state"] == ParcelState.SENT else None
    if draft is not None and draft["state"] in (ParcelState.READY, ParcelState.HELD):
        tx.execute(
            "UPDATE parcels SET state = 'dead', dropped = 1, reason = ?, changed = ? WHERE id = ?",
            (OVERTAKEN, now, draft["id"]),
        )
    kind = ParcelKind.TEXT if message is None else ParcelKind.EDIT
    tx.execute("UPDATE parcels SET kind = ?, edits = ? WHERE id = ?", (kind, message, row["id"]))
    return parcel_row(tx, row["key"])
