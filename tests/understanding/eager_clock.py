"""A clock whose sleeps end at once."""

import asyncio

from belino.net.clock import SystemClock


class EagerClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
