"""Fake clock: it stands still until a test moves it."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

# Event loop passes that let everything ready run, including callbacks of callbacks.
_PASSES = 25
_PATIENCE = 30.0
"""Real seconds until a missing sleep fails its test."""


class FakeClock:
    """A clock under a test's control: `sleep` returns when `advance` has moved the clock far enough.

    `advance` wakes sleepers in the order of their times and lets ready tasks run after each. It cannot wait for threads
    or sockets: a task that is about to sleep, but first waits for a store or a server, sleeps only after the clock was
    moved, and past the intended time. So a test ends exactly the sleep it means, with `wake`, or awaits it, with
    `asleep`, before it moves the clock.
    """

    def __init__(self, now: datetime = START) -> None:
        self._start = now
        self._elapsed = 0
        """Microseconds, as in a datetime: the two clocks never differ by a rounding."""
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._slept = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(microseconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed / 1_000_000

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + max(1, micros(seconds)), next(self._order), woken))
        self._slept.set()
        await woken

    async def asleep(self, seconds: float) -> None:
        """Wait until a task sleeps that wakes in `seconds`, to the millisecond."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while not self.sleeps_for(seconds):
                    self._slept.clear()
                    await self._slept.wait()
        except TimeoutError:
            raise AssertionError(f"no task sleeps for {seconds} s; waits: {self._waits()}") from None

    async def wake(self, seconds: float) -> None:
        """Wait until a task sleeps that wakes in `seconds`, to the millisecond, and move the time exactly to its end.

        What the task then does takes no time on this clock, even where it waits for a thread.
        """
        await self.asleep(seconds)
        await self.advance(next(wait for wait in self._waits() if abs(wait - seconds) < 0.001))

    def sleeps_for(self, seconds: float) -> bool:
        """Whether a task sleeps that wakes in `seconds`, to the millisecond."""
        return any(abs(wait - seconds) < 0.001 for wait in self._waits())

    def _waits(self) -> list[float]:
        return sorted((due - self._elapsed) / 1_000_000 for due, _, woken in self._sleepers if not woken.done())

    @property
    def sleeping(self) -> int:
        """How many tasks wait for this clock."""
        return len(self._waits())

    def shift(self, seconds: float) -> None:
        """Move the time without waking sleepers: for code that only reads the clock."""
        self._elapsed += micros(seconds)

    def turn(self, by: timedelta) -> None:
        """Set the wall clock forward or back; no time passes."""
        self._start += by

    async def advance(self, seconds: float) -> None:
        """Move the time forward, waking every sleeper at its time."""
        target = self._elapsed + micros(seconds)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not woken.done():
                woken.set_result(None)
            await settle()
        self._elapsed = target
        await settle()


def micros(seconds: float) -> int:
    """Seconds as whole microseconds."""
    return round(seconds * 1_000_000)


async def settle() -> None:
    """Let every ready task run until it waits."""
    for _ in range(_PASSES):
        await asyncio.sleep(0)
