"""A whole gateway behind a real server on loopback, and clients that speak to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from belino.config import Config
from belino.domain.message import ConversationKey
from belino.domain.stored import GrantKind
from belino.gateway.gateway import Gateway
from belino.gateway.reload import file_source
from belino.storage.home import Home
from belino.web.server import serve

MAIN = ConversationKey(platform="web", account="default", channel="main")
WAIT = 60.0


@dataclass
class Site:
    """A running gateway and its address."""

    gateway: Gateway
    url: str
    login_url: str
    http: aiohttp.ClientSession
    program: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def cookie(self) -> str:
        """The name of its session cookie over plain HTTP."""
        return f"belino_session_{self.gateway.store.instance}"

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    async def token(self, conversation: ConversationKey = MAIN) -> dict[str, str]:
        """The header of a token for one conversation."""
        _, secret = await self.gateway.store.grant(GrantKind.CHANNEL, conversation=conversation, note="test")
        return {"Authorization": f"Bearer {secret}"}

    async def browser(self) -> dict[str, str]:
        """The headers of a logged-in page that asks for a change."""
        _, login = await self.gateway.store.grant(GrantKind.LOGIN, lifetime=timedelta(minutes=1))
        redeemed = await self.gateway.store.redeem(login, lifetime=timedelta(hours=1))
        assert redeemed is not None
        return {"Cookie": f"{self.cookie}={redeemed[1]}", "Origin": self.url, "X-Belino": "1"}

    async def ask(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> tuple[int, Any, "aiohttp.typedefs.LooseHeaders"]:
        """Status, JSON (or bytes) and headers of an answer, by default as the program beside the gateway."""
        sent = self.program if headers is None else headers
        async with self.http.request(method, self.url + path, headers=sent, allow_redirects=False, **more) as answer:
            body = await answer.read()
            is_json = answer.headers.get("content-type", "").startswith("application/json")
            return answer.status, json.loads(body) if is_json and body else body, answer.headers

    async def raw(self, request: bytes) -> bytes:
        """Whatever comes back for these very bytes, until the server is done."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            await writer.drain()
            async with asyncio.timeout(WAIT):
                return await reader.read()
        finally:
            writer.close()

    @asynccontextmanager
    async def socket(self, headers: dict[str, str] | None = None) -> AsyncIterator["Chat"]:
        """An open chat socket, past its hello."""
        sent = self.program if headers is None else headers
        async with self.http.ws_connect(f"{self.url}/ws", headers=sent, max_msg_size=0) as socket:
            chat = Chat(socket)
            chat.hello = await chat.event("hello")
            yield chat


class Chat:
    """One chat socket, as a client sees it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.hello: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self._number = 0

    async def frame(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT):
            message = await self.socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise ConnectionError(f"{message.type!r} {message.data!r}")
        read: dict[str, Any] = json.loads(message.data)
        return read

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of this name; others on the way are kept."""
        while True:
            read = await self.frame()
            if read["type"] == "event":
                self.events.append(read)
                if read["event"] == name:
                    return read

    async def response(self) -> dict[str, Any]:
        """The next response."""
        while True:
            read = await self.frame()
            if read["type"] == "res":
                return read
            self.events.append(read)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request, ok or not."""
        self._number += 1
        await self.socket.send_str(
            json.dumps({"type": "req", "id": f"r{self._number}", "method": method, "params": params})
        )
        response = await self.response()
        assert response["id"] == f"r{self._number}"
        return response

    async def closed(self) -> int | None:
        """Wait until the server closes; its code."""
        async with asyncio.timeout(WAIT):
            while (message := await self.socket.receive()).type is aiohttp.WSMsgType.TEXT:
                self.events.append(json.loads(message.data))
        return self.socket.close_code


@asynccontextmanager
async def running(folder: Path, config: Config | None = None, **options: Any) -> AsyncIterator[Site]:
    """A gateway and its server on a free port, until the block is left."""
    config = config or Config()
    config = replace(config, server=replace(config.server, port=0))
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    home = Home.at(folder / "home")
    options.setdefault("source", file_source(home, change=lambda read: replace(read, server=config.server)))
    async with Gateway(config, home, **options) as gateway, asyncio.TaskGroup() as group:
        working = group.create_task(gateway.run())
        page = group.create_task(serve(gateway, ready=told.set_result))
        async with asyncio.timeout(WAIT):
            await asyncio.wait((told, page), return_when=asyncio.FIRST_COMPLETED)
        run = json.loads(home.run_file.read_text())
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
                program = {"Authorization": f"Bearer {run['token']}"}
                yield Site(gateway=gateway, url=run["url"], login_url=told.result(), http=http, program=program)
        finally:
            gateway.stop()
            await working
            page.cancel()


@pytest.fixture
def run_site(tmp_path: Path) -> Any:
    """Start a gateway with a configuration, or in a folder, of its own: `async with run_site(config) as site`."""
    return lambda config=None, folder="", **options: running(tmp_path / folder, config, **options)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with running(tmp_path) as site:
        yield site
