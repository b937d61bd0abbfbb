"""A bot under test, and Discord on loopback."""

from typing import Any

from adapters.harness import Harness
from belino.adapters.discord import Adapter, Config, hosts
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.net.redact import Secret
from belino.testing.discord import TOKEN, DiscordServer
from belino.testing.discord.shapes import Json


class Bot(Harness[Adapter]):
    """One bot and everything it accepted."""

    def __init__(self, server: DiscordServer, *, token: str = TOKEN, clock: Clock | None = None, **more: Any) -> None:
        settings = {"api_url": server.api_url, "cdn_url": server.cdn.url, **more}
        self.config = Config(token=Secret("TOKEN", token), **settings)
        super().__init__(Adapter, self.config, hosts(self.config), clock)

    async def connected(self, *, waits: bool) -> None:
        await self.adapter.connected()


def place(channel: Json, thread: Json | None = None) -> ConversationKey:
    own = None if thread is None else str(thread["id"])
    return ConversationKey(platform="discord", account="default", channel=str(channel["id"]), thread=own)
