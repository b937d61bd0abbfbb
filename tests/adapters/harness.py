"""Harness of an adapter: a real HTTP client, a platform on loopback, and everything the adapter accepted."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Adapter, Clock, Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.testing import FakeContext

LIMIT = 60.0

A = TypeVar("A", bound=Adapter)


class Harness(Generic[A]):
    """One adapter and everything it accepted."""

    def __init__(self, make: Callable[..., A], config: Any, hosts: Collection[str], clock: Clock | None) -> None:
        self.client = Client(hosts=hosts)
        self.context = FakeContext(clock=clock or SystemClock(), http=self.client)
        self.adapter = make(config, self.context)
        self.taken: list[tuple[Arrival, str | None]] = []
        self.may_take = asyncio.Event()
        self.may_take.set()
        self.outcome = MessageOutcome.OBSERVED

    async def accept(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        await self.may_take.wait()
        self.taken.append((arrival, cursor))
        return Taken(outcome=self.outcome)

    @property
    def messages(self) -> list[Message]:
        return [arrival for arrival, _ in self.taken if isinstance(arrival, Message)]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def cursor(self) -> str | None:
        """The last one that was committed."""
        return next((cursor for _, cursor in reversed(self.taken) if cursor is not None), None)

    async def connected(self, *, waits: bool) -> None:
        """Wait until what is said is heard, where a platform keeps a line."""

    @asynccontextmanager
    async def listening(self, cursor: str | None = None, *, waits: bool = True) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(self.accept, cursor))
            try:
                async with asyncio.timeout(LIMIT):
                    await self.connected(waits=waits)
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


async def until(happened: Callable[[], object]) -> None:
    """Wait for what another task, or the far side of a socket, is about to do."""
    async with asyncio.timeout(LIMIT):
        while not happened():
            await asyncio.sleep(0.002)
