"""How fast a bot may send, as Telegram's FAQ says it."""

from dataclasses import dataclass

from belino.domain.ports import Clock
from belino.testing.rate_limit import SlidingWindow, retry_after
from belino.testing.telegram.request import TelegramRefusal
from belino.testing.telegram.shapes import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramPace:
    """How much a bot may send: a chat takes a short burst and then one a second, a group twenty a minute."""

    chat_burst: int = 5
    chat_per_second: float = 1.0
    group_per_minute: int = 20
    all_per_second: int = 30


class TelegramLimiter:
    """Counts what a bot makes visible, and refuses what comes too soon."""

    def __init__(self, clock: Clock, pace: TelegramPace) -> None:
        self._pace = pace
        self._sends = SlidingWindow(clock)

    def keep(self, chat: Json, messages: int = 1) -> None:
        """Note messages, or say how long to wait for the next."""
        pace = self._pace
        rules = [
            (chat["id"], pace.chat_burst, pace.chat_burst / pace.chat_per_second),
            (None, pace.all_per_second, 1.0),
        ]
        if chat["type"] != "private":
            rules.append((chat["id"], pace.group_per_minute, 60.0))
        if (wait := max(self._sends.wait(*rule) for rule in rules)) > 0:
            seconds = retry_after(wait)
            raise TelegramRefusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        for key in (chat["id"], None):
            self._sends.add(key, messages)
