"""How fast a bot may call: a bucket per route and channel, one for everything, a ban for whoever does not listen."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from belino.domain.ports import Clock
from belino.testing.discord.request import DiscordCall
from belino.testing.discord.shapes import Json
from belino.testing.rate_limit import SlidingWindow, retry_after

INVALID_SECONDS = 600.0
# Calls and seconds. Discord publishes none and says to read the headers; these are what bots usually see.
_ROUTES: Mapping[str, tuple[int, float]] = {
    "POST /channels/{channel}/messages": (5, 5.0),
    "PATCH /channels/{channel}/messages/{message}": (5, 5.0),
    "DELETE /channels/{channel}/messages/{message}": (5, 1.0),
    "GET /channels/{channel}/messages": (5, 5.0),
    "GET /channels/{channel}/messages/{message}": (5, 5.0),
    "POST /channels/{channel}/typing": (5, 5.0),
    "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": (1, 0.25),
    "POST /attachments/refresh-urls": (5, 5.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordPace:
    """How many calls a route takes in how many seconds; routes not named take `other`."""

    routes: Mapping[str, tuple[int, float]] = field(default_factory=lambda: _ROUTES)
    other: tuple[int, float] = (50, 1.0)
    all_per_second: int = 50
    invalid_per_ten_minutes: int = 10_000


@dataclass(slots=True)
class _Bucket:
    left: int
    ends: float


class DiscordLimiter:
    """Counts calls, and says what the headers of each answer are."""

    def __init__(self, clock: Clock, pace: DiscordPace) -> None:
        self._clock = clock
        self._pace = pace
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._calls = SlidingWindow(clock)

    @property
    def banned(self) -> bool:
        """Whether the address itself is shut out, after too many refused calls."""
        return self._calls.wait("refused", max(self._pace.invalid_per_ten_minutes, 1), INVALID_SECONDS) > 0

    def count(self, status: int) -> None:
        if status in (401, 403, 429):
            self._calls.add("refused")

    def whole(self) -> float:
        """How long the bot must wait before any call; 0 when it need not."""
        wait = self._calls.wait("all", max(self._pace.all_per_second, 1), 1.0)
        if not wait:
            self._calls.add("all")
        return wait

    def enter(self, call: DiscordCall) -> tuple[float, dict[str, str]]:
        """How long to wait for this route, and the headers to answer with."""
        most, seconds = self._pace.routes.get(call.name, self._pace.other)
        now, key = self._clock.monotonic(), (call.name, call.ids.get("channel") or call.ids.get("guild") or "")
        bucket = self._buckets.get(key)
        if bucket is None or bucket.ends <= now:
            bucket = self._buckets[key] = _Bucket(most, now + seconds)
        wait = 0.0 if bucket.left else bucket.ends - now
        bucket.left = max(bucket.left - 1, 0)
        after = bucket.ends - now
        return wait, {
            "X-RateLimit-Limit": str(most),
            "X-RateLimit-Remaining": str(bucket.left),
            "X-RateLimit-Reset": f"{self._clock.now().timestamp() + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(call.name.encode()).hexdigest()[:32],
        }


def limited(wait: float, scope: str = "user") -> tuple[Json, dict[str, str]]:
    """The body and the headers of a 429: `user` for a route, `global`, or `shared` with everybody in the channel."""
    message = "The resource is being rate limited." if scope == "shared" else "You are being rate limited."
    body = {"message": message, "retry_after": round(wait, 3), "global": scope == "global"}
    headers = {"Retry-After": str(retry_after(wait)), "X-RateLimit-Scope": scope}
    return body, headers | ({"X-RateLimit-Global": "true"} if scope == "global" else {})
