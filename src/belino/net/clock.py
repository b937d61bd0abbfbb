"""The machine's own time."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """The real clock; everything that waits or stamps is given one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
