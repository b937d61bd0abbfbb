"""A bot at its desk: the adapter, a real HTTP client, and Telegram on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from belino.adapters.telegram import Adapter, Config, hosts
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Clock, Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeDesk, TelegramServer

CANARY = "4242:canary-AAHtokenThatMustNeverBeSeen"
LIMIT = 20.0


class Bot:
    """One adapter and everything it accepted."""

    def __init__(self, url: str, *, token: str = CANARY, clock: Clock | None = None, **settings: Any) -> None:
        self.config = Config(token=Secret("TOKEN", token), api_url=url, **settings)
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

    @asynccontextmanager
    async def listening(self, cursor: str | None = None) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(self.accept, cursor))
            try:
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


@asynccontextmanager
async def telegram(**settings: Any) -> AsyncIterator[TelegramServer]:
    async with TelegramServer(token=CANARY, **settings) as server:
        yield server


async def until(happened: Callable[[], object]) -> None:
    """Wait for what another task, or the far side of a socket, is about to do."""
    async with asyncio.timeout(LIMIT):
        while not happened():
            await asyncio.sleep(0.002)
