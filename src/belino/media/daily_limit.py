"""Daily limit of a channel: reserved before a byte is fetched, so that parallel fetches keep to it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from belino.domain.errors import OverDailyLimit, StoreError
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.units import format_size
from belino.storage.library_verbs import LibraryVerbs

log = logging.getLogger(__name__)


class DailyLimits:
    """Every channel's bytes of today."""

    def __init__(self, library: LibraryVerbs, clock: Clock, *, a_day: int, a_fetch: int) -> None:
        """`a_day` is how many bytes a channel may fetch within 24 hours, `a_fetch` with one fetch."""
        self._library = library
        self._clock = clock
        self._a_day = a_day
        self._a_fetch = a_fetch
        self._reserves: dict[ConversationKey, _Reserve] = {}

    @asynccontextmanager
    async def take(self, channel: ConversationKey, size: int | None = None) -> AsyncIterator["Meter"]:
        """Wait for and reserve the bytes of a fetch; OverDailyLimit if there are none, or too few.

        All bytes through the meter count, also those of a file that breaks off or is not kept.
        """
        async with self._set_aside(channel, size) as allowed:
            meter = Meter(allowed, over=None if allowed >= self._a_fetch else self._a_day)
            try:
                yield meter
            finally:
                if meter.count:
                    await self._count(channel, meter.count)

    async def _count(self, channel: ConversationKey, size: int) -> None:
        try:
            await self._library.note_fetched(channel, size)
        except StoreError as error:
            # The outcome of a fetch matters more than its accounting.
            log.warning("%d bytes that were fetched are not counted: %s", size, type(error).__name__)

    @asynccontextmanager
    async def _set_aside(self, channel: ConversationKey, size: int | None) -> AsyncIterator[int]:
        reserve = self._reserves.setdefault(channel, _Reserve())
        reserve.users += 1
        taken = 0
        try:
            while not taken:
                async with reserve.lock:
                    reserve.freed.clear()
                    taken = await self._free(channel, reserve, size)
                    reserve.taken += taken
                if not taken:
                    await reserve.freed.wait()
            yield taken
        finally:
            reserve.users -= 1
            reserve.taken -= taken
            reserve.freed.set()
            if not reserve.users:
                self._reserves.pop(channel, None)

    async def _free(self, channel: ConversationKey, reserve: "_Reserve", size: int | None) -> int:
        """How many bytes are available now; 0 while others reserve the rest."""
        held = reserve.taken  # before the query: a fetch that ends during it may be missing from the answer
        left = self._a_day - await self._library.bytes_fetched(channel, self._clock.now() - timedelta(days=1))
        if left <= 0 or (size is not None and size > left):
            raise OverDailyLimit(f"the channel has {format_size(max(left, 0))} left for today", limit=self._a_day)
        wanted = min(self._a_fetch, left)
        return wanted if held + wanted <= left else 0


class Meter:
    """Counts the bytes that flow through it, and stops at the reserved amount."""

    def __init__(self, allowed: int, *, over: int | None) -> None:
        """`over` is the daily limit, if it bounds this fetch."""
        self._allowed = allowed
        self._over = over
        self.count = 0

    async def chunks(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same chunks, counted."""
        async for chunk in chunks:
            self.count += len(chunk)
            if self._over is not None and self.count > self._allowed:
                raise OverDailyLimit("the file is larger than what is left for today", limit=self._over)
            yield chunk


class _Reserve:
    """A channel's bytes reserved by running fetches."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.freed = asyncio.Event()
        self.taken = 0
        self.users = 0
