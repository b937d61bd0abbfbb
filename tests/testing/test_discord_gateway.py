"""Discord's gateway as discord.py itself meets it: sessions, resume, refusals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
from discord.gateway import DiscordWebSocket
from yarl import URL

from belino.testing.discord import DiscordServer

LIMIT = 20.0


class Listener(discord.Client):
    """discord.py, with everything it hears kept in order."""

    def __init__(self) -> None:
        intents = discord.Intents.default() | discord.Intents(message_content=True)
        super().__init__(intents=intents, max_messages=None)
        self.heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(100)

    async def on_ready(self) -> None:
        self.heard.put_nowait(("ready", None))

    async def on_resumed(self) -> None:
        self.heard.put_nowait(("resumed", None))

    async def on_message(self, message: discord.Message) -> None:
        self.heard.put_nowait(("message", message))

    async def next(self, kind: str) -> Any:
        async with asyncio.timeout(LIMIT):
            while True:
                heard, value = await self.heard.get()
                if heard == kind:
                    return value


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as running:
        monkeypatch.setattr(discord.http.Route, "BASE", running.api_url)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", URL(running.gateway_url))
        yield running


@asynccontextmanager
async def listening(server: DiscordServer) -> AsyncIterator[Listener]:
    async with Listener() as client, asyncio.TaskGroup() as group:
        task = group.create_task(client.start(server.token))
        await client.next("ready")
        yield client
        await client.close()
        await task


async def test_a_message_said_in_a_channel_reaches_discord_py_with_its_author_and_server(server: DiscordServer) -> None:
    ada = server.user("ada")
    guild = server.guild("Club", ada)
    channel = server.channel(guild, "general")
    async with listening(server) as client:
        server.say(channel, ada, "hello there")
        message = await client.next("message")
    assert (message.content, message.author.name, message.guild.name) == ("hello there", "ada", "Club")


async def test_after_the_line_broke_the_session_is_resumed_and_what_was_said_meanwhile_arrives(
    server: DiscordServer,
) -> None:
    ada = server.user("ada")
    async with listening(server) as client:
        await server.drop_socket()
        server.say(ada, ada, "did you hear that?")
        message = await client.next("message")
        await client.next("resumed")
    assert message.content == "did you hear that?"
    assert len(server.sessions.identified) == 1
    assert server.sessions.resumed == ["/resume"]
