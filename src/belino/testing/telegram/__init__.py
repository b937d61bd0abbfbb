"""A Bot API server on loopback that keeps Telegram's documented rules, for tests, benchmarks and the demo.

Facts are from core.telegram.org/bots/api and bots/faq; error texts are those of Telegram's own server.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Fault, Faults, Hang, Reset, Stall
from belino.testing.file_server import LINK_SECONDS, cut, serve_file
from belino.testing.loopback import Loopback
from belino.testing.telegram.calls import TelegramCalls
from belino.testing.telegram.pace import TelegramPace
from belino.testing.telegram.request import TelegramCall, TelegramRefusal
from belino.testing.telegram.updates import RESTART, push
from belino.testing.telegram.upload import read_call
from belino.testing.telegram.world import TelegramWorld

if TYPE_CHECKING:
    from aiohttp import web

BOT_ID = 4242
TOKEN = f"{BOT_ID}:AAHbelinoDemoTokenThatOpensNothing00"
UPLOAD_BYTES = 2100 * 1024 * 1024


class TelegramServer(TelegramWorld):
    """Telegram in a box: `async with`, then `url` and `token` are what a bot is configured with.

    People speak by the verbs of TelegramWorld (`say`, `edit`, `react` …); `calls` and `bytes_served` count the cost of
    the bot; `fail` takes the faults of `testing.faults`. `big_files` is a local Bot API server: no 20 MB limit.
    """

    url: str

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        token: str = TOKEN,
        username: str = "belino_bot",
        pace: TelegramPace | None = None,
        big_files: bool = False,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        super().__init__(self.clock, bot_name=username, bot_id=int(token.partition(":")[0]))
        self.token = token
        self.calls: Counter[str] = Counter()
        """How often each method was called, by its documented name as the bot wrote it; `file` counts downloads."""
        self.bytes_served = 0
        self.stalled = 0
        """Uploads that were left hanging."""
        self.requests: list[TelegramCall] = []
        """The last calls but getUpdates, as they came."""
        self._faults = Faults()
        self._answers = TelegramCalls(self, self.clock, pace=pace or TelegramPace(), big_files=big_files)
        self._group = asyncio.TaskGroup()
        self._stopped = asyncio.Event()
        self._pusher: asyncio.Task[None] | None = None

    def fail(self, method: str, fault: Fault, *, times: int = 1) -> None:
        """The next calls of a method (`file` for downloads, `*` for any) end in this fault."""
        self._faults.add(method, fault, times)

    def heal(self) -> None:
        """No fault waits any more."""
        self._faults.clear()

    async def __aenter__(self) -> Self:
        from aiohttp import web

        self._folder = TemporaryDirectory(prefix="belino-telegram-")
        app = web.Application(client_max_size=UPLOAD_BYTES)
        app.router.add_route("*", "/bot{token}/{method}", self._take_call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._take_file)
        app.router.add_route("*", "/{rest:.*}", _not_found)
        self._loopback = Loopback(app)
        await self._loopback.start()
        (self.url,) = self._loopback.urls
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.updates.interrupt(RESTART)
        self._stopped.set()
        if self._pusher is not None:
            self._pusher.cancel()
        await self._group.__aexit__(None, None, None)
        await self._loopback.stop()
        self._folder.cleanup()

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        if request.match_info["token"] != self.token:
            # Telegram says 404 to what cannot be a token at all.
            known = ":" in request.match_info["token"]
            return _error(401, "Unauthorized") if known else _error(404, "Not Found")
        method = request.match_info["method"]
        fault = self._faults.take(method)
        if isinstance(fault, Stall):
            await self._stall(request, fault)
        call = await read_call(request, Path(self._folder.name))
        self.calls[method] += 1
        if method.lower() != "getupdates":
            self.requests = [*self.requests[-999:], call]
        if (answered := await self._misbehave(request, fault)) is not None:
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
        fault = self._faults.take(FILE)
        if (answered := await self._misbehave(request, fault)) is not None:
            return answered
        stored = self.files.by_path.get(request.match_info["path"])
        if request.match_info["token"] != self.token:
            return _error(401, "Unauthorized")
        now = self.clock.monotonic()
        if stored is None or stored.opened_at is None or now - stored.opened_at >= LINK_SECONDS:
            return _error(404, "Not Found")
        return await serve_file(request, stored, fault, self._count)

    async def _misbehave(self, request: "web.Request", fault: Fault | None) -> "web.StreamResponse | None":
        """The answer of a fault that does not let the call through."""
        from aiohttp import web

        if isinstance(fault, Hang):
            if fault.seconds is None:
                await self._stopped.wait()
                cut(request)
            else:
                await self.clock.sleep(fault.seconds)
        elif isinstance(fault, Reset) and not fault.done:
            cut(request)
            return web.Response()
        elif isinstance(fault, CannedAnswer):
            if fault.body is not None:
                return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
            return _error(fault.status, fault.description, fault.parameters, fault.headers)
        return None

    async def _stall(self, request: "web.Request", fault: Stall) -> None:
        """Take so many bytes of the body, and no more until the server closes."""
        self.stalled += 1
        taken = 0
        while taken < fault.after and (piece := await request.content.readany()):
            taken += len(piece)
        await self._stopped.wait()
        cut(request)

    def _keep_pushing(self) -> None:
        """Start or stop the delivery to a webhook, as the last call left it."""
        wanted = bool(self.updates.webhook.url)
        if wanted and self._pusher is None:
            self._pusher = self._group.create_task(push(self.updates, self.clock))
        elif not wanted and self._pusher is not None:
            self._pusher.cancel()
            self._pusher = None

    def _count(self, number: int) -> None:
        self.bytes_served += number


async def _not_found(request: "web.Request") -> "web.StreamResponse":
    return _error(404, "Not Found")


def _error(
    code: int, description: str, parameters: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> "web.StreamResponse":
    told: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    sent = dict(headers or {})
    if parameters:
        told["parameters"] = dict(parameters)
        if "retry_after" in parameters:
            sent.setdefault("Retry-After", str(parameters["retry_after"]))
    return _json(code, told, sent)


def _json(status: int, value: Any, headers: Mapping[str, str] | None = None) -> "web.StreamResponse":
    from aiohttp import web

    return web.json_response(value, status=status, headers=headers)
