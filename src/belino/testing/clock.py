"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

# Passes of the event loop that let everything that is ready run, callbacks of callbacks included.
_PASSES = 25


class FakeClock:
    """Time in a test's hand: `sleep` returns when `advance` has moved the clock far enough.

    `advance` wakes sleepers in the order of their times and lets ready tasks run after each. It cannot wait for
    threads or sockets; what a store or a server does must be awaited by the test itself.
    """

    def __init__(self, now: datetime = START) -> None:
        self._start = now
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many tasks wait for this clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def shift(self, seconds: float) -> None:
        """Move the time without letting anybody run: for code that only reads the clock."""
        self._elapsed += seconds

    def turn(self, by: timedelta) -> None:
        """Set the wall clock forward or back, as people and machines do; no time passes."""
        self._start += by

    async def advance(self, seconds: float) -> None:
        """Move the time forward, waking every sleeper on the way when its time comes."""
        target = self._elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not woken.done():
                woken.set_result(None)
            await settle()
        self._elapsed = target
        await settle()


async def settle() -> None:
    """Let every task that can run without waiting for the outside run until it waits."""
    for _ in range(_PASSES):
        await asyncio.sleep(0)
