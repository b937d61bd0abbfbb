"""What the tests of adapters share."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from adapters.telegram_desk import Bot, telegram
from belino.testing import TelegramServer


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
