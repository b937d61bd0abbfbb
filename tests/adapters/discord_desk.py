"""A bot at its desk: the adapter, a real HTTP client, and Discord on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapters.telegram_desk import LIMIT
from belino.adapters.discord import Adapter, Config, hosts
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Clock, Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeDesk
from belino.testing.discord import TOKEN, DiscordServer
from belino.testing.discord_shapes import Json


class Bot:
    """One adapter and everything it accepted."""

    def __init__(self, server: DiscordServer, *, token: str = TOKEN, clock: Clock | None = None, **more: Any) -> None:
        settings = {"api_url": server.api_url, "cdn_url": server.cdn.url, **more}
        self.config = Config(token=Secret("TOKEN", token), **settings)
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
    def texts(self) -> list[str]:
        return [arrival.text for arrival, _ in self.taken if isinstance(arrival, Message)]

    @property
    def cursor(self) -> str | None:
        """The last one that was committed."""
        return next((cursor for _, cursor in reversed(self.taken) if cursor is not None), None)

    @asynccontextmanager
    async def listening(self, cursor: str | None = None) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(self.accept, cursor))
            try:
                async with asyncio.timeout(LIMIT):
                    await self.adapter.connected()
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


def place(channel: Json, thread: Json | None = None) -> ConversationKey:
    own = None if thread is None else str(thread["id"])
    return ConversationKey(platform="discord", account="default", channel=str(channel["id"]), thread=own)
