"""Clock of the machine: wall time, and one that never goes back."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from belino.domain.ports import Clock


class SystemClock:
    """The real clock; everything that waits or stamps is given one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteadyClock:
    """The same time, until somebody turns the clock back: what is due in a minute stays due in a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()
        self._read = clock.monotonic()

    def now(self) -> datetime:
        """Never earlier than it was, and as much later as time has passed."""
        read = self._clock.monotonic()
        self._last = max(self._last + timedelta(seconds=read - self._read), self._clock.now())
        self._read = read
        return self._last

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
