"""`belino setup signal` and `belino doctor` against a daemon that keeps signal-cli's protocol."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.harness import until
from belino.testing import SignalServer
from cli.shell import Belino, on_a_terminal, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def daemon() -> AsyncIterator[SignalServer]:
    async with SignalServer(linked=False) as server:
        yield server


async def test_a_device_is_linked_in_the_terminal_by_a_code_that_is_written_nowhere(
    home: Path, daemon: SignalServer
) -> None:
    given = ("setup", "signal", "--set", f"url={daemon.url}")
    running = asyncio.create_task(asyncio.to_thread(on_a_terminal, *given, home=home))
    await until(lambda: daemon.calls["finishLink"])
    daemon.scan()
    done = await running
    assert done.returncode == 0, done.stdout
    assert "█" in done.stdout and "The device is linked." in done.stdout
    assert f"signal-cli 0.14.6 serves {daemon.number}" in done.stdout
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert daemon.url.encode() in kept and b"linkdevice" not in kept
    assert "linkdevice" not in done.stdout


async def test_without_a_terminal_nothing_is_linked_and_the_page_is_named(
    belino: Belino, home: Path, daemon: SignalServer
) -> None:
    done = await asyncio.to_thread(belino, "setup", "signal", "--set", f"url={daemon.url}", "--yes")
    assert done.returncode == 1
    assert "no device is linked" in done.stdout and "in the page under Status" in done.stdout
    assert daemon.answers.codes == []
    assert not (home / "belino.toml").exists()


async def test_a_linked_account_is_checked_live_and_written_down(
    belino: Belino, home: Path, daemon: SignalServer
) -> None:
    daemon.answers.linked = True
    answer = read(await asyncio.to_thread(belino, "setup", "signal", "--set", f"url={daemon.url}", "--json"))
    assert answer["ok"]
    assert f'url = "{daemon.url}"' in (home / "belino.toml").read_text(encoding="utf-8")


async def test_a_daemon_that_is_down_is_told_with_how_to_start_it(belino: Belino) -> None:
    done = await asyncio.to_thread(belino, "setup", "signal", "--set", "url=http://127.0.0.1:9", "--yes")
    assert done.returncode == 1
    assert "signal-cli daemon --http" in done.stdout
