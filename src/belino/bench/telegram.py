"""Telegram: bytes and calls of a busy group, compared with a bot that downloads everything on arrival."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from belino.bench import Row
from belino.bench.start import resident
from belino.testing import GatewayProcess, TelegramPace, TelegramServer
from belino.testing.telegram.crowd import ChattyGroup, conversation

MESSAGES = 1_000
MEDIA = 300
QUESTIONS = 20
GOAL_PART = 12
WAIT_SECONDS = 300.0
LOOK_AGAIN_SECONDS = 0.05
BESIDE = "fetched on arrival"

# The media in questions: mostly pictures, but not only small files.
_ASKED = ("photo", "photo", "photo", "document", "photo", "voice", "photo", "video_note", "photo", "photo")

# How most bots work, with the standard library: every file on arrival, streamed to disk.
EAGER = """
import json, shutil, sys, urllib.request
from pathlib import Path

api, token, folder = sys.argv[1:]
KINDS = ("video", "animation", "audio", "voice", "video_note", "document", "sticker")

def call(method, **fields):
    body = json.dumps(fields).encode()
    wish = urllib.request.Request(f"{api}/bot{token}/{method}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(wish, timeout=90) as answer:
        return json.load(answer)["result"]

offset = 0
call("getMe")
while True:
    for update in call("getUpdates", offset=offset, timeout=20):
        offset = update["update_id"] + 1
        message = update["message"]
        items = message.get("photo", [])[-1:] or [message[kind] for kind in KINDS if kind in message][:1]
        for item in items:
            path = call("getFile", file_id=item["file_id"])["file_path"]
            target = Path(folder) / item["file_unique_id"]
            source = urllib.request.urlopen(f"{api}/file/bot{token}/{path}", timeout=90)
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
        if "@belino_bot" in message.get("text", ""):
            call("sendMessage", chat_id=message["chat"]["id"], text="You sent me this.")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """The cost of one design for the platform and the machine."""

    answers: int
    bytes_fetched: int
    calls: int
    megabytes: float


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure both designs on the same group, one after the other. A corpus has no effect."""
    ours, beside = asyncio.run(_measure(_belino)), asyncio.run(_measure(_eager))
    ratio = ours.bytes_fetched / max(1, beside.bytes_fetched)
    what = f"{MESSAGES:,} messages, {MEDIA} media, {QUESTIONS} questions"
    return [
        Row(
            metric=f"megabytes fetched, {what}",
            ours=ours.bytes_fetched / 1e6,
            beside_name=BESIDE,
            beside=beside.bytes_fetched / 1e6,
            ratio=ratio,
            goal=f"≤ 1/{GOAL_PART}",
            ok=ratio <= 1 / GOAL_PART,
        ),
        _compared("platform calls", ours.calls, beside.calls),
        _compared("MB in memory at the end", ours.megabytes, beside.megabytes),
        Row(
            metric="questions answered",
            ours=ours.answers,
            beside_name=BESIDE,
            beside=beside.answers,
            goal=f"all {QUESTIONS}",
            ok=ours.answers == QUESTIONS,
        ),
    ]


def _compared(metric: str, ours: float, beside: float) -> Row:
    return Row(metric=metric, ours=ours, beside_name=BESIDE, beside=beside, ratio=ours / max(1e-9, beside))


async def _measure(
    design: Callable[[TelegramServer, ChattyGroup, Path, Callable[[], Awaitable[None]]], Awaitable[float]],
) -> GroupCost:
    """Play the group's talk with the questions spread over it, and wait until all of them are answered."""
    # Sending limits are the same for both designs and would only slow the benchmark.
    fast = TelegramPace(chat_burst=1_000, group_per_minute=1_000, all_per_second=1_000)
    async with TelegramServer(pace=fast) as server:
        crowd = ChattyGroup(server)

        async def talk() -> None:
            _talk(crowd)
            async with asyncio.timeout(WAIT_SECONDS):
                while server.updates.pending or len(server.sent) < QUESTIONS:
                    await server.clock.sleep(LOOK_AGAIN_SECONDS)

        with TemporaryDirectory(prefix="belino-bench-") as folder:
            megabytes = await design(server, crowd, Path(folder), talk)
        return GroupCost(
            answers=len(server.sent),
            bytes_fetched=server.bytes_served,
            calls=server.calls.total(),
            megabytes=megabytes,
        )


def _talk(crowd: ChattyGroup) -> None:
    """Every line, with a question about an earlier item after each part of the talk."""
    lines = conversation(MESSAGES - QUESTIONS, MEDIA)
    every, asked = len(lines) // QUESTIONS, 0
    shown: dict[str, dict[str, object]] = {}
    for number, line in enumerate(lines, start=1):
        said = crowd.say(line)
        shown |= {kind: said for kind in said if kind in _ASKED}
        if number % every == 0 and asked < QUESTIONS:
            kind = _ASKED[asked % len(_ASKED)]
            crowd.ask("what is this?", shown.get(kind) or next(iter(shown.values())))
            asked += 1


async def _belino(
    server: TelegramServer, crowd: ChattyGroup, folder: Path, talk: Callable[[], Awaitable[None]]
) -> float:
    """The real gateway in a process of its own, with the demo agent."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text(
        f'[logs]\nlevel = "error"\n[adapters.telegram]\ntoken = "env:BENCH_TOKEN"\napi_url = "{server.url}"\n'
        f'[adapters.telegram.access.channels."{crowd.group["id"]}"]\nsenders = ["*"]\n',
        encoding="utf-8",
    )
    gateway = GatewayProcess(home, environment={"BENCH_TOKEN": server.token})
    await asyncio.to_thread(gateway.start)
    try:
        await talk()
        return resident(gateway.pid)
    finally:
        await asyncio.to_thread(gateway.stop)


async def _eager(
    server: TelegramServer, crowd: ChattyGroup, folder: Path, talk: Callable[[], Awaitable[None]]
) -> float:
    """A bot in a process of its own that downloads everything."""
    command = [sys.executable, "-c", EAGER, server.url, server.token, str(folder)]
    process = await asyncio.to_thread(subprocess.Popen, command)
    try:
        await talk()
        return resident(process.pid)
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
