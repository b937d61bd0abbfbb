"""Killed at every named failpoint on every platform: nothing is lost, nothing is doubled silently, all is answered."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from belino.delivery.send import PERHAPS_TWICE
from belino.domain import failpoints
from belino.domain.failpoints import FAILPOINTS, failpoint
from belino.net.clock import SystemClock
from belino.storage.backup import MANIFEST
from belino.storage.home import Home
from belino.storage.restore import restore
from belino.testing import FakeUpload, SlackPace, SlackServer, TelegramPace, TelegramServer, make_png
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace, slow_down
from belino.testing.faults import CannedAnswer, Reset
from faults.forked import SLOWLY, ForkedGateway, Nursery
from faults.looking import SOAK, append, check_state_folder, history
from journeys.busy_group import BusyGroup
from journeys.busy_place import PATIENCE, BusyPlace
from journeys.busy_place import until as soon
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace

PICTURE = make_png(400, 300)
WEB = "web:default:main"
DRAFTS = {"draft.put.after", "draft.edit.before", "draft.edit.after"}
BACKUP = {name for name in FAILPOINTS if name.startswith("backup.")}
READING = {name for name in FAILPOINTS if name.startswith("reading.")}
"""Passed where a provider reads media: test_kill_reading.py."""
AT_ONCE = 3
PAUSE = 0.1
"""Between two looks, each of which costs CPU time of both sides."""
ONE_IN = 5
"""Of the failpoints, in a short run."""


@dataclass(slots=True, kw_only=True)
class Journey:
    """One gateway, one platform with one person on it, and what they say to each other."""

    gateway: ForkedGateway
    conversation: str
    write: Callable[[str, bool], Any]
    """Say something, with or without a picture."""
    trouble: Callable[[], None] = lambda: None
    """What the platform does wrong from now on."""
    refuse: Callable[[], None] = lambda: None
    """The platform takes the next words for nothing in the world."""
    delete: Callable[[Any], None] | None = None
    is_heard: Callable[[], bool] = lambda: True
    shown: Callable[[], int] = lambda: 0
    """How many messages of the bot the platform shows."""
    said: list[str] = field(default_factory=list)
    killed: int = 0

    async def alive(self) -> None:
        """Start the gateway again if it has ended at its failpoint."""
        while (code := self.gateway.ended) is not None:
            assert code in (0, -signal.SIGKILL), self.gateway.log()[-3000:]
            self.killed += code != 0
            await asyncio.to_thread(self.gateway.start)
        await soon(lambda: self.gateway.ended is not None or self.is_heard())

    async def say(self, words: str, *, picture: bool = False) -> Any:
        self.said.append(words)
        message = await asyncio.to_thread(self.write, words, picture)
        await self.until(self.is_answered)
        return message

    async def until(self, settled: Callable[[], bool]) -> None:
        """Look until it is so, whichever life of the gateway it takes."""

        async def so() -> bool:
            if self.gateway.ended is not None:
                await self.alive()
            try:
                return await asyncio.to_thread(settled)
            except (OSError, http.client.HTTPException, AssertionError):
                return False  # it is being killed

        async with asyncio.timeout(PATIENCE):
            while not await so():
                await asyncio.sleep(PAUSE)

    def is_answered(self) -> bool:
        people = [one for one in history(self.gateway, self.conversation) if not one["author"]["is_agent"]]
        if [one["outcome"] for one in people] != ["answered"] * len(self.said):
            return False
        _, outbox = self.gateway.call("GET", "/api/outbox?limit=200")
        return all(parcel["state"] in {"sent", "uncertain", "dead"} for parcel in outbox["parcels"])

    def is_purged(self) -> bool:
        with closing(sqlite3.connect(self.gateway.home / "belino.db")) as database:
            (left,) = database.execute("SELECT count(*) FROM blobs_forsaken").fetchone()
            (refs,) = database.execute("SELECT count(*) FROM refs_gone WHERE has_copies = 0").fetchone()
        return bool(left == 0 and refs > 0)


@asynccontextmanager
async def telegram(nursery: Nursery, home: Path, *, hooked: bool = False) -> AsyncIterator[Journey]:
    server = TelegramServer(pace=TelegramPace(chat_burst=100_000, group_per_minute=100_000, all_per_second=100_000))
    async with server:
        busy = BusyGroup(server, home)
        table, port = busy.table(), free_port() if hooked else 0
        if hooked:
            where = {
                "mode": "webhook",
                "webhook_secret": "env:BELINO_TEST_HOOK",
                "public_url": f"http://127.0.0.1:{port}",
            }
            table["adapters"]["telegram"] |= where

        def write(words: str, picture: bool) -> None:
            if picture:
                server.say(busy.ann, busy.ann, caption=words, document=FakeUpload(content=PICTURE, name="p.png"))
            else:
                server.say(busy.ann, busy.ann, words)

        yield Journey(
            gateway=gateway_of(nursery, busy, table, port),
            conversation=str(busy.private),
            write=write,
            trouble=lambda: server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 1})),
            refuse=lambda: server.fail(
                "sendMessage", CannedAnswer(status=403, description="Forbidden: bot was blocked by the user")
            ),
            is_heard=(lambda: bool(server.updates.webhook.url)) if hooked else busy.is_heard,
            shown=lambda: len(server.sent),
        )


@asynccontextmanager
async def webhook(nursery: Nursery, home: Path) -> AsyncIterator[Journey]:
    async with telegram(nursery, home, hooked=True) as journey:
        yield journey


@asynccontextmanager
async def discord(nursery: Nursery, home: Path) -> AsyncIterator[Journey]:
    server = DiscordServer(pace=DiscordPace(routes={}, other=(100_000, 1.0), all_per_second=100_000))
    async with server:
        busy = BusyServer(server, home)

        def trouble() -> None:
            server.fail("POST /channels/{}/messages", slow_down(0.5))
            server.fail("POST /channels/{}/messages", Reset(done=True))

        yield Journey(
            gateway=gateway_of(nursery, busy, busy.table()),
            conversation=str(busy.private),
            write=lambda words, picture: busy.write(words, files=pictures(picture)),
            trouble=trouble,
            delete=lambda message: server.delete(message),
            is_heard=lambda: busy.is_heard() and has_cursor(home),
            shown=lambda: len(server.sent),
        )


@asynccontextmanager
async def slack(nursery: Nursery, home: Path) -> AsyncIterator[Journey]:
    pace = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=100_000, other=100_000, methods={})
    async with SlackServer(pace=pace) as server:
        busy = BusyWorkspace(server, home)
        yield Journey(
            gateway=gateway_of(nursery, busy, busy.table()),
            conversation=str(busy.private),
            write=lambda words, picture: busy.write(words, files=pictures(picture)),
            trouble=lambda: server.fail("chat.postMessage", Reset(done=True)),
            delete=lambda message: server.delete(message),
            is_heard=busy.is_heard,
            shown=lambda: len(server.sent),
        )


@asynccontextmanager
async def web(nursery: Nursery, home: Path) -> AsyncIterator[Journey]:
    gateway = ForkedGateway(nursery, home)

    def write(words: str, picture: bool) -> None:
        body: dict[str, Any] = {"conversation": WEB, "message": words, "id": words.replace(" ", "-")}
        while True:  # the same again, as a page does, until it is acknowledged
            try:
                if picture:
                    body["attachments"] = [{"upload_id": uploaded(gateway)}]
                status, answer = gateway.call("POST", "/api/messages", body)
            except (OSError, http.client.HTTPException):
                if gateway.ended is not None:
                    journey.killed += gateway.ended != 0
                    gateway.start()
                continue
            if status == 200:
                return
            assert status in (401, 503), answer

    journey = Journey(gateway=gateway, conversation=WEB, write=write)
    journey.shown = lambda: sum(one["author"]["is_agent"] for one in history(gateway, WEB))
    yield journey


def uploaded(gateway: ForkedGateway) -> str:
    announced = {"conversation": WEB, "file_name": "p.png", "mime_type": "image/png", "size": len(PICTURE)}
    status, upload = gateway.call("POST", "/api/uploads", announced)
    assert status == 201, upload
    status, answer = append(gateway, f"/api/uploads/{upload['upload_id']}", PICTURE, offset=0)
    assert status == 200, answer
    return str(upload["upload_id"])


def has_cursor(home: Path) -> bool:
    """Whether a session is on disk: what came before a bot's first one is no one's to answer."""
    with closing(sqlite3.connect(home / "belino.db")) as database:
        return bool(database.execute("SELECT count(*) FROM cursors").fetchone()[0])


def pictures(wanted: bool) -> list[FakeUpload]:
    return [FakeUpload(content=PICTURE, name="p.png")] if wanted else []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def gateway_of(nursery: Nursery, busy: BusyPlace, table: dict[str, Any], port: int = 0) -> ForkedGateway:
    del table["sessions"]
    (busy.home.path / "belino.json").write_text(json.dumps(table), encoding="utf-8")
    secrets = busy.environment | {"BELINO_TEST_HOOK": "s" * 32}
    return ForkedGateway(nursery, busy.home.path, secrets, port=port)


PLATFORMS = {"telegram": telegram, "webhook": webhook, "discord": discord, "slack": slack, "web": web}


async def travel(journey: Journey, failpoint: str) -> dict[str, int]:
    """The whole way of three messages, and how often the last life passed each failpoint."""
    slowly = failpoint.partition(":")[0] in DRAFTS or not failpoint
    journey.gateway.failpoint = failpoint
    await journey.alive()
    await soon(lambda: journey.gateway.ended is not None or journey.is_heard())
    journey.trouble()
    first = await journey.say(f"look at this {SLOWLY}" if slowly else "look at this", picture=True)
    await journey.say("and now")
    journey.refuse()
    await journey.say("the last")
    if journey.delete is not None:
        journey.delete(first)
        await journey.until(journey.is_purged)
    shown = await asyncio.to_thread(journey.shown)
    code = await asyncio.to_thread(journey.gateway.stop)
    if code == -signal.SIGKILL:
        journey.killed += 1
        await asyncio.to_thread(journey.gateway.start)
        code = await asyncio.to_thread(journey.gateway.stop)
    assert code == 0, journey.gateway.log()[-3000:]
    check(journey, shown)
    return journey.gateway.passes


def check(journey: Journey, shown: int) -> None:
    home = journey.gateway.home
    with closing(sqlite3.connect(home / "belino.db")) as database:
        database.row_factory = sqlite3.Row
        parcels = [dict(row) for row in database.execute("SELECT kind, state, reason, attempts, files FROM parcels")]
        people = database.execute(
            "SELECT count(*), count(DISTINCT platform_id) FROM messages WHERE author_marks & 1 = 0"
        ).fetchone()
    assert tuple(people) in {(3, 3), (2, 2)}, "a deleted message may be gone"
    flagged = [one for one in parcels if one["state"] == "uncertain" or one["reason"] == PERHAPS_TWICE]
    sent = sum(one["state"] == "sent" and one["kind"] != "edit" for one in parcels)
    unsure = sum(one["attempts"] for one in flagged)
    assert sent <= shown <= sent + unsure, (shown, parcels)
    dead = [one for one in parcels if one["state"] == "dead"]
    assert all(one["reason"] for one in dead)
    left = [path for path in home.glob("media/*/outgoing/pending/*") if path.is_file()]
    assert not left, left
    assert "Traceback" not in journey.gateway.log()
    check_state_folder(home)


async def whole(nursery: Nursery, folder: Path, platform: str) -> dict[str, int]:
    async with PLATFORMS[platform](nursery, folder / platform / "home") as journey:
        return await travel(journey, "")


async def killed_at(nursery: Nursery, folder: Path, platform: str, at: str) -> None:
    path = folder / f"{platform}-{at.replace(':', '-')}"
    async with PLATFORMS[platform](nursery, path / "home") as journey:
        await travel(journey, at)
        # How many writes share a commit depends on the moment, and with it how many there are.
        assert journey.killed == 1 or not at.endswith(":1"), f"{at} was not passed on {platform}"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


def rounds(passed: dict[str, dict[str, int]]) -> list[tuple[str, str]]:
    """Where to kill: in a short run some failpoints, each on one platform, in a long one all of them on all."""
    if SOAK:
        every = [(platform, name, count) for platform, counts in passed.items() for name, count in counts.items()]
        return [
            (platform, f"{name}:{number}")
            for platform, name, count in every
            for number in sorted({1, max(1, count // 3), max(1, 2 * count // 3), max(1, count - 1)})
        ]
    chosen = []
    for number, name in enumerate(sorted(FAILPOINTS - BACKUP - READING)):
        there = [platform for platform in passed if name in passed[platform]]
        if number % ONE_IN == 0:
            chosen.append((there[number // ONE_IN % len(there)], f"{name}:1"))
    return chosen


@pytest.mark.slow
async def test_killed_at_any_failpoint_on_any_platform_everything_is_answered_and_nothing_doubled(
    tmp_path: Path, nursery: Nursery
) -> None:
    backup = ForkedGateway(nursery, tmp_path / "web" / "home")
    counts = await asyncio.gather(*(whole(nursery, tmp_path, platform) for platform in PLATFORMS))
    passed = dict(zip(PLATFORMS, counts, strict=True))
    assert await asyncio.to_thread(backup.back_up, tmp_path / "backup") == 0
    assert {name for each in (*counts, backup.passes) for name in each} == FAILPOINTS - READING, "a failpoint is dead"
    room = asyncio.Semaphore(AT_ONCE)

    async def one(platform: str, at: str) -> None:
        async with room:
            await killed_at(nursery, tmp_path, platform, at)

    async with asyncio.TaskGroup() as group:
        for platform, at in rounds(passed):
            group.create_task(one(platform, at))


@pytest.mark.slow
async def test_a_backup_killed_at_any_failpoint_is_made_whole_by_the_next(tmp_path: Path, nursery: Nursery) -> None:
    async with web(nursery, tmp_path / "home") as journey:
        await travel(journey, "start.locked:2")
    gateway = journey.gateway
    for at in sorted(BACKUP):
        folder = tmp_path / at
        gateway.failpoint = at
        assert await asyncio.to_thread(gateway.back_up, folder) == -signal.SIGKILL
        assert await asyncio.to_thread(gateway.back_up, folder) == 0
        assert (folder / MANIFEST).is_file()
        restored = tmp_path / f"{at}-restored"
        restore(Home.at(restored), folder, now=SystemClock().now())
        check_state_folder(restored)


def test_a_failpoint_that_no_one_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no failpoint 'turn\.nowhere'; known: adapter\.cursor\.loaded"):
        failpoints.arm("turn.nowhere:1")
    for text, why in {"turn.begin:x": "3, 3-6 or 3-", "turn.begin:1:explode": "an errno such as EROFS"}.items():
        with pytest.raises(ValueError, match=why):
            failpoints.arm(text)


def test_only_the_passes_that_are_named_fail() -> None:
    armed = failpoints.arm("turn.begin:2-3:EROFS")
    try:
        failpoint("turn.begin")
        for _ in range(2):
            with pytest.raises(OSError, match=os.strerror(30)):
                failpoint("turn.begin")
        failpoint("turn.begin")
        assert armed.passes == {"turn.begin": 4}
    finally:
        failpoints.disarm()


def test_every_failpoint_in_the_code_is_in_the_list_once() -> None:
    source = Path(failpoints.__file__).parents[1]
    named = [
        name
        for path in source.rglob("*.py")
        for name in re.findall(r'(?<!def )\bfailpoint\("([a-z._]+)"\)', path.read_text(encoding="utf-8"))
    ]
    assert set(named) == FAILPOINTS
    assert {name for name in named if named.count(name) > 1} == {"store.commit.before", "store.commit.after"}
