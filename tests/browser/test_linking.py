"""A device is linked in the page: the code is shown next to the account until the phone has scanned it."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from belino.testing import GatewayProcess, SignalServer
from browser.acting import Enter, no_sideways_scroll, no_violation

pytestmark = pytest.mark.slow

START_SECONDS = 60.0


class Daemon:
    """A signal-cli daemon with a loop and a thread of its own, because the browser keeps this one busy."""

    server: SignalServer

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))

    def __enter__(self) -> "Daemon":
        self._thread.start()
        assert self._ready.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS)

    def scan(self) -> None:
        self._loop.call_soon_threadsafe(self.server.scan)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with SignalServer(linked=False) as self.server:
            self._ready.set()
            await self._stop.wait()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


@pytest.fixture
def gateway(tmp_path: Path, daemon: Daemon) -> Iterator[GatewayProcess]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps({"adapters": {"signal": {"url": daemon.server.url}}}))
    with GatewayProcess(home) as gateway:
        yield gateway


def test_a_device_is_linked_by_the_code_next_to_the_accounts_health(page: Page, enter: Enter, daemon: Daemon) -> None:
    enter(page)
    page.get_by_role("button", name="Status, 1 to look at").click()
    page.get_by_role("button", name="Link a device: signal:default").click()
    code = page.get_by_role("img", name="QR code that links signal:default")
    expect(code).to_be_visible()
    assert "linkdevice" not in page.content()
    no_sideways_scroll(page)
    no_violation(page)
    daemon.scan()
    expect(page.get_by_text("signal:default is linked.")).to_be_visible()
    expect(code).to_be_hidden()
    expect(page.get_by_role("button", name="Status", exact=True)).to_be_attached()
