"""An account under test, and LINE on loopback, which calls it as LINE calls a webhook."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from adapters.harness import Harness
from belino.adapters.line import Adapter, Config, hosts
from belino.domain.message import Arrival, ConversationKey
from belino.domain.ports import Clock, Hook, HookAnswer, Taken
from belino.net.redact import Secret
from belino.testing import LineServer
from belino.testing.line.world import place_id


class Keeping:
    """An `accept` that keeps cursors, as a gateway's does."""

    def __init__(self, account: "Account") -> None:
        self._account = account

    async def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        return await self._account.accept(arrival, cursor=cursor)

    async def keep_cursor(self, cursor: str) -> None:
        self._account.cursors.append(cursor)


class Account(Harness[Adapter]):
    """One account and everything it accepted."""

    def __init__(self, server: LineServer, *, clock: Clock | None = None, **settings: Any) -> None:
        secrets = {"channel_access_token": server.token, "channel_secret": server.channel_secret}
        secrets |= {name: settings.pop(name) for name in secrets if name in settings}
        given: dict[str, Any] = {name: Secret(name.upper(), text) for name, text in secrets.items()}
        urls = {"api_url": server.url, "stickers_url": server.url} | settings
        self.server = server
        self.config = Config(**given, **urls)
        self.cursors: list[str] = []
        super().__init__(Adapter, self.config, {*hosts(self.config), server.url.removeprefix("http://")}, clock)

    @property
    def arrivals(self) -> list[Arrival]:
        return [arrival for arrival, _ in self.taken]

    @asynccontextmanager
    async def keeping(self, cursor: str | None = None) -> AsyncIterator[None]:
        """Listen with an `accept` that keeps cursors."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.adapter.run(Keeping(self), cursor))
            try:
                await self.adapter.connected()
                while not self.adapter._hooks.is_open:
                    await asyncio.sleep(0)
                yield
            finally:
                running.cancel()

    async def connected(self, *, waits: bool) -> None:
        await self.adapter.connected()
        while not self.adapter._hooks.is_open:
            await asyncio.sleep(0)

    async def hear(self, *events: Any) -> HookAnswer:
        """LINE calls with these events, or with all that wait."""
        given = list(events)
        while not events and not self.server._queue.empty():
            given.append(self.server._queue.get_nowait())
        for event in given:
            if token := self.server.tokens.get(event.get("replyToken", "")):
                token.until = self.server.clock.monotonic() + 60
        return await self.adapter.take_hook(self.hook(given))

    def hook(self, events: Sequence[Any] = (), *, body: bytes | None = None, **headers: str) -> Hook:
        payload = {"destination": self.server.bot["userId"], "events": list(events)}
        body = json.dumps(payload).encode() if body is None else body
        signed = {"x-line-signature": self.server.signature(body), "content-type": "application/json"}
        return Hook(method="POST", path="/hooks/line/default", query="", headers={**signed, **headers}, body=body)


Accounts = Callable[..., Account]


def place(where: Any) -> ConversationKey:
    return ConversationKey(platform="line", account="default", channel=place_id(where))


@asynccontextmanager
async def making_accounts(server: LineServer) -> AsyncIterator[Accounts]:
    """Makes accounts, and closes their connections in the end; the server's own deliveries are off."""
    if server._pusher is not None:
        server._pusher.cancel()
    async with AsyncExitStack() as closing:

        def make(**settings: Any) -> Account:
            account = Account(server, **settings)
            closing.push_async_callback(account.client.close)
            return account

        yield make
