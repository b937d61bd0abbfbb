"""What a sweep costs running conversations: the delay of the event loop, and a turn compared with one at rest."""

import asyncio
import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from belino.bench import Row
from belino.config import AccessConfig, AdapterConfig, AgentConfig, Config
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.stored import ScreenedArrival, Verdict
from belino.gateway.gateway import Gateway
from belino.media.fetch import MediaConfig
from belino.net.clock import SystemClock
from belino.storage.folder import blob_path
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import MemoryAdapter, ScriptedAgent
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryPlatform

REFS = 100_000
BLOBS = 10_000
AT_REST = 100
PER_MESSAGE = 10
CHANNELS = 20
TICK_SECONDS = 0.001
GOAL_DELAY_MS = 50.0
WAIT_SECONDS = 600.0
BLOB_BYTES = 1_024

_ANN = Author(id="ann", name="Ann")
_DIRECT = ConversationKey(platform="memory", account="default", channel="direct")
_OBSERVE = Verdict(standing=Standing.OBSERVED, reason="bench")


@dataclass(slots=True, kw_only=True)
class _Measured:
    """Measurements during and after the sweep."""

    delays: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    resting: list[float] = field(default_factory=list)
    seconds: float = 0.0


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure; a corpus has no effect."""
    return sweep_rows()


def sweep_rows(refs: int = REFS, blobs: int = BLOBS) -> list[Row]:
    """A state folder with half of its media expired, some garbage and a full disk; and a conversation beside it."""
    import uvloop

    with (
        TemporaryDirectory(prefix="belino-bench-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        home = Home.at(Path(folder) / "state")
        runner.run(_fill(home, refs))
        _hold(home, blobs)
        os.sync()
        seen = runner.run(asyncio.wait_for(_measure(home, blobs), WAIT_SECONDS))
    return _rows(seen, refs, blobs)


def _rows(seen: _Measured, refs: int, blobs: int) -> list[Row]:
    late = sorted(seen.delays)[int(len(seen.delays) * 0.99)] * 1_000
    busy, resting = median(seen.busy) * 1_000, median(seen.resting) * 1_000
    what = f"a sweep over {refs:,} refs and {blobs:,} blobs"
    return [
        Row(
            metric=f"ms the event loop is late in {what}, p99",
            ours=late,
            goal=f"≤ {GOAL_DELAY_MS:g} ms",
            ok=late <= GOAL_DELAY_MS,
        ),
        Row(metric="ms it is late at most", ours=max(seen.delays) * 1_000),
        Row(
            metric=f"ms from a message to its answer, median of {len(seen.busy)} during the sweep",
            ours=busy,
            beside_name="at rest",
            beside=resting,
            ratio=busy / resting,
        ),
        Row(metric="ms for the slowest of them", ours=max(seen.busy) * 1_000),
        Row(metric="seconds until all is swept", ours=seen.seconds),
    ]


async def _fill(home: Home, refs: int) -> None:
    """Messages with refs, as if received."""
    store = await open_store(home, clock=SystemClock())
    try:
        arrivals = (_message(number, PER_MESSAGE) for number in range(refs // PER_MESSAGE))
        while some := list(islice(arrivals, 500)):
            await store.take_in_all([ScreenedArrival(arrival=message, verdict=_OBSERVE) for message in some])
    finally:
        await store.close()


def _message(number: int, count: int) -> Message:
    where = ConversationKey(platform="memory", account="default", channel=f"channel-{number % CHANNELS}")
    sent = datetime.now(UTC)
    media = tuple(
        MediaRef(
            platform="memory",
            account="default",
            channel_id=where.channel,
            message_id=str(number),
            item=str(item),
            kind=MediaKind.IMAGE,
            mime="image/png",
            created=sent,
            size=BLOB_BYTES,
            locator={"file": f"{number}-{item}"},
        )
        for item in range(count)
    )
    return Message(conversation=where, id=str(number), author=_ANN, sent=sent, media=media, chat_type=ChatType.GROUP)


def _hold(home: Home, count: int) -> None:
    """Blobs of every tenth ref, written directly because a sync for each would dominate the run.

    Half of the refs are too old; of the blobs, a tenth is unused, a tenth has no row and a twentieth no file.
    """
    names = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]
    for number, name in enumerate(names):
        if number % 20 != 1:
            place = blob_path(home.blobs, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(bytes(BLOB_BYTES))
    old = int((datetime.now(UTC) - timedelta(days=40)).timestamp() * 1e6)
    with closing(sqlite3.connect(home.database)) as database, database:
        ids = [row[0] for row in database.execute("SELECT id FROM refs ORDER BY seq")]
        step = max(1, len(ids) // count)
        held = [(name, ids[number * step]) for number, name in enumerate(names) if number % 10 != 2]
        database.executemany("INSERT INTO blobs VALUES (?, 'image/png', ?, ?)", _kept(held, old))
        used = [(name, ref) for number, (name, ref) in enumerate(held) if number % 10 != 3]
        database.executemany("INSERT INTO blob_uses VALUES (?, 'ref:' || ?)", used)
        database.executemany("UPDATE refs SET sha256 = ?, outcome = 'held', fetched = stored WHERE id = ?", used)
        database.execute("UPDATE refs SET stored = ? WHERE seq % 2 = 0", (old,))


def _kept(held: Sequence[tuple[str, str]], at: int) -> list[tuple[str, int, int]]:
    return [(name, BLOB_BYTES, at + number) for number, (name, _) in enumerate(held)]


async def _measure(home: Home, blobs: int) -> _Measured:
    far_side, seen = MemoryPlatform(), _Measured()
    config = Config(
        agent=AgentConfig(options=None),
        media=MediaConfig(disk_bytes=blobs * BLOB_BYTES // 4),
        adapters=(
            AdapterConfig(
                platform="memory", access=AccessConfig(senders=("ann",)), options=MemoryConfig(far_side=far_side)
            ),
        ),
    )
    gateway = Gateway(
        config, home, agent=ScriptedAgent(), make_adapter=lambda given, context: MemoryAdapter(given.options, context)
    )
    async with gateway, asyncio.TaskGroup() as group:
        working = group.create_task(gateway.run())
        ticking = group.create_task(_tick(seen.delays))
        begun, number = time.perf_counter(), 0
        while "whole" not in gateway.soundness()[0].says:
            seen.busy.append(await _talk(gateway, far_side, number))
            number += 1
        seen.seconds = time.perf_counter() - begun
        ticking.cancel()
        seen.resting = [await _talk(gateway, far_side, number + more) for more in range(AT_REST)]
        gateway.stop()
        await working
    return seen


async def _talk(gateway: Gateway, far_side: MemoryPlatform, number: int) -> float:
    """Seconds from a message to its answer on the platform."""
    begun, before = time.perf_counter(), len(far_side.sent)
    said = f"direct-{number}"
    await gateway.accept(
        Message(
            conversation=_DIRECT, id=said, author=_ANN, sent=datetime.now(UTC), text="hi", chat_type=ChatType.DIRECT
        )
    )
    while len(far_side.sent) == before:  # noqa: ASYNC110 - the fake platform has no event to await
        await asyncio.sleep(TICK_SECONDS)
    return time.perf_counter() - begun


async def _tick(delays: list[float]) -> None:
    """The event loop's delay beyond the requested sleep, repeatedly."""
    while True:
        due = time.perf_counter() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        delays.append(max(0.0, time.perf_counter() - due))
