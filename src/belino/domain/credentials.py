"""Credentials: logins, tokens and approved pairings in the store."""

from datetime import timedelta
from typing import Protocol

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel
from belino.domain.stored import Grant, GrantKind, Pairing


class Credentials(Protocol):
    """Secrets that give access; only their hashes are stored."""

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
        """Create a grant and its secret, which is shown once."""
        ...

    async def check(self, secret: str) -> Grant | None: ...

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        """Exchange a login secret, once, for a browser grant."""
        ...

    async def grants(self) -> tuple[Grant, ...]: ...

    async def revoke(self, grant_id: str) -> bool: ...


class Pairings(Protocol):
    """Strangers who may give commands in direct messages because an operator approved their code."""

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        """Store a stranger's pairing request, and put the parcel with their code into the outbox.

        The account and the conversation are the parcel's. False, and nothing is stored or sent, while the sender's last
        code is valid or the account has its maximum of pending requests.
        """
        ...

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool: ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Pending and approved pairings, oldest first."""
        ...

    async def pair(self, code: str) -> Pairing | None:
        """Approve the sender of a code. A wrong code uses up one try of every pending code."""
        ...

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        """Revoke a pairing, or invalidate the code of a pending one."""
        ...
