"""Record a conversation, replay its cassette: nothing differs, unless something does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.cassette.file import read_cassette
from belino.gateway.replay import replay
from belino.testing import ScriptedAgent, TelegramServer, ToolCall, make_jpeg
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import Curious, until

pytestmark = pytest.mark.slow


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[BusyGroup]:
    async with TelegramServer() as server:
        yield BusyGroup(server, tmp_path / "home")


async def test_x(group: BusyGroup) -> None:
    async with group.gateway(Curious()) as gateway:
        await gateway.record()
        group.server.say(group.chat, group.bob, photo=make_jpeg(64, 48), caption="the summit, says Ann")
        group.server.say(group.chat, group.ann, f"{BOT} what is it, Bob?")
        await until(lambda: len(group.answers()) == 1)
        async with asyncio.timeout(10):
            while not any(r["record"] == "parcel" for r in gateway.recorder.journal.records()):
                await asyncio.sleep(0.01)
        written = await gateway.stop_recording()
    print(written)
    cassette = read_cassette(written.path)
    import json
    print(json.dumps(cassette.header, indent=1))
    for r in cassette.records: print(json.dumps(r, indent=1)[:3000])
    found = await replay(cassette)
    for d in found.differences:
        print(d.what, d.where); print("\n".join(d.diff))
    assert not found.differences
