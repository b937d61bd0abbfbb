"""Permissions of a channel's client are asked with buttons where the platform has them."""

from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from auditing import accounts_balance
from belino.agents.channel import Agent, Config
from belino.gateway.channel_inbox import PermissionAnswer, PermissionRequest
from belino.gateway.gateway import Gateway
from belino.testing import DiscordServer, SlackServer, TelegramServer

__all__ = ["accounts_balance"]

BASH = PermissionRequest(request_id="abcde", tool_name="Bash", description="List files", input_preview="ls")


async def asked(gateway: Gateway) -> None:
    """Ask in the one conversation that there is."""
    (summary,) = await gateway.store.conversations()
    await until(lambda: gateway.counters.turns["answered"] == 1)
    await gateway.channel_inbox.ask(summary.conversation, BASH)


async def answer(gateway: Gateway) -> tuple[str, str]:
    (summary,) = await gateway.store.conversations()
    await until(lambda: gateway.counters.turns["answered"] == 2)
    *_, told = await gateway.channel_inbox.next(summary.conversation, after=None, seconds=1)
    assert isinstance(told, PermissionAnswer)
    return told.request_id, told.behavior


async def test_a_permission_on_telegram(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    settings = {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}}
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", agent=Agent(Config()), telegram=settings) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        server.say(ada, ada, "Go on")
        await until(lambda: gateway.counters.turns["answered"] == 1)
        await asked(gateway)
        await until(lambda: server.sent and gateway.counters.parcels["sent"])
        server.press(server.sent[0], ada, "Allow")
        assert await answer(gateway) == ("abcde", "allow")
        await until(lambda: server.edited)


@pytest.mark.usefixtures("brisk_discord")
async def test_a_permission_on_discord(discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", discord.token)
    ada = discord.user("ada")
    settings = {"token": "env:TOKEN", "api_url": discord.api_url, "access": {"senders": ["*"]}}
    async with at_work(tmp_path / "home", agent=Agent(Config()), discord=settings) as (gateway, _):
        await until(lambda: discord.sessions.identified)
        discord.say(discord.dm(ada), ada, "Go on")
        await until(lambda: gateway.counters.turns["answered"] == 1)
        await asked(gateway)
        await until(lambda: discord.sent and gateway.counters.parcels["sent"])
        discord.press(discord.sent[0], ada, "Deny")
        assert await answer(gateway) == ("abcde", "deny")
        await until(lambda: discord.edited)


async def test_a_permission_on_slack(slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BOT", slack.bot_token), ("APP", slack.app_token)):
        monkeypatch.setenv(name, value)
    settings: dict[str, Any] = {"bot_token": "env:BOT", "app_token": "env:APP", "api_url": slack.api_url}
    settings |= {"access": {"senders": ["*"]}}
    ada = slack.user("Ada")
    async with at_work(tmp_path / "home", agent=Agent(Config()), slack=settings) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, "Go on")
        await until(lambda: gateway.counters.turns["answered"] == 1)
        await asked(gateway)
        await until(lambda: slack.sent and gateway.counters.parcels["sent"])
        slack.press(slack.sent[0], ada, "Allow")
        assert await answer(gateway) == ("abcde", "allow")
