"""The same faults on each platform: all is answered, in order, and nothing is doubled silently."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from belino.aio import companion
from belino.delivery.send import PERHAPS_TWICE
from belino.domain.message import ConversationKey
from belino.domain.outcome import MessageOutcome
from belino.domain.reply import ParcelState
from belino.domain.stored import ParcelRecord
from belino.gateway.gateway import Gateway
from belino.testing import (
    FakeClock,
    LineServer,
    SignalServer,
    SlackPace,
    SlackServer,
    TelegramPace,
    TelegramServer,
    WhatsAppServer,
)
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace, slow_down
from belino.testing.faults import CannedAnswer, Fault, Hang, Reset
from belino.testing.line import SEND
from belino.testing.linked import LinkedWorld
from belino.turns.reply import DOUBT
from faults.test_disk_full_delivery import FullDisk
from journeys.busy_business import ENDURING, BusyBusiness
from journeys.busy_device import BusyDevice
from journeys.busy_group import BusyGroup
from journeys.busy_line import BusyLine
from journeys.busy_phone import BusyPhone
from journeys.busy_place import BusyPlace, until
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace

pytestmark = pytest.mark.slow

HTML = CannedAnswer(status=502, body=b"<html>Bad Gateway</html>", headers={"Content-Type": "text/html"})
SAID = ["first", "second", "third"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A platform of our own, its people, and the call that makes a message visible."""

    busy: BusyPlace
    fail: Callable[[Fault], None]
    """The next message that the bot sends meets this fault."""
    wait: CannedAnswer
    """What the platform says to who sends too much."""
    tells_duplicates: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    """The time of the gateway, which a platform that signs its calls with the time shares."""


@asynccontextmanager
async def telegram(path: Path) -> AsyncIterator[Platform]:
    async with TelegramServer(
        pace=TelegramPace(chat_burst=1_000, group_per_minute=1_000, all_per_second=1_000)
    ) as server:
        yield Platform(
            busy=BusyGroup(server, path),
            fail=lambda fault: server.fail("sendMessage", fault),
            wait=CannedAnswer(status=429, parameters={"retry_after": 1}),
            tells_duplicates=False,
        )


@asynccontextmanager
async def discord(path: Path) -> AsyncIterator[Platform]:
    async with DiscordServer(pace=DiscordPace(routes={}, other=(1_000, 1.0), all_per_second=1_000)) as server:
        route = "POST /channels/{}/messages"
        yield Platform(busy=BusyServer(server, path), fail=lambda fault: server.fail(route, fault), wait=slow_down(0.5))


@asynccontextmanager
async def slack(path: Path) -> AsyncIterator[Platform]:
    pace = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=1_000, other=1_000, methods={})
    async with SlackServer(pace=pace) as server:
        yield Platform(
            busy=BusyWorkspace(server, path),
            fail=lambda fault: server.fail("chat.postMessage", fault),
            wait=CannedAnswer(status=429, description="ratelimited", headers={"Retry-After": "1"}),
        )


@asynccontextmanager
async def whatsapp(path: Path) -> AsyncIterator[Platform]:
    async with WhatsAppServer(pace=ENDURING) as server:
        yield Platform(
            busy=BusyBusiness(server, path),
            fail=lambda fault: server.fail("messages", fault),
            wait=CannedAnswer(status=400, parameters={"code": 131056}),
            tells_duplicates=False,
        )


@asynccontextmanager
async def signal(path: Path) -> AsyncIterator[Platform]:
    async with SignalServer(per_minute=1_000) as daemon:
        yield Platform(
            busy=BusyDevice(daemon, path),
            fail=lambda fault: daemon.fail("send", fault),
            wait=CannedAnswer(status=429, headers={"Retry-After": "1"}),
            tells_duplicates=False,
        )


@asynccontextmanager
async def line(path: Path) -> AsyncIterator[Platform]:
    """Answers are replies, which carry no key; a second one is pushed, under a key."""
    clock = FakeClock()
    async with LineServer(clock=clock) as server:
        yield Platform(
            busy=BusyLine(server, path),
            fail=lambda fault: server.fail(SEND, fault),
            wait=CannedAnswer(status=429, headers={"Retry-After": "1"}),
            tells_duplicates=False,
            clock=clock,
        )


@asynccontextmanager
async def linked(path: Path) -> AsyncIterator[Platform]:
    async with LinkedWorld() as world:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(companion, "LIMITED_SECONDS", 1.0)
            yield Platform(
                busy=BusyPhone(world, path),
                fail=lambda fault: world.fail("send", fault),
                wait=CannedAnswer(status=429),
                tells_duplicates=False,
            )


@asynccontextmanager
async def line_push(path: Path) -> AsyncIterator[Platform]:
    """The same for an account whose replies come too late: every answer is pushed."""
    async with line(path) as platform:
        assert isinstance(platform.busy, BusyLine)
        platform.busy.line.fail("reply", CannedAnswer(status=400, description="Invalid reply token"), times=100)
        yield replace(platform, fail=lambda fault: platform.busy.line.fail("push", fault), tells_duplicates=True)  # type: ignore[attr-defined]


PLATFORMS = {
    "telegram": telegram,
    "discord": discord,
    "slack": slack,
    "whatsapp": whatsapp,
    "linked": linked,
    "signal": signal,
    "line": line,
    "line push": line_push,
}
FAULTS: dict[str, Callable[[Platform], list[Fault]]] = {
    "asked to wait": lambda platform: [platform.wait] * 2,
    "server error": lambda platform: [CannedAnswer(status=500), HTML],
    "reset before it took effect": lambda platform: [Reset()],
    "answer lost": lambda platform: [Reset(done=True)],
    "hangs": lambda platform: [Hang()],
}


@asynccontextmanager
async def at_work(platform: Platform) -> AsyncIterator[Gateway]:
    """A gateway whose clock is moved on while anything waits, so that back-off and hung calls cost no time."""
    busy, clock = platform.busy, platform.clock
    async with (
        Gateway(busy.config(), busy.home, agent=busy.agent, clock=clock) as gateway,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(gateway.run())
        door = group.create_task(busy.open_door(gateway))
        moving = group.create_task(keep_moving(clock))
        try:
            async with busy.reachable(gateway):
                await until(busy.is_heard)
                yield gateway
        finally:
            door.cancel()
            gateway.stop()
            await asyncio.sleep(0.2)
            moving.cancel()


async def keep_moving(clock: FakeClock) -> None:
    while True:
        await asyncio.sleep(0.02)
        await clock.advance(0.2)


async def settled(gateway: Gateway, where: ConversationKey, count: int) -> list[ParcelRecord]:
    async def ended() -> bool:
        people = [one for one in await gateway.store.history(where, limit=100) if not one.author.is_agent]
        if [one.outcome for one in people] != [MessageOutcome.ANSWERED] * count:
            return False
        parcels = await gateway.store.parcels()
        return all(one.state not in (ParcelState.READY, ParcelState.SENDING) for one in parcels)

    await until(ended)
    return list(await gateway.store.parcels())[::-1]


def check(platform: Platform, parcels: list[ParcelRecord]) -> None:
    shown = [message_text(message) for message in platform.busy.sent]
    flagged = [one for one in parcels if one.state is ParcelState.UNCERTAIN or one.reason == PERHAPS_TWICE]
    assert {one.state for one in parcels} <= {ParcelState.SENT, ParcelState.UNCERTAIN}, parcels
    assert not (flagged and platform.tells_duplicates), flagged
    # What may have arrived and cannot be looked for waits for a person, and says so.
    unsure = {one.text for one in flagged}
    # Messages that came in while others waited share an answer.
    expected = list(dict.fromkeys(one.text for one in parcels))
    answers = [words.removeprefix(DOUBT).strip() for words in expected]
    assert answers == [f"turn {number + 1}" for number in range(len(expected))], expected
    assert list(dict.fromkeys(shown)) == [words for words in expected if words in shown or words not in unsure], shown
    assert len(shown) - len(set(shown)) <= len(flagged)


def message_text(message: Any) -> str:
    return str(message.get("content") or message.get("text") or message.get("message") or "")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_platform_that_fails_a_send_delays_it_and_loses_and_doubles_nothing(
    tmp_path: Path, name: str, fault: str
) -> None:
    async with PLATFORMS[name](tmp_path / "home") as platform:
        async with at_work(platform) as gateway:
            for number, words in enumerate(SAID):
                for one in FAULTS[fault](platform) if number == 1 else ():
                    platform.fail(one)
                platform.busy.write(words)
                parcels = await settled(gateway, platform.busy.private, number + 1)
        check(platform, parcels)


@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_disk_that_is_full_while_a_platform_is_served_delays_and_doubles_nothing(
    tmp_path: Path, name: str
) -> None:
    async with PLATFORMS[name](tmp_path / "home") as platform:
        async with at_work(platform) as gateway:
            platform.busy.write(SAID[0])
            await settled(gateway, platform.busy.private, 1)
            disk = FullDisk(gateway, first=1, times=12)
            gateway.store._database.write = disk  # type: ignore[method-assign]
            for words in SAID[1:]:
                platform.busy.write(words)
            parcels = await settled(gateway, platform.busy.private, len(SAID))
        assert disk.refused == 12
        check(platform, parcels)


async def test_a_discord_session_is_on_disk_before_anything_is_said_in_it(tmp_path: Path) -> None:
    async with discord(tmp_path / "home") as platform, platform.busy.gateway() as gateway:
        await until(lambda: gateway.health()["discord", "default"].state == "running")
        assert '"session":{"id"' in (await gateway.store.cursor("discord", "default") or "")
