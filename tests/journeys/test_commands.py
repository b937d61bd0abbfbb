"""Commands as people give them on each platform: in its menu, acknowledged, answered without a model."""

from pathlib import Path

import pytest

from belino.domain.commands import COMMANDS
from belino.gateway.commands import REFUSED
from belino.testing.discord import DiscordServer
from belino.testing.telegram import TelegramServer
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import until
from journeys.busy_server import BusyServer

pytestmark = pytest.mark.slow
NAMES = {spec.name for spec in COMMANDS}


async def test_telegram_offers_the_commands_in_its_menu_and_sets_it_once(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        async with group.gateway() as gateway:
            await until(lambda: {each["command"] for each in server.commands} == NAMES)
            server.say(group.ann, group.ann, "/status")
            await until(lambda: group.answers())
            server.say(group.chat, group.ann, f"/help{BOT}")
            server.say(group.chat, group.ann, "/help@another_bot")
            await until(lambda: len(group.answers()) == 2)
            assert (await gateway.audit()).is_balanced
        async with group.gateway():
            await until(lambda: server.calls["getMyCommands"] == 2)
        assert server.calls["setMyCommands"] == 1
    assert group.answers()[0].startswith("Agent: belino")
    assert group.agent.turns == []


async def test_a_person_who_opens_the_chat_on_telegram_is_greeted_by_belino(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        async with group.gateway():
            for opened in ("/start", "/start from_a_link"):
                server.say(group.ann, group.ann, opened)
            await until(lambda: len(group.answers()) == 2)
    assert all(answer.startswith("I am belino.") and "/help" in answer for answer in group.answers())
    assert group.agent.turns == []


async def test_discord_registers_commands_beside_those_of_others_and_answers_privately(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        discord.commands["77"] = {"id": "77", "name": "weather", "type": 1, "description": "Rain?", "options": []}
        async with club.gateway() as gateway:
            await until(lambda: {each["name"] for each in discord.commands.values()} == NAMES | {"weather"})
            given = discord.command(club.room, club.ann, "status")
            await until(lambda: discord.interactions[given["token"]].answer)
            chosen = discord.command(club.room, club.ann, "voice", choice="on")
            await until(lambda: discord.interactions[chosen["token"]].answer)
            assert (await gateway.audit()).is_balanced
        answer = discord.interactions[given["token"]].answer
        said = discord.interactions[chosen["token"]].answer
    assert answer is not None and said is not None
    assert answer["content"].startswith("Agent: belino")
    assert answer["flags"] & 1 << 6
    assert "No voice is configured" in said["content"]
    assert club.agent.turns == []


async def test_discord_tells_a_stranger_privately_that_they_may_not(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        other = discord.channel(club.club, "not listed")
        async with club.gateway():
            given = discord.command(other, club.bob, "new")
            await until(lambda: discord.interactions[given["token"]].answer)
        answer = discord.interactions[given["token"]].answer
    assert answer is not None
    assert (answer["content"], bool(answer["flags"] & 1 << 6)) == (REFUSED, True)
