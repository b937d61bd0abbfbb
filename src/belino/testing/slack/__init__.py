"""Slack server: Web API, files, Socket Mode and signed HTTP events on loopback that follow the documented rules.

Facts are from docs.slack.dev: methods and their errors, rate limits, Events API, Socket Mode, Slack Connect.
"""

import asyncio
from dataclasses import replace
from email.utils import format_datetime
from typing import TYPE_CHECKING

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Reset, Stall
from belino.testing.file_server import cut
from belino.testing.platform_server import PlatformServer
from belino.testing.slack.calls import TAKE_JSON, SlackCalls
from belino.testing.slack.events import RequestUrl
from belino.testing.slack.files import LOGIN_PAGE, receive
from belino.testing.slack.request import JSON, SlackCall, SlackLimiter, SlackPace, SlackRefusal, read_call
from belino.testing.slack.shapes import BOT_USER, Json
from belino.testing.slack.world import SlackWorld

if TYPE_CHECKING:
    from aiohttp import web

BOT_TOKEN = "xoxb-0000000001-0000000002-belinoOpensNothing"  # noqa: S105 - it opens nothing but this server
APP_TOKEN = "xapp-1-A0BLN000001-0000000003-belinoOpensNothing"  # noqa: S105
SIGNING_SECRET = "5f0c0ffee0belino0opens0nothing00"  # noqa: S105
UPLOAD = "upload"
"""The key of a fault for the next upload."""


class SlackServer(SlackWorld, PlatformServer[SlackCall]):
    """A fake Slack: inside `async with`, an app is configured with `api_url`, `bot_token` and `app_token`.

    People act through the methods of SlackWorld (`say`, `edit`, `react` …); `calls` and `bytes_served` count the cost
    of the app; `fail` takes a method (`file` for downloads, `upload`) and the faults of `testing.faults`;
    `drop_sockets` and `disconnect` end connections.
    Events come over Socket Mode until `use_http` names a request URL. Methods that only read take forms and queries and
    ignore JSON, like the real ones.
    """

    platform = "slack"
    upload_bytes = 2**31
    api_url: str

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        bot_token: str = BOT_TOKEN,
        app_token: str = APP_TOKEN,
        signing_secret: str = SIGNING_SECRET,
        bot_name: str = "belino",
        pace: SlackPace | None = None,
    ) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        SlackWorld.__init__(self, self.clock, bot_name=bot_name)
        self.bot_token = bot_token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.hooks = RequestUrl(self.clock, signing_secret)
        self.command_answers: list[Json] = []
        """The app's posts to the response URLs of slash commands, with their channel and the user who sees them."""
        self.downloads: list[tuple[str, bool]] = []
        """Every request for a file: its path, and whether it had the token."""
        self.redirect_files = False
        """Whether private links redirect to another link first, which needs the token too."""
        self.api = SlackCalls(
            self, SlackLimiter(self.clock, pace or SlackPace()), bot_token=bot_token, app_token=app_token
        )
        self._group = asyncio.TaskGroup()

    def drop_sockets(self) -> None:
        """Break every Socket Mode connection."""
        self.socket_mode.drop()

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """End every connection, or announce it: warning, refresh_requested, link_disabled."""
        if reason == "link_disabled":
            self.api.socket_mode_on = False
        await self.socket_mode.disconnect(reason)

    async def use_http(self, url: str) -> bool:
        """Turn Socket Mode off and send events to this address, if it answers the challenge."""
        if not await self.hooks.verify(url):
            return False
        self.api.socket_mode_on = False
        self.deliveries.line = self.hooks
        return True

    def revoke(self) -> None:
        """The bot's token is revoked: every call is refused, and the app is told."""
        self.api.tokens[self.bot_token] = "token_revoked"
        self.deliveries.event({"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}}, "tokens_revoked")

    def uninstall(self) -> None:
        """The app is uninstalled: its account is inactive, and it is told."""
        self.api.tokens[self.bot_token] = "account_inactive"
        self.deliveries.event({"type": "app_uninstalled"}, "app_uninstalled")

    def install(self) -> None:
        """The app is installed again, with the same token."""
        self.api.tokens[self.bot_token] = "bot"

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_route("*", "/api/{method}", self._take_call)
        app.router.add_get("/link/", self.socket_mode.take)
        app.router.add_post("/commands/{path:.+}", self._take_command_answer)
        app.router.add_post("/upload/v1/{ticket}", self._take_upload)
        app.router.add_get("/{kind:files-pri|files-origin}/{path:.+}", self._take_file)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        self.api_url = f"{self.url}/api/"
        self.files.url = self.url
        await self._group.__aenter__()
        self.deliveries.start(self._group)

    async def closing(self) -> None:
        self.deliveries.stop()
        await self._group.__aexit__(None, None, None)
        await self.socket_mode.close()

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        told = {"ok": False, "error": fault.description, **fault.parameters}
        return self._json(told, fault.status, dict(fault.headers))

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        method = request.match_info["method"]
        self.calls[method] += 1
        fault = self.faults.take(method)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        call = SlackCall(method=method)
        try:
            call = await read_call(request, takes_json=method in TAKE_JSON)
            self.record(call)
            told, status, headers = await self.api.answer(call), 200, self.api.headers(call)
        except SlackRefusal as refused:
            told, status, headers = refused.body(), refused.status, self.api.headers(call) | refused.headers
        if isinstance(fault, Reset):
            cut(request)
        return self._json(_warned(call, told), status, headers)

    async def _take_command_answer(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        left = self.responses.get(request.path)
        if left is None or left.until <= self.clock.monotonic():
            return web.Response(status=404, text="expired_url")
        if not left.posts:
            return web.Response(status=404, text="used_url")
        self.responses[request.path] = replace(left, posts=left.posts - 1)
        self.command_answers.append({"channel": left.channel, "user": left.user, **await request.json()})
        return web.Response(text="ok")

    async def _take_upload(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[UPLOAD] += 1
        fault = self.faults.take(UPLOAD)
        if isinstance(fault, Stall):
            await self.stall(request, fault)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        pending = self.files.pending.get(request.match_info["ticket"])
        if pending is None:
            return web.Response(status=404, text="upload not found")
        upload = await receive(request, pending.name, self.folder)
        if upload.announced != pending.length:
            return web.Response(status=400, text="the length is not the one that was announced")
        pending.received = upload
        if isinstance(fault, Reset):
            cut(request)
        return web.Response(text=f"OK - {upload.announced}")

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[FILE] += 1
        allowed = request.headers.get("Authorization", "") == f"Bearer {self.bot_token}"
        self.downloads.append((request.path, allowed))
        fault = self.faults.take(FILE)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        if not allowed or "files:read" not in self.scopes:
            return web.Response(body=LOGIN_PAGE, content_type="text/html", charset="utf-8")
        stored = self.files.find(request.raw_path.replace("/files-origin/", "/files-pri/", 1))
        if stored is None:
            return web.Response(status=404, text="<html><body>File not found</body></html>", content_type="text/html")
        if self.redirect_files and request.match_info["kind"] == "files-pri":
            raise web.HTTPFound(request.raw_path.replace("/files-pri/", "/files-origin/", 1))
        return await self.serve(request, stored, fault)

    def _json(self, told: Json, status: int, headers: dict[str, str]) -> "web.Response":
        from aiohttp import web

        date = format_datetime(self.clock.now(), usegmt=True)
        return web.json_response(told, status=status, headers={"Date": date, **headers})


def _warned(call: SlackCall, told: Json) -> Json:
    """Slack warns about JSON without a character set."""
    if call.content_type != JSON or call.charset:
        return told
    metadata = {**told.get("response_metadata", {}), "warnings": ["missing_charset"]}
    return {**told, "warning": "missing_charset", "response_metadata": metadata}
