"""A business number under test, and WhatsApp on loopback."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from adapters.harness import Harness
from belino.adapters.whatsapp import Adapter, Config, hosts
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock, Hook
from belino.net.redact import Secret
from belino.testing import FakeClock, WhatsAppServer
from belino.testing.whatsapp.events import CloudWebhook

PATH = "/hooks/whatsapp/default"


class Business(Harness[Adapter]):
    """One phone number and everything it accepted."""

    def __init__(self, server: WhatsAppServer, *, clock: Clock | None = None, **settings: Any) -> None:
        secrets = {"token": server.token, "app_secret": server.app_secret, "verify_token": server.verify_token}
        secrets |= {name: settings.pop(name) for name in secrets if name in settings}
        given: dict[str, Any] = {name: Secret(name.upper(), value) for name, value in secrets.items()}
        self.server = server
        self.config = Config(**{**server.settings, **given, **settings})
        super().__init__(Adapter, self.config, hosts(self.config), clock or server.clock)

    async def connected(self, *, waits: bool) -> None:
        await self.adapter.connected()

    def signed(self, payload: object, *, secret: str | None = None, body: bytes | None = None) -> Hook:
        """A call with a payload, as WhatsApp signs it."""
        raw = json.dumps(payload).encode() if body is None else body
        made = CloudWebhook(FakeClock(), secret or self.server.app_secret).sign(raw)
        headers = {name.lower(): value for name, value in made.items()}
        return Hook(method="POST", path=PATH, query="", headers=headers, body=raw)

    async def told(self) -> list[int]:
        """Pass on what waits at WhatsApp for the business."""
        statuses = []
        hook = self.server.hook
        while hook._waiting:
            body, _ = hook._waiting.popleft()
            statuses.append((await self.adapter.take_hook(self.signed(None, body=body))).status)
        return statuses


Businesses = Callable[..., Business]


def place(channel: Any) -> ConversationKey:
    return ConversationKey(platform="whatsapp", account="default", channel=str(channel["id"]))


@asynccontextmanager
async def making_businesses(server: WhatsAppServer) -> AsyncIterator[Businesses]:
    """Makes businesses, and closes their connections in the end."""
    async with AsyncExitStack() as closing:

        def make(**settings: Any) -> Business:
            business = Business(settings.pop("server", server), **settings)
            closing.push_async_callback(business.client.close)
            return business

        yield make
