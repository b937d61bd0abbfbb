"""Outbox: parcels are put in, claimed, sent, delayed or ended, retried and dropped."""

from collections.abc import Sequence
from datetime import datetime

import orjson

from belino.domain.errors import StoreError
from belino.domain.message import Author, ChatType, ConversationKey
from belino.domain.reply import Doubt, Parcel, ParcelKind, ParcelState, Receipt, lease_seconds
from belino.domain.stored import ClaimedParcel, EarlierFiles, ParcelRecord, Ready, Requester, StoredMessage
from belino.storage import parcels
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.earlier_files import earlier_files
from belino.storage.parcels import (
    SELECT,
    OpenFile,
    buttons_of,
    detach_edit,
    insert_parcels,
    insert_unasked,
    lay_down_files,
    parcel_of,
    parcel_record,
    parcel_row,
    quoted_by,
    settled,
    stored_file,
    take_up_files,
)
from belino.storage.refs import author_of
from belino.storage.row_ids import KEY_COLUMNS, RowIds, find_channel, find_place, key_of
from belino.storage.text import sanitized

ON_THEIR_WAY = "('ready', 'sending')"
PASSED_AFTER = 60_000_000
"""Microseconds after the first attempt of a file that waits for its next one: later parcels may then overtake it."""
DROPPED = "dropped by a person"


class OutboxVerbs(BlobVerbs):
    """Parcels to send, with the blobs they carry."""

    async def ready_parcels(self) -> tuple[Ready, ...]:
        """Every conversation with a parcel to send, with the time its first one is ready."""
        return await self._database.read(ready_parcels)

    async def claim_parcel(
        self, conversation: ConversationKey, now: datetime, *, owner: str = ""
    ) -> ClaimedParcel | Ready | None:
        """Claim the conversation's next parcel, exclusively for this owner until its lease ends.

        Parcels of a conversation leave in order, except that those behind a file that fails repeatedly may overtake it.
        Ready while nothing may leave yet: too early, rate-limited by the platform, or another owner's lease.
        """
        at = to_micros(now)
        return await self._database.write(lambda tx: claim_parcel(tx, conversation, at, owner, self._open_file))

    async def confirm_parcel(
        self, key: str, receipt: Receipt, author: Author, *, reason: str = ""
    ) -> StoredMessage | None:
        """Mark a parcel as sent; it becomes a message of the conversation, with the agent as author, once.

        Returns it, or the message that an edit changed; None if none is stored (for notices to unpaired senders).
        `reason` records an anomaly of a parcel that was sent.
        """
        now, said = self._now(), sanitized(reason)
        return await self._database.write(
            lambda tx: parcels.confirm_parcel(tx, self._keys, key, receipt, author, now, reason=said)
        )

    async def delay_parcel(
        self,
        key: str,
        ready: datetime,
        reason: str,
        *,
        fence: int | None = None,
        failed: bool = False,
        doubt: Doubt | None = None,
        patience: bool = False,
    ) -> bool:
        """Put a parcel back as ready at a later time; with `patience`, the whole conversation waits until then.

        False, and nothing changes, if it was claimed again since `fence`. `doubt=None` leaves the doubt unchanged.
        """
        now, at, said = self._now(), to_micros(ready), sanitized(reason)

        def work(tx: Tx) -> bool:
            row = parcel_row(tx, key)
            _refuse_sent(row)
            if not _is_ours(tx, row, fence):
                return False
            tx.execute(
                "UPDATE parcels SET state = 'ready', ready = ?, reason = ?, changed = ?, failures = failures + ?, "
                "doubt = ? WHERE id = ?",
                (at, said, now, int(failed), row["doubt"] if doubt is None else doubt, row["id"]),
            )
            if patience:
                tx.execute(
                    "INSERT INTO leases (conversation, owner, fence, until, patience) VALUES (?, '', 0, 0, ?) "
                    "ON CONFLICT (conversation) DO UPDATE SET patience = excluded.patience",
                    (row["conversation"], at),
                )
            return True

        return await self._database.write(work)

    async def send_as_new(self, key: str, reason: str, *, fence: int | None = None) -> bool:
        """Turn an edit of a message that is gone into a text, `ready` at once; the message is marked as deleted.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        now, said = self._now(), sanitized(reason)
        return await self._database.write(lambda tx: send_as_new(tx, key, said, now, fence=fence))

    async def take_apart(self, key: str, parts: Sequence[Parcel], reason: str, *, fence: int | None = None) -> bool:
        """Replace a parcel by several that are sent one by one: the first of `parts` under this key, `ready` at once.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        now, (single, said) = self._now(), sanitized((tuple(parts), reason))
        return await self._database.write(lambda tx: take_apart(tx, key, single, said, now, fence=fence))

    async def send_in_parent(
        self, first: Parcel, notices: Sequence[Parcel], reason: str, *, fence: int | None = None
    ) -> tuple[str, ...]:
        """Send a parcel of a closed thread, and those of the same turn, as `first` says: in the thread's channel.

        Returns their keys, and those of the notices; none, and nothing changes, if it was claimed again since `fence`.
        """
        now, (moved, told, said) = self._now(), sanitized((first, tuple(notices), reason))
        return await self._database.write(lambda tx: send_in_parent(tx, moved, told, said, now, fence=fence))

    async def keep_waiting(self, conversation: ConversationKey, reason: str) -> tuple[str, ...]:
        """Record why a conversation's parcels are not sent; no attempt is counted.

        Returns the keys whose reason changed.
        """
        now, said = self._now(), sanitized(reason)
        return await self._database.write(lambda tx: keep_waiting(tx, conversation, said, now))

    async def end_parcel(
        self,
        key: str,
        state: ParcelState,
        reason: str,
        *,
        fence: int | None = None,
        doubt: Doubt | None = None,
        notices: Sequence[Parcel] = (),
        window_closed: bool = False,
    ) -> bool:
        """End a parcel, which is not retried until a person asks; notices about it are added in the same transaction.

        The notices carry its text, which is then removed from it. `window_closed`: `reopen_parcels` retries it, too.

        False, and nothing changes, if it was claimed again since `fence`. `doubt=None` leaves the doubt unchanged.
        """
        now, (told, said) = self._now(), sanitized((tuple(notices), reason))
        return await self._database.write(
            lambda tx: end_parcel(
                tx, key, state, said, now, fence=fence, doubt=doubt, notices=told, window_closed=window_closed
            )
        )

    async def reopen_parcels(self, channel: ConversationKey) -> tuple[ConversationKey, ...]:
        """Send parcels that were held until the person of a channel writes, except those that may have arrived.

        Returns the conversations that have one.
        """
        now = self._now()
        if not await self._database.read(lambda tx: _awaiting(tx, channel)):
            return ()
        return await self._database.write(lambda tx: reopen_parcels(tx, channel, now))

    async def recover_parcels(self, before: datetime, *, held: str, uncertain: str) -> int:
        """After a start: release the leases of earlier runs, and stop automatic sending of parcels older than `before`.

        They become `held`, or `uncertain` if they were being sent, for these reasons. Returns how many.
        """
        now, bound = self._now(), to_micros(before)
        return await self._database.write(lambda tx: recover_parcels(tx, bound, held, uncertain, now))

    async def retry_parcel(self, key: str) -> ParcelRecord | None:
        """Send a parcel now, at a person's request. None if it is sent, being sent, dropped or unknown."""
        now = self._now()
        return await self._database.write(lambda tx: retry_parcel(tx, key, now))

    async def drop_parcel(self, key: str, *, reason: str = DROPPED) -> ParcelRecord | None:
        """Drop a parcel for good. None if it is sent, being sent, dropped or unknown."""
        now = self._now()
        return await self._database.write(lambda tx: drop_parcel(tx, key, now, reason=reason))

    async def put_parcels(self, parcels: Sequence[Parcel]) -> None:
        """Put parcels of no turn into the outbox; once sent, they are messages of the conversation like any other."""
        now, said = self._now(), sanitized(tuple(parcels))
        await self._database.write(lambda tx: insert_unasked(tx, said, now))

    async def start_draft(self, turn: int, parcel: Parcel) -> None:
        """Put a running turn's draft into the outbox at once; the answer will be a parcel that edits it."""
        now, said = self._now(), sanitized(parcel)
        await self._database.write(lambda tx: parcels.start_draft(tx, turn, said, now))

    async def carried_files(self, conversation: ConversationKey) -> tuple[tuple[str, ParcelState, str, datetime], ...]:
        """Files from the folder `pending` that parcels carry, newest first: mark, state, reason and since when."""
        return await self._database.read(lambda tx: parcels.carried_files(tx, conversation))

    async def earlier_files(self, conversation: ConversationKey) -> EarlierFiles:
        """The files that the conversation has before a reply."""
        return await self._database.read(lambda tx: earlier_files(tx, conversation))

    async def report_doubts(self, conversation: ConversationKey, turn: int) -> int:
        """How many answers here may be missing and were not reported by an earlier turn; this one reports them."""
        return await self._database.write(lambda tx: report_doubts(tx, conversation, turn))

    async def parcel(self, key: str) -> ParcelRecord | None:
        return await self._database.read(lambda tx: parcels.parcel(tx, key))

    async def parcel_of(self, channel: ConversationKey, message_id: str) -> ParcelRecord | None:
        """The parcel that made a message of this channel, if any."""
        return await self._database.read(lambda tx: parcels.parcel_of_message(tx, channel, message_id))

    async def parcels(
        self,
        *,
        limit: int = 50,
        state: ParcelState | None = None,
        conversation: ConversationKey | None = None,
        unsent: bool = False,
    ) -> tuple[ParcelRecord, ...]:
        """Newest first; `unsent` leaves out sent and dropped ones."""
        return await self._database.read(
            lambda tx: parcels.parcels(tx, limit=limit, state=state, conversation=conversation, unsent=unsent)
        )


def report_doubts(tx: Tx, conversation: ConversationKey, turn: int) -> int:
    """Record which parcels in doubt a turn reports, the same ones if it runs again."""
    place = find_place(tx, conversation)
    found = tx.execute(
        "SELECT p.key FROM parcels p LEFT JOIN reported_doubts d ON d.parcel = p.key WHERE p.conversation = ? "
        "AND p.state = 'uncertain' AND p.dropped = 0 AND p.turn IS NOT NULL AND coalesce(d.turn, ?) = ?",
        (-1 if place is None else place.conversation, turn, turn),
    ).fetchall()
    for row in found:
        tx.execute(
            "INSERT INTO reported_doubts (parcel, turn) VALUES (?, ?) ON CONFLICT (parcel) DO NOTHING",
            (row["key"], turn),
        )
    return len(found)


def ready_parcels(tx: Tx) -> tuple[Ready, ...]:
    """Every conversation with a parcel to send, and when the first of them is ready."""
    rows = tx.execute(
        f"SELECT f.ready, {KEY_COLUMNS} FROM (SELECT conversation, min(ready) AS ready, min(id) AS id FROM parcels "
        f"WHERE state IN {ON_THEIR_WAY} GROUP BY conversation) f JOIN conversations v ON v.id = f.conversation "
        "JOIN channels c ON c.id = v.channel ORDER BY f.ready, f.id"
    )
    return tuple(Ready(conversation=key_of(row), at=from_micros(row["ready"])) for row in rows)


def claim_parcel(
    tx: Tx, conversation: ConversationKey, now: int, owner: str, open_file: OpenFile
) -> ClaimedParcel | Ready | None:
    """Claim the next parcel. One in state `sending` is claimed again: its sender is gone."""
    place = find_place(tx, conversation)
    if place is None:
        return None
    lease = tx.execute("SELECT * FROM leases WHERE conversation = ?", (place.conversation,)).fetchone()
    row = _next(tx, place.conversation, now)
    if row is None:
        return None
    at = row if isinstance(row, int) else now
    if lease is not None:
        at = max(at, lease["patience"], lease["until"] if lease["owner"] not in ("", owner) else 0)
    if isinstance(row, int) or at > now:
        return Ready(conversation=conversation, at=from_micros(at))
    return _claimed(tx, settled(tx, row, now), now, owner, open_file)


def send_as_new(tx: Tx, key: str, reason: str, now: int, *, fence: int | None) -> bool:
    """Send an edit as a new text, because its message is gone. False if another sender has claimed it."""
    row = parcel_row(tx, key)
    _refuse_sent(row)
    if not _is_ours(tx, row, fence):
        return False
    detach_edit(tx, row, now)
    tx.execute(
        "UPDATE parcels SET state = 'ready', ready = ?, reason = ?, changed = ? WHERE id = ?",
        (now, reason, now, row["id"]),
    )
    return True


def send_in_parent(
    tx: Tx, first: Parcel, notices: Sequence[Parcel], reason: str, now: int, *, fence: int | None
) -> tuple[str, ...]:
    """Move a turn's parcels from a closed thread to its channel; those of other turns are moved when they fail."""
    row = parcel_row(tx, first.key)
    _refuse_sent(row)
    if not _is_ours(tx, row, fence):
        return ()
    if row["kind"] == ParcelKind.EDIT:
        detach_edit(tx, row, now)
    place = tx.memo(RowIds).conversation(tx, first.conversation, now)
    tx.execute(
        "UPDATE parcels SET conversation = ?, reply_to = ?, text = ?, plain = ?, rich = ?, state = 'ready', ready = ?, "
        "reason = ?, changed = ? WHERE id = ?",
        (place.id, first.reply_to, first.text, first.plain, first.rich, now, reason, now, row["id"]),
    )
    behind = tx.execute(
        "UPDATE parcels SET conversation = ?, reply_to = NULL, reason = ?, changed = ? WHERE conversation = ? "
        "AND turn = ? AND turn > 0 AND state = 'ready' AND kind IN ('text', 'files') RETURNING key",
        (place.id, reason, now, row["conversation"], row["turn"]),
    ).fetchall()
    insert_parcels(tx, None, notices, now)
    for notice in notices:
        tx.execute("UPDATE parcels SET turn = ? WHERE key = ? AND turn IS NULL", (row["turn"], notice.key))
    return first.key, *(each["key"] for each in behind), *(notice.key for notice in notices)


def take_apart(
    tx: Tx,
    key: str,
    parts: Sequence[Parcel],
    reason: str,
    now: int,
    *,
    fence: int | None,
) -> bool:
    """Replace a parcel by several; the first keeps its key. False if another sender has claimed it."""
    row = parcel_row(tx, key)
    _refuse_sent(row)
    if not _is_ours(tx, row, fence):
        return False
    first, *others = parts
    files = [stored_file(file) for file in first.files]
    lay_down_files(tx, key, orjson.loads(row["files"] or b"[]"))
    take_up_files(tx, key, files)
    tx.execute(
        "UPDATE parcels SET files = ?, state = 'ready', ready = ?, reason = ?, changed = ? WHERE id = ?",
        (orjson.dumps(files), now, reason, now, row["id"]),
    )
    insert_parcels(tx, None, others, now)
    for other in others:
        tx.execute("UPDATE parcels SET turn = ?, doubt = ? WHERE key = ?", (row["turn"], row["doubt"], other.key))
    return True


def keep_waiting(tx: Tx, conversation: ConversationKey, reason: str, now: int) -> tuple[str, ...]:
    """Record why parcels that are due are not sent. Returns the keys of those whose reason changed."""
    place = find_place(tx, conversation)
    rows = tx.execute(
        f"UPDATE parcels SET reason = ?1, changed = ?2 WHERE conversation = ?3 AND state IN {ON_THEIR_WAY} "
        "AND reason <> ?1 RETURNING key",
        (reason, now, -1 if place is None else place.conversation),
    )
    return tuple(row["key"] for row in rows.fetchall())


def end_parcel(
    tx: Tx,
    key: str,
    state: ParcelState,
    reason: str,
    now: int,
    *,
    fence: int | None,
    doubt: Doubt | None,
    notices: Sequence[Parcel],
    window_closed: bool,
) -> bool:
    """End a parcel without further attempts, and add notices about it; later parcels may go."""
    row = parcel_row(tx, key)
    _refuse_sent(row)
    if not _is_ours(tx, row, fence):
        return False
    tx.execute(
        "UPDATE parcels SET state = ?, reason = ?, changed = ?, doubt = ?, window_closed = ? WHERE id = ?",
        (state, reason, now, row["doubt"] if doubt is None else doubt, int(window_closed), row["id"]),
    )
    insert_parcels(tx, None, notices, now)
    for notice in notices:
        tx.execute(
            "UPDATE parcels SET turn = ? WHERE key = ? AND turn IS NULL AND state = 'ready'", (row["turn"], notice.key)
        )
    if notices:
        tx.execute("UPDATE parcels SET text = '', plain = '', rich = '' WHERE id = ?", (row["id"],))
    return True


def _awaiting(tx: Tx, channel: ConversationKey) -> tuple[TableRow, ...]:
    """The parcels that are held until the person of a channel writes, and cannot have arrived."""
    query = f"{SELECT} WHERE p.state = 'held' AND p.window_closed = 1 AND p.channel = ? AND p.doubt < ? ORDER BY p.id"
    return tuple(tx.execute(query, (find_channel(tx, channel), Doubt.UNANSWERED)))


def reopen_parcels(tx: Tx, channel: ConversationKey, now: int) -> tuple[ConversationKey, ...]:
    """Make the parcels ready that were held until the person writes. Returns their conversations."""
    rows = _awaiting(tx, channel)
    for row in rows:
        tx.execute(
            "UPDATE parcels SET state = 'ready', ready = ?, changed = ?, reason = '', failures = 0, tried = NULL, "
            "window_closed = 0 WHERE id = ?",
            (now, now, row["id"]),
        )
    return tuple(dict.fromkeys(map(key_of, rows)))


def recover_parcels(tx: Tx, before: int, held: str, uncertain: str, now: int) -> int:
    """After a start: release all leases, and hold parcels that were created before a time.

    Parcels delayed by a clock that was set back since are due now.
    """
    tx.execute("UPDATE leases SET owner = '', until = 0")
    tx.execute(
        "UPDATE leases SET patience = 0 WHERE conversation IN "
        "(SELECT conversation FROM parcels WHERE state = 'ready' AND changed > ?)",
        (now,),
    )
    tx.execute("UPDATE parcels SET ready = ?1 WHERE state = 'ready' AND changed > ?1", (now,))
    stopped = tx.execute(
        "UPDATE parcels SET state = 'uncertain', reason = ?1, changed = ?2, "
        "doubt = CASE WHEN doubt < ?3 THEN ?3 ELSE doubt END WHERE state = 'sending' AND coalesce(asked, created) < ?4",
        (uncertain, now, Doubt.UNANSWERED, before),
    ).rowcount
    waited = tx.execute(
        "UPDATE parcels SET state = 'held', reason = ?, changed = ? "
        "WHERE state = 'ready' AND coalesce(asked, created) < ?",
        (held, now, before),
    ).rowcount
    return int(stopped + waited)


def retry_parcel(tx: Tx, key: str, now: int) -> ParcelRecord | None:
    """Send a parcel now, at a person's request; None if it is being sent, sent or dropped."""
    changed = tx.execute(
        "UPDATE parcels SET state = 'ready', ready = ?, asked = ?, changed = ?, reason = '', failures = 0, "
        "tried = NULL, message_id = NULL, window_closed = 0 WHERE key = ? AND dropped = 0 "
        "AND state NOT IN ('sending', 'sent')",
        (now, now, now, key),
    ).rowcount
    if not changed:
        return None
    row = parcel_row(tx, key)
    take_up_files(tx, key, orjson.loads(row["files"] or b"[]"))
    return parcel_record(row)


def drop_parcel(tx: Tx, key: str, now: int, *, reason: str) -> ParcelRecord | None:
    """Drop a parcel; None if it is being sent, sent or dropped."""
    changed = tx.execute(
        "UPDATE parcels SET state = 'dead', dropped = 1, reason = ?, changed = ? "
        "WHERE key = ? AND dropped = 0 AND state NOT IN ('sending', 'sent')",
        (reason, now, key),
    ).rowcount
    if not changed:
        return None
    row = parcel_row(tx, key)
    lay_down_files(tx, key, orjson.loads(row["files"] or b"[]"))
    return parcel_record(row)


def _next(tx: Tx, conversation: int, now: int) -> TableRow | int | None:
    """The next row to send, or the time at which one is ready; None if there is none."""
    first: int | None = None
    rows = tx.execute(f"{SELECT} WHERE p.state IN {ON_THEIR_WAY} AND p.conversation = ? ORDER BY p.id", (conversation,))
    for row in rows:
        if row["state"] == ParcelState.SENDING or row["ready"] <= now:
            found: TableRow = row
            return found
        # Files go first; one that fails must not block the text of its reply for ever.
        passed = row["tried"] + PASSED_AFTER if row["files"] and row["tried"] is not None else None
        at = row["ready"] if passed is None or passed <= now else min(passed, row["ready"])
        first = at if first is None else min(first, at)
        if passed is None or passed > now:
            return first
    return first


def _claimed(tx: Tx, row: TableRow, now: int, owner: str, open_file: OpenFile) -> ClaimedParcel:
    parcel = parcel_of(row, open_file, buttons_of(tx, row["key"]), quoted_by(tx, row) if row["reply_to"] else "")
    died = row["state"] == ParcelState.SENDING
    doubt = Doubt(row["doubt"]).unanswered() if died else Doubt(row["doubt"])
    tx.execute(
        "UPDATE parcels SET state = 'sending', attempts = attempts + 1, changed = ?, failures = failures + ?, "
        "doubt = ?, tried = coalesce(tried, ?) WHERE id = ?",
        (now, int(died), doubt, now, row["id"]),
    )
    until = now + int(lease_seconds(sum(file.size for file in parcel.files)) * 1_000_000)
    (fence,) = tx.execute(
        "INSERT INTO leases (conversation, owner, fence, until, patience) VALUES (?, ?, 1, ?, 0) "
        "ON CONFLICT (conversation) DO UPDATE SET owner = excluded.owner, fence = leases.fence + 1, "
        "until = excluded.until RETURNING fence",
        (row["conversation"], owner, until),
    ).fetchone()
    return ClaimedParcel(
        parcel=parcel,
        attempt=row["attempts"] + 1,
        created=from_micros(row["created"]),
        fence=fence,
        failures=row["failures"] + int(died),
        doubt=doubt,
        insisted=row["asked"] is not None and not died,
        askers=_askers(tx, row),
    )


def _askers(tx: Tx, parcel: TableRow) -> tuple[Requester, ...]:
    """Everyone whose message the parcel's turn answers."""
    rows = tx.execute(
        "SELECT m.author_id, m.author_name, m.author_marks, c.chat_type, c.server FROM turns t "
        "JOIN messages m ON m.id = t.message JOIN channels c ON c.id = m.channel WHERE t.id = ?1 "
        "UNION ALL SELECT m.author_id, m.author_name, m.author_marks, c.chat_type, c.server FROM messages m "
        "JOIN channels c ON c.id = m.channel WHERE m.turn = ?1 AND m.joined <> ''",
        (parcel["turn"],),
    )
    askers = [
        Requester(author=author_of(row), chat_type=ChatType(row["chat_type"]), server=row["server"]) for row in rows
    ]
    return tuple({asker.author.id: asker for asker in askers}.values())


def _is_ours(tx: Tx, row: TableRow, fence: int | None) -> bool:
    if fence is None:
        return True
    lease = tx.execute("SELECT fence FROM leases WHERE conversation = ?", (row["conversation"],)).fetchone()
    return lease is not None and lease["fence"] == fence


def _refuse_sent(row: TableRow) -> None:
    if row["state"] == ParcelState.SENT:
        raise StoreError(f"parcel {row['key']} is sent already")
