"""Ask the running gateway, or open the store ourselves under its lock when none runs."""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from belino.cli.client import GatewayClient, running_gateway
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store


def ask(
    args: Namespace, *, running: Callable[[GatewayClient], Any], resting: "Callable[[Store], Awaitable[Any]]"
) -> Any:
    """The same answer from the gateway or from the store."""
    home = Home.at(args.home)
    client = running_gateway(home)
    return running(client) if client is not None else asyncio.run(with_store(home, resting))


async def with_store(home: Home, question: "Callable[[Store], Awaitable[Any]]") -> Any:
    """Open the store, ask, close it."""
    from belino.net.clock import SystemClock
    from belino.storage.store import open_store

    store = await open_store(home, clock=SystemClock())
    try:
        return plain(await question(store))
    finally:
        await store.close()


def plain(value: object) -> Any:
    """The value as HTTP would return it: JSON, times in UTC."""
    import orjson

    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS))
