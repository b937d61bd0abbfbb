"""Killed in the middle of its calls to a platform: every message is answered, and shown once where that can be told."""

import asyncio
import hashlib
import json
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
from belino.testing import (
    GatewayProcess,
    LineServer,
    SlackPace,
    SlackServer,
    TelegramPace,
    TelegramServer,
    WhatsAppServer,
)
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace
from belino.testing.file_server import FakeUpload
from faults.looking import SOAK, check_state_folder, history, until
from journeys.busy_business import BOT as WHATSAPP_BOT
from journeys.busy_business import ENDURING, BusyBusiness
from journeys.busy_group import BOT as TELEGRAM_BOT
from journeys.busy_group import BusyGroup
from journeys.busy_line import BOT as LINE_BOT
from journeys.busy_line import BusyLine
from journeys.busy_place import BusyPlace
from journeys.busy_place import until as soon
from journeys.busy_server import BOT as DISCORD_BOT
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BOT as SLACK_BOT
from journeys.busy_workspace import BusyWorkspace

KILLS = 120 if SOAK else 4
IN_A_ROW = 4
"""What is killed six times while it is sent is given up, which is told elsewhere."""
SEED = 20261116
FILE_BYTES = 300_000
# At which of its calls a life ends at the latest, and after how many seconds if it makes fewer.
CALLS, SECONDS = 14, 3.0
FAST = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=100_000, other=100_000, methods={})

Take = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True, kw_only=True)
class Strike:
    """The end of one life."""

    process: GatewayProcess
    call: int
    """At which of its calls from now on."""
    done: bool
    """Whether the call takes effect."""
    fell: asyncio.Event = field(default_factory=asyncio.Event)

    def is_due(self) -> bool:
        self.call -= 1
        return self.call == 0


class Fall:
    """Ends a gateway at one of its calls: while the platform reads it, or once it took effect and before it is told."""

    def __init__(self, server: object) -> None:
        self.struck_at: Counter[str] = Counter()
        self._next: Strike | None = None
        for name in ("_take_call", "_take_upload", "_take_file"):
            if hasattr(server, name):
                setattr(server, name, self._around(getattr(server, name)))

    def set(self, strike: Strike | None) -> None:
        """From now on this one waits for its call, and no other."""
        self._next = strike

    def _around(self, take: Take) -> Take:
        async def taken(request: web.Request) -> web.StreamResponse:
            strike = self._next
            if strike is None or not strike.is_due():
                return await take(request)
            answer: web.StreamResponse = web.Response(status=500)
            if strike.done:
                answer = await take(request)
            else:
                await request.content.readany()
            self._fall(strike, request)
            return answer

        return taken

    def _fall(self, strike: Strike, request: web.Request) -> None:
        if strike is self._next:  # a poll may be answered only after its life
            strike.process.signal(signal.SIGKILL)
            self.struck_at[f"{'after' if strike.done else 'within'} {request.path.rpartition('/')[2]}"] += 1
            strike.fell.set()


@dataclass(slots=True, kw_only=True)
class Scene:
    """People who write to a bot in two places, and what the platform shows of its answers."""

    busy: BusyPlace
    fall: Fall
    process: GatewayProcess
    say: Callable[[bool, str, FakeUpload | None], None]
    """Directly or in the room: words, and a file perhaps."""
    shown: Callable[[], list[tuple[str, str]]]
    """Where the bot made something visible, and its id there."""
    received: Callable[[], list[FakeUpload]]
    """The files it uploaded."""
    keeps_order: bool = True
    can_tell_duplicates: bool = True
    kind: tuple[str, bytes] = ("bin", b"")
    """The ending of the files that are sent, and how they begin."""
    calls: int = CALLS
    """At which of its calls a life ends at the latest: fewer where it does not poll."""
    said: dict[ConversationKey, list[str]] = field(default_factory=dict)
    offered: list[str] = field(default_factory=list)

    def speak(self, rng: Random) -> None:
        """Somebody says something; now and then it brings a file, and now and then the answer is to."""
        directly = rng.random() < 0.5
        place = self.busy.private if directly else self.busy.channel()
        number = sum(map(len, self.said.values()))
        if rng.random() < 0.4:
            ending, begins = self.kind
            content = begins + rng.randbytes(FILE_BYTES)
            self.busy.offer(f"pending/file{number}.{ending}", content, place)
            self.offered.append(hashlib.sha256(content).hexdigest())
        brought = rng.randbytes(FILE_BYTES) if rng.random() < 0.3 else None
        self.said.setdefault(place, []).append(words := f"number {number}")
        self.say(directly, words, FakeUpload(content=brought, name=f"in{number}.bin") if brought else None)


@asynccontextmanager
async def telegram(path: Path) -> AsyncIterator[Scene]:
    server = TelegramServer(pace=TelegramPace(chat_burst=100_000, group_per_minute=100_000, all_per_second=100_000))
    fall = Fall(server)
    async with server:
        busy = BusyGroup(server, path)

        def say(directly: bool, words: str, file: FakeUpload | None) -> None:
            place = busy.ann if directly else busy.chat
            text = words if directly else f"{TELEGRAM_BOT} {words}"
            if file is not None:
                server.say(place, busy.ann, caption=text, document=file)
            else:
                server.say(place, busy.ann, text)

        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(busy),
            say=say,
            shown=lambda: [
                (str(message["chat"]["id"]), str(message["message_id"]))
                for before, message in zip([{}, *server.sent], server.sent, strict=False)
                if "media_group_id" not in message or message["media_group_id"] != before.get("media_group_id")
            ],
            received=lambda: server.received,
            can_tell_duplicates=False,
        )


@asynccontextmanager
async def discord(path: Path) -> AsyncIterator[Scene]:
    server = DiscordServer(pace=DiscordPace(routes={}, other=(100_000, 1.0), all_per_second=100_000))
    fall = Fall(server)
    async with server:
        yield mentioning(server, BusyServer(server, path), fall, bot=DISCORD_BOT, shown_as=("channel_id", "id"))


@asynccontextmanager
async def slack(path: Path) -> AsyncIterator[Scene]:
    server = SlackServer(pace=FAST)
    fall = Fall(server)
    async with server:
        scene = mentioning(server, BusyWorkspace(server, path), fall, bot=SLACK_BOT, shown_as=("channel", "ts"))
        scene.keeps_order = False  # what was not acknowledged is told again, after what was said meanwhile
        yield scene


@asynccontextmanager
async def line(path: Path) -> AsyncIterator[Scene]:
    """What was answered by a reply token may be doubled, and is flagged; a push is not."""
    server = LineServer()
    fall = Fall(server)
    async with server:
        busy, names = BusyLine(server, path), dict[str, str]()
        offer = busy.offer

        def offered(name: str, content: bytes, where: ConversationKey | None = None) -> Path:
            names[name.rpartition("/")[2]] = hashlib.sha256(content).hexdigest()
            return offer(name, content, where)

        def say(directly: bool, words: str, _: FakeUpload | None) -> None:
            # A file would be a message of its own here.
            server.say(busy.ann if directly else busy.room, busy.ann, words if directly else f"{LINE_BOT} {words}")

        def links() -> list[FakeUpload]:
            """The files that were sent, by their names: LINE fetches them when people look."""
            named = [message["text"].partition(" (")[0] for message in server.sent if "/files/" in message["text"]]
            return [FakeUpload(content=b"", sha256=names[name]) for name in named]

        def calls() -> list[tuple[str, str]]:
            first = {message["call"]: (message["to"], message["id"]) for message in reversed(server.sent)}
            return list(first.values())[::-1]

        busy.offer = offered  # type: ignore[method-assign]
        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(busy),
            say=say,
            shown=calls,
            received=links,
            keeps_order=False,
            can_tell_duplicates=False,
            calls=4,
        )


def mentioning(
    server: DiscordServer | SlackServer,
    busy: BusyServer | BusyWorkspace,
    fall: Fall,
    *,
    bot: str,
    shown_as: tuple[str, str],
) -> Scene:
    """A scene where a file is part of a message, and the bot is called by its mention."""

    def say(directly: bool, words: str, file: FakeUpload | None) -> None:
        place, text = (busy.ann, words) if directly else (busy.room, f"{bot} {words}")
        server.say(place, busy.ann, text, files=[file] if file else [])

    place_key, id_key = shown_as
    return Scene(
        busy=busy,
        fall=fall,
        process=process_of(busy),
        say=say,
        shown=lambda: [(str(message[place_key]), str(message[id_key])) for message in server.sent],
        received=lambda: server.received,
    )


def process_of(busy: BusyPlace) -> GatewayProcess:
    (busy.home.path / "belino.json").write_text(json.dumps(busy.table()), encoding="utf-8")
    return GatewayProcess(busy.home.path, arguments=busy.arguments, environment=busy.environment)


@asynccontextmanager
async def whatsapp(path: Path) -> AsyncIterator[Scene]:
    server = WhatsAppServer(pace=ENDURING)
    fall = Fall(server)
    async with server:
        busy = BusyBusiness(server, path)

        def say(directly: bool, words: str, file: FakeUpload | None) -> None:
            place, text = (busy.ann, words) if directly else (busy.room, f"{WHATSAPP_BOT} {words}")
            server.say(place, busy.ann, text, files=[file] if file else [])

        yield Scene(
            busy=busy,
            fall=fall,
            process=process_of(busy),
            say=say,
            shown=lambda: [(sent["channel"], sent["id"]) for sent in server.sent],
            received=lambda: server.received,
            can_tell_duplicates=False,
            kind=("pdf", b"%PDF-1.7 "),
        )


PLATFORMS = {"telegram": telegram, "discord": discord, "slack": slack, "line": line, "whatsapp": whatsapp}


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
            await soon(scene.busy.is_heard)  # what was said before is no one's to answer
            await speak_and_settle(scene)
            for _ in range(KILLS // IN_A_ROW):
                for _ in range(IN_A_ROW):
                    await restart(scene)
                    await one_life(scene, rng)
                await restart(scene)
                await speak_and_settle(scene)
            told = {place: await asyncio.to_thread(history, scene.process, str(place)) for place in scene.said}
            assert await asyncio.to_thread(scene.process.stop) == 0
        finally:
            await asyncio.to_thread(scene.process.kill)
        for place, messages in told.items():
            check_conversation(scene, place, messages)
        known = [(place.channel, message["id"]) for place in told for message in answers(told[place])]
        check_outbox(scene, parcels(home), known)
        check_state_folder(home)
        assert "Traceback" not in scene.process.log()
        assert scene.fall.struck_at, "nothing was killed at a call"


async def restart(scene: Scene) -> None:
    scene.fall.set(None)
    await asyncio.to_thread(scene.process.kill)
    await asyncio.to_thread(scene.process.start)


async def one_life(scene: Scene, rng: Random) -> None:
    strike = Strike(process=scene.process, call=rng.randint(1, scene.calls), done=rng.random() < 0.5)
    scene.fall.set(strike)
    for _ in range(rng.randint(1, 3)):
        scene.speak(rng)
    with suppress(TimeoutError):
        await asyncio.wait_for(strike.fell.wait(), rng.uniform(0.2, SECONDS))


async def speak_and_settle(scene: Scene) -> None:
    """Somebody speaks in both places, so that no file waits for an answer, and then nothing is on its way any more."""
    for directly, place in ((True, scene.busy.private), (False, scene.busy.channel())):
        scene.said.setdefault(place, []).append("is all there?")
        scene.say(directly, "is all there?", None)
    await asyncio.to_thread(until, lambda: is_settled(scene), "some answer never came to its end")


def is_settled(scene: Scene) -> bool:
    """All that was said is heard and answered, and no parcel is on its way."""
    heard = [message for place in scene.said for message in history(scene.process, str(place))]
    outcomes = [message["outcome"] for message in heard if not message["author"]["is_agent"]]
    if outcomes != ["answered"] * sum(map(len, scene.said.values())):
        return False
    _, outbox = scene.process.call("GET", "/api/outbox?limit=200")
    return all(parcel["state"] in {"sent", "uncertain", "dead"} for parcel in outbox["parcels"])


def parcels(home: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(home / "belino.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT key, state, reason, attempts FROM parcels ORDER BY id")]


def check_conversation(scene: Scene, place: ConversationKey, messages: list[dict[str, Any]]) -> None:
    """Everything said is there once, and was answered in the order it came."""
    people = [message for message in messages if not message["author"]["is_agent"]]
    heard = [message["text"].partition(" ")[2] if message["text"][0] in "<@" else message["text"] for message in people]
    said = scene.said[place]
    assert heard == said if scene.keeps_order else sorted(heard) == sorted(said)
    answered = list(dict.fromkeys(message["trace"] for message in answers(messages)))
    assert answered == [message["trace"] for message in people if message["trace"] in set(answered)]


def answers(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in messages if one["author"]["is_agent"] and one["outcome"] == "answered"]


def check_outbox(scene: Scene, kept: list[dict[str, Any]], known: list[tuple[str, str]]) -> None:
    """Every answer and every file is shown once; what may be shown more often than that says so."""
    shown = scene.shown()
    flagged = [one for one in kept if one["state"] == "uncertain" or one["reason"] == PERHAPS_TWICE]
    assert not (flagged and scene.can_tell_duplicates), flagged
    assert {one["state"] for one in kept} <= {"sent", "uncertain"}, kept
    assert len(known) == len(set(known)) == sum(one["state"] == "sent" for one in kept)
    assert set(known) <= set(shown)
    assert len(shown) - len(known) <= sum(one["attempts"] for one in flagged), flagged
    received = Counter(upload.sha256 for upload in scene.received())
    assert set(received) <= set(scene.offered)
    assert flagged or received == Counter(scene.offered)
