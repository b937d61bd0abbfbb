"""An app made of slack-sdk itself, and what it hears."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import FakeClock
from belino.testing.slack import SlackServer

Told = dict[str, Any]
LIMIT = 60.0


def web_client(server: SlackServer, token: str | None = None) -> AsyncWebClient:
    """The library's own client, which calls once: it would repeat a call whose connection broke."""
    return AsyncWebClient(
        token=server.bot_token if token is None else token, base_url=server.api_url, retry_handlers=[]
    )


def clock_of(server: SlackServer) -> FakeClock:
    """The clock of a server, for a test to move."""
    assert isinstance(server.clock, FakeClock)
    return server.clock


async def until(condition: Any) -> None:
    """Wait for what another task is about to do."""
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0)


async def refused(call: Any) -> Told:
    """What Slack answers to a call that it does not take."""
    try:
        answer = await call
    except SlackApiError as error:
        told: Told = dict(error.response.data) | {"status": error.response.status_code}
        return told | {"headers": {name.lower(): value for name, value in error.response.headers.items()}}
    raise AssertionError(f"Slack took it: {answer.data}")


class Listener:
    """Acknowledges what it hears, unless told to be silent."""

    def __init__(self, server: SlackServer) -> None:
        self.heard: list[SocketModeRequest] = []
        self.silent = False
        self.more = asyncio.Event()
        web = web_client(server, "")
        # Any: the library's connect and close are not typed.
        self.client: Any = SocketModeClient(app_token=server.app_token, web_client=web, ping_interval=0.2)
        self.client.socket_mode_request_listeners.append(self._hear)

    async def _hear(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        if not self.silent:
            await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        self.heard.append(request)
        self.more.set()

    @property
    def events(self) -> list[Told]:
        return [request.payload["event"] for request in self.heard if request.type == "events_api"]

    async def wait(self, count: int) -> list[Told]:
        """The events, once there are so many envelopes."""
        async with asyncio.timeout(LIMIT):
            while len(self.heard) < count:
                self.more.clear()
                await self.more.wait()
        return self.events


@asynccontextmanager
async def listening(server: SlackServer) -> AsyncIterator[Listener]:
    """A connected app."""
    listener = Listener(server)
    try:
        await listener.client.connect()
        await connected(server, 1)
        yield listener
    finally:
        await listener.client.close()


async def connected(server: SlackServer, opened: int) -> None:
    """Until so many connections were ever opened."""
    async with asyncio.timeout(LIMIT):
        while server.socket_mode.opened < opened or not server.socket_mode.connections:
            await asyncio.sleep(0)
