"""Turns: CPU and memory of answers with a model that answers at once, and what belino with a model takes on disk."""

import asyncio
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from belino.bench import Row
from belino.bench.start import process_cpu, resident, settled_cpu, web_turn
from belino.testing import GatewayProcess
from belino.testing.models import ModelAnswer
from belino.testing.models.openai import OpenAIServer
from belino.testing.telegram import TelegramServer
from belino.testing.telegram.request import TelegramPace

MESSAGES, PEOPLE = 600, 20
GOAL_RATE = 45.0
GOAL_FIRST_SECONDS, GOAL_FIRST_MB = 0.5, 15.0
GOAL_PEAK_MB = 150.0
GOAL_DISK_MB = 250.0
WAIT_SECONDS = 300.0
LOOK_AGAIN_SECONDS = 0.05
_MANY = 100_000
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure. A corpus has no effect."""
    return [*asyncio.run(_first_turn()), asyncio.run(_rate()), _on_disk()]


async def _first_turn() -> list[Row]:
    """The first turn after a start, and the most memory after one with a picture."""
    async with OpenAIServer(lambda _: ModelAnswer(text="hello")) as server:
        return await asyncio.to_thread(_measure_first, f"{server.url}/v1")


def _measure_first(url: str) -> list[Row]:
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "belino.toml").write_text(f"[server]\nport = 0\n{_agent(url)}", encoding="utf-8")
        with GatewayProcess(home) as gateway:
            cpu, memory = settled_cpu(gateway.pid), resident(gateway.pid)
            web_turn(gateway, 1, picture=False)
            cpu, memory = settled_cpu(gateway.pid) - cpu, resident(gateway.pid) - memory
            web_turn(gateway, 2)
            peak = _peak(gateway.pid)
    return [
        _row("CPU seconds of the first turn", cpu, GOAL_FIRST_SECONDS, "s"),
        _row("MB more after the first turn", memory, GOAL_FIRST_MB, "MB"),
        _row("MB at most, with a model and a picture", peak, GOAL_PEAK_MB, "MB"),
    ]


async def _rate() -> Row:
    """Direct messages of several people on one platform, after the first answer to each."""
    pace = TelegramPace(chat_burst=_MANY, group_per_minute=_MANY, all_per_second=_MANY)
    async with OpenAIServer(lambda _: ModelAnswer(text="hello")) as model, TelegramServer(pace=pace) as telegram:
        people = [telegram.user(f"person{number}") for number in range(PEOPLE)]
        with TemporaryDirectory(prefix="belino-bench-") as folder:
            home = Path(folder) / "home"
            home.mkdir(mode=0o700)
            (home / "belino.toml").write_text(
                f'[logs]\nlevel = "error"\n{_agent(f"{model.url}/v1")}'
                f'[adapters.telegram]\ntoken = "env:BENCH_TOKEN"\napi_url = "{telegram.url}"\n'
                '[adapters.telegram.access]\nsenders = ["*"]\n',
                encoding="utf-8",
            )
            gateway = GatewayProcess(home, environment={"BENCH_TOKEN": telegram.token})
            await asyncio.to_thread(gateway.start)
            try:
                await _answered(telegram, people)
                before = process_cpu(gateway.pid)
                for _ in range(MESSAGES // PEOPLE):
                    await _answered(telegram, people)
                spent = process_cpu(gateway.pid) - before
            finally:
                await asyncio.to_thread(gateway.stop)
    rate = MESSAGES / spent
    return Row(
        metric=f"turns per CPU second, {MESSAGES:,} direct messages",
        ours=rate,
        goal=f"≥ {GOAL_RATE:g}",
        ok=rate >= GOAL_RATE,
    )


async def _answered(telegram: TelegramServer, people: list[dict[str, object]]) -> None:
    """Everybody says something, and is answered."""
    wanted = len(telegram.sent) + len(people)
    for who in people:
        telegram.say(who, who, "What did we say about the trip?")
    async with asyncio.timeout(WAIT_SECONDS):
        while len(telegram.sent) < wanted:
            await telegram.clock.sleep(LOOK_AGAIN_SECONDS)


def _agent(url: str) -> str:
    return f'[agent]\nkind = "llm"\nmodel = "openai:gpt-4o"\napi = "chat"\nbase_url = "{url}"\n'


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return resident(pid)
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"))
    return int(found[1]) * 1024 / 1e6 if found else resident(pid)


def _on_disk() -> Row:
    packages = _needed("belino", "llm")
    size = sum(_size(package) for package in packages.values()) / 1e6
    return _row(f"MB on disk with a model, {len(packages)} packages", size, GOAL_DISK_MB, "MB")


def _needed(name: str, *extras: str) -> dict[str, Distribution]:
    """A package with everything that it needs, by name; what is not installed does not count."""
    found: dict[str, Distribution] = {}
    waiting = [(name, frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        try:
            package = found.setdefault(key, distribution(name))
        except PackageNotFoundError:
            continue
        for line in package.requires or ():
            needed = _NAME.match(line)
            condition = _EXTRA.search(line.partition(";")[2])
            if needed is None or (condition is not None and condition[1] not in wanted):
                continue
            if re.sub(r"[-_.]+", "-", needed[0]).lower() not in found:
                listed = re.match(r"[A-Za-z0-9._-]+\s*\[([^\]]*)\]", line)
                waiting.append((needed[0], frozenset(listed[1].replace(" ", "").split(",")) if listed else frozenset()))
    return found


def _size(package: Distribution) -> int:
    places = {Path(str(package.locate_file(file))) for file in package.files or ()}
    return sum(place.stat().st_size for place in places if place.is_file())


def _row(metric: str, ours: float, goal: float, unit: str) -> Row:
    return Row(metric=metric, ours=ours, goal=f"≤ {goal:g} {unit}", ok=ours <= goal)
