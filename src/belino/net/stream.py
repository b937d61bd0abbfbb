"""Bounded, deadlined chunks: no body is endless, oversized or kept open by a trickle."""

import asyncio
from collections.abc import AsyncIterator

from belino.domain.errors import AdapterError, MediaTooLarge
from belino.domain.ports import Clock

MIN_RATE = 10 * 1024
RATE_WINDOW = 20.0


async def bounded(
    chunks: AsyncIterator[bytes],
    *,
    limit: int,
    deadline_seconds: float,
    clock: Clock,
    min_rate: float = MIN_RATE,
) -> AsyncIterator[bytes]:
    """The same chunks: at most `limit` bytes in all (MediaTooLarge), within the deadline, never slower than `min_rate`.

    The rate is looked at once per 20 seconds spent waiting for bytes, so a pause is forgiven and a reader that takes
    its time is not blamed on the platform. Too slow or too late is an AdapterError.
    """
    deadline = clock.monotonic() + deadline_seconds
    late = f"the file did not arrive within {deadline_seconds:g} seconds"
    slow = f"the file came slower than {min_rate:g} bytes per second"
    count = in_window = 0
    waited = 0.0
    while (before := clock.monotonic()) < deadline:
        # A window that already has its bytes cannot fail any more: then silence may last through the next one.
        windows = 2 if in_window >= min_rate * RATE_WINDOW else 1
        patience = windows * RATE_WINDOW - waited
        try:
            async with asyncio.timeout(min(deadline - before, patience)) as timer:
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if not timer.expired():
                raise
            raise AdapterError(late if deadline - before <= patience else slow) from None
        count += len(chunk)
        if count > limit:
            raise MediaTooLarge(f"the file is over {limit} bytes", limit=limit)
        in_window += len(chunk)
        waited += clock.monotonic() - before
        if waited >= RATE_WINDOW:
            if in_window < min_rate * waited:
                raise AdapterError(slow)
            in_window, waited = 0, 0.0
        yield chunk
    raise AdapterError(late)
