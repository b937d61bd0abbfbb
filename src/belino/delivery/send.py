"""The outbox on its way: each conversation's parcels in order, claimed, sent, confirmed, or ended with a reason."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from belino.delivery.deadline import deadline
from belino.delivery.insist import Insistence
from belino.delivery.lanes import Lanes
from belino.delivery.reasons import place_of, reason_of
from belino.domain.errors import AdapterError, RateLimited, StoreError, Unauthorized, Undeliverable
from belino.domain.limits import Once
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import Stage, Step
from belino.domain.ports import Adapter, Clock, ReadsBack
from belino.domain.record import Ready, StoredMessage
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.store import Outbox
from belino.net.pace import backoff

log = logging.getLogger(__name__)

TRIES = 6
SEND_SECONDS = 60.0
WIDTH = 64
"""Conversations that may be sending at once: enough that some hung platform calls do not stop the others."""
STORE_RETRY_SECONDS = 5.0
NO_ADAPTER_SECONDS = 300.0
UNAUTHORIZED_SECONDS = 300.0
NOTED_DELAYS = 12
"""A platform that is down for a week is not told of a thousand times."""
# A platform that is down for a minute must not cost an answer: six tries wait up to two and a half minutes in all.
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelNews:
    """A parcel's new state, for whoever watches."""

    key: str
    conversation: ConversationKey
    state: ParcelState
    reason: str = ""


class Sender:
    """Sends what the outbox holds. One conversation's slowness never delays another."""

    def __init__(
        self,
        outbox: Outbox,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        author: Callable[[ConversationKey], Author],
        clock: Clock,
        rng: Random,
        insist: Insistence,
        notes: Callable[[str, Step], Awaitable[None]],
        on_parcel: Callable[[ParcelNews], None],
        on_message: Callable[[StoredMessage], None],
    ) -> None:
        self._outbox = outbox
        self._adapters = adapters
        self._author = author
        self._clock = clock
        self._rng = rng
        self._insist = insist
        self._notes = notes
        self._on_parcel = on_parcel
        self._on_message = on_message
        self._adrift: set[str] = set()
        """Parcels that may have arrived although no receipt came."""
        self._failures: dict[str, int] = {}
        self._delays: dict[str, int] = {}
        self._lanes = Lanes(self._step, width=WIDTH, clock=clock)
        self.wake = self._lanes.wake
        self.stop = self._lanes.stop

    async def run(self) -> None:
        """Send until stopped, beginning with what an earlier run left behind."""
        left = await self._insist("outbox", lambda: self._outbox.parcels(state=ParcelState.SENDING, limit=10_000))
        self._adrift.update(record.key for record in left)
        await self._lanes.run(await self._insist("outbox", self._outbox.ready_parcels))

    async def _step(self, conversation: ConversationKey) -> datetime | None:
        try:
            claimed = await self._outbox.claim_parcel(conversation, self._clock.now())
            if claimed is None:
                return None
            if isinstance(claimed, Ready):
                return claimed.at
            await self._deliver(claimed.parcel)
            return self._clock.now()
        except Exception as error:  # noqa: BLE001 - one conversation's trouble must not end the others'
            log.error("sending in %s failed: %s", conversation, place_of(error))
            return self._in(STORE_RETRY_SECONDS)

    async def _deliver(self, parcel: Parcel) -> None:
        adapter = self._adapters.get((parcel.conversation.platform, parcel.conversation.account))
        if adapter is None:
            await self._delay(parcel, NO_ADAPTER_SECONDS, "no adapter for this account is configured")
            return
        self._tell(parcel, ParcelState.SENDING)
        try:
            receipt = await self._receipt(adapter, parcel)
        except RateLimited as error:
            await self._delay(parcel, error.retry_after, reason_of(error))
        except Unauthorized as error:
            # The operator must act first; an answer is not lost because a token ran out.
            await self._delay(parcel, UNAUTHORIZED_SECONDS, reason_of(error))
        except Undeliverable as error:
            await self._end(parcel, ParcelState.DEAD, reason_of(error))
        except TimeoutError:
            await self._no_answer(adapter, parcel)
        except Exception as error:  # noqa: BLE001 - a broken adapter fails its parcel, not the sender
            if not isinstance(error, AdapterError):
                log.error("parcel %s: the adapter broke with %s", parcel.key, place_of(error))
            await self._try_again(parcel, reason_of(error))
        else:
            if receipt is not None:
                await self._confirm(parcel, receipt)

    async def _receipt(self, adapter: Adapter, parcel: Parcel) -> Receipt | None:
        """What the platform says; None if the parcel's fate is uncertain and it must not be offered again."""
        if parcel.key in self._adrift and adapter.limits.once is not Once.KEY:
            if not isinstance(adapter, ReadsBack):
                await self._end(parcel, ParcelState.UNCERTAIN, "belino stopped while sending; it may have arrived")
                return None
            async with deadline(self._clock, SEND_SECONDS):
                found = await adapter.find_sent(parcel)
            if found is not None:
                return found
        async with deadline(self._clock, SEND_SECONDS):
            return await adapter.send(parcel)

    async def _no_answer(self, adapter: Adapter, parcel: Parcel) -> None:
        reason = f"the platform did not answer within {SEND_SECONDS:g} seconds"
        if adapter.limits.once is Once.UNCERTAIN:
            await self._end(parcel, ParcelState.UNCERTAIN, f"{reason}; it may have arrived")
            return
        self._adrift.add(parcel.key)
        await self._try_again(parcel, reason)

    async def _try_again(self, parcel: Parcel, reason: str) -> None:
        # Counted here and not by claims: a parcel that was only asked to wait has not been refused.
        failures = self._failures[parcel.key] = self._failures.get(parcel.key, 0) + 1
        if failures >= TRIES:
            await self._end(parcel, ParcelState.DEAD, f"{reason} (given up after {failures} tries)")
            return
        await self._delay(parcel, backoff(failures, first=FIRST_WAIT, most=LONGEST_WAIT, rng=self._rng), reason)

    async def _delay(self, parcel: Parcel, seconds: float, reason: str) -> None:
        ready = self._in(seconds)
        await self._insist(parcel.key, lambda: self._outbox.delay_parcel(parcel.key, ready, reason))
        delays = self._delays[parcel.key] = self._delays.get(parcel.key, 0) + 1
        if delays <= NOTED_DELAYS:
            await self._note(parcel, f"{reason}; again after {seconds:.1f} s")
        self._tell(parcel, ParcelState.READY, reason)

    async def _end(self, parcel: Parcel, state: ParcelState, reason: str) -> None:
        await self._insist(parcel.key, lambda: self._outbox.end_parcel(parcel.key, state, reason))
        log.warning("parcel %s (trace %s) is %s", parcel.key, parcel.trace, state)
        self._forget(parcel)
        self._tell(parcel, state, reason)

    async def _confirm(self, parcel: Parcel, receipt: Receipt) -> None:
        self._adrift.add(parcel.key)  # until the receipt is on disk
        author = self._author(parcel.conversation)
        said = await self._insist(parcel.key, lambda: self._outbox.confirm_parcel(parcel.key, receipt, author))
        log.info("parcel %s (trace %s) is sent", parcel.key, parcel.trace)
        self._forget(parcel)
        if said is not None:
            self._on_message(said)
        self._tell(parcel, ParcelState.SENT)

    async def _note(self, parcel: Parcel, reason: str) -> None:
        """The store keeps a parcel's last reason; the story tells the earlier ones too."""
        step = Step(at=self._clock.now(), stage=Stage.DELIVERY, outcome="delayed", reason=reason, subject=parcel.key)
        with suppress(StoreError):
            await self._notes(parcel.trace, step)

    def _forget(self, parcel: Parcel) -> None:
        self._adrift.discard(parcel.key)
        self._failures.pop(parcel.key, None)
        self._delays.pop(parcel.key, None)

    def _tell(self, parcel: Parcel, state: ParcelState, reason: str = "") -> None:
        self._on_parcel(ParcelNews(key=parcel.key, conversation=parcel.conversation, state=state, reason=reason))

    def _in(self, seconds: float) -> datetime:
        return self._clock.now() + timedelta(seconds=seconds)
