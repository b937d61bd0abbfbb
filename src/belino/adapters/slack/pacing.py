"""An app's pace: no call of a method that Slack asked us to leave alone, there or everywhere."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from belino.domain.errors import RateLimited
from belino.domain.ports import Clock

T = TypeVar("T")


class Pacing:
    """Holds back calls that Slack would refuse: every method has a limit of its own, and posting one per channel."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._closed: dict[tuple[str, str], float] = {}

    async def call(self, method: str, channel: str, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call. RateLimited, and no call, while the method is to be left alone in this channel."""
        now = self._clock.monotonic()
        self._closed = {what: until for what, until in self._closed.items() if until > now}
        left = self._closed.get((method, channel), 0.0) - now
        if left > 0:
            raise RateLimited(f"Slack asks to wait {left:.3f} seconds", retry_after=left)
        try:
            return await work()
        except RateLimited as error:
            until = self._clock.monotonic() + error.retry_after
            self._closed[(method, channel)] = max(self._closed.get((method, channel), 0.0), until)
            raise
