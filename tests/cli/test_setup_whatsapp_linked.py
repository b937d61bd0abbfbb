"""`belino setup whatsapp` for a linked device: codes in the terminal, a session on disk, and the doctor."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.harness import until
from belino.testing.linked import LinkedWorld
from cli.shell import Belino, on_a_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
async def world() -> AsyncIterator[LinkedWorld]:
    async with LinkedWorld() as world:
        yield world


def configured(home: Path, world: LinkedWorld) -> None:
    lines = ["[adapters.whatsapp]", 'mode = "linked"', f'media_url = "{world.media_url}"', 'phone = "4915550001"']
    lines.append(f"linked_program = {json.dumps(world.linked_program)}")
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text("\n".join(lines), encoding="utf-8")


async def test_a_device_is_linked_in_the_terminal_and_the_doctor_says_so(
    home: Path, belino: Belino, world: LinkedWorld
) -> None:
    configured(home, world)
    running = asyncio.create_task(asyncio.to_thread(on_a_terminal, "setup", "whatsapp", home=home))
    await until(lambda: any(device["wants"] == "link" and not device["own"] for device in world.devices.values()))
    world.scan()
    done = await running
    assert done.returncode == 0, done.stdout
    assert "█" in done.stdout and "ABCD-EFGH" in done.stdout and "The device is linked." in done.stdout
    checked = await asyncio.to_thread(belino, "doctor")
    assert "whatsapp:default device" in checked.stdout and "linked" in checked.stdout


async def test_without_a_terminal_nothing_is_linked(home: Path, belino: Belino, world: LinkedWorld) -> None:
    configured(home, world)
    done = await asyncio.to_thread(belino, "setup", "whatsapp", "--yes")
    assert done.returncode == 1
    assert "no device is linked" in done.stdout
    assert world.devices == {}
