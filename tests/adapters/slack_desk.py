"""An app at its desk: the adapter, a real HTTP client, and Slack on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from belino.adapters.slack import Adapter, Config, hosts
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Clock, Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeDesk, SlackServer

LIMIT = 20.0


class App:
    """One adapter and everything it accepted."""

    def __init__(self, server: SlackServer, *, clock: Clock | None = None, **settings: Any) -> None:
        tokens = {"bot_token": server.bot_token, "app_token": server.app_token, "signing_secret": server.signing_secret}
        tokens |= {name: settings.pop(name) for name in tokens if name in settings}
        given: dict[str, Any] = {name: Secret(name.upper(), token) for name, token in tokens.items()}
        self.server = server
        self.config = Config(**given, api_url=settings.pop("api_url", server.api_url), **settings)
        self.client = Client(hosts=hosts(self.config))
        self.desk = FakeDesk(clock=clock or SystemClock(), http=self.client)
        self.adapter = Adapter(self.config, self.desk)
        self.taken: list[tuple[Arrival, str | None]] = []
        self.may_take = asyncio.Event()
        self.may_take.set()

    async def accept(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        await self.may_take.wait()
        self.taken.append((arrival, cursor))
        return Taken(outcome=MessageOutcome.OBSERVED)

    @property
    def arrivals(self) -> list[Arrival]:
        return [arrival for arrival, _ in self.taken]

    @property
    def messages(self) -> list[Message]:
        return [arrival for arrival in self.arrivals if isinstance(arrival, Message)]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def cursor(self) -> str | None:
        return next((cursor for _, cursor in reversed(self.taken) if cursor is not None), None)

    @asynccontextmanager
    async def listening(self, cursor: str | None = None, *, waits: bool = True) -> AsyncIterator[None]:
        """Listen; `waits` for a line that events come over: what is said before comes a minute later."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(self.accept, cursor))
            try:
                async with asyncio.timeout(LIMIT):
                    await self.adapter.connected()
                    while waits and self.config.mode == "socket" and not self.server.socket_mode.connections:
                        await asyncio.sleep(0.002)
                yield
            finally:
                running.cancel()

    async def listen(self, cursor: str | None = None) -> None:
        """Listen until that ends by itself."""
        async with asyncio.timeout(LIMIT):
            await self.adapter.run(self.accept, cursor)

    async def fetch(self, ref: MediaRef) -> bytes:
        async with asyncio.timeout(LIMIT), self.adapter.open_media(ref) as chunks:
            return b"".join([chunk async for chunk in chunks])


def place(channel: Any, thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform="slack", account="default", channel=str(channel["id"]), thread=thread)


@asynccontextmanager
async def making_apps(server: SlackServer) -> AsyncIterator[Callable[..., App]]:
    """Makes apps, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(**settings: Any) -> App:
            app = App(server, **settings)
            closing.push_async_callback(app.client.close)
            return app

        yield make
