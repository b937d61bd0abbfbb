"""discord.py as the client of our own Discord, and a bot as plain as curl beside it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, Self
from unittest.mock import patch

import aiohttp
import discord
from discord.gateway import DiscordWebSocket
from yarl import URL

from belino.testing.discord import DiscordServer

LIMIT = 60.0
AGENT = "DiscordBot (https://example.org, 1.0)"


class Listener(discord.Client):
    """discord.py, with everything it hears kept in order."""

    def __init__(self, **intents: bool) -> None:
        wanted = discord.Intents.default()
        wanted.message_content = intents.get("message_content", True)
        wanted.members = intents.get("members", False)
        # The library waits so long for servers that are still unavailable.
        super().__init__(intents=wanted, max_messages=None, guild_ready_timeout=0.01)
        self.heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(1000)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """The library waits five seconds here, out of courtesy to the real Discord."""

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        super().dispatch(event, *args, **kwargs)
        if event != "socket_event_type":
            self.heard.put_nowait((event, args[0] if args else None))

    async def next(self, kind: str) -> Any:
        async with asyncio.timeout(LIMIT):
            while True:
                heard, value = await self.heard.get()
                if heard == kind:
                    return value


@asynccontextmanager
async def aimed_at(server: DiscordServer) -> AsyncIterator[None]:
    """discord.py knows only the real Discord; while this lasts, ours is the real one."""
    with (
        patch.object(discord.http.Route, "BASE", server.api_url),
        patch.object(DiscordWebSocket, "DEFAULT_GATEWAY", URL(server.gateway_url)),
    ):
        yield


@asynccontextmanager
async def listening(server: DiscordServer, **intents: bool) -> AsyncIterator[Listener]:
    """A client that has heard READY."""
    async with aimed_at(server), Listener(**intents) as client, asyncio.TaskGroup() as group:
        task = group.create_task(client.start(server.token))
        await client.next("ready")
        yield client
        await client.close()
        await task


class Curl:
    """A bot that says exactly what a test wants."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(headers={"User-Agent": AGENT})
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **more: Any
    ) -> tuple[int, Any, Any]:
        """The status, the JSON or text, and the headers."""
        headers = {"Authorization": f"Bot {self._server.token if token is None else token}"}
        sent = {"json": body} if body is not None else {}
        url = self._server.api_url + path
        async with (
            asyncio.timeout(LIMIT),
            self._session.request(method, url, headers=headers, **sent, **more) as answer,
        ):
            json = answer.headers.get("Content-Type") == "application/json"
            return answer.status, await (answer.json() if json else answer.text()), answer.headers

    async def refused(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, int]:
        """The status and Discord's own code."""
        status, told, _ = await self.call(method, path, body, **more)
        assert status >= 400, told
        return status, told["code"]

    async def send(self, channel: Any, body: Any, *files: tuple[str, bytes, str]) -> tuple[int, Any, Any]:
        """POST a message, as a form where there are files."""
        path = f"/channels/{channel['id']}/messages"
        if not files:
            return await self.call("POST", path, body)
        form = aiohttp.FormData(quote_fields=False)
        form.add_field("payload_json", aiohttp.payload.JsonPayload(body), content_type="application/json")
        for number, (name, content, mime) in enumerate(files):
            form.add_field(f"files[{number}]", BytesIO(content), filename=name, content_type=mime)
        return await self.call("POST", path, data=form)

    async def get(self, url: str, **headers: str) -> tuple[int, bytes]:
        async with asyncio.timeout(LIMIT), self._session.get(url, headers=headers) as answer:
            return answer.status, await answer.read()

    @asynccontextmanager
    async def socket(self, **query: str) -> AsyncIterator["Socket"]:
        """A gateway connection that nobody takes care of."""
        async with self._session.ws_connect(self._server.gateway_url, params=query) as socket:
            yield Socket(socket, self._server.token)


class Socket:
    """The gateway's socket in plain JSON."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, token: str) -> None:
        self._socket = socket
        self._token = token

    async def say(self, op: int, payload: Any) -> None:
        await self._socket.send_json({"op": op, "d": payload})

    async def identify(self, intents: int = 1 << 9 | 1 << 12, **more: Any) -> None:
        await self.say(2, {"token": self._token, "intents": intents, "properties": {}, **more})

    async def resume(self, session_id: str, seq: int) -> None:
        await self.say(6, {"token": self._token, "session_id": session_id, "seq": seq})

    async def write(self, text: str) -> None:
        await self._socket.send_str(text)

    async def hear(self) -> Any:
        async with asyncio.timeout(LIMIT):
            return await self._socket.receive_json()

    async def hear_event(self, event: str) -> Any:
        while (heard := await self.hear())["t"] != event:
            pass
        return heard

    async def closed(self) -> int | None:
        """The code the gateway hangs up with."""
        async with asyncio.timeout(LIMIT):
            while not self._socket.closed:
                await self._socket.receive()
            return self._socket.close_code

    async def hang_up(self, code: int) -> None:
        await self._socket.close(code=code)
