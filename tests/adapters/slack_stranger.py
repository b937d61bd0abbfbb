"""A Slack that somebody else wrote: it answers what it is told to, and says no more than it must."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from belino.adapters.slack import Adapter, Config, hosts
from belino.domain.message import Arrival, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeContext
from belino.testing.platform_server import Loopback

LIMIT = 60.0
BOT_TOKEN = "xoxb-1-2-secret"
APP_TOKEN = "xapp-1-2-secret"

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Stranger:
    """Answers by method; sockets and every other page as the test says."""

    url: str
    lines: str
    """Where its sockets are."""

    def __init__(self) -> None:
        self.answers: dict[str, Mapping[str, Any]] = {"auth.test": {"user_id": "U0BELINO01", "team_id": "T0WORK0001"}}
        """What methods answer; of those that are not named it knows nothing."""
        self.only_get: set[str] = set()
        """Methods it knows by that verb alone."""
        self.calls: Counter[str] = Counter()
        self.asked: dict[str, Mapping[str, str]] = {}
        """The fields of the last call of each method."""
        self.page: Page = self._nothing
        self.socket: Callable[[web.WebSocketResponse], Awaitable[None]] = self._hello
        self.sockets: list[web.WebSocketResponse] = []
        self.opened = 0
        """How many sockets there ever were."""
        self.acks: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        """Of every request that is no call of a method."""

    async def tell(self, payload: Mapping[str, Any]) -> None:
        await self.sockets[-1].send_json(payload)

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        self.calls[method] += 1
        if method in self.only_get and request.method != "GET":
            return web.Response(status=405)
        fields = {**request.query, **await request.post()}
        self.asked[method] = {name: str(value) for name, value in fields.items()}
        if method == "apps.connections.open":
            return web.json_response({"ok": True, "url": f"{self.lines}/socket".replace("http", "ws", 1)})
        if method not in self.answers:
            return web.json_response({"ok": False, "error": "unknown_method"})
        return web.json_response({"ok": True, **self.answers[method]})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        self.opened += 1
        await self.socket(socket)
        async for frame in socket:
            self.acks.append(json.loads(frame.data))
        self.sockets.remove(socket)
        return socket

    async def _any(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        return await self.page(request)

    @staticmethod
    async def _hello(socket: web.WebSocketResponse) -> None:
        await socket.send_json({"type": "hello"})

    @staticmethod
    async def _nothing(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(status=404)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stranger"]:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/socket", self._socket)
        app.router.add_route("*", "/{path:.+}", self._any)
        async with Loopback(app) as loopback:
            self.url = self.lines = loopback.urls[0]
            yield self


class Guest:
    """Our adapter at a stranger's."""

    def __init__(self, stranger: Stranger, **settings: Any) -> None:
        bot_token, app_token = Secret("B", BOT_TOKEN), Secret("A", APP_TOKEN)
        config = Config(bot_token=bot_token, app_token=app_token, api_url=f"{stranger.url}/api/", **settings)
        self.client = Client(hosts=hosts(config))
        self.adapter = Adapter(config, FakeContext(clock=SystemClock(), http=self.client))
        self.arrivals: list[Arrival] = []

    async def accept(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        self.arrivals.append(arrival)
        return Taken(outcome=MessageOutcome.OBSERVED)

    @property
    def texts(self) -> list[str]:
        return [arrival.text for arrival in self.arrivals if isinstance(arrival, Message)]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(self.accept, None))
            try:
                yield
            finally:
                running.cancel()


@asynccontextmanager
async def visiting(**settings: Any) -> AsyncIterator[tuple[Stranger, Guest]]:
    async with Stranger().running() as stranger:
        guest = Guest(stranger, **settings)
        try:
            async with asyncio.timeout(LIMIT):
                yield stranger, guest
        finally:
            await guest.client.close()
