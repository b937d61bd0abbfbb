"""Clock of the machine: wall time, and a monotonic one."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from belino.domain.ports import Clock


class SystemClock:
    """The real clock; all code that waits or timestamps receives one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteadyClock:
    """A clock that ignores steps back of the wall clock: what is due in a minute stays due in a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()
        self._read = clock.monotonic()

    def now(self) -> datetime:
        """Wall time that never goes back, and advances with the monotonic clock."""
        read = self._clock.monotonic()
        self._last = max(self._last + timedelta(seconds=read - self._read), self._clock.now())
        self._read = read
        return self._last

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
