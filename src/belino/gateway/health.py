"""Health of accounts: what works, derived from listening, arrivals and sends, and from what adapters report."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from belino.delivery.connections import Account
from belino.domain.errors import AdapterError, MarkupRefused, RateLimited, Unauthorized, Undeliverable, reason_of
from belino.domain.ports import Clock

SENDING = "sending"
"""The part that the gateway itself reports, from the results of sends."""
FAILED_SENDS = 3
"""Consecutive sends that fail for another reason than our credentials, until the account counts as impaired."""
PROVED_SECONDS = 10.0
"""An account that fails again this soon after it came back has not worked in between."""

AccountState = Literal["starting", "running", "impaired", "restarting", "unauthorized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterHealth:
    """The state of an account: `running` if everything works, `impaired` if only a part does."""

    state: AccountState
    since: datetime
    """Since when it works, or does not."""
    reason: str = ""
    """What does not work and why; of an account that works, what else there is to know, such as what was left out."""
    restarts: int = 0
    heard: datetime | None = None
    """When the platform last reported something."""
    sent: datetime | None = None
    """When the platform last accepted something."""
    can_take_over: bool = False
    """Whether its events go to another program, from which the operator may take over."""
    can_link: bool = False
    """Whether it works as a linked device, which the owner may link."""

    @property
    def works(self) -> bool:
        """Whether nothing is known to be wrong; an account that is still connecting counts."""
        return self.state == "running" or (self.state == "starting" and not self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    reason: str
    is_refusal: bool
    is_note: bool = False


@dataclass(slots=True, kw_only=True)
class _Record:
    """What is known of one account."""

    listening: AdapterHealth
    troubles: dict[str, _Trouble] = field(default_factory=dict)
    """By the part that does not work."""
    failures: int = 0
    heard: datetime | None = None
    sent: datetime | None = None
    down_since: datetime | None = None
    up_since: datetime

    def health(self) -> AdapterHealth:
        listening, troubles = self.listening, tuple(self.troubles.values())
        state, reason = listening.state, listening.reason
        if troubles and state in ("running", "impaired"):
            refused = any(trouble.is_refusal for trouble in troubles)
            works = state == "running" and all(trouble.is_note for trouble in troubles)
            state = "unauthorized" if refused else "running" if works else "impaired"
            reason = "; ".join(dict.fromkeys(told for told in (reason, *(each.reason for each in troubles)) if told))
        now = replace(listening, state=state, reason=reason, heard=self.heard, sent=self.sent)
        return now if self.down_since is None or now.works else replace(now, since=self.down_since)


class HealthBoard:
    """The health of every account. A success of any call counts, a failure only where something is tried again."""

    def __init__(self, clock: Clock, *, works: Callable[[Account], None], changed: Callable[[Account], None]) -> None:
        """`works` is called with each success on an account, `changed` when its health changes."""
        self._clock = clock
        self._works = works
        self._changed = changed
        self._records: dict[Account, _Record] = {}
        self.news = asyncio.Event()
        """Set whenever the health of an account changes."""

    def add(self, account: Account) -> None:
        """Begin with an account that is about to connect."""
        now = self._clock.now()
        self._records[account] = _Record(listening=AdapterHealth(state="starting", since=now), up_since=now)
        self._tell(account)

    def remove(self, account: Account) -> None:
        """Forget an account that is no longer configured."""
        if self._records.pop(account, None) is not None:
            self._tell(account)

    def all(self) -> Mapping[Account, AdapterHealth]:
        """The health of every account."""
        return {account: record.health() for account, record in self._records.items()}

    def listening(self, account: Account, health: AdapterHealth) -> None:
        """Note what supervision reports. What an adapter reported before it connects is out of date."""

        def change(record: _Record) -> None:
            record.listening = health
            if health.state == "starting":
                record.troubles = {part: each for part, each in record.troubles.items() if part == SENDING}

        self._change(account, change)

    def report(
        self, account: Account, part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False
    ) -> None:
        """Note that a part of an account does not work, or without a problem that it does."""
        record = self._records.get(account)
        if record is None:
            return
        if problem:
            trouble = _Trouble(reason=problem, is_refusal=is_refusal, is_note=is_note)
            if record.troubles.get(part) != trouble:
                self._change(account, lambda record: record.troubles.update({part: trouble}))
            return
        if part in record.troubles:
            self._change(account, lambda record: record.troubles.pop(part))
        self._works(account)

    def heard(self, account: Account) -> None:
        """Note that the platform reported something."""
        if (record := self._records.get(account)) is not None:
            record.heard = self._clock.now()
            self._works(account)

    def attempted(self, account: Account, error: Exception | None) -> None:
        """Note the result of a send. A refusal of this parcel, or of its pace, says nothing about the account."""
        record = self._records.get(account)
        if record is None or isinstance(error, RateLimited):
            return
        if error is None or isinstance(error, Undeliverable | MarkupRefused):
            record.failures = 0
            record.sent = self._clock.now() if error is None else record.sent
            self.report(account, SENDING)
        elif isinstance(error, Unauthorized):
            self.report(account, SENDING, f"sending: {reason_of(error)}", is_refusal=True)
        else:
            record.failures += 1
            if record.failures >= FAILED_SENDS:
                kind = (
                    reason_of(error) if isinstance(error, AdapterError) else f"the adapter fails ({reason_of(error)})"
                )
                self.report(account, SENDING, f"sending: {kind}")

    def _change(self, account: Account, change: Callable[[_Record], object]) -> None:
        record = self._records.get(account)
        if record is None:
            return
        before = record.health()
        change(record)
        after, now = record.health(), self._clock.now()
        if before.works and not after.works:
            proved = record.down_since is None or (now - record.up_since).total_seconds() >= PROVED_SECONDS
            record.down_since = now if proved else record.down_since
        elif after.works and not before.works:
            record.up_since = now
        if (before.state, before.reason) != (after.state, after.reason):
            self._tell(account)

    def _tell(self, account: Account) -> None:
        self.news.set()
        self._changed(account)
