"""Start: CPU of the help, until the first healthy answer and of a model's first answer; memory after ten turns."""

import asyncio
import base64
import http.client
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

from belino.bench import Row
from belino.testing import GatewayProcess, make_png
from belino.testing.models import ModelAnswer
from belino.testing.models.openai import OpenAIServer

ROUNDS = 5
TURNS = 10
GOAL_HELP_SECONDS = 0.15
GOAL_START_SECONDS = 0.8
GOAL_MEMORY_MB = 80.0
GOAL_FIRST_RATIO = 2.0
ANSWERS = 5
REST_SECONDS = 1.2
"""Longer than an agent waits after the start before it loads what it needs."""
WAIT_SECONDS = 60.0
CONVERSATION = "web:default:main"

# The minimal server with /healthz on the same libraries and the same loop.
BARE_SERVER = """
import socket, sys, uvicorn, uvloop
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def healthz(request):
    return JSONResponse({"ok": True})

listener = socket.create_server(("127.0.0.1", 0))
app = Starlette(routes=[Route("/healthz", healthz)])
config = uvicorn.Config(app, loop="none", http="httptools", lifespan="off", log_config=None, access_log=False)
print(listener.getsockname()[1], flush=True)
uvloop.run(uvicorn.Server(config).serve(sockets=[listener]))
"""


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure; every figure is the median of fresh processes. A corpus has no effect."""
    python = _median(lambda: _cpu_of([sys.executable, "-c", "pass"]))
    helping = _median(lambda: _cpu_of([sys.executable, "-m", "belino", "--help"]))
    # Alternating, so that a machine that slows down slows both.
    rounds = [(_gateway(), _bare_server()) for _ in range(ROUNDS)]
    (cpu, memory), (bare_cpu, bare_memory) = (
        [median(values) for values in zip(*side, strict=True)] for side in zip(*rounds, strict=True)
    )
    bare = "bare starlette"
    return [
        _row("CPU seconds of --help", helping, "bare python", python, GOAL_HELP_SECONDS, "s"),
        _row("CPU seconds to the first healthy answer", cpu, bare, bare_cpu, GOAL_START_SECONDS, "s"),
        _row(f"MB in memory after {TURNS} turns", memory, bare, bare_memory, GOAL_MEMORY_MB, "MB"),
        _first_answer_row(*asyncio.run(_model_answers())),
    ]


def _first_answer_row(first: float, later: float) -> Row:
    return Row(
        metric="CPU seconds of the first answer of a model",
        ours=first,
        beside_name="a later one",
        beside=later,
        ratio=first / later,
        goal=f"≤ {GOAL_FIRST_RATIO:g} ×",
        ok=first <= GOAL_FIRST_RATIO * later,
    )


async def _model_answers() -> tuple[float, float]:
    """CPU seconds of the first answer after a start, and of a later one, with a model that answers at once."""
    async with OpenAIServer(lambda _: ModelAnswer(text="hello")) as server:
        return await asyncio.to_thread(_answered_by, f"{server.url}/v1")


def _answered_by(url: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        agent = f'kind = "llm"\nmodel = "openai:gpt-4o"\napi = "chat"\nbase_url = "{url}"\n'
        (home / "belino.toml").write_text(f"[server]\nport = 0\n[agent]\n{agent}", encoding="utf-8")
        with GatewayProcess(home) as gateway:
            settled_cpu(gateway.pid)
            spent = [settled_cpu(gateway.pid)]
            for number in range(1, ANSWERS + 1):
                web_turn(gateway, number, picture=False)
                spent.append(settled_cpu(gateway.pid))
    costs = [after - before for before, after in pairwise(spent)]
    return costs[0], max(sum(costs[1:]) / len(costs[1:]), 1 / os.sysconf("SC_CLK_TCK"))


def settled_cpu(pid: int) -> float:
    """CPU seconds of a process once it rests."""
    pause, before = threading.Event(), -1.0
    while (now := process_cpu(pid)) != before:
        before = now
        pause.wait(REST_SECONDS)
    return now


def process_cpu(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _row(metric: str, ours: float, beside_name: str, beside: float, goal: float, unit: str) -> Row:
    return Row(
        metric=metric,
        ours=ours,
        beside_name=beside_name,
        beside=beside,
        ratio=ours / beside,
        goal=f"≤ {goal:g} {unit}",
        ok=ours <= goal,
    )


def _median(measure: Callable[[], float]) -> float:
    return median(measure() for _ in range(ROUNDS))


def _cpu_of(command: list[str]) -> float:
    before = _children_cpu()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=WAIT_SECONDS)  # noqa: S603 - our own
    return _children_cpu() - before


def _gateway() -> tuple[float, float]:
    """CPU seconds until the first healthy answer, and megabytes after ten turns with a picture each."""
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        before = _children_cpu()
        with GatewayProcess(Path(folder) / "home") as gateway:
            _healthy(gateway.url)
            gateway.kill()
        cpu = _children_cpu() - before
        with gateway:
            for number in range(1, TURNS + 1):
                web_turn(gateway, number)
            return cpu, resident(gateway.pid)


def web_turn(gateway: GatewayProcess, number: int, *, picture: bool = True) -> None:
    """Ask something in the web chat, and wait for the answer."""
    shown = {
        "mime_type": "image/png",
        "file_name": f"{number}.png",
        "content": base64.b64encode(make_png(640, 480, color=(number, 0, 0))).decode(),
    }
    wish = {
        "conversation": CONVERSATION,
        "message": f"What is in picture {number}?",
        "attachments": [shown] if picture else [],
    }
    status, answer = gateway.call("POST", "/api/messages", wish)
    assert status < 300, answer
    for _ in range(10_000):
        _, answer = gateway.call("GET", f"/api/messages?conversation={CONVERSATION}&limit=100")
        if len(answer["messages"]) >= 2 * number:
            return
    raise AssertionError(f"turn {number} was not answered")


def _bare_server() -> tuple[float, float]:
    before = _children_cpu()
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", BARE_SERVER], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        _healthy(f"http://127.0.0.1:{server.stdout.readline().strip()}")
        held = resident(server.pid)
        server.send_signal(signal.SIGKILL)
    return _children_cpu() - before, held


def _healthy(url: str) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def _children_cpu() -> float:
    """CPU seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident(pid: int) -> float:
    """Resident memory of a process, in megabytes."""
    status = Path(f"/proc/{pid}/statm")
    if status.exists():
        return int(status.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)  # noqa: S603, S607
    return int(listed.stdout) * 1024 / 1e6
