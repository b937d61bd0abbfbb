"""Rate limit of a fake platform: so many calls in so many seconds, and how long the next one must wait."""

import math
from collections import defaultdict, deque
from collections.abc import Hashable

from belino.domain.ports import Clock

LONGEST_SECONDS = 600.0
"""The longest window that a platform documents: Discord's ban for invalid requests."""


class SlidingWindow:
    """When calls happened, by key; a key may have several limits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: defaultdict[Hashable, deque[float]] = defaultdict(deque)

    def wait(self, key: Hashable, most: int, seconds: float) -> float:
        """How long until another call is within `most` in `seconds`; 0 when it is now."""
        calls, now = self._calls[key], self._clock.monotonic()
        if len(calls) < most or calls[-most] <= now - seconds:
            return 0.0
        return calls[-most] + seconds - now

    def add(self, key: Hashable, calls: int = 1) -> None:
        """Count calls."""
        now, kept = self._clock.monotonic(), self._calls[key]
        while kept and kept[0] <= now - LONGEST_SECONDS:
            kept.popleft()
        kept.extend([now] * calls)


def retry_after(wait: float) -> int:
    """The whole seconds of a Retry-After header: at least one."""
    return max(1, math.ceil(wait))
