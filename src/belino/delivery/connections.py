"""Connections: which accounts can send; parcels of an account that is not connected wait, with the reason."""

from collections.abc import Callable, Iterable

from belino.domain.message import ConversationKey

Account = tuple[str, str]
"""Platform and account."""


class ConnectedAccounts:
    """Every account's line to its platform: down until somebody says that it is up."""

    def __init__(self, accounts: Iterable[Account], wake: Callable[[ConversationKey], None]) -> None:
        self._down: dict[Account, str] = dict.fromkeys(accounts, "")
        self._waiting: dict[Account, set[ConversationKey]] = {}
        """Who found the line down, and is woken when there is something new to know of it."""
        self._wake = wake

    def up(self, account: Account) -> None:
        """The platform has let us in: what waited for that may leave."""
        if self._down.pop(account, None) is not None:
            self._wake_all(account)

    def down(self, account: Account, reason: str = "") -> None:
        """Nothing may leave. Without a reason there is nothing to tell yet: it is only just beginning."""
        before = self._down.get(account)
        self._down[account] = reason or before or ""
        if reason and reason != before:
            self._wake_all(account)

    def why_not(self, conversation: ConversationKey) -> str | None:
        """Why nothing may leave for a conversation now; None if it may, and it is woken when that changes."""
        account = (conversation.platform, conversation.account)
        why = self._down.get(account)
        if why is not None:
            self._waiting.setdefault(account, set()).add(conversation)
        return why

    def _wake_all(self, account: Account) -> None:
        for conversation in self._waiting.pop(account, ()):
            self._wake(conversation)
