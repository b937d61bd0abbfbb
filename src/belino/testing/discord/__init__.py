"""Discord server: REST, gateway and CDN on loopback that follow the documented rules, for tests and benchmarks.

Facts are from Discord's API documentation (reference, gateway, rate limits, opcodes and status codes).
"""

import json
import mimetypes
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.discord.calls import DiscordCalls
from belino.testing.discord.gateway import (
    HEARTBEAT_SECONDS,
    INVALID,
    MEMBERS,
    MESSAGE_CONTENT,
    PRESENCES,
    RECONNECT,
    DiscordGateway,
    DiscordSession,
)
from belino.testing.discord.request import (
    CDN,
    GONE,
    DiscordCall,
    DiscordLimiter,
    DiscordPace,
    DiscordRefusal,
    cloudflare_ban,
    limited,
    read_body,
)
from belino.testing.discord.shapes import Json
from belino.testing.discord.world import DiscordWorld
from belino.testing.faults import CannedAnswer, Reset, Stall
from belino.testing.file_server import cut
from belino.testing.platform_server import PlatformServer

if TYPE_CHECKING:
    from aiohttp import web

BOT_ID = "1100000000000000042"
TOKEN = f"{urlsafe_b64encode(BOT_ID.encode()).decode().rstrip('=')}.GbElin.DemoTokenThatOpensNothing00000000000000"
# These need no token; answers to interactions have one in their path.
_OPEN = ("/interactions/", "/webhooks/")


class DiscordServer(DiscordWorld, PlatformServer[DiscordCall]):
    """A fake Discord: inside `async with`, a bot is configured with `api_url` and `token`.

    People act through the methods of DiscordWorld (`say`, `edit`, `react` …); `calls` counts calls by route, and `CDN`
    downloads; `drop_socket` and similar methods end gateway connections; `fail` takes a route by its documented name,
    `POST /channels/{channel}/messages`, and the faults of `testing.faults` and `discord.request`.
    """

    platform = "discord"
    upload_bytes = 200 * 1024 * 1024
    ports = 2
    api_url: str
    gateway_url: str

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        token: str = TOKEN,
        username: str = "belino",
        pace: DiscordPace | None = None,
        message_content: bool = True,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        DiscordWorld.__init__(self, self.clock, bot_id=BOT_ID, bot_name=username)
        self.token = token
        self.credentials_leaked = 0
        """Requests to the CDN with credentials, which it does not require."""
        self.gateway = DiscordGateway(self.sessions, self._ready, self.member_chunks)
        self.gateway.heartbeat_seconds = heartbeat_seconds
        self.gateway.token = token
        self.resume_url: str | None = None
        """The resume URL of READY, if it differs from the gateway's."""
        self._answers = DiscordCalls(self)
        self._limiter = DiscordLimiter(self.clock, pace or DiscordPace())
        self.allow(message_content=message_content)

    def allow(self, *, message_content: bool = True, members: bool = False, presences: bool = False) -> None:
        """The privileged intents enabled on the bot's page."""
        chosen = ((message_content, MESSAGE_CONTENT), (members, MEMBERS), (presences, PRESENCES))
        self.gateway.allowed = self._answers.allowed = sum(intent for on, intent in chosen if on)

    async def drop_socket(self, code: int | None = None) -> None:
        """End every gateway connection: with a close code, or by breaking it."""
        if code is not None:
            await self.gateway.close_all(code)
        else:
            for connection in list(self.gateway.connections):
                connection.abort()

    async def ask_to_reconnect(self) -> None:
        """Ask every client to reconnect (op 7)."""
        for connection in list(self.gateway.connections):
            await connection.tell(RECONNECT)

    async def forget_sessions(self) -> None:
        """Make all sessions unresumable: a disconnected client misses later events."""
        self.sessions.live.clear()
        await self.gateway.close_all(4009)

    async def invalidate(self, *, resumable: bool = False) -> None:
        """Declare every session invalid (op 9)."""
        for connection in list(self.gateway.connections):
            if connection.session is not None and not resumable:
                self.sessions.end(connection.session)
            await connection.tell(INVALID, resumable)

    def add_routes(self, app: "web.Application") -> None:
        for path in ("/", "/resume", "/resume/"):
            app.router.add_get(path, self.gateway.take)
        app.router.add_route("*", "/api/{rest:.*}", self._take_call)
        app.router.add_get("/{rest:.+}", self._take_file)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        self.cdn.url = urls[1]
        self.api_url = f"{self.url}/api/v10"
        self.gateway_url = self._answers.gateway_url = self.url.replace("http:", "ws:")

    async def closing(self) -> None:
        await self.gateway.close_all(1001)

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        return _json(fault.status, {"message": fault.description, "code": 0, **fault.parameters}, fault.headers)

    def _ready(self, session: DiscordSession) -> list[tuple[str, Json]]:
        ready: Json = {
            "v": 10,
            "user": {**self.bot, "verified": True, "mfa_enabled": False, "email": None, "flags": 0},
            "guilds": [{"id": guild, "unavailable": True} for guild in self.guilds],
            "session_id": session.id,
            "resume_gateway_url": self.resume_url or f"{self.gateway_url}/resume",
            "session_type": "normal",
            "application": {"id": self.bot["id"], "flags": self._answers.application_flags()},
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "user_settings": {},
            "shard": self.sessions.identified[-1].get("shard", [0, 1]),
            "_trace": [],
        }
        return [("READY", ready), *self.first_events(session)]

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if self._limiter.banned:
            ban = cloudflare_ban()
            return web.Response(status=ban.status, body=ban.body, headers=ban.headers)
        try:
            answered = await self._answer(request)
        except DiscordRefusal as error:
            answered = _json(error.status, error.body())
        self._limiter.count(answered.status)
        return answered

    async def _answer(self, request: "web.Request") -> "web.StreamResponse":
        path = "/" + request.match_info["rest"].partition("/")[2] if _versioned(request) else request.path[4:]
        known = request.headers.get("Authorization") == f"Bot {self.token}"
        if not known and path != "/gateway" and not path.startswith(_OPEN):
            raise DiscordRefusal(401, 0, "401: Unauthorized")
        call, answer = self._answers.find(request.method, path)
        call.query, call.agent = dict(request.query), request.headers.get("User-Agent", "")
        fault = self.faults.take(call.name)
        self.calls[call.name] += 1
        self.record(call)
        if isinstance(fault, Stall):
            await self.stall(request, fault)
        headers: dict[str, str] = {}
        try:
            await read_body(request, call, self.folder)
            if (wait := 0.0 if path.startswith(_OPEN) else self._limiter.whole()) > 0:
                return _limited(wait, "global", {})
            wait, headers = self._limiter.enter(call)
            if wait > 0:
                return _limited(wait, "user", headers)
            if (troubled := await self.misbehave(request, fault)) is not None:
                return troubled
            result = answer(call)
        except DiscordRefusal as error:
            return _json(error.status, error.body(), headers)
        if isinstance(fault, Reset):
            cut(request)
        return _json(204, None, headers) if result is GONE else _json(200, result, headers)

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        self.calls[CDN] += 1
        self.credentials_leaked += "Authorization" in request.headers
        fault = self.faults.take(CDN)
        if (troubled := await self.misbehave(request, fault)) is not None:
            return troubled
        stored = self.cdn.find(request.rel_url.raw_path, request.query)
        if stored is None:
            return _text(404, "This content is no longer available.")
        mime = stored.upload.mime or mimetypes.guess_type(stored.path)[0] or "application/octet-stream"
        return await self.serve(request, stored, fault, mime=mime)


def _versioned(request: "web.Request") -> bool:
    return request.match_info["rest"].partition("/")[0] in ("v9", "v10")


def _json(status: int, value: Any, headers: Mapping[str, str] | None = None) -> "web.Response":
    """Discord's exact content type, which its libraries compare literally."""
    from aiohttp import web

    sent = {"Via": "1.1 google", **(headers or {})}
    if value is None:
        return web.Response(status=status, headers=sent)
    body = json.dumps(value, ensure_ascii=False).encode()
    return web.Response(status=status, body=body, headers={**sent, "Content-Type": "application/json"})


def _limited(wait: float, scope: str, headers: Mapping[str, str]) -> "web.Response":
    body, more = limited(wait, scope)
    return _json(429, body, {**headers, **more})


def _text(status: int, text: str) -> "web.Response":
    from aiohttp import web

    return web.Response(status=status, text=text)
