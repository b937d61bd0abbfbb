"""Send the outbox: each conversation's parcels in order, claimed, sent, confirmed, or ended with a reason."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from random import Random
from typing import Literal

from belino.aio.keyed_workers import KeyedWorkers
from belino.aio.retry import Retry, backoff
from belino.delivery.attempt import (
    TooLate,
    Uncertain,
    apart,
    call,
    difference,
    in_parent,
    is_repeatable,
    notices_of,
    size_of,
    was_unkeyed,
    without,
)
from belino.delivery.connections import Account, ConnectedAccounts
from belino.delivery.typing import SignMode
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    NothingToEdit,
    PlaceClosed,
    RateLimited,
    StoreError,
    TogetherRefused,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
    WindowClosed,
    Withheld,
    place_of,
    reason_of,
)
from belino.domain.failpoints import failpoint
from belino.domain.limits import Once
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import Stage, Step
from belino.domain.ports import Adapter, Clock, ReadsBack
from belino.domain.reply import Doubt, Parcel, ParcelKind, ParcelState, Receipt, lease_seconds
from belino.domain.stored import ClaimedParcel, Ready, StoredMessage
from belino.net.clock import SteadyClock
from belino.storage.outbox import OutboxVerbs

log = logging.getLogger(__name__)

INLINE_CODE_LINES = 60
TRIES = 6
WIDTH = 64
"""Conversations that may send at once: enough that some hung platform calls do not stop the others."""
STORE_RETRY_SECONDS = 5.0
NO_ADAPTER_SECONDS = 300.0
NOTED_DELAYS = 12
"""The most delays that are noted, so that a platform that is down for a week does not leave a thousand notes."""
# A platform that is down for a minute must not lose an answer: six attempts wait up to two and a half minutes in all.
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0
PATIENCE_GROWS, MOST_PATIENCE = 0.05, 5.0
RESOLUTION = 1e-6
"""Seconds: the precision of times in the store."""
PERHAPS_TWICE = "an earlier try may have arrived too"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """How answers are announced, and handled if they may have arrived or are late."""

    sign: SignMode = field(
        default="auto",
        metadata={
            "says": "How people see that an answer is on its way: `auto` shows typing, or a reaction where typing "
            "cannot be shown; `typing` and `reaction` show that alone, and `off` nothing. ⏳ on a message that waits "
            "is a reaction too."
        },
    )
    uncertain: Literal["hold", "resend"] = field(
        default="hold",
        metadata={
            "says": "What to do with an answer that may have arrived, if the platform cannot confirm it: "
            "`hold` waits for you, `resend` sends it once more and notes that it may appear twice."
        },
    )
    hold_minutes: int = field(
        default=15,
        metadata={
            "says": "Answers that are older than this when belino starts are not sent until you ask for them.",
            "least": 1,
            "most": 525_600,
        },
    )
    inline_code_lines: int = field(
        default=INLINE_CODE_LINES,
        metadata={
            "says": "A code block or table with more lines is sent as a file, with its first lines in the message; "
            "0 keeps all of them in messages.",
            "least": 0,
            "most": 10_000,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelNews:
    """A parcel's new state, for subscribers."""

    key: str
    conversation: ConversationKey
    state: ParcelState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderCallbacks:
    """The calls that the sender makes to the gateway."""

    author: Callable[[ConversationKey], Author]
    """The author of our messages in a conversation."""
    may_still: Callable[[ClaimedParcel], Awaitable[str]]
    """Why a parcel may no longer be sent; empty if it may."""
    note: Callable[[str, Step], Awaitable[None]]
    """With a trace and a step of the delivery, for `explain`."""
    parcel: Callable[[ParcelNews], None]
    """With every new state of a parcel."""
    message: Callable[[StoredMessage], None]
    """With every message that a sent parcel became."""
    attempted: Callable[[Account, Exception | None], None] = lambda _account, _error: None
    """With every call of a platform: None if it was successful, else its error."""
    timed: Callable[[], None] = lambda: None
    """When a message with a timer was sent."""


class Sender:
    """Sends the parcels in the outbox. A slow conversation never delays another."""

    def __init__(
        self,
        outbox: OutboxVerbs,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        config: DeliveryConfig,
        callbacks: SenderCallbacks,
        clock: Clock,
        rng: Random,
        insist: Retry,
    ) -> None:
        self._outbox = outbox
        self._adapters = adapters
        self._config = config
        self._callbacks = callbacks
        self._clock = clock
        self._rng = rng
        self._insist = insist
        self._owner = secrets.token_hex(8)
        self._patience: dict[ConversationKey, float] = {}
        """The end of a wait that a platform asked for, on the monotonic clock: wall-clock jumps must not shorten it."""
        self._steady = SteadyClock(clock)
        """The clock for delays: if the wall clock is set back, parcels must not wait for the difference."""
        self._lanes = KeyedWorkers(self._step, width=WIDTH, clock=self._steady)
        self.wake = self._lanes.wake
        self.stop = self._lanes.stop
        self.lines = ConnectedAccounts(adapters, self.wake, clock)
        """Which accounts may send: before that, nothing is claimed and no attempt is used up."""

    def reconfigure(self, config: DeliveryConfig) -> None:
        """Use other settings from now on."""
        self._config = config

    async def run(self) -> None:
        """Send until stopped, starting with parcels of an earlier run that are not too old."""
        minutes = self._config.hold_minutes
        before = self._clock.now() - timedelta(minutes=minutes)
        held = f"it had waited for more than {minutes} minutes when belino started"
        uncertain = f"belino stopped while sending it, more than {minutes} minutes ago; it may have arrived"
        count = await self._insist(
            "outbox", lambda: self._outbox.recover_parcels(before, held=held, uncertain=uncertain)
        )
        if count:
            log.warning("%d parcels are older than %d minutes and wait for a person", count, minutes)
        await self._lanes.run(await self._insist("outbox", self._outbox.ready_parcels))

    async def _step(self, conversation: ConversationKey) -> datetime | None:
        left = self._patience.get(conversation, 0.0) - self._clock.monotonic()
        if left >= RESOLUTION:
            return self._in(left)
        self._patience.pop(conversation, None)
        begun = self._clock.monotonic()
        try:
            if (blocked := self.lines.why_not(conversation)) is not None:
                await self._keep_waiting(conversation, blocked.reason)
                return None if blocked.seconds is None else self._in(blocked.seconds)
            failpoint("parcel.claim.before")
            claimed = await self._outbox.claim_parcel(conversation, self._steady.now(), owner=self._owner)
            if claimed is None:
                self.lines.passed(conversation)
                return None
            if isinstance(claimed, Ready):
                return claimed.at
            failpoint("parcel.claim.after")
            await self._deliver(claimed, until=begun + lease_seconds(size_of(claimed.parcel)))
            return self._steady.now()
        except Exception as error:  # noqa: BLE001 - an error in one conversation must not stop the others
            log.error("sending in %s failed: %s", conversation, place_of(error))
            return self._in(STORE_RETRY_SECONDS)

    async def _keep_waiting(self, conversation: ConversationKey, why: str) -> None:
        for key in await self._outbox.keep_waiting(conversation, why) if why else ():
            self._callbacks.parcel(ParcelNews(key=key, conversation=conversation, state=ParcelState.READY, reason=why))

    async def _deliver(self, claimed: ClaimedParcel, *, until: float) -> None:
        parcel = claimed.parcel
        adapter = self._adapters.get((parcel.conversation.platform, parcel.conversation.account))
        if adapter is None:
            await self._delay(claimed, NO_ADAPTER_SECONDS, "no adapter for this account is configured")
        elif claimed.failures >= TRIES:
            reason = f"belino stopped {claimed.failures} times while sending it; it may have arrived"
            await self._end(claimed, ParcelState.UNCERTAIN, reason)
        elif why := await self._callbacks.may_still(claimed):
            await self._end(claimed, ParcelState.HELD, why)
        else:
            self._tell(parcel, ParcelState.SENDING)
            await self._call(adapter, claimed, until)

    async def _call(self, adapter: Adapter, claimed: ClaimedParcel, until: float) -> None:
        account = (claimed.parcel.conversation.platform, claimed.parcel.conversation.account)
        try:
            receipt = await call(
                adapter,
                claimed,
                until=until,
                resend=self._config.uncertain == "resend",
                clock=self._clock,
                plainly=lambda: self._note(claimed.parcel, "sent simpler", "the platform cannot read its format"),
            )
        except Exception as error:  # noqa: BLE001 - a broken adapter fails its parcel, not the sender
            if isinstance(error, RateLimited | Undeliverable):
                self.lines.accepted(account)  # the platform refuses the parcel or its pace, not our credentials
            self._callbacks.attempted(account, error)
            await self._failed(adapter, claimed, error)
        else:
            self.lines.accepted(account)
            self._callbacks.attempted(account, None)
            await self._confirm(adapter, claimed, receipt)

    async def _failed(self, adapter: Adapter, claimed: ClaimedParcel, error: Exception) -> None:
        reason = reason_of(error)
        match error:
            case RateLimited():
                await self._be_patient(claimed, error.retry_after, reason)
            case Unauthorized():
                # The operator may have to act first; an expired token must not lose an answer.
                wait = self.lines.refused(claimed.parcel.conversation, reason)
                await self._delay(claimed, 0, reason, again=wait)
            case TooLate():
                await self._delay(claimed, 0, reason)
            case Withheld():
                await self._end(claimed, ParcelState.HELD, reason, error=error)
            case Undeliverable():
                await self._refused(adapter, claimed, error, reason)
            case Uncertain():
                await self._end(claimed, ParcelState.UNCERTAIN, reason)
            case Unreached() | AddressRefused():
                await self._try_again(claimed, reason, claimed.doubt)
            case AdapterError() if not isinstance(error, Unanswered):
                await self._try_again(claimed, reason, max(claimed.doubt, Doubt.FAILED))
            case _:
                if not isinstance(error, AdapterError):
                    log.error("parcel %s: the adapter broke with %s", claimed.parcel.key, place_of(error))
                await self._unanswered(adapter, claimed, reason)

    async def _refused(self, adapter: Adapter, claimed: ClaimedParcel, error: Undeliverable, reason: str) -> None:
        """Handle a permanent refusal of this form; text and files may still be sent in another."""
        in_thread = claimed.parcel.conversation.thread is not None
        match error:
            case NothingToEdit():
                await self._send_as_new(claimed, reason)
            case TogetherRefused() if len(claimed.parcel.files) > 1:
                await self._take_apart(claimed, reason, error.culprit)
            case PlaceClosed() if in_thread and claimed.parcel.kind is not ParcelKind.DRAFT:
                await self._send_in_parent(adapter, claimed, error)
            case _:
                await self._end(claimed, ParcelState.DEAD, reason)

    async def _unanswered(self, adapter: Adapter, claimed: ClaimedParcel, reason: str) -> None:
        """Handle a missing or unreadable answer: the parcel may have arrived."""
        doubt = claimed.doubt.unanswered()
        tells = is_repeatable(adapter, claimed.parcel) or isinstance(adapter, ReadsBack)
        if tells or (self._config.uncertain == "resend" and doubt < Doubt.AGAIN):
            await self._try_again(claimed, reason, doubt)
        else:
            await self._end(claimed, ParcelState.UNCERTAIN, f"{reason}; it may have arrived", doubt)

    async def _send_as_new(self, claimed: ClaimedParcel, reason: str) -> None:
        """Send a failed edit as a new message; stored first, because a message, unlike an edit, can appear twice."""
        key, fence = claimed.parcel.key, claimed.fence
        await self._insist(key, lambda: self._outbox.send_as_new(key, reason, fence=fence))
        await self._note(claimed.parcel, "sent as a new message", reason)
        self._tell(claimed.parcel, ParcelState.READY, reason)

    async def _send_in_parent(self, adapter: Adapter, claimed: ClaimedParcel, error: PlaceClosed) -> None:
        """Send what waits for a closed thread to its channel, with one line that says so."""
        parcel, fence, reason = claimed.parcel, claimed.fence, reason_of(error)
        first, *notices = in_parent(parcel, adapter.limits, error)
        moved = await self._insist(parcel.key, lambda: self._outbox.send_in_parent(first, notices, reason, fence=fence))
        for key in moved:
            there = replace(first, key=key)
            await self._note(there, "sent to the channel", reason)
            self._tell(there, ParcelState.READY, reason)
        self.wake(first.conversation)

    async def _take_apart(self, claimed: ClaimedParcel, reason: str, culprit: int | None) -> None:
        """Send the refused file, or each if it is not known, separately, so that it does not stop the others."""
        parcel, fence = claimed.parcel, claimed.fence
        parts = apart(parcel) if culprit is None else without(parcel, culprit)
        await self._insist(parcel.key, lambda: self._outbox.take_apart(parcel.key, parts, reason, fence=fence))
        await self._note(parcel, "taken apart", reason)
        self._tell(parcel, ParcelState.READY, reason)

    async def _try_again(self, claimed: ClaimedParcel, reason: str, doubt: Doubt) -> None:
        failures = claimed.failures + 1
        if failures >= TRIES:
            state = ParcelState.UNCERTAIN if doubt >= Doubt.UNANSWERED else ParcelState.DEAD
            await self._end(claimed, state, f"{reason} (given up after {failures} tries)", doubt)
            return
        wait = backoff(failures, first=FIRST_WAIT, most=LONGEST_WAIT, rng=self._rng)
        await self._delay(claimed, wait, reason, failed=True, doubt=doubt)

    async def _be_patient(self, claimed: ClaimedParcel, seconds: float, reason: str) -> None:
        # A platform that repeatedly asks for a very short wait must not cause endless calls.
        seconds = max(seconds, min(PATIENCE_GROWS * (claimed.attempt - 1), MOST_PATIENCE))
        self._patience[claimed.parcel.conversation] = self._clock.monotonic() + seconds
        await self._delay(claimed, seconds, reason, patience=True)

    async def _delay(
        self,
        claimed: ClaimedParcel,
        seconds: float,
        reason: str,
        *,
        failed: bool = False,
        doubt: Doubt | None = None,
        patience: bool = False,
        again: float | None = None,
    ) -> None:
        """Put a parcel back; `again` is when it is tried again, if its account's connection decides that."""
        key, fence, ready, failed_at = claimed.parcel.key, claimed.fence, self._in(seconds), self._clock.now()
        failpoint("parcel.delay.before")
        await self._insist(
            key,
            lambda: self._outbox.delay_parcel(
                key, ready, reason, fence=fence, failed=failed, doubt=doubt, patience=patience
            ),
        )
        failpoint("parcel.delay.after")
        if claimed.attempt <= NOTED_DELAYS:
            wait = seconds if again is None else again
            await self._note(claimed.parcel, "delayed", f"{reason}; again after {wait:.1f} s", at=failed_at)
        self._tell(claimed.parcel, ParcelState.READY, reason)

    async def _end(
        self,
        claimed: ClaimedParcel,
        state: ParcelState,
        reason: str,
        doubt: Doubt | None = None,
        *,
        error: Exception | None = None,
    ) -> None:
        parcel = claimed.parcel
        notices = notices_of(parcel, reason) if state is ParcelState.DEAD and parcel.files else ()
        is_closed = isinstance(error, WindowClosed)
        failpoint("parcel.end.before")
        await self._insist(
            parcel.key,
            lambda: self._outbox.end_parcel(
                parcel.key, state, reason, fence=claimed.fence, doubt=doubt, notices=notices, window_closed=is_closed
            ),
        )
        failpoint("parcel.end.after")
        log.warning("parcel %s (trace %s) is %s", parcel.key, parcel.trace, state)
        self._tell(parcel, state, reason)

    async def _confirm(self, adapter: Adapter, claimed: ClaimedParcel, receipt: Receipt) -> None:
        parcel = claimed.parcel
        if differs := difference(parcel, receipt):
            await self._note(parcel, "differs", differs)
        fewer = differs if receipt.stored is not None and len(receipt.stored) < len(parcel.files) else ""
        unsure = adapter.limits.once is Once.UNCERTAIN or was_unkeyed(adapter, parcel)
        doubtful = unsure and not is_repeatable(adapter, parcel)
        flagged = claimed.doubt is not Doubt.NONE and doubtful
        reason = "; ".join(told for told in (fewer, PERHAPS_TWICE if flagged else "") if told)
        author = self._callbacks.author(parcel.conversation)
        failpoint("parcel.confirm.before")
        said = await self._insist(
            parcel.key, lambda: self._outbox.confirm_parcel(parcel.key, receipt, author, reason=reason)
        )
        failpoint("parcel.confirm.after")
        log.info("parcel %s (trace %s) is sent", parcel.key, parcel.trace)
        if said is not None:
            self._callbacks.message(said)
        if receipt.expires is not None:
            self._callbacks.timed()
        self._tell(parcel, ParcelState.SENT, reason)

    async def _note(self, parcel: Parcel, outcome: str, reason: str, *, at: datetime | None = None) -> None:
        """Record a step: the store keeps only a parcel's last reason, `explain` shows the earlier ones too."""
        step = Step(
            at=at or self._clock.now(), stage=Stage.DELIVERY, outcome=outcome, reason=reason, subject=parcel.key
        )
        with suppress(StoreError):
            await self._callbacks.note(parcel.trace, step)

    def _tell(self, parcel: Parcel, state: ParcelState, reason: str = "") -> None:
        self._callbacks.parcel(ParcelNews(key=parcel.key, conversation=parcel.conversation, state=state, reason=reason))

    def _in(self, seconds: float) -> datetime:
        # Rounded up, so that the call is not a microsecond early; less than a nanosecond is an error of the floats.
        return self._steady.now() + timedelta(microseconds=ceil(round(seconds * 1_000_000, 3)))
