"""Killed in the middle of its calls to a platform: every message is answered, and shown once where that can be told."""

import asyncio
import hashlib
import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from belino.delivery.send import PERHAPS_TWICE
from belino.domain.message import ConversationKey
from belino.testing import GatewayProcess, Pace, SlackPace, SlackServer, TelegramServer
from belino.testing.discord import DiscordServer
from belino.testing.discord_pace import DiscordPace
from belino.testing.telegram_shapes import Upload
from faults.looking import SOAK, check_state_folder, history, until
from journeys.busy_group import BOT as TELEGRAM_BOT
from journeys.busy_group import BusyGroup
from journeys.busy_group import until as soon
from journeys.busy_server import BOT as DISCORD_BOT
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BOT as SLACK_BOT
from journeys.busy_workspace import BusyWorkspace

KILLS = 150 if SOAK else 6
SEED = 20261116
FILE_BYTES = 300_000
LONG_AGO = 1_000_000_000
# At which of its calls a life ends at the latest, and after how many seconds if it makes fewer.
CALLS, SECONDS = 14, 3.0
FAST = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=100_000, other=100_000, methods={})

Take = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Fall:
    """Ends a gateway at one of its calls: while the platform reads it, or once it took effect and before it is told."""

    def __init__(self, server: object) -> None:
        self.struck = asyncio.Event()
        self.struck_at: Counter[str] = Counter()
        self._pid = self._left = 0
        self._done = False
        for name in ("_take_call", "_take_upload", "_take_file"):
            if hasattr(server, name):
                setattr(server, name, self._around(getattr(server, name)))

    def set(self, pid: int, *, call: int, done: bool) -> None:
        """This process ends at that call from now on."""
        self.struck.clear()
        self._pid, self._left, self._done = pid, call, done

    def _around(self, take: Take) -> Take:
        async def taken(request: web.Request) -> web.StreamResponse:
            self._left -= 1
            is_last, done = self._left == 0, self._done
            if is_last and not done:
                await request.content.readany()
                self._strike(request, "within")
                return web.Response(status=500)
            answer = await take(request)
            if is_last:
                self._strike(request, "after")
            return answer

        return taken

    def _strike(self, request: web.Request, moment: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self.struck_at[f"{moment} {request.path.rpartition('/')[2]}"] += 1
        self.struck.set()


@dataclass(slots=True, kw_only=True)
class Scene:
    """People who write to a bot in two places, and what the platform shows of its answers."""

    busy: BusyGroup | BusyServer | BusyWorkspace
    fall: Fall
    process: GatewayProcess
    direct: ConversationKey
    room: ConversationKey
    say: Callable[[bool, str, Upload | None], None]
    """Directly or in the room: words, and a file perhaps."""
    shown: Callable[[], list[str]]
    """The ids of what the bot made visible."""
    received: Callable[[], list[Upload]]
    """The files it uploaded."""
    is_heard: Callable[[], bool] = lambda: True
    """Whether the bot is there, where a platform tells only who is."""
    keeps_order: bool = True
    can_tell_duplicates: bool = True
    said: dict[ConversationKey, list[str]] = field(default_factory=dict)
    offered: list[str] = field(default_factory=list)

    def speak(self, rng: Random) -> None:
        """Somebody says something; now and then it brings a file, and now and then the answer is to."""
        directly = rng.random() < 0.5
        place = self.direct if directly else self.room
        number = sum(map(len, self.said.values()))
        if rng.random() < 0.4:
            self._offer(place, f"file{number}.bin", rng.randbytes(FILE_BYTES))
        brought = rng.randbytes(FILE_BYTES) if rng.random() < 0.3 else None
        self.said.setdefault(place, []).append(words := f"number {number}")
        self.say(directly, words, Upload(content=brought, name=f"in{number}.bin") if brought else None)

    def _offer(self, place: ConversationKey, name: str, content: bytes) -> None:
        half = self.busy.home.outgoing(place) / name
        half.write_bytes(content)
        os.utime(half, (LONG_AGO, LONG_AGO))
        half.rename(half.parent / "pending" / name)
        self.offered.append(hashlib.sha256(content).hexdigest())


@asynccontextmanager
async def telegram(path: Path) -> AsyncIterator[Scene]:
    server = TelegramServer(pace=Pace(chat_burst=100_000, group_per_minute=100_000, all_per_second=100_000))
    fall = Fall(server)
    async with server:
        busy = BusyGroup(server, path)

        def say(directly: bool, words: str, file: Upload | None) -> None:
            place = busy.ann if directly else busy.chat
            text = words if directly else f"{TELEGRAM_BOT} {words}"
            if file is not None:
                server.say(place, busy.ann, caption=text, document=file)
            else:
                server.say(place, busy.ann, text)

        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(path, busy.table(), {"BELINO_TEST_TOKEN": server.token}),
            direct=busy.channel(busy.ann),
            room=busy.channel(busy.chat),
            say=say,
            shown=lambda: [str(message["message_id"]) for message in server.sent],
            received=lambda: server.received,
            can_tell_duplicates=False,
        )


@asynccontextmanager
async def discord(path: Path) -> AsyncIterator[Scene]:
    server = DiscordServer(pace=DiscordPace(routes={}, other=(100_000, 1.0), all_per_second=100_000))
    fall = Fall(server)
    async with server:
        busy = BusyServer(server, path)

        def say(directly: bool, words: str, file: Upload | None) -> None:
            place, text = (busy.ann, words) if directly else (busy.room, f"{DISCORD_BOT} {words}")
            server.say(place, busy.ann, text, files=[file] if file else [])

        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(path, busy.table(), {"BELINO_TEST_TOKEN": server.token}),
            direct=busy.channel(busy.ann),
            room=busy.channel(busy.room),
            say=say,
            is_heard=busy.is_heard,
            shown=lambda: [str(message["id"]) for message in server.sent],
            received=lambda: server.received,
        )


@asynccontextmanager
async def slack(path: Path) -> AsyncIterator[Scene]:
    server = SlackServer(pace=FAST)
    fall = Fall(server)
    async with server:
        busy = BusyWorkspace(server, path)

        def say(directly: bool, words: str, file: Upload | None) -> None:
            place, text = (busy.ann, words) if directly else (busy.room, f"{SLACK_BOT} {words}")
            server.say(place, busy.ann, text, files=[file] if file else [])

        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(path, busy.table(), busy.environment),
            direct=busy.channel(busy.ann),
            room=busy.channel(busy.room),
            say=say,
            is_heard=busy.is_heard,
            shown=lambda: [str(message["ts"]) for message in server.sent],
            received=lambda: server.received,
            keeps_order=False,  # what was not acknowledged is told again, after what was said meanwhile
        )


def process_of(path: Path, table: dict[str, Any], environment: dict[str, str]) -> GatewayProcess:
    # A turn may be hit by many kills here; that it gives up after three is told elsewhere.
    table["sessions"]["attempts"] = 100_000
    (path / "belino.json").write_text(json.dumps(table), encoding="utf-8")
    return GatewayProcess(path, environment=environment)


PLATFORMS = {"telegram": telegram, "discord": discord, "slack": slack}


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_gateway_killed_in_the_middle_of_its_calls_answers_everything_and_doubles_nothing_silently(
    tmp_path: Path, platform: str
) -> None:
    rng = Random(f"{SEED}:{platform}")
    home = tmp_path / "home"
    async with PLATFORMS[platform](home) as scene:
        try:
            await asyncio.to_thread(scene.process.start)
            await soon(scene.is_heard)  # what was said before is no one's to answer
            await speak_and_settle(scene, "the beginning")
            await asyncio.to_thread(scene.process.kill)
            for _ in range(KILLS):
                await one_life(scene, rng)
            await asyncio.to_thread(scene.process.start)
            await speak_and_settle(scene, "the end")
            told = {place: await asyncio.to_thread(history, scene.process, str(place)) for place in scene.said}
            assert await asyncio.to_thread(scene.process.stop) == 0
        finally:
            await asyncio.to_thread(scene.process.kill)
        for place, messages in told.items():
            check_conversation(scene, place, messages)
        check_outbox(scene, parcels(home))
        check_state_folder(home)
        assert "Traceback" not in scene.process.log()
        assert scene.fall.struck_at, "nothing was killed at a call"


async def one_life(scene: Scene, rng: Random) -> None:
    await asyncio.to_thread(scene.process.start)
    scene.fall.set(scene.process.pid, call=rng.randint(1, CALLS), done=rng.random() < 0.5)
    for _ in range(rng.randint(1, 3)):
        scene.speak(rng)
    with suppress(TimeoutError):
        await asyncio.wait_for(scene.fall.struck.wait(), rng.uniform(0.2, SECONDS))
    await asyncio.to_thread(scene.process.kill)


async def speak_and_settle(scene: Scene, words: str) -> None:
    """Say so in both places, and wait until that is answered and nothing is on its way any more."""
    for directly, place in ((True, scene.direct), (False, scene.room)):
        scene.said.setdefault(place, []).append(words)
        scene.say(directly, words, None)
    await asyncio.to_thread(until, lambda: is_settled(scene, words), "some answer never came to its end")


def is_settled(scene: Scene, words: str) -> bool:
    _, told = scene.process.call("GET", "/api/conversations")
    if any(entry["waiting"] for entry in told["conversations"]):
        return False
    _, outbox = scene.process.call("GET", "/api/outbox?limit=200")
    if any(parcel["state"] not in {"sent", "uncertain", "dead"} for parcel in outbox["parcels"]):
        return False
    heard = (message for place in scene.said for message in history(scene.process, str(place)))
    last = [message["outcome"] for message in heard if message["text"].endswith(words)]
    return last == ["answered"] * 2


def parcels(home: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(home / "belino.db")) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT key, state, reason, text, attempts, message_id FROM parcels ORDER BY id")
        return [dict(row) for row in rows]


def check_conversation(scene: Scene, place: ConversationKey, messages: list[dict[str, Any]]) -> None:
    """Everything said is there once and answered, in the order it came."""
    people = [message for message in messages if not message["author"]["is_agent"]]
    heard = [message["text"].partition(" ")[2] if message["text"][0] in "<@" else message["text"] for message in people]
    said = scene.said[place]
    assert heard == said if scene.keeps_order else sorted(heard) == sorted(said)
    assert {message["outcome"] for message in people} == {"answered"}
    answered = list(dict.fromkeys(message["trace"] for message in messages if message["author"]["is_agent"]))
    assert answered == [message["trace"] for message in people if message["trace"] in set(answered)]


def check_outbox(scene: Scene, kept: list[dict[str, Any]]) -> None:
    """Every answer and every file is shown once, or may be shown twice and says so."""
    shown = Counter(scene.shown())
    files = Counter(upload.sha256 for upload in scene.received())
    flagged = [one for one in kept if one["state"] == "uncertain" or one["reason"] == PERHAPS_TWICE]
    sent = {one["message_id"] for one in kept if one["state"] == "sent"}
    assert {one["state"] for one in kept} <= {"sent", "uncertain"}, kept
    assert sent <= set(shown)
    assert len(shown) - len(sent) <= len(flagged)
    if scene.can_tell_duplicates:
        assert not flagged, flagged
        assert files == Counter(scene.offered)
    else:
        assert sum((files - Counter(scene.offered)).values()) <= len(flagged)
        assert sum((Counter(scene.offered) - files).values()) <= len(flagged)
