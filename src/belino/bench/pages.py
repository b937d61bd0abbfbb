"""Open pages: the CPU time an answer costs with 200 pages open on other conversations, and what they cost idle."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from belino.bench import Row
from belino.testing import GatewayProcess

if TYPE_CHECKING:
    import aiohttp

PAGES = 200
PAGES_PER_LOGIN = 25
ANSWERS = 100
WARM_UP_ANSWERS = 20
# Longer than the 20 seconds between keep-alive pings, which are part of what an open page costs.
IDLE_SECONDS = 25.0
ROUNDS = 5
GOAL_RATIO = 1.10
GOAL_IDLE_PERCENT = 1.0
WAIT_SECONDS = 120.0
BESIDE = "no page open"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCost:
    """CPU time of the gateway process with some number of pages open."""

    idle_percent: float
    answers: list[float] = field(default_factory=list)
    """CPU seconds per answer, by phase."""


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure with and without pages in turn, on one gateway. A corpus has no effect."""
    return asyncio.run(page_rows(PAGES))


async def page_rows(pages: int) -> list[Row]:
    """The CPU time of an answer, as the median of the phases, and of idling."""
    alone, beside = await _measure(pages)
    answer, plain = (median(cost.answers) * 1000 for cost in (beside, alone))
    idle, still = beside.idle_percent, alone.idle_percent
    return [
        Row(
            metric=f"CPU ms per answer, {pages} pages open on other conversations",
            ours=answer,
            beside_name=BESIDE,
            beside=plain,
            ratio=answer / plain,
            goal=f"≤ {GOAL_RATIO:.2f}×",
            ok=answer / plain <= GOAL_RATIO,
        ),
        Row(
            metric=f"% of a core while {pages} open pages are idle",
            ours=idle,
            beside_name=BESIDE,
            beside=still,
            goal=f"≤ {GOAL_IDLE_PERCENT:g} %",
            ok=idle <= GOAL_IDLE_PERCENT,
        ),
    ]


async def _measure(pages: int) -> tuple[PageCost, PageCost]:
    """Alternating phases without and with pages, so that a machine that slows down slows both."""
    import aiohttp

    with TemporaryDirectory(prefix="belino-bench-") as folder, GatewayProcess(Path(folder) / "home") as gateway:
        client = aiohttp.ClientSession(
            gateway.url, cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=0)
        )
        async with client, asyncio.timeout((ROUNDS + 1) * WAIT_SECONDS):
            bench = _Client(client, gateway)
            await bench.answers(WARM_UP_ANSWERS)
            alone = PageCost(idle_percent=await bench.idle())
            async with bench.pages(pages):
                beside = PageCost(idle_percent=await bench.idle())
            for _ in range(ROUNDS):
                alone.answers.append(await bench.answers(ANSWERS))
                async with bench.pages(pages):
                    beside.answers.append(await bench.answers(ANSWERS))
    return alone, beside


class _Client:
    """Opens pages on a gateway in another process, and asks it for answers."""

    def __init__(self, http: "aiohttp.ClientSession", gateway: GatewayProcess) -> None:
        self._http = http
        self._gateway = gateway
        self._program = {"Authorization": f"Bearer {gateway.token}"}
        self._numbers = count(1)

    async def idle(self) -> float:
        """The percentage of a core used when idle."""
        before = cpu_seconds(self._gateway.pid)
        await asyncio.sleep(IDLE_SECONDS)
        return 100 * (cpu_seconds(self._gateway.pid) - before) / IDLE_SECONDS

    async def answers(self, how_many: int) -> float:
        """CPU seconds per answer, asked one after the other by a page that shows the conversation."""
        conversation = await self._open_conversation()
        async with self._page(self._program, conversation) as page:
            before = cpu_seconds(self._gateway.pid)
            for number in range(how_many):
                params = {"conversation": conversation, "message": f"What do you say to number {number}?"}
                await page.send_json({"type": "req", "id": number, "method": "chat.send", "params": params})
                await _until_answered(page)
            return (cpu_seconds(self._gateway.pid) - before) / how_many

    @asynccontextmanager
    async def pages(self, how_many: int) -> AsyncIterator[None]:
        """Pages of logged-in users, each on a conversation of its own, reading what they receive."""
        async with AsyncExitStack() as opened, asyncio.TaskGroup() as group:
            readers = []
            for number in range(how_many):
                if number % PAGES_PER_LOGIN == 0:
                    login = await self._log_in()
                page = await opened.enter_async_context(self._page(login, await self._open_conversation()))
                readers.append(group.create_task(_read(page)))
            yield
            for reader in readers:
                reader.cancel()

    @asynccontextmanager
    async def _page(self, login: dict[str, str], shows: str) -> "AsyncIterator[aiohttp.ClientWebSocketResponse]":
        async with self._http.ws_connect("/ws", headers=login) as page:
            follow = {"type": "req", "id": "follow", "method": "chat.follow", "params": {"conversations": [shows]}}
            await page.send_json(follow)
            while (await _frame(page))["type"] != "res":
                pass
            yield page

    async def _open_conversation(self) -> str:
        wish = {"name": f"page {next(self._numbers)}"}
        async with self._http.post("/api/conversations", json=wish, headers=self._program) as answer:
            return str((await answer.json())["conversation"])

    async def _log_in(self) -> dict[str, str]:
        """The headers of a browser with a login of its own."""
        async with self._http.post("/api/logins", json={}, headers=self._program) as answer:
            token = urlsplit((await answer.json())["url"]).fragment.removeprefix("token=")
        async with self._http.post("/api/login", json={"token": token}) as answer:
            cookies = "; ".join(f"{name}={cookie.value}" for name, cookie in answer.cookies.items())
        return {"Cookie": cookies, "Origin": self._gateway.url}


async def _frame(page: "aiohttp.ClientWebSocketResponse") -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await page.receive_str())
    return frame


async def _read(page: "aiohttp.ClientWebSocketResponse") -> None:
    while True:
        await _frame(page)


async def _until_answered(page: "aiohttp.ClientWebSocketResponse") -> None:
    """Wait for the end of the turn and its answer, whichever comes last."""
    answered = ended = False
    while not (answered and ended):
        frame = await _frame(page)
        if frame.get("event") == "message":
            answered |= frame["message"]["author"]["is_agent"]
        elif frame.get("event") == "turn":
            ended |= frame["state"] == "answered"


def cpu_seconds(pid: int) -> float:
    """CPU time of a running process, its threads included."""
    if sys.platform == "linux":
        # The CPU clock of another process, by clock_getcpuclockid(3): finer than the ticks of /proc.
        return time.clock_gettime((~pid << 3) | 2)
    listed = subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True)  # noqa: S603, S607
    parts = [float(part) for part in listed.stdout.strip().replace("-", ":").split(":")]
    return sum(part * scale for part, scale in zip(reversed(parts), (1, 60, 3600, 86_400), strict=False))
