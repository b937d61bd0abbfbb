"""What the tests of adapters share."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from adapters import discord_harness
from adapters.line_harness import Account, Accounts, making_accounts
from adapters.signal_harness import Device, Devices, making_devices
from adapters.slack_harness import App, Apps, making_apps
from adapters.telegram_harness import Bot, telegram
from adapters.whatsapp_harness import Business, Businesses, making_businesses
from belino.adapters.discord import socket as listening
from belino.testing import FakeClock, LineServer, SignalServer, SlackServer, TelegramServer, WhatsAppServer
from belino.testing.discord import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with telegram() as running:
        yield running


@pytest.fixture
async def bot_at() -> AsyncIterator[Callable[..., Bot]]:
    """Makes bots, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(url: str, **settings: Any) -> Bot:
            bot = Bot(url, **settings)
            closing.push_async_callback(bot.client.close)
            return bot

        yield make


@pytest.fixture
def bot(server: TelegramServer, bot_at: Callable[..., Bot]) -> Bot:
    return bot_at(server.url)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as running:
        yield running


@pytest.fixture
async def discord_bot_at() -> AsyncIterator[Callable[..., discord_harness.Bot]]:
    """Makes bots, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(server: DiscordServer, **settings: Any) -> discord_harness.Bot:
            bot = discord_harness.Bot(server, **settings)
            closing.push_async_callback(bot.client.close)
            return bot

        yield make


@pytest.fixture
def discord_bot(discord: DiscordServer, discord_bot_at: Callable[..., discord_harness.Bot]) -> discord_harness.Bot:
    return discord_bot_at(discord)


@pytest.fixture
def brisk_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord asks for pauses of seconds before a new session; tests do not need them."""
    monkeypatch.setattr(listening, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(listening, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(listening, "IDENTIFY_SECONDS", 0.0)
    monkeypatch.setattr(listening, "backoff", lambda *args, **named: 0.01)


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as running:
        yield running


@pytest.fixture
async def apps(slack: SlackServer) -> AsyncIterator[Apps]:
    async with making_apps(slack) as make:
        yield make


@pytest.fixture
def app(apps: Apps) -> App:
    return apps()


@pytest.fixture
async def line() -> AsyncIterator[LineServer]:
    async with LineServer() as running:
        yield running


@pytest.fixture
async def whatsapp() -> AsyncIterator[WhatsAppServer]:
    async with WhatsAppServer(clock=FakeClock()) as running:
        yield running


@pytest.fixture
async def accounts(line: LineServer) -> AsyncIterator[Accounts]:
    async with making_accounts(line) as make:
        yield make


@pytest.fixture
async def businesses(whatsapp: WhatsAppServer) -> AsyncIterator[Businesses]:
    async with making_businesses(whatsapp) as make:
        yield make


@pytest.fixture
def account(accounts: Accounts) -> Account:
    return accounts()


@pytest.fixture
def business(businesses: Businesses) -> Business:
    return businesses()


@pytest.fixture
async def signal() -> AsyncIterator[SignalServer]:
    async with SignalServer() as running:
        yield running


@pytest.fixture
async def devices(signal: SignalServer) -> AsyncIterator[Devices]:
    async with making_devices(signal) as make:
        yield make


@pytest.fixture
def device(devices: Devices) -> Device:
    return devices()
