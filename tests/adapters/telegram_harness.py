"""A bot under test, and Telegram on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapters.harness import Harness
from belino.adapters.telegram import Adapter, Config, hosts
from belino.domain.ports import Clock
from belino.net.redact import Secret
from belino.testing import TelegramServer

CANARY = "4242:canary-AAHtokenThatMustNeverBeSeen"


class Bot(Harness[Adapter]):
    """One bot and everything it accepted."""

    def __init__(self, url: str, *, token: str = CANARY, clock: Clock | None = None, **settings: Any) -> None:
        self.config = Config(token=Secret("TOKEN", token), api_url=url, **settings)
        super().__init__(Adapter, self.config, hosts(self.config), clock)


@asynccontextmanager
async def telegram(**settings: Any) -> AsyncIterator[TelegramServer]:
    async with TelegramServer(token=CANARY, **settings) as server:
        yield server
