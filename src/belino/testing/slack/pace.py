"""How fast an app may call: a tier for every method, one message a second for every channel, and Retry-After."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from belino.domain.ports import Clock
from belino.testing.rate_limit import SlidingWindow, retry_after
from belino.testing.slack.request import SlackCall, SlackRefusal

MINUTE = 60.0
POSTS = frozenset({"chat.postMessage"})
HISTORY = frozenset({"conversations.history", "conversations.replies"})
_TIERS: Mapping[str, int] = {
    "conversations.list": 20,
    "users.list": 20,
    "reactions.remove": 20,
    "users.info": 100,
    "users.conversations": 50,
    "conversations.members": 100,
    "files.info": 100,
    "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
    "auth.test": 600,
    "chat.getPermalink": 600,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackPace:
    """Calls a minute. Methods not named are of tier 3; `unlisted` is an app that is sold outside the Marketplace."""

    methods: Mapping[str, int] = field(default_factory=lambda: _TIERS)
    other: int = 50
    channel_burst: int = 5
    channel_per_second: float = 1.0
    posts: int = 300
    unlisted: bool = False

    @property
    def page(self) -> int | None:
        """The most messages one call for history is given; None is the documented 1000."""
        return 15 if self.unlisted else None


class SlackLimiter:
    """Counts calls, and refuses what comes too soon."""

    def __init__(self, clock: Clock, pace: SlackPace) -> None:
        self.pace = pace
        self._calls = SlidingWindow(clock)

    def enter(self, call: SlackCall) -> None:
        """Note a call, or say how long to wait for the next."""
        rules = self._rules(call)
        if (wait := max(self._calls.wait(*rule) for rule in rules)) > 0:
            raise SlackRefusal("ratelimited", status=429, headers={"Retry-After": str(retry_after(wait))})
        for key, _, _ in rules:
            self._calls.add(key)

    def _rules(self, call: SlackCall) -> list[tuple[tuple[str, str], int, float]]:
        pace, method = self.pace, call.method
        if method in HISTORY and pace.unlisted:
            return [((method, ""), 1, MINUTE)]
        if method in POSTS:
            burst = pace.channel_burst
            channel = (method, call.text("channel"))
            return [(channel, burst, burst / pace.channel_per_second), ((method, ""), pace.posts, MINUTE)]
        return [((method, ""), pace.methods.get(method, pace.other), MINUTE)]
