"""An adapter in the whole house: a gateway with its web door, and what it keeps."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.harness import LIMIT
from belino.config import from_table
from belino.domain.message import ConversationKey
from belino.domain.ports import Agent
from belino.domain.stored import StoredMessage
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import ScriptedAgent
from belino.web.server import serve


@asynccontextmanager
async def at_work(
    path: Path,
    access: dict[str, Any] | None = None,
    *,
    agent: Agent | None = None,
    more: dict[str, Any] | None = None,
    **platform: dict[str, Any],
) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway that listens to this platform, and the address of its web door; `access` names its owners."""
    adapters = {"web": {"enabled": False}, **platform}
    config = from_table({"adapters": adapters, "server": {"port": 0}, "access": access or {}, **(more or {})})
    async with Gateway(config, Home.at(path), agent=agent or ScriptedAgent()) as gateway, asyncio.TaskGroup() as group:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        group.create_task(gateway.run())
        door = group.create_task(serve(gateway, ready=ready.set_result))
        try:
            async with asyncio.timeout(LIMIT):
                yield gateway, (await ready).partition("/#")[0]
        finally:
            door.cancel()
            gateway.stop()


async def kept(gateway: Gateway, channel: str, *, account: str = "default") -> tuple[StoredMessage, ...]:
    (platform,) = {platform for platform, _ in gateway.adapters}
    where = ConversationKey(platform=platform, account=account, channel=channel)
    return await gateway.store.history(where, limit=100)


async def seen(gateway: Gateway, channel: str, holds: Any) -> StoredMessage:
    """The channel's first message, once it is as it should be."""
    while not ((found := await kept(gateway, channel)) and holds(found[0])):
        await asyncio.sleep(0.002)
    return found[0]
