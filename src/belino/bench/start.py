"""Start: CPU of the help and until the first healthy answer, memory after ten turns, compared with bare Python."""

import base64
import http.client
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from belino.bench import Row
from belino.testing import GatewayProcess, make_png

ROUNDS = 5
TURNS = 10
GOAL_HELP_SECONDS = 0.15
GOAL_START_SECONDS = 0.8
GOAL_MEMORY_MB = 80.0
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
    ]


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
                _turn(gateway, number)
            return cpu, resident(gateway.pid)


def _turn(gateway: GatewayProcess, number: int) -> None:
    picture = {
        "mime_type": "image/png",
        "file_name": f"{number}.png",
        "content": base64.b64encode(make_png(640, 480, color=(number, 0, 0))).decode(),
    }
    wish = {"conversation": CONVERSATION, "message": f"What is in picture {number}?", "attachments": [picture]}
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
