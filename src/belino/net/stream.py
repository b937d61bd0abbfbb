"""Bounded, deadlined chunks: no body is endless, oversized or kept open by a trickle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

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

    The rate is looked at every 20 seconds, so a short pause is forgiven. Too slow or too late is an AdapterError.
    """
    count = 0
    watch = _Watch(clock, deadline_seconds, min_rate)
    watching = asyncio.create_task(watch.keep())
    try:
        while True:
            try:
                async with asyncio.timeout(None) as watch.patience:
                    watch.raise_if_over()
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                watch.raise_if_over()
                raise
            count += len(chunk)
            watch.seen(len(chunk))
            if count > limit:
                raise MediaTooLarge(f"the file is over {limit} bytes", limit=limit)
            yield chunk
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


class _Watch:
    """Looks at the clock beside the stream, so that a body that says nothing at all is noticed too."""

    def __init__(self, clock: Clock, deadline_seconds: float, min_rate: float) -> None:
        self.patience: asyncio.Timeout | None = None
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._deadline = clock.monotonic() + deadline_seconds
        self._min_rate = min_rate
        self._in_window = 0
        self._over: str | None = None

    def seen(self, size: int) -> None:
        self._in_window += size

    def raise_if_over(self) -> None:
        if self._over is None and self._clock.monotonic() >= self._deadline:
            self._over = self._late()
        if self._over is not None:
            raise AdapterError(self._over)

    async def keep(self) -> None:
        while self._over is None:
            left = self._deadline - self._clock.monotonic()
            await self._clock.sleep(max(0.0, min(RATE_WINDOW, left)))
            self._over = self._judge(whole_window=left >= RATE_WINDOW)
            self._in_window = 0
        # Wakes the stream only while it waits for bytes; a consumer that holds a chunk learns of it at its next one.
        if self.patience is not None:
            with suppress(RuntimeError):
                self.patience.reschedule(asyncio.get_running_loop().time())

    def _judge(self, *, whole_window: bool) -> str | None:
        if self._clock.monotonic() >= self._deadline:
            return self._late()
        if whole_window and self._in_window < self._min_rate * RATE_WINDOW:
            return f"the file came slower than {self._min_rate:.0f} bytes per second"
        return None

    def _late(self) -> str:
        return f"the file did not arrive within {self._deadline_seconds:.0f} seconds"
