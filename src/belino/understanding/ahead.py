"""Read ahead: between turns, media becomes text on this machine, so that search finds what has no caption.

Only media of senders who may command the agent is read, by local providers and belino's own readers, one piece at a
time (a page, a picture, two minutes of sound), within a daily limit. Every other reading comes first. How far each item
was read is stored, so that nothing is read twice after a restart.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from belino.domain.errors import MediaError, ProviderError, StoreError, place_of, reason_of
from belino.domain.media import OWN_READER, Blob
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome, Stage, Step
from belino.domain.ports import Clock
from belino.domain.reading import Attempt, AttemptRecord, ReadingForm, ReadingOutcome, SenderLanguage
from belino.domain.stored import RefRecord
from belino.storage.read_ahead import DONE, SKIPPED, ReadAheadPlace
from belino.understanding.config import MediaTools
from belino.understanding.read import GaveWay, Hold, Understanding
from belino.understanding.request import ItemReading
from belino.understanding.spending import OVER_LIMIT

log = logging.getLogger(__name__)

PIECES_A_DAY = 300
"""Pieces of one channel that are read ahead within 24 hours; `tools.media.limits` may allow less."""
DAY = timedelta(days=1)
TRIES = 3
"""A piece that was begun so often and never ended is left out: reading it may end the process."""
LISTED = 50
QUIET_SECONDS = 2.0
"""After an arrival or a turn, so that its own readings come first."""
BUSY_SECONDS = 10.0
AGAIN_SECONDS = 6 * 3_600.0
"""What was skipped is looked at again: access, limits and platforms change."""


class _OverLimit(Exception):
    """The channel has used up what may be read in a day."""


class UnreadMedia(Protocol):
    """The part of the store that reading ahead needs."""

    async def unread_refs(
        self, *, fetch: bool, before: int | None = None, limit: int = 50
    ) -> tuple[RefRecord, ...]: ...

    async def place_ahead(self, ref: str) -> ReadAheadPlace | None: ...

    async def note_ahead(self, ref: str, place: ReadAheadPlace) -> None: ...

    async def unskip_ahead(self) -> None: ...

    async def pieces_ahead(self, channel: ConversationKey, since: datetime) -> int: ...

    async def sender_of(self, channel: ConversationKey, ref_id: str) -> SenderLanguage: ...

    async def blob(self, sha256: str) -> Blob | None: ...

    async def read_before(self, sha256s: list[str]) -> frozenset[str]: ...

    async def note_attempts(self, records: list[AttemptRecord]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadCallbacks:
    """What reading ahead asks and tells the gateway."""

    may_command: Callable[[RefRecord], Awaitable[bool]]
    """Whether the sender of a ref may command the agent there now."""
    is_busy: Callable[[], Awaitable[bool]]
    """Whether a turn waits or runs."""
    told: Callable[[RefRecord, Step], Awaitable[None]]
    """Called for each form that was read, or not."""


class ReadAhead:
    """Reads what is unread, newest first, whenever nothing else is to be done."""

    def __init__(
        self,
        store: UnreadMedia,
        understanding: Callable[[], Understanding],
        hold: Hold,
        callbacks: AheadCallbacks,
        *,
        config: MediaTools,
        clock: Clock,
    ) -> None:
        self._store = store
        self._understanding = understanding
        """Called with the first media: providers cost start-up time."""
        self._hold = hold
        self._callbacks = callbacks
        self._fetch = config.read_ahead_fetch
        self._clock = clock
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something may be unread: a message came, or a turn has ended."""
        self._woken.set()

    async def run(self) -> None:
        """Read ahead for as long as the gateway runs."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._retry_skipped())
            group.create_task(self._follow())

    async def _retry_skipped(self) -> None:
        while True:
            try:
                await self._store.unskip_ahead()
                self.wake()
            except StoreError as error:
                log.warning("what was not read ahead is not tried again: %s", type(error).__name__)
            await self._clock.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        while True:
            await self._woken.wait()
            await self._clock.sleep(QUIET_SECONDS)
            self._woken.clear()
            try:
                is_read = await self.catch_up()
            except StoreError as error:
                log.warning("nothing is read ahead: %s", type(error).__name__)
                is_read = False
            if not is_read:
                await self._clock.sleep(BUSY_SECONDS)
                self.wake()

    async def catch_up(self) -> bool:
        """Read everything that is unread; False if that gave way to a turn or another reading."""
        before = None
        while found := await self._store.unread_refs(fetch=self._fetch, before=before, limit=LISTED):
            for record in found:
                if not await self._item(record):
                    return False
                before = record.seq
        return True

    async def _item(self, record: RefRecord) -> bool:
        """Read one item to its end; False if it gave way."""
        if await self._callbacks.is_busy():
            return False
        if not await self._may_read(record):
            await self._store.note_ahead(record.ref.id, ReadAheadPlace(place=SKIPPED))
            return True
        try:
            async with self._hold(record) as blob:
                return await self._forms(record, blob)
        except MediaError as error:
            log.info("%s is not read ahead: %s", record.ref.id, type(error).__name__)
            await self._store.note_ahead(record.ref.id, ReadAheadPlace(place=SKIPPED))
            return True

    async def _may_read(self, record: RefRecord) -> bool:
        """Whether the sender may command, and bytes need not be fetched or may be."""
        if not await self._callbacks.may_command(record):
            return False
        if self._fetch:
            return True
        sha256 = record.ref.sha256
        is_held = record.outcome is MediaOutcome.HELD and sha256 is not None
        return is_held and await self._store.blob(sha256 or "") is not None

    async def _forms(self, record: RefRecord, blob: Blob) -> bool:
        """Read each form that can be read here, from where it ended last; False if it gave way."""
        ref, forms = record.ref.id, self._understanding().forms_ahead(record, blob)
        known = await self._store.place_ahead(ref)
        form, place, tries = _parsed(known) if known is not None else (forms[0] if forms else None, 0.0, 0)
        if form is None:
            await self._store.note_ahead(ref, ReadAheadPlace(place=SKIPPED))
        while form is not None:
            if await self._callbacks.is_busy():
                return False
            if await self._is_over_limit(record):
                return True
            more: float | None = None
            if tries < TRIES:
                await self._store.note_ahead(ref, _place(form, place, tries + 1))
                try:
                    more = await self._piece(record, blob, form, place)
                except GaveWay:
                    await self._store.note_ahead(ref, _place(form, place, tries))
                    return False
                except _OverLimit:
                    await self._store.note_ahead(ref, ReadAheadPlace(place=SKIPPED))
                    return True
            form, place, tries = (form, more, 0) if more is not None else (_after(forms, form), 0.0, 0)
            await self._store.note_ahead(ref, _place(form, place, tries) if form else ReadAheadPlace(place=DONE))
        return True

    async def _is_over_limit(self, record: RefRecord) -> bool:
        channel = record.conversation.whole_channel
        if await self._store.pieces_ahead(channel, self._clock.now() - DAY) < PIECES_A_DAY:
            return False
        await self._store.note_ahead(record.ref.id, ReadAheadPlace(place=SKIPPED))
        return True

    async def _piece(self, record: RefRecord, blob: Blob, form: ReadingForm, place: float) -> float | None:
        """Read one piece; where to go on, or None at the end."""
        channel, ref = record.conversation.whole_channel, record.ref.id
        sender = await self._store.sender_of(channel, ref)
        known = blob.sha256 in await self._store.read_before([blob.sha256])
        begun = self._clock.monotonic()
        try:
            read = await self._understanding().read_ahead(record, blob, form, place, sender)
        except (MediaError, ProviderError) as error:
            if OVER_LIMIT in str(error):
                raise _OverLimit from error
            await self._tell(record, "not read", f"{form}: {reason_of(error)}")
            return None
        except (GaveWay, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - an error in one file must not end the reading of others
            log.error("%s is not read ahead: %s", ref, place_of(error))
            await self._tell(record, "not read", f"{form}: {type(error).__name__}")
            return None
        if read.provider == OWN_READER and not known:
            await self._store.note_attempts([_own_attempt(record, blob, read, self._clock, begun)])
        if read.next is None:
            await self._tell(record, "read" if read.text.strip() else "not read", f"{form} by {read.provider}")
        return read.next

    async def _tell(self, record: RefRecord, outcome: str, reason: str) -> None:
        at = self._clock.now()
        step = Step(at=at, stage=Stage.READING, outcome=outcome, reason=f"ahead: {reason}", subject=record.ref.id)
        await self._callbacks.told(record, step)


def _own_attempt(record: RefRecord, blob: Blob, read: ItemReading, clock: Clock, begun: float) -> AttemptRecord:
    """The record of a document whose own text was read."""
    has_text = bool(read.text.strip())
    attempt = Attempt(
        provider=OWN_READER,
        model="",
        outcome=ReadingOutcome.SUCCESS if has_text else ReadingOutcome.SKIPPED,
        reason="" if has_text else read.document.reason or str(read.document.unread or ""),
        milliseconds=round((clock.monotonic() - begun) * 1000),
        usd=0.0,
    )
    return AttemptRecord(
        ref=record.ref.id,
        sha256=blob.sha256,
        channel=record.conversation.whole_channel,
        at=clock.now(),
        form=read.form,
        attempt=attempt,
        ahead=True,
    )


def _place(form: ReadingForm, place: float, tries: int) -> ReadAheadPlace:
    return ReadAheadPlace(place=f"{form}@{place:g}", tries=tries)


def _parsed(known: ReadAheadPlace) -> tuple[ReadingForm, float, int]:
    form, _, place = known.place.partition("@")
    return ReadingForm(form), float(place), known.tries


def _after(forms: tuple[ReadingForm, ...], form: ReadingForm) -> ReadingForm | None:
    later = forms[forms.index(form) + 1 :] if form in forms else ()
    return later[0] if later else None
