"""Connections: which accounts can send; parcels of an account that is not connected wait, with the reason."""

from collections.abc import Callable, Iterable

from belino.domain.message import ConversationKey

Account = tuple[str, str]
"""Platform and account."""


class ConnectedAccounts:
    """The connection state of every account: down until it is reported up."""

    def __init__(self, accounts: Iterable[Account], wake: Callable[[ConversationKey], None]) -> None:
        self._down: dict[Account, str] = dict.fromkeys(accounts, "")
        self._waiting: dict[Account, set[ConversationKey]] = {}
        """Conversations that found their account down; woken when its state changes."""
        self._wake = wake

    def up(self, account: Account) -> None:
        """Mark an account as connected, and wake the conversations that wait for it."""
        if self._down.pop(account, None) is not None:
            self._wake_all(account)

    def down(self, account: Account, reason: str = "") -> None:
        """Mark an account as not connected. An empty reason means that it is still connecting."""
        before = self._down.get(account)
        self._down[account] = reason or before or ""
        if reason and reason != before:
            self._wake_all(account)

    def why_not(self, conversation: ConversationKey) -> str | None:
        """Why nothing may be sent to a conversation now; None if it may. If not, it is woken when that changes."""
        account = (conversation.platform, conversation.account)
        why = self._down.get(account)
        if why is not None:
            self._waiting.setdefault(account, set()).add(conversation)
        return why

    def _wake_all(self, account: Account) -> None:
        for conversation in self._waiting.pop(account, ()):
            self._wake(conversation)
