"""Connections of accounts: which may send, which wait for their platform, and when a refused one is tried again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from belino.aio.retry import RECHECK_SECONDS, recheck_after
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock

Account = tuple[str, str]
"""Platform and account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingBlocked:
    """Why a conversation may not send now."""

    reason: str
    """Empty while the account is still connecting."""
    seconds: float | None = None
    """When it is to ask again; None if it is woken instead."""


@dataclass(slots=True, kw_only=True)
class _Refusal:
    """The platform refuses our credentials: one conversation tries again, the others wait for it."""

    reason: str
    times: int
    at: float
    """When the platform refused last, on the monotonic clock."""
    prober: ConversationKey
    helped: bool = False
    """Whether another call of the account succeeded since."""

    @property
    def until(self) -> float:
        return self.at + recheck_after(self.times - self.helped)


class ConnectedAccounts:
    """The connection state of every account: down until it is reported up.

    An account whose credentials a send was refused with is tried again by one conversation, at growing intervals; any
    success on the account shortens the wait.
    """

    def __init__(self, accounts: Iterable[Account], wake: Callable[[ConversationKey], None], clock: Clock) -> None:
        self._down: dict[Account, str] = dict.fromkeys(accounts, "")
        self._waiting: dict[Account, dict[ConversationKey, None]] = {}
        """Conversations that may not send; woken when that changes."""
        self._refusals: dict[Account, _Refusal] = {}
        self._wake = wake
        self._clock = clock

    def up(self, account: Account) -> None:
        """Mark an account as connected, and wake the conversations that wait for it."""
        if self._down.pop(account, None) is not None:
            self._refusals.pop(account, None)
            self._wake_all(account)

    def down(self, account: Account, reason: str = "") -> None:
        """Mark an account as not connected. An empty reason means that it is still connecting."""
        before = self._down.get(account)
        self._down[account] = reason or before or ""
        if reason and reason != before:
            self._wake_all(account)

    def forget(self, account: Account) -> None:
        """Drop an account that is no longer configured; its conversations learn it when they are woken."""
        self._down.pop(account, None)
        self._refusals.pop(account, None)
        self._wake_all(account)

    def refused(self, conversation: ConversationKey, reason: str) -> float:
        """A send was refused with our credentials: this conversation tries again, after the seconds returned."""
        account, now = _account(conversation), self._clock.monotonic()
        refusal = self._refusals.get(account)
        if refusal is None or refusal.prober == conversation:  # any other was sent before the account was blocked
            times = 1 if refusal is None else min(refusal.times + 1, len(RECHECK_SECONDS))
            refusal = self._refusals[account] = _Refusal(reason=reason, times=times, at=now, prober=conversation)
        return max(refusal.until - now, 0.0)

    def accepted(self, account: Account) -> None:
        """A send was accepted: the account is free."""
        if (refusal := self._refusals.pop(account, None)) is not None:
            self._wake(refusal.prober)
            self._wake_all(account)

    def succeeded(self, account: Account) -> None:
        """Another call of the account succeeded: the next attempt is made one step earlier, the first one at once."""
        refusal = self._refusals.get(account)
        if refusal is not None and not refusal.helped:
            refusal.helped = True
            self._wake(refusal.prober)

    def why_not(self, conversation: ConversationKey) -> SendingBlocked | None:
        """Why nothing may be sent to a conversation now; None if it may. If not, it is woken when that changes."""
        account = _account(conversation)
        if (why := self._down.get(account)) is not None:
            self._waiting.setdefault(account, {})[conversation] = None
            return SendingBlocked(reason=why)
        if (refusal := self._refusals.get(account)) is None:
            return None
        if refusal.prober != conversation:
            self._waiting.setdefault(account, {})[conversation] = None
            return SendingBlocked(reason=refusal.reason)
        left = refusal.until - self._clock.monotonic()
        return SendingBlocked(reason=refusal.reason, seconds=left) if left > 0 else None

    def passed(self, conversation: ConversationKey) -> None:
        """A conversation has nothing to send: if the account waits for its attempt, another one makes it."""
        account = _account(conversation)
        refusal = self._refusals.get(account)
        if refusal is None or refusal.prober != conversation:
            return
        waiting = self._waiting.get(account, {})
        if not waiting:
            del self._refusals[account]  # the next parcel finds out
            return
        refusal.prober = next(iter(waiting))
        del waiting[refusal.prober]
        self._wake(refusal.prober)

    def _wake_all(self, account: Account) -> None:
        for conversation in self._waiting.pop(account, ()):
            self._wake(conversation)


def _account(conversation: ConversationKey) -> Account:
    return conversation.platform, conversation.account
