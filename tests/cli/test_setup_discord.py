"""`belino setup discord` and `belino doctor` against a server that keeps Discord's rules."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing.discord import BOT_ID, TOKEN, DiscordServer
from cli.shell import Belino, Done, doctor_beside_a_gateway, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server


async def setup(belino: Belino, server: DiscordServer, *more: str, token: str = TOKEN) -> Done:
    given = ("setup", "discord", "--token-env", "BOT_TOKEN", "--set", f"api_url={server.api_url}", *more)
    return await asyncio.to_thread(belino, *given, BOT_TOKEN=token)


async def test_a_good_token_is_checked_live_and_the_invite_link_shown(
    belino: Belino, home: Path, discord: DiscordServer
) -> None:
    answer = read(await setup(belino, discord, "--json"))
    assert answer["ok"] and answer["table"] == "adapters.discord"
    (servers,) = [finding for finding in answer["findings"] if finding["name"].endswith(" servers")]
    assert not servers["ok"] and f"client_id={BOT_ID}&scope=bot&permissions=" in servers["cure"]
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'token = "env:BOT_TOKEN"' in text and TOKEN not in text
    assert not discord.sent


async def test_a_bad_token_changes_nothing_and_is_told(belino: Belino, home: Path, discord: DiscordServer) -> None:
    done = await setup(belino, discord, "--yes", token="wrong.bot.token")
    assert done.returncode == 1
    assert "Nothing was changed." in done.stdout and "wrong.bot.token" not in done.stdout + done.stderr
    assert not (home / "belino.toml").exists()


async def test_the_doctor_names_a_missing_intent_with_its_cure(
    belino: Belino, home: Path, discord: DiscordServer
) -> None:
    discord.allow(message_content=False)
    discord.guild("Hikers", discord.user("ada"))
    read(await setup(belino, discord, "--json"))
    findings = await asyncio.to_thread(doctor_beside_a_gateway, belino, home, BOT_TOKEN=TOKEN)
    assert findings["discord:default token"]["ok"]
    assert "Message Content Intent" in findings["discord:default intent"]["cure"]
    assert "Hikers" in findings["discord:default servers"]["says"]
