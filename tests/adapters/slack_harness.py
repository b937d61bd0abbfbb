"""An app under test, and Slack on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from adapters.harness import LIMIT, Harness
from belino.adapters.slack import Adapter, Config, hosts
from belino.domain.message import Arrival, ConversationKey
from belino.domain.ports import Clock
from belino.net.redact import Secret
from belino.testing import FakeClock, SlackServer


class App(Harness[Adapter]):
    """One app and everything it accepted."""

    def __init__(self, server: SlackServer, *, clock: Clock | None = None, **settings: Any) -> None:
        tokens = {"bot_token": server.bot_token, "app_token": server.app_token, "signing_secret": server.signing_secret}
        tokens |= {name: settings.pop(name) for name in tokens if name in settings}
        given: dict[str, Any] = {name: Secret(name.upper(), token) for name, token in tokens.items()}
        self.server = server
        self.config = Config(**given, api_url=settings.pop("api_url", server.api_url), **settings)
        super().__init__(Adapter, self.config, hosts(self.config), clock)

    @property
    def arrivals(self) -> list[Arrival]:
        return [arrival for arrival, _ in self.taken]

    async def connected(self, *, waits: bool) -> None:
        """`waits` for a line that events come over: what is said before comes a minute later."""
        await self.adapter.connected()
        while waits and self.config.mode == "socket" and not self.server.socket_mode.connections:
            await asyncio.sleep(0.002)


Apps = Callable[..., App]


def place(channel: Any, thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform="slack", account="default", channel=str(channel["id"]), thread=thread)


@asynccontextmanager
async def making_apps(server: SlackServer) -> AsyncIterator[Apps]:
    """Makes apps, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(**settings: Any) -> App:
            app = App(server, **settings)
            closing.push_async_callback(app.client.close)
            return app

        yield make


async def passing(clock: FakeClock, happened: Callable[[], object]) -> None:
    """Let time pass until it has happened."""
    async with asyncio.timeout(LIMIT):
        while not happened():
            await clock.advance(5)
            await asyncio.sleep(0.005)
