"""Grant cache: logins and tokens in use, held in memory; revoked and expired ones end at once for their holders."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from belino.domain.ports import Clock
from belino.domain.stored import Grant

CACHED = 1_000
EXPIRY_SECONDS = 1.0


class KeepsGrants(Protocol):
    """The part of the store for grants in use."""

    async def check(self, secret: str) -> Grant | None: ...
    async def revoke(self, grant_id: str) -> bool: ...


class Holding:
    """A grant with an open socket; `ended` is set when the grant is revoked or expires."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self.ended = asyncio.Event()


class Grants:
    """Checks secrets against the store once; every revocation goes through here."""

    def __init__(self, store: KeepsGrants, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cached: dict[bytes, Grant] = {}
        self._holdings: dict[str, Holding] = {}
        self._holders: Counter[str] = Counter()
        self._revocations = 0

    async def check(self, secret: str) -> Grant | None:
        """The grant of a secret; None once it is revoked or has expired."""
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        known = self._cached.get(digest)
        if known is not None:
            return None if self._has_expired(known) else known
        revocations = self._revocations
        grant = await self._store.check(secret)
        # A grant revoked while it was being read must not be cached.
        if grant is not None and revocations == self._revocations:
            self._cached[digest] = grant
            if len(self._cached) > CACHED:
                del self._cached[next(iter(self._cached))]
        return grant

    async def revoke(self, grant_id: str) -> bool:
        """Delete a grant, and end its open sockets; False if there is none."""
        revoked = await self._store.revoke(grant_id)
        self._revocations += 1
        self._cached = {digest: grant for digest, grant in self._cached.items() if grant.id != grant_id}
        if holding := self._holdings.get(grant_id):
            holding.ended.set()
        return revoked

    @contextmanager
    def hold(self, grant: Grant) -> Iterator[asyncio.Event]:
        """Hold a grant for an open socket: the event is set when it is revoked or expires."""
        holding = self._holdings.setdefault(grant.id, Holding(grant))
        self._holders[grant.id] += 1
        try:
            yield holding.ended
        finally:
            self._holders[grant.id] -= 1
            if not self._holders[grant.id]:
                del self._holders[grant.id], self._holdings[grant.id]

    async def expire(self) -> None:
        """End expired grants, until cancelled: one timer for all, by the wall clock, which may be set or suspended."""
        while True:
            await self._clock.sleep(EXPIRY_SECONDS)
            for holding in self._holdings.values():
                if self._has_expired(holding.grant):
                    holding.ended.set()

    def _has_expired(self, grant: Grant) -> bool:
        return grant.expires is not None and grant.expires <= self._clock.now()
