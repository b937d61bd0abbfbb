"""A group on a Telegram of its own in which somebody sent media that nobody asked for, and a gateway that listens."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belino.testing import GatewayProcess
from belino.testing.telegram import TOKEN, TelegramServer
from cli.shell import PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What there is to ask for."""

    server: TelegramServer
    gateway: GatewayProcess
    ann: dict[str, Any]
    refs: tuple[str, ...]
    """Of what was sent, in its order."""


@asynccontextmanager
async def hikers(home: Path, *sent: Mapping[str, Any]) -> AsyncIterator[Scene]:
    async with TelegramServer() as server:
        group, ann = server.group("Hikers"), server.user("Ann")
        home.mkdir(mode=0o700)
        (home / "belino.toml").write_text(
            f'[adapters.telegram]\ntoken = "env:BOT_TOKEN"\napi_url = "{server.url}"\n'
            f'[adapters.telegram.access.channels."{group["id"]}"]\nsenders = []\n',
            encoding="utf-8",
        )
        for fields in sent:
            server.say(group, ann, **fields)
        gateway = GatewayProcess(home, environment={"BOT_TOKEN": TOKEN})
        await asyncio.to_thread(gateway.start)
        try:
            yield Scene(server=server, gateway=gateway, ann=ann, refs=await _refs(gateway, len(sent)))
        finally:
            await asyncio.to_thread(gateway.stop)


async def _refs(gateway: GatewayProcess, count: int) -> tuple[str, ...]:
    async with asyncio.timeout(PATIENCE):
        while True:
            _, answer = await asyncio.to_thread(gateway.call, "GET", "/api/media")
            if len(answer["media"]) == count:
                return tuple(str(each["ref"]) for each in reversed(answer["media"]))
