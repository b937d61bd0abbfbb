"""Stream: CPU and memory of a gigabyte from a socket to a blob, compared with curl writing a file."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from belino.bench import Row
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.ports import HttpAnswer
from belino.domain.stored import Verdict
from belino.media.fetch import Fetcher, MediaConfig
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.stream import range_headers, resumed
from belino.storage.home import Home
from belino.storage.store import Store, open_store

SIZE = 1 << 30
ROUNDS = 5
GOAL_RATIO = 0.7
GOAL_MEMORY_MB = 16.0
WAIT_SECONDS = 300.0

# The cheapest possible server: it sends the same megabyte as often as the path asks, in a process of its own.
SERVER = """
import socket
piece = bytes(range(256)) * 4096
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    line, _ = listener.accept()
    with line:
        times = int(line.recv(65536).split()[1][1:])
        line.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n")
        line.sendall(b"Content-Length: %d\\r\\n\\r\\n" % (times * len(piece)))
        for _ in range(times):
            line.sendall(piece)
"""
PIECE = 1 << 20


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure; a corpus has no effect."""
    return stream_rows()


def stream_rows(size: int = SIZE) -> list[Row]:
    """CPU seconds and megabytes of one stream, each the median of fresh processes."""
    with _server() as url, tempfile.TemporaryDirectory() as folder:
        # Alternating, so that a machine that slows down slows both.
        rounds = [_round(url, size, Path(folder)) for _ in range(ROUNDS)]
    cpu, grown, other = (median(values) for values in zip(*rounds, strict=True))
    curl = other or None
    ratio = None if curl is None else curl / cpu
    gigabytes = f"{size / (1 << 30):g} GiB"
    return [
        Row(
            metric=f"CPU seconds to fetch {gigabytes}, hashed and kept",
            ours=cpu,
            beside_name="curl to a file" if curl is not None else "",
            beside=curl,
            ratio=ratio,
            goal=f"≥ {GOAL_RATIO}×" if curl is not None else "",
            ok=None if ratio is None else ratio >= GOAL_RATIO,
        ),
        Row(
            metric=f"MB that memory grows by, fetching {gigabytes}",
            ours=grown,
            goal=f"≤ {GOAL_MEMORY_MB:g} MB",
            ok=grown <= GOAL_MEMORY_MB,
        ),
    ]


@contextmanager
def _server() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate(timeout=WAIT_SECONDS)


def _round(url: str, size: int, folder: Path) -> tuple[float, float, float]:
    os.sync()  # a write costs more while the kernel still flushes earlier ones
    ours = _ours(url, size, folder)
    os.sync()
    return (*ours, _curl(f"{url}{size // PIECE}", folder))


def _curl(url: str, folder: Path) -> float:
    """CPU seconds of curl writing the same bytes to the same disk; 0 without curl."""
    if shutil.which("curl") is None:
        return 0.0
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    target = folder / "curl"
    command = ["curl", "-s", "--noproxy", "*", "-o", str(target), url]
    subprocess.run(command, check=True, timeout=WAIT_SECONDS)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    target.unlink()
    return _cpu(after) - _cpu(before)


def _ours(url: str, size: int, folder: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of our fetch, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        command = [sys.executable, "-m", "belino.bench.stream", url, str(size), home]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT_SECONDS)  # noqa: S603
    measured: dict[str, float] = json.loads(done.stdout)
    return measured["cpu"], measured["grown"]


def _cpu(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


async def _fetch_once(url: str, size: int, folder: Path) -> dict[str, float]:
    """A real fetch into a real store, measured after a small one for warm-up."""
    clock = SystemClock()
    client = Client(hosts=[url.removeprefix("http://").rstrip("/")])
    store = await open_store(Home.at(folder), clock=clock)

    @asynccontextmanager
    async def open_media(ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        def open_at(offset: int, validator: str | None) -> AbstractAsyncContextManager[HttpAnswer]:
            return client.request("GET", url + ref.item, headers=range_headers(offset, validator))

        yield resumed(open_at, clock=clock)

    config = MediaConfig(max_bytes=2 * size, channel_bytes_per_day=4 * size)
    fetcher = Fetcher(store, store, open_media, config, clock)
    try:
        await _fetch(fetcher, store, 4)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await _fetch(fetcher, store, size // PIECE)
        after = resource.getrusage(resource.RUSAGE_SELF)
    finally:
        await client.close()
        await store.close()
    unit = 1 if sys.platform == "darwin" else 1024
    return {"cpu": _cpu(after) - _cpu(before), "grown": (after.ru_maxrss - before.ru_maxrss) * unit / 1e6}


async def _fetch(fetcher: Fetcher, store: Store, pieces: int) -> None:
    channel = ConversationKey(platform="bench", account="default", channel="main")
    now, name = datetime.now(UTC), str(pieces)
    ref = MediaRef(
        platform="bench",
        account="default",
        channel_id="main",
        message_id=name,
        item=name,
        kind=MediaKind.DOCUMENT,
        mime="application/octet-stream",
        created=now,
    )
    message = Message(conversation=channel, id=name, author=Author(id="1", name="Bench"), sent=now, media=(ref,))
    taken = await store.take_in(message, Verdict(standing=Standing.OBSERVED, reason="bench"))
    record = await store.ref(channel, taken.refs[0].id)
    assert record is not None
    assert (await fetcher.fetch(record)).size == pieces * PIECE


if __name__ == "__main__":
    import uvloop  # as the gateway does

    measured = uvloop.run(_fetch_once(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
    sys.stdout.write(json.dumps(measured))
