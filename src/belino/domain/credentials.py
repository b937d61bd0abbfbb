"""Credentials: logins, tokens and approved pairings, as the store keeps them."""

from datetime import timedelta
from typing import Protocol

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel
from belino.domain.stored import Grant, GrantKind, Pairing


class Credentials(Protocol):
    """Secrets that open doors; only their hashes are kept."""

    @property
    def instance(self) -> str:
        """A short public id of this state folder, the same at every start."""
        ...

    async def grant(
        self,
        kind: GrantKind,
        *,
        conversation: ConversationKey | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
    ) -> tuple[Grant, str]:
        """A new grant and its secret, which is shown once."""
        ...

    async def check(self, secret: str) -> Grant | None: ...

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        """Trade a login secret, once, for a browser grant."""
        ...

    async def grants(self) -> tuple[Grant, ...]: ...

    async def revoke(self, grant_id: str) -> bool: ...


class Pairings(Protocol):
    """Strangers who may command in direct messages because an operator approved their code."""

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        """Keep that a stranger asked, and put the parcel that tells them their code into the outbox.

        The account and the place are the parcel's. False, and nothing is kept or sent, while the sender's last code
        lives or as many others of the account as may are waiting.
        """
        ...

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool: ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Who waits, and who is paired; oldest first."""
        ...

    async def pair(self, code: str) -> Pairing | None:
        """Approve whom a code was given to. A wrong one costs every code that is waiting one of its tries."""
        ...

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        """Take a pairing back, or let the code of one who waits open nothing."""
        ...
