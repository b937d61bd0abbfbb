"""A workspace on a Slack of our own and a gateway that listens to it: journeys from the phone to the agent and back."""

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
from belino.testing import ScriptedAgent, SlackServer
from belino.testing.slack_shapes import BOT_USER, Json
from journeys.busy_group import until

BOT = f"<@{BOT_USER}>"
LONG_AGO = 1_000_000_000


class BusyWorkspace:
    """One Slack, one channel in it, one state folder; the gateway may come and go."""

    def __init__(self, slack: SlackServer, path: Path, **settings: Any) -> None:
        self.slack = slack
        self.home = Home.at(path)
        self.ann, self.bob = slack.user("Ann"), slack.user("Bob")
        self.room = slack.channel("trips", self.ann, self.bob)
        self.agent = ScriptedAgent()
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {"BELINO_TEST_BOT": self.slack.bot_token, "BELINO_TEST_APP": self.slack.app_token}

    def table(self) -> dict[str, Any]:
        """What an operator would write into belino.toml."""
        access = {"senders": [self.ann["id"]], "channels": {self.room["id"]: {"senders": ["*"], "mention": True}}}
        slack: dict[str, Any] = {"bot_token": "env:BELINO_TEST_BOT", "app_token": "env:BELINO_TEST_APP"}
        slack |= {"api_url": self.slack.api_url, "access": access, **self.settings}
        return {"adapters": {"slack": slack, "web": {"enabled": False}}, "sessions": {"album_window_ms": 300}}

    def config(self) -> Config:
        with pytest.MonkeyPatch.context() as patch:
            for name, token in self.environment.items():
                patch.setenv(name, token)
            return from_table(self.table())

    @asynccontextmanager
    async def gateway(self, agent: Agent | None = None) -> AsyncIterator[Gateway]:
        """A gateway at work on this folder, with a line to Slack."""
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
        return bool(self.slack.socket_mode.connections)

    def channel(self, place: Json | None = None, thread: Json | None = None) -> ConversationKey:
        where = self.slack.dm(place) if place is not None and place["id"] in self.slack.users else place
        own = None if thread is None else str(thread["ts"])
        return ConversationKey(platform="slack", account="default", channel=(where or self.room)["id"], thread=own)

    async def stored(self, gateway: Gateway, count: int) -> tuple[StoredMessage, ...]:
        """What the channel holds, once it holds so many."""

        async def enough() -> bool:
            return (await gateway.store.counts())["messages"] >= count

        await until(enough)
        return await gateway.store.history(self.channel(), limit=count)

    def answers(self) -> list[str]:
        """What the app made visible."""
        return [message["text"] for message in self.slack.sent]

    @property
    def downloads(self) -> int:
        return self.slack.calls["file"]

    def offer(self, name: str, content: bytes, where: ConversationKey | None = None) -> Path:
        """A file in a conversation, as an agent or a script leaves it there."""
        place = self.home.outgoing(where or self.channel(self.ann)) / name
        place.write_bytes(content)
        os.utime(place, (LONG_AGO, LONG_AGO))
        return place
