"""A resolver that is dead or flaps: media fails with its reason, text flows, and adapters come back."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from belino.domain.outcome import MediaOutcome
from belino.testing import FakeUpload, TelegramServer, make_png
from belino.testing.discord import DiscordServer
from journeys.busy_group import BusyGroup
from journeys.busy_place import Curious, until
from journeys.busy_server import BusyServer

pytestmark = pytest.mark.slow

NAME = "localhost"


class Resolver:
    """The machine's resolver, which answers only while it works."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.works = True
        self.asked = 0
        self._look_up = loop.getaddrinfo

    async def __call__(self, host: Any, port: Any, **more: Any) -> Any:
        if host != NAME:
            return await self._look_up(host, port, **more)
        self.asked += 1
        if not self.works:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return await self._look_up("127.0.0.1", port, **more)


@pytest.fixture
async def resolver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Resolver]:
    loop = asyncio.get_running_loop()
    resolver = Resolver(loop)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "getaddrinfo", resolver)
        yield resolver


async def test_an_adapter_whose_platform_has_no_address_comes_back_by_itself_and_says_little(
    tmp_path: Path, resolver: Resolver, caplog: pytest.LogCaptureFixture
) -> None:
    async with TelegramServer() as server:
        server.url = server.url.replace("127.0.0.1", NAME)
        busy = BusyGroup(server, tmp_path / "home")
        resolver.works = False
        async with busy.gateway() as gateway:
            await until(lambda: gateway.health()["telegram", "default"].restarts >= 2)
            health = gateway.health()["telegram", "default"]
            assert "reach" in health.reason, health
            told = [record for record in caplog.records if record.name.startswith("belino") and record.levelno > 20]
            assert len(told) <= 2 * health.restarts + 2
            busy.write("is anybody there?")
            resolver.works = True
            await until(lambda: busy.answers() == ["turn 1"])
    assert "Traceback" not in caplog.text


async def test_media_whose_host_has_no_address_fails_with_its_reason_and_text_flows(
    tmp_path: Path, resolver: Resolver
) -> None:
    async with DiscordServer() as server:
        server.cdn.url = server.cdn.url.replace("127.0.0.1", NAME)
        busy, agent = BusyServer(server, tmp_path / "home"), Curious()
        resolver.works = False
        async with busy.gateway(agent) as gateway:
            busy.write("look at this", files=[FakeUpload(content=make_png(40, 30), name="p.png")])
            await until(lambda: busy.answers() == ["looked"])
            (why,) = agent.seen
            assert isinstance(why, str) and "could not be fetched" in why
            (record,) = await gateway.store.refs(busy.private)
            assert record.outcome is MediaOutcome.FAILED
            assert record.reason
            resolver.works = True
            blob = await gateway.fetch(record)
            assert blob.mime == "image/png"
    assert resolver.asked < 50
