"""Request of the REST API: one received call, rate limits, and error answers."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer
from belino.testing.file_server import PIECE, FakeUpload, form_parts
from belino.testing.platform_server import SlidingWindow, retry_after

if TYPE_CHECKING:
    from aiohttp import web

REQUEST_BYTES = 25 * 1024 * 1024
PAYLOAD = "payload_json"
GONE: Json = {}
"""An answer without a body."""

Answered = Json | list[Json]
_FILE = re.compile(r"files\[(\d+)\]")
INVALID_SECONDS = 600.0
# Calls and seconds. Discord publishes none and refers to the headers; these are what bots usually see.
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
CDN = "CDN"
"""The key of a fault for the next file request."""

_BAN = """<!DOCTYPE html><html><head><title>Access denied | Cloudflare</title></head>
<body><h1>Error 1015</h1><h2>You are being rate limited</h2></body></html>"""


class DiscordRefusal(Exception):
    """An error answer: a status, Discord's code, a message, and the invalid fields."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = errors

    def body(self) -> Json:
        told: Json = {"message": str(self), "code": self.code}
        return told | ({"errors": self.errors} if self.errors else {})


def invalid(path: str, code: str, message: str) -> DiscordRefusal:
    """A form error at one place, `a.0.b`."""
    errors: Json = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(path.split(".") if path else []):
        errors = {name: errors}
    return DiscordRefusal(400, 50035, "Invalid Form Body", errors)


def too_large() -> DiscordRefusal:
    return DiscordRefusal(413, 40005, "Request entity too large")


@dataclass(slots=True, kw_only=True)
class DiscordCall:
    """One call: its documented route, the ids in it, the query, the JSON and the files by number."""

    method: str
    route: str
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    fields: Json = field(default_factory=dict)
    files: dict[str, FakeUpload] = field(default_factory=dict)
    agent: str = ""
    """The User-Agent, which must begin with DiscordBot."""

    @property
    def name(self) -> str:
        """Its name in `fail` and `calls`: `POST /channels/{channel}/messages`."""
        return f"{self.method} {self.route}"


async def read_body(request: "web.Request", call: DiscordCall, folder: Path) -> None:
    """The JSON and the files of a call; files are streamed to the folder."""
    if request.content_length is not None and request.content_length > REQUEST_BYTES:
        await _drain(request)
        raise too_large()
    if request.content_type.startswith("multipart/"):
        await _read_parts(request, call, folder)
    elif request.can_read_body and request.method != "GET":
        written = await request.read()
        if written and request.content_type != "application/json":
            raise invalid(
                "", "CONTENT_TYPE_INVALID", 'Expected "Content-Type" header to be one of {"application/json"}.'
            )
        call.fields = _parsed(written) if written else {}


async def _drain(request: "web.Request") -> None:
    async for _ in request.content.iter_chunked(PIECE):
        pass


def _parsed(written: str | bytes) -> Json:
    try:
        value: Any = json.loads(written)
    except ValueError:
        raise DiscordRefusal(400, 50109, "The request body contains invalid JSON.") from None
    return value if isinstance(value, dict) else {"": value}


async def _read_parts(request: "web.Request", call: DiscordCall, folder: Path) -> None:
    taken = 0
    async for name, value in form_parts(request, folder, text_field=PAYLOAD):
        if isinstance(value, FakeUpload):
            found = _FILE.fullmatch(name)
            taken += value.announced
            call.files[found[1] if found else str(len(call.files))] = value
        elif name == PAYLOAD:
            call.fields |= _parsed(value)
        else:
            call.fields[name] = value
    if taken > REQUEST_BYTES:
        raise too_large()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordPace:
    """The rate limit of each route; unnamed routes have `other`."""

    routes: Mapping[str, tuple[int, float]] = field(default_factory=lambda: _ROUTES)
    other: tuple[int, float] = (50, 1.0)
    all_per_second: int = 50
    invalid_per_ten_minutes: int = 10_000


@dataclass(slots=True)
class _Bucket:
    left: int
    ends: float


class DiscordLimiter:
    """Counts calls, and gives the headers of each answer."""

    def __init__(self, clock: Clock, pace: DiscordPace) -> None:
        self._clock = clock
        self._pace = pace
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._calls = SlidingWindow(clock)

    @property
    def banned(self) -> bool:
        """Whether the address is banned, after too many refused calls."""
        return self._calls.wait("refused", max(self._pace.invalid_per_ten_minutes, 1), INVALID_SECONDS) > 0

    def count(self, status: int) -> None:
        if status in (401, 403, 429):
            self._calls.add("refused")

    def whole(self) -> float:
        """How long the bot must wait before any call; 0 if it need not."""
        wait = self._calls.wait("all", max(self._pace.all_per_second, 1), 1.0)
        if not wait:
            self._calls.add("all")
        return wait

    def enter(self, call: DiscordCall) -> tuple[float, dict[str, str]]:
        """The wait for this route, and the answer's headers."""
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
    """The body and the headers of a 429: `user` for a route, `global`, or `shared` by all users of the channel."""
    message = "The resource is being rate limited." if scope == "shared" else "You are being rate limited."
    body = {"message": message, "retry_after": round(wait, 3), "global": scope == "global"}
    headers = {"Retry-After": str(retry_after(wait)), "X-RateLimit-Scope": scope}
    return body, headers | ({"X-RateLimit-Global": "true"} if scope == "global" else {})


def refusal(status: int, code: int, message: str, **more: Json) -> CannedAnswer:
    """A status with Discord's own code."""
    return _answer(status, {"message": message, "code": code, **more}, {})


def slow_down(seconds: float, scope: str = "user") -> CannedAnswer:
    """A 429: of the route (`user`), of everything (`global`), or shared with others (`shared`)."""
    body, headers = limited(seconds, scope)
    return _answer(429, body, {**headers, "Via": "1.1 google"})


def cloudflare_ban(seconds: int | None = None) -> CannedAnswer:
    """The 429 of Cloudflare, in front of Discord: an HTML page, no JSON, no Via."""
    headers = {"Content-Type": "text/html; charset=UTF-8"}
    return CannedAnswer(
        status=429, body=_BAN.encode(), headers=headers | ({"Retry-After": str(seconds)} if seconds is not None else {})
    )


def _answer(status: int, body: Json, headers: dict[str, str]) -> CannedAnswer:
    return CannedAnswer(
        status=status, body=json.dumps(body).encode(), headers={**headers, "Content-Type": "application/json"}
    )
