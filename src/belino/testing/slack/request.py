"""Request of the Web API: one received call, rate limits, and error answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.testing.platform_server import SlidingWindow, retry_after
from belino.testing.slack.shapes import Json

if TYPE_CHECKING:
    from aiohttp import web

JSON = "application/json"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
MINUTE = 60.0
POSTS = frozenset({"chat.postMessage"})
HISTORY = frozenset({"conversations.history", "conversations.replies"})
_TIERS: Mapping[str, int] = {
    "conversations.list": 20,
    "users.list": 20,
    "reactions.remove": 20,
    "chat.startStream": 20,
    "chat.appendStream": 100,
    "chat.stopStream": 20,
    "users.info": 100,
    "users.conversations": 50,
    "conversations.members": 100,
    "files.info": 100,
    "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
    "auth.test": 600,
    "chat.getPermalink": 600,
}


class SlackRefusal(Exception):
    """An error answer: `ok: false`, the error's name, and its details."""

    def __init__(self, error: str, *messages: str, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.headers = dict(headers or {})
        self.more: Json = {"response_metadata": {"messages": list(messages)}} if messages else {}

    def body(self) -> Json:
        return {"ok": False, "error": str(self), **self.more}


def missing_scope(needed: str, provided: frozenset[str] | set[str]) -> SlackRefusal:
    refused = SlackRefusal("missing_scope")
    refused.more = {"needed": needed, "provided": ",".join(sorted(provided))}
    return refused


def missing(name: str) -> SlackRefusal:
    return SlackRefusal("invalid_arguments", f"[ERROR] missing required field: {name}")


@dataclass(slots=True, kw_only=True)
class SlackCall:
    """One call of a method, its fields as strings or JSON values."""

    method: str
    token: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = ""
    charset: str | None = None

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def needed(self, name: str) -> str:
        if not (value := self.text(name)):
            raise missing(name)
        return value

    def whole(self, name: str, default: int, most: int) -> int:
        written = self.text(name) or str(default)
        if not written.isdecimal() or int(written) == 0:
            raise SlackRefusal("invalid_limit")
        return min(int(written), most)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1")

    def value(self, name: str, error: str) -> Any:
        """A field that holds JSON, which a form sends as text."""
        raw = self.fields.get(name)
        if not isinstance(raw, str) or not raw:
            return raw or None
        try:
            return json.loads(raw)
        except ValueError:
            raise SlackRefusal(error) from None


async def read_call(request: "web.Request", *, takes_json: bool) -> SlackCall:
    """The method, the token and the fields. JSON is read only where Slack reads it; elsewhere it is ignored."""
    call = SlackCall(method=request.match_info["method"], content_type=request.content_type, charset=request.charset)
    call.fields = fields = dict(request.query)
    header = request.headers.get("Authorization", "")
    call.token = header.removeprefix("Bearer ").strip() if header.startswith("Bearer ") else ""
    if request.method != "POST":
        call.content_type = ""
    elif request.content_type in FORMS:
        fields |= {name: str(value) for name, value in (await request.post()).items()}
    elif request.content_type == JSON:
        written = await request.read()
        fields |= _parsed(written) if takes_json and written else {}
    elif await request.read():
        raise SlackRefusal("invalid_post_type")
    if not call.token and request.content_type != JSON:
        call.token = str(fields.get("token") or "")
    return call


def _parsed(written: bytes) -> Json:
    try:
        value: Any = json.loads(written)
    except ValueError:
        raise SlackRefusal("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackRefusal("json_not_object")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackPace:
    """Calls a minute. Unnamed methods are of tier 3; `unlisted` is an app sold outside the Marketplace."""

    methods: Mapping[str, int] = field(default_factory=lambda: _TIERS)
    other: int = 50
    channel_burst: int = 5
    channel_per_second: float = 1.0
    posts: int = 300
    unlisted: bool = False

    @property
    def page(self) -> int | None:
        """The most messages per history call; None is the documented 1000."""
        return 15 if self.unlisted else None


class SlackLimiter:
    """Counts calls, and refuses those above the limit."""

    def __init__(self, clock: Clock, pace: SlackPace) -> None:
        self.pace = pace
        self._calls = SlidingWindow(clock)

    def enter(self, call: SlackCall) -> None:
        """Count a call, or refuse it with the wait until the next."""
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
