"""Parcel verbs of the store: put in, claimed, confirmed or ended, listed, retried and dropped."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from belino.domain.delivery_doubt import Doubt
from belino.domain.message import Author, ConversationKey
from belino.domain.ports import Clock
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.stored import ClaimedParcel, ParcelRecord, Ready, StoredMessage
from belino.storage import drafts, outbox, parcel_state
from belino.storage.blobs import BlobFolder
from belino.storage.encryption import Keys
from belino.storage.reading_verbs import ReadingVerbs
from belino.storage.row_ids import RowIds
from belino.storage.sanitize import NOT_TEXT, mended
from belino.storage.timestamps import to_micros
from belino.storage.writer import Readers, Writer


class ParcelVerbs(ReadingVerbs):
    """The outbox, with the blobs its parcels carry."""

    def __init__(
        self, writer: Writer, readers: Readers, folder: BlobFolder, clock: Clock, keys: Keys, places: RowIds
    ) -> None:
        super().__init__(writer, readers, folder, clock, places)
        self._keys = keys

    async def ready_parcels(self) -> tuple[Ready, ...]:
        return await self._readers.read(parcel_state.ready_parcels)

    async def claim_parcel(
        self, conversation: ConversationKey, now: datetime, *, owner: str = ""
    ) -> ClaimedParcel | Ready | None:
        at = to_micros(now)
        return await self._writer.write(
            lambda connection: parcel_state.claim_parcel(connection, conversation, at, owner, self._open_file)
        )

    async def confirm_parcel(
        self, key: str, receipt: Receipt, author: Author, *, reason: str = ""
    ) -> StoredMessage | None:
        now = self._now()
        return await self._writer.write(
            lambda connection: outbox.confirm_parcel(
                connection, self._keys, self._places, key, receipt, author, now, reason=reason
            )
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
        now, at = self._now(), to_micros(ready)
        return await self._writer.write(
            lambda connection: parcel_state.delay_parcel(
                connection, key, at, reason, now, fence=fence, failed=failed, doubt=doubt, patience=patience
            )
        )

    async def say_anew(self, key: str, reason: str, *, fence: int | None = None) -> bool:
        now = self._now()
        return await self._writer.write(
            lambda connection: parcel_state.say_anew(connection, key, reason, now, fence=fence)
        )

    async def take_apart(self, key: str, parts: Sequence[Parcel], reason: str, *, fence: int | None = None) -> bool:
        now = self._now()
        return await self._writer.write(
            lambda connection: parcel_state.take_apart(connection, self._places, key, parts, reason, now, fence=fence)
        )

    async def keep_waiting(self, conversation: ConversationKey, reason: str) -> tuple[str, ...]:
        now = self._now()
        return await self._writer.write(
            lambda connection: parcel_state.keep_waiting(connection, conversation, reason, now)
        )

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
        now = self._now()
        return await self._writer.write(
            lambda connection: parcel_state.end_parcel(
                connection, self._places, key, state, reason, now, fence=fence, doubt=doubt, notices=notices
            )
        )

    async def recover_parcels(self, before: datetime, *, held: str, uncertain: str) -> int:
        now, bound = self._now(), to_micros(before)
        return await self._writer.write(
            lambda connection: parcel_state.recover_parcels(connection, bound, held, uncertain, now)
        )

    async def retry_parcel(self, key: str) -> ParcelRecord | None:
        now = self._now()
        return await self._writer.write(lambda connection: parcel_state.retry_parcel(connection, key, now))

    async def drop_parcel(self, key: str) -> ParcelRecord | None:
        now = self._now()
        return await self._writer.write(lambda connection: parcel_state.drop_parcel(connection, key, now))

    async def put_parcels(self, parcels: Sequence[Parcel]) -> None:
        now = self._now()

        def work(connection: sqlite3.Connection) -> None:
            outbox.put_parcels(connection, self._places, parcels, now)

        try:
            await self._writer.write(work)
        except NOT_TEXT:
            parcels = mended(tuple(parcels))
            await self._writer.write(work)

    async def start_draft(self, turn: int, parcel: Parcel) -> None:
        now = self._now()
        await self._writer.write(lambda connection: drafts.start_draft(connection, self._places, turn, parcel, now))

    async def carried_files(self, conversation: ConversationKey) -> tuple[tuple[str, ParcelState, str, datetime], ...]:
        return await self._readers.read(lambda connection: outbox.carried_files(connection, conversation))

    async def parcel(self, key: str) -> ParcelRecord | None:
        return await self._readers.read(lambda connection: outbox.parcel(connection, key))

    async def parcel_of(self, channel: ConversationKey, message_id: str) -> ParcelRecord | None:
        return await self._readers.read(lambda connection: outbox.parcel_of_message(connection, channel, message_id))

    async def parcels(
        self,
        *,
        limit: int = 50,
        state: ParcelState | None = None,
        conversation: ConversationKey | None = None,
        unsent: bool = False,
    ) -> tuple[ParcelRecord, ...]:
        return await self._readers.read(
            lambda connection: outbox.parcels(
                connection, limit=limit, state=state, conversation=conversation, unsent=unsent
            )
        )
