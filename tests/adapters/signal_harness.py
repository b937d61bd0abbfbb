"""An account under test, and a signal-cli daemon on loopback."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from adapters.harness import Harness, until
from belino.adapters.signal import Adapter, Config, hosts
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.testing import SignalServer


class Device(Harness[Adapter]):
    """One account and everything it accepted."""

    def __init__(self, server: SignalServer, *, clock: Clock | None = None, **settings: Any) -> None:
        self.server = server
        self.config = Config(url=server.url, **settings)
        super().__init__(Adapter, self.config, hosts(self.config), clock)

    async def connected(self, *, waits: bool) -> None:
        if waits:
            await self.adapter.connected()

    async def heard(self, count: int) -> None:
        """Wait for so many arrivals."""
        await until(lambda: len(self.taken) >= count)


def channel(place: dict[str, Any]) -> ConversationKey:
    own = f"group.{place['id']}" if "id" in place else place["uuid"]
    return ConversationKey(platform="signal", account="default", channel=own)


Devices = Callable[..., Device]


@asynccontextmanager
async def making_devices(server: SignalServer) -> AsyncIterator[Devices]:
    """Makes accounts, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(at: SignalServer = server, **settings: Any) -> Device:
            device = Device(at, **settings)
            closing.push_async_callback(device.client.close)
            return device

        yield make
