"""A time limit on the clock that is passed in, so that tests need no waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from belino.delivery.beside import beside
from belino.domain.ports import Clock


@asynccontextmanager
async def deadline(clock: Clock, seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """Raise TimeoutError in the body once `seconds` have passed, or as soon as `ring` is called with what it yields."""
    async with asyncio.timeout(None) as scope, beside(_ring_later(clock, seconds, scope)):
        yield scope


def ring(scope: asyncio.Timeout) -> None:
    """End a body now; nothing happens if it has ended already."""
    with suppress(RuntimeError):
        scope.reschedule(asyncio.get_running_loop().time())


async def _ring_later(clock: Clock, seconds: float, scope: asyncio.Timeout) -> None:
    await clock.sleep(seconds)
    ring(scope)
