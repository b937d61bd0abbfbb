"""A server on a Discord of our own and a gateway that listens to it: journeys from the phone to the agent and back."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.config import Config, from_table
from belino.domain.message import ConversationKey
from belino.domain.ports import Agent
from belino.domain.record import StoredMessage
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import ScriptedAgent
from belino.testing.discord import BOT_ID, DiscordServer
from belino.testing.discord_faults import CDN
from belino.testing.discord_shapes import Json
from journeys.busy_group import until

BOT = f"<@{BOT_ID}>"
LONG_AGO = 1_000_000_000


class BusyServer:
    """One Discord, one server with a channel in it, one state folder; the gateway may come and go."""

    def __init__(self, discord: DiscordServer, path: Path, **settings: Any) -> None:
        self.discord = discord
        self.home = Home.at(path)
        self.ann, self.bob = discord.user("ann"), discord.user("bob")
        self.club = discord.guild("Hikers", self.ann, self.bob, tier=2)
        self.room = discord.channel(self.club, "trips")
        self.agent = ScriptedAgent()
        self.settings = settings

    def table(self) -> dict[str, Any]:
        """What an operator would write into belino.toml."""
        access = {"senders": [self.ann["id"]], "channels": {self.room["id"]: {"senders": ["*"], "mention": True}}}
        discord: dict[str, Any] = {
            "token": "env:BELINO_TEST_TOKEN",
            "api_url": self.discord.api_url,
            "cdn_url": self.discord.cdn.url,
        }
        discord |= {"access": access, **self.settings}
        return {"adapters": {"discord": discord, "web": {"enabled": False}}, "sessions": {"album_window_ms": 300}}

    def config(self) -> Config:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BELINO_TEST_TOKEN", self.discord.token)
            return from_table(self.table())

    @asynccontextmanager
    async def gateway(self, agent: Agent | None = None) -> AsyncIterator[Gateway]:
        """A gateway at work on this folder, let in by Discord."""
        async with (
            Gateway(self.config(), self.home, agent=agent or self.agent) as gateway,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(gateway.run())
            try:
                await until(self.is_heard)
                yield gateway
            finally:
                gateway.stop()

    def is_heard(self) -> bool:
        return any(connection.session is not None for connection in self.discord.gateway.connections)

    def channel(self, place: Json | None = None, thread: Json | None = None) -> ConversationKey:
        where = self.discord.dm(place) if place is not None and place["id"] in self.discord.users else place
        own = None if thread is None else thread["id"]
        return ConversationKey(platform="discord", account="default", channel=(where or self.room)["id"], thread=own)

    async def stored(self, gateway: Gateway, count: int) -> tuple[StoredMessage, ...]:
        """What the channel holds, once it holds so many."""

        async def enough() -> bool:
            return (await gateway.store.counts())["messages"] >= count

        await until(enough)
        return await gateway.store.history(self.channel(), limit=count)

    def answers(self) -> list[str]:
        """What the bot made visible."""
        return [message["content"] for message in self.discord.sent]

    @property
    def downloads(self) -> int:
        return self.discord.calls[CDN]

    def offer(self, name: str, content: bytes, where: ConversationKey | None = None) -> Path:
        """A file in a conversation, as an agent or a script leaves it there."""
        place = self.home.outgoing(where or self.channel(self.ann)) / name
        place.write_bytes(content)
        os.utime(place, (LONG_AGO, LONG_AGO))
        return place
