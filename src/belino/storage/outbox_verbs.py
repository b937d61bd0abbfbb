"""Outbox verbs of the store: parcels are put in, claimed, confirmed or ended, listed, retried and dropped."""

from collections.abc import Sequence
from datetime import datetime

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Doubt, Parcel, ParcelState, Receipt
from belino.domain.stored import ClaimedParcel, ParcelRecord, Ready, StoredMessage
from belino.storage import drafts, outbox, parcel_state
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import Tx, to_micros
from belino.storage.sanitize import NOT_TEXT, mended


class OutboxVerbs(BlobVerbs):
    """Parcels to send, with the blobs they carry."""

    async def ready_parcels(self) -> tuple[Ready, ...]:
        """Every conversation with a parcel to send, with the time its first one is ready."""
        return await self._database.read(parcel_state.ready_parcels)

    async def claim_parcel(
        self, conversation: ConversationKey, now: datetime, *, owner: str = ""
    ) -> ClaimedParcel | Ready | None:
        """Claim the conversation's next parcel, exclusively for this owner until its lease ends.

        Parcels of a conversation leave in order, except that those behind a file that fails repeatedly may overtake it.
        Ready while nothing may leave yet: too early, rate-limited by the platform, or another owner's lease.
        """
        at = to_micros(now)
        return await self._database.write(
            lambda tx: parcel_state.claim_parcel(tx, conversation, at, owner, self._open_file)
        )

    async def confirm_parcel(
        self, key: str, receipt: Receipt, author: Author, *, reason: str = ""
    ) -> StoredMessage | None:
        """Mark a parcel as sent; it becomes a message of the conversation, with the agent as author, once.

        Returns it, or the message that an edit changed; None if none is stored (for notices to unpaired senders).
        `reason` records an anomaly of a parcel that was sent.
        """
        now = self._now()
        return await self._database.write(
            lambda tx: outbox.confirm_parcel(tx, self._keys, key, receipt, author, now, reason=reason)
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
        now, at = self._now(), to_micros(ready)
        return await self._database.write(
            lambda tx: parcel_state.delay_parcel(
                tx, key, at, reason, now, fence=fence, failed=failed, doubt=doubt, patience=patience
            )
        )

    async def say_anew(self, key: str, reason: str, *, fence: int | None = None) -> bool:
        """Turn an edit of a message that is gone into a text, `ready` at once; the message is marked as deleted.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        now = self._now()
        return await self._database.write(lambda tx: parcel_state.say_anew(tx, key, reason, now, fence=fence))

    async def take_apart(self, key: str, parts: Sequence[Parcel], reason: str, *, fence: int | None = None) -> bool:
        """Replace a parcel by several that are sent one by one: the first of `parts` under this key, `ready` at once.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        now = self._now()
        return await self._database.write(lambda tx: parcel_state.take_apart(tx, key, parts, reason, now, fence=fence))

    async def keep_waiting(self, conversation: ConversationKey, reason: str) -> tuple[str, ...]:
        """Record why a conversation's parcels are not sent; no attempt is counted.

        Returns the keys whose reason changed.
        """
        now = self._now()
        return await self._database.write(lambda tx: parcel_state.keep_waiting(tx, conversation, reason, now))

    async def end_parcel(
        self,
        key: str,
        state: ParcelState,
        reason: str,
        *,
        fence: int | None = None,
        doubt: Doubt | None = None,
        notices: Sequence[Parcel] = (),
    ) -> bool:
        """End a parcel, which is not retried until a person asks; notices about it are added in the same transaction.

        The notices carry its text, which is then removed from it.

        False, and nothing changes, if it was claimed again since `fence`. `doubt=None` leaves the doubt unchanged.
        """
        now = self._now()
        return await self._database.write(
            lambda tx: parcel_state.end_parcel(tx, key, state, reason, now, fence=fence, doubt=doubt, notices=notices)
        )

    async def recover_parcels(self, before: datetime, *, held: str, uncertain: str) -> int:
        """After a start: release the leases of earlier runs, and stop automatic sending of parcels older than `before`.

        They become `held`, or `uncertain` if they were being sent, for these reasons. Returns how many.
        """
        now, bound = self._now(), to_micros(before)
        return await self._database.write(lambda tx: parcel_state.recover_parcels(tx, bound, held, uncertain, now))

    async def retry_parcel(self, key: str) -> ParcelRecord | None:
        """Send a parcel now, at a person's request. None if it is sent, being sent, dropped or unknown."""
        now = self._now()
        return await self._database.write(lambda tx: parcel_state.retry_parcel(tx, key, now))

    async def drop_parcel(self, key: str) -> ParcelRecord | None:
        """Drop a parcel for good, at a person's request. None if it is sent, being sent, dropped or unknown."""
        now = self._now()
        return await self._database.write(lambda tx: parcel_state.drop_parcel(tx, key, now))

    async def put_parcels(self, parcels: Sequence[Parcel]) -> None:
        """Put parcels of no turn into the outbox; once sent, they are messages of the conversation like any other."""
        now = self._now()

        def work(tx: Tx) -> None:
            outbox.put_parcels(tx, parcels, now)

        try:
            await self._database.write(work)
        except NOT_TEXT:
            parcels = mended(tuple(parcels))
            await self._database.write(work)

    async def start_draft(self, turn: int, parcel: Parcel) -> None:
        """Put a running turn's draft into the outbox at once; the answer will be a parcel that edits it."""
        now = self._now()
        await self._database.write(lambda tx: drafts.start_draft(tx, turn, parcel, now))

    async def carried_files(self, conversation: ConversationKey) -> tuple[tuple[str, ParcelState, str, datetime], ...]:
        """Files from the folder `pending` that parcels carry, newest first: mark, state, reason and since when."""
        return await self._database.read(lambda tx: outbox.carried_files(tx, conversation))

    async def parcel(self, key: str) -> ParcelRecord | None:
        return await self._database.read(lambda tx: outbox.parcel(tx, key))

    async def parcel_of(self, channel: ConversationKey, message_id: str) -> ParcelRecord | None:
        """The parcel that made a message of this channel, if any."""
        return await self._database.read(lambda tx: outbox.parcel_of_message(tx, channel, message_id))

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
            lambda tx: outbox.parcels(tx, limit=limit, state=state, conversation=conversation, unsent=unsent)
        )
