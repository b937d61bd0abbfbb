"""Pace: how often an account calls its platform, and how long it waits when the platform asks for it."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Literal, TypeVar

from belino.domain.errors import RateLimited
from belino.domain.ports import Clock

T = TypeVar("T")

# If asked to wait more than a day, belino tries once a day.
LONGEST_WAIT = 86_400.0
# The longest wait for a turn; it also bounds how many calls wait.
QUEUE_SECONDS = 30.0
MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceConfig:
    """Rate limit of history calls."""

    calls_per_minute: int = field(
        default=40, metadata={"says": "How many history calls an account may make per minute.", "least": 1}
    )
    overflow: Literal["queue", "degrade"] = field(
        default="queue",
        metadata={
            "says": "Above that: `queue` waits for its turn, `degrade` answers from stored messages and says so."
        },
    )
    stale_minutes: int = field(
        default=60, metadata={"says": "The greatest age of stored messages that `degrade` uses instead of a call."}
    )


class Pace:
    """Limits one account's calls per minute, and makes none while its platform asks to wait."""

    def __init__(self, calls_per_minute: int, clock: Clock) -> None:
        self._clock = clock
        self._calls: deque[float] = deque()
        """The times of calls in the last minute and of waiting ones, in order."""
        self._allowed = calls_per_minute
        self._closed_until = 0.0

    @property
    def wait(self) -> float:
        """Seconds until a new call may be made; 0 if at once."""
        return max(self._next() - self._clock.monotonic(), 0.0)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call in its turn. RateLimited, and no call, if the wait is too long."""
        await self._turn()
        try:
            return await work()
        except RateLimited as error:
            self._closed_until = max(self._closed_until, self._clock.monotonic() + min(error.retry_after, LONGEST_WAIT))
            raise

    async def _turn(self) -> None:
        wait = self.wait
        if wait > QUEUE_SECONDS:
            raise RateLimited("too many calls wait for their turn", retry_after=wait)
        at = self._clock.monotonic() + wait
        self._calls.append(at)
        if not wait:
            return
        is_due = False
        try:
            await self._clock.sleep(wait)
            if (closed := self._closed_until - self._clock.monotonic()) > 0:  # an earlier call was asked to wait
                raise RateLimited("the platform asks for patience", retry_after=closed)
            is_due = True
        finally:
            if not is_due:
                self._calls.remove(at)  # a call that was not made frees its turn

    def _next(self) -> float:
        while self._calls and self._calls[0] + MINUTE <= self._clock.monotonic():
            self._calls.popleft()
        busy = self._calls[-self._allowed] + MINUTE if len(self._calls) >= self._allowed else 0.0
        return max(busy, self._closed_until)


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The wait of a `Retry-After` header, as seconds or as a date; None if it is unreadable.

    A date counts from the answer's own `Date`, as the platform's clock and ours may differ; `now` is the fallback.
    """
    seconds = _seconds(header(headers, "retry-after"), http_date(header(headers, "date")) or now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _seconds(value: str, now: datetime) -> float | None:
    try:
        seconds = float(value)
        return seconds if isfinite(seconds) else None
    except ValueError:
        pass
    date = http_date(value)
    return None if date is None else (date - now).total_seconds()


def http_date(value: str) -> datetime | None:
    """The time in a header like `Date`; None if it is invalid or has no zone."""
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None


def header(headers: Mapping[str, str], wanted: str) -> str:
    """The value of a header, case-insensitive; empty if there is none."""
    return next((value for name, value in headers.items() if name.lower() == wanted.lower()), "").strip()
