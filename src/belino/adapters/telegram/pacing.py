"""A bot's pace: so many calls a second in all, and none to a chat that Telegram asked us to leave alone."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from belino.domain.errors import RateLimited
from belino.domain.ports import Clock

T = TypeVar("T")

ALL_PER_SECOND = 30
"""What Telegram's FAQ names as the limit of a bot."""
SECOND = 1.0


class Pacing:
    """Holds back calls that Telegram would refuse.

    Its refusals do not say whether a chat has had enough or all of them; what we sent in the last second does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: deque[tuple[float, str]] = deque()
        """The calls of the last second, and those that wait for theirs, in order."""
        self._closed: dict[str, float] = {}
        self._all_closed = 0.0

    async def call(self, chat: str, work: Callable[[], Awaitable[T]]) -> T:
        """Make a visible call. RateLimited, and no call, while the chat is to be left alone."""
        await self._turn(chat)
        try:
            return await work()
        except RateLimited as error:
            self._refused(chat, self._clock.monotonic() + error.retry_after)
            raise

    async def _turn(self, chat: str) -> None:
        self._check(chat)
        now = self._clock.monotonic()
        while self._calls and self._calls[0][0] <= now - SECOND:
            self._calls.popleft()
        crowded = len(self._calls) >= ALL_PER_SECOND
        at = self._calls[-ALL_PER_SECOND][0] + SECOND if crowded else now
        self._calls.append((at, chat))
        if at > now:
            await self._clock.sleep(at - now)
            self._check(chat)  # a call before this one may have been told to wait

    def _check(self, chat: str) -> None:
        now = self._clock.monotonic()
        self._closed = {place: until for place, until in self._closed.items() if until > now}
        left = max(self._closed.get(chat, 0.0), self._all_closed) - now
        if left > 0:
            raise RateLimited(f"Telegram asks to wait {left:.3f} seconds", retry_after=left)

    def _refused(self, chat: str, until: float) -> None:
        """Close the chat; or all of them, if it had next to nothing and all together had much."""
        now = self._clock.monotonic()
        lately = [called for at, called in self._calls if now - SECOND < at <= now]
        if lately.count(chat) <= 1 and len(lately) >= ALL_PER_SECOND // 2:
            self._all_closed = max(self._all_closed, until)
        else:
            self._closed[chat] = max(self._closed.get(chat, 0.0), until)
