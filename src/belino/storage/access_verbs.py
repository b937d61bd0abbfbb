"""Access verbs of the store: sessions, grants and pairings."""

from datetime import timedelta

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel
from belino.domain.stored import (
    Grant,
    GrantKind,
    Pairing,
    Session,
)
from belino.storage import (
    access,
    pairing,
    sessions,
)
from belino.storage.database import Tx
from belino.storage.sanitize import NOT_TEXT, mended
from belino.storage.verbs import Verbs


class AccessVerbs(Verbs):
    """Sessions, grants of access, and paired senders."""

    async def session(self, conversation: ConversationKey) -> Session:
        return await self._database.read(lambda tx: sessions.session(tx, conversation))

    @property
    def instance(self) -> str:
        """A short public id of this state folder, the same at every start."""
        return self._keys.instance

    async def grant(
        self,
        kind: GrantKind,
        *,
        conversation: ConversationKey | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
    ) -> tuple[Grant, str]:
        """Create a grant and its secret, which is shown once."""
        now = self._now()
        return await self._database.write(
            lambda tx: access.grant(
                tx, self._keys, kind, conversation=conversation, note=note, lifetime=lifetime, now=now
            )
        )

    async def check(self, secret: str) -> Grant | None:
        now = self._now()
        return await self._database.read(lambda tx: access.check(tx, self._keys, secret, now))

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        """Exchange a login secret, once, for a browser grant."""
        now = self._now()
        return await self._database.write(lambda tx: access.redeem(tx, self._keys, secret, lifetime=lifetime, now=now))

    async def grants(self) -> tuple[Grant, ...]:
        now = self._now()
        return await self._database.read(lambda tx: access.grants(tx, now))

    async def revoke(self, grant_id: str) -> bool:
        now = self._now()
        return await self._database.write(lambda tx: access.revoke(tx, grant_id, now))

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        """Store a stranger's pairing request, and put the parcel with their code into the outbox.

        The account and the conversation are the parcel's. False, and nothing is stored or sent, while the sender's last
        code is valid or the account has its maximum of pending requests.
        """
        now = self._now()

        def work(tx: Tx) -> bool:
            return pairing.ask(tx, self._keys, sender, parcel, code, now)

        try:
            return await self._database.write(work)
        except NOT_TEXT:
            sender, parcel = mended((sender, parcel))
            return await self._database.write(work)

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool:
        return await self._database.read(lambda tx: pairing.is_paired(tx, platform, account, sender_id))

    async def pairings(self) -> tuple[Pairing, ...]:
        """Pending and approved pairings, oldest first."""
        now = self._now()
        return await self._database.read(lambda tx: pairing.pairings(tx, now))

    async def pair(self, code: str) -> Pairing | None:
        """Approve the sender of a code. A wrong code uses up one try of every pending code."""
        now = self._now()
        return await self._database.write(lambda tx: pairing.pair(tx, self._keys, code, now))

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        """Revoke a pairing, or invalidate the code of a pending one."""
        now = self._now()
        return await self._database.write(lambda tx: pairing.unpair(tx, platform, account, sender_id, now))
