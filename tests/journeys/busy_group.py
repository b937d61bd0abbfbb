"""A group on a Telegram of our own and a gateway that listens to it: journeys from the phone to the agent and back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.config import Config, from_table
from belino.domain.media import FileBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.ports import Agent
from belino.domain.record import StoredMessage
from belino.domain.turn import Turn
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import ScriptedAgent, TelegramServer

PATIENCE = 180.0
BOT = "@belino_bot"


class BusyGroup:
    """One Telegram server, one group in it, one state folder; the gateway may come and go."""

    def __init__(self, server: TelegramServer, path: Path) -> None:
        self.server = server
        self.home = Home.at(path)
        self.chat = server.group("Hikers")
        self.ann = server.user("Ann", username="ann_w")
        self.bob = server.user("Bob")
        self.agent = ScriptedAgent()

    def table(self) -> dict[str, Any]:
        """What an operator would write into belino.toml."""
        access = {
            "senders": [str(self.ann["id"])],
            "channels": {str(self.chat["id"]): {"senders": ["*"], "mention": True}},
        }
        telegram = {"token": "env:BELINO_TEST_TOKEN", "api_url": self.server.url, "access": access}
        return {"adapters": {"telegram": telegram, "web": {"enabled": False}}, "sessions": {"album_window_ms": 300}}

    def config(self) -> Config:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BELINO_TEST_TOKEN", self.server.token)
            return from_table(self.table())

    @asynccontextmanager
    async def gateway(self, agent: Agent | None = None) -> AsyncIterator[Gateway]:
        """A gateway at work on this folder."""
        async with (
            Gateway(self.config(), self.home, agent=agent or self.agent) as gateway,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(gateway.run())
            try:
                yield gateway
            finally:
                gateway.stop()

    def channel(self, chat: dict[str, Any] | None = None) -> ConversationKey:
        return ConversationKey(platform="telegram", account="default", channel=str((chat or self.chat)["id"]))

    async def stored(self, gateway: Gateway, count: int) -> tuple[StoredMessage, ...]:
        """What the group's channel holds, once it holds so many."""

        async def enough() -> bool:
            return (await gateway.store.counts())["messages"] >= count

        await until(enough)
        return await gateway.store.history(self.channel(), limit=count)

    def answers(self) -> list[str]:
        """What the bot made visible."""
        return [message.get("text", "") for message in self.server.sent]

    @property
    def downloads(self) -> int:
        return self.server.calls["file"]


async def until(settled: Callable[[], Any]) -> None:
    """Look until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not (answer := settled()) or (asyncio.iscoroutine(answer) and not await answer):
            await asyncio.sleep(0.01)


def told(turn: Turn) -> str:
    """Everything a turn tells the agent, as text."""
    return "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))


def text_of(blocks: tuple[TextBlock | ImageBlock | FileBlock, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
