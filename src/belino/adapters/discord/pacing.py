"""A bot's pace: each route's bucket as Discord's headers describe it, and pauses for everything."""

from collections.abc import Mapping
from math import isfinite

from belino.domain.errors import RateLimited
from belino.domain.ports import Clock
from belino.net.pace import LONGEST_WAIT

MOST_BUCKETS = 1_000


class Pacing:
    """Holds back calls that Discord would refuse. Buckets are learned from answers, never assumed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._closed: dict[str, float] = {}
        self._all_closed = 0.0

    def check(self, bucket: str, *, counts: bool = True) -> None:
        """RateLimited while the bucket is empty, or all are closed whose calls count for the limit of everything."""
        left = max(self._closed.get(bucket, 0.0), self._all_closed if counts else 0.0) - self._clock.monotonic()
        if left > 0:
            raise RateLimited(f"Discord asks to wait {left:.3f} seconds", retry_after=left)

    def learn(self, bucket: str, headers: Mapping[str, str]) -> None:
        """What an answer says of its bucket: nothing left means closed until it is filled anew."""
        told = {name.lower(): value for name, value in headers.items()}
        after = _seconds(told.get("x-ratelimit-reset-after", ""))
        if told.get("x-ratelimit-remaining", "").strip() == "0" and after is not None:
            self.close(bucket, after)

    def close(self, bucket: str, seconds: float, *, everything: bool = False) -> None:
        now = self._clock.monotonic()
        until = now + min(max(seconds, 0.0), LONGEST_WAIT)
        if everything:
            self._all_closed = max(self._all_closed, until)
            return
        if len(self._closed) >= MOST_BUCKETS:
            self._closed = {name: at for name, at in self._closed.items() if at > now}
        self._closed[bucket] = max(self._closed.get(bucket, 0.0), until)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None
