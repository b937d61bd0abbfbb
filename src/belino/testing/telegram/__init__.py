"""Telegram server: a Bot API on loopback that follows the documented rules, for tests, benchmarks and the demo.

Facts are from core.telegram.org/bots/api and bots/faq; error texts are those of Telegram's own server.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Reset, Stall
from belino.testing.file_server import cut
from belino.testing.platform_server import PlatformServer
from belino.testing.telegram.calls import TelegramCalls
from belino.testing.telegram.request import TelegramCall, TelegramPace, TelegramRefusal, read_call
from belino.testing.telegram.updates import RESTART, push
from belino.testing.telegram.world import TelegramWorld

if TYPE_CHECKING:
    from aiohttp import web

BOT_ID = 4242
TOKEN = f"{BOT_ID}:AAHbelinoDemoTokenThatOpensNothing00"
LINK_SECONDS = 3600
"""How long the link of getFile is valid."""


class TelegramServer(TelegramWorld, PlatformServer[TelegramCall]):
    """A fake Telegram: inside `async with`, a bot is configured with `url` and `token`.

    People act through the methods of TelegramWorld (`say`, `edit`, `react` …); `calls` and `bytes_served` count the
    cost of the bot, `requests` records all calls except getUpdates; `fail` takes a method (`file` for downloads) and
    the faults of `testing.faults`. `big_files` is a local Bot API server: no 20 MB limit.
    With `local_root` it runs with --local: getFile writes the file below that folder and names its path there.
    """

    platform = "telegram"
    upload_bytes = 2100 * 1024 * 1024

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        token: str = TOKEN,
        username: str = "belino_bot",
        pace: TelegramPace | None = None,
        big_files: bool = False,
        local_root: Path | None = None,
    ) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        TelegramWorld.__init__(self, self.clock, bot_name=username, bot_id=int(token.partition(":")[0]))
        self.token = token
        self._answers = TelegramCalls(
            self,
            self.clock,
            pace=pace or TelegramPace(),
            big_files=big_files or local_root is not None,
            local_folder=None if local_root is None else local_root / token,
        )
        self._group = asyncio.TaskGroup()
        self._pusher: asyncio.Task[None] | None = None

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_route("*", "/bot{token}/{method}", self._take_call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._take_file)
        app.router.add_route("*", "/{rest:.*}", _not_found)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        await self._group.__aenter__()

    async def closing(self) -> None:
        self.updates.interrupt(RESTART)
        if self._pusher is not None:
            self._pusher.cancel()
        await self._group.__aexit__(None, None, None)

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        return _error(fault.status, fault.description, fault.parameters, fault.headers)

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        if request.match_info["token"] != self.token:
            # Telegram answers 404 to a malformed token.
            known = ":" in request.match_info["token"]
            return _error(401, "Unauthorized") if known else _error(404, "Not Found")
        method = request.match_info["method"]
        fault = self.faults.take(method)
        if isinstance(fault, Stall):
            await self.stall(request, fault)
        call = await read_call(request, self.folder)
        self.calls[method] += 1
        if method.lower() != "getupdates":
            self.record(call)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        try:
            result = await self._answers.answer(call)
        except TelegramRefusal as error:
            return _error(error.code, str(error), error.parameters)
        self._keep_pushing()
        if isinstance(fault, Reset):
            cut(request)
        return _json(200, {"ok": True, "result": result})

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        self.calls[FILE] += 1
        fault = self.faults.take(FILE)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        stored = self.files.by_path.get(request.match_info["path"])
        if request.match_info["token"] != self.token:
            return _error(401, "Unauthorized")
        now = self.clock.monotonic()
        if stored is None or stored.opened_at is None or now - stored.opened_at >= LINK_SECONDS:
            return _error(404, "Not Found")
        return await self.serve(request, stored, fault)

    def _keep_pushing(self) -> None:
        """Start or stop the delivery to a webhook, by the last call's setting."""
        wanted = bool(self.updates.webhook.url)
        if wanted and self._pusher is None:
            self._pusher = self._group.create_task(push(self.updates, self.clock))
        elif not wanted and self._pusher is not None:
            self._pusher.cancel()
            self._pusher = None


async def _not_found(request: "web.Request") -> "web.StreamResponse":
    return _error(404, "Not Found")


def _error(
    code: int, description: str, parameters: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> "web.Response":
    told: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    sent = dict(headers or {})
    if parameters:
        told["parameters"] = dict(parameters)
        if "retry_after" in parameters:
            sent.setdefault("Retry-After", str(parameters["retry_after"]))
    return _json(code, told, sent)


def _json(status: int, value: Any, headers: Mapping[str, str] | None = None) -> "web.Response":
    from aiohttp import web

    return web.json_response(value, status=status, headers=headers)
