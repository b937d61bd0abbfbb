"""Discord's gateway socket: handshake, heartbeats, compression, close codes and limits, on loopback."""

import asyncio
import json
import sys
import zlib
from collections.abc import Callable

import pytest

from adapters.discord_harness import Bot
from adapters.harness import until
from belino.adapters.discord import socket as listening
from belino.adapters.discord.socket import Disconnected, Inflater
from belino.domain.errors import Unauthorized
from belino.net.clock import SystemClock
from belino.testing.discord import DiscordServer
from belino.testing.discord.gateway import HEARTBEAT, RECONNECT, SENDS_PER_MINUTE

BotAt = Callable[..., Bot]
GATEWAY = "GET /gateway/bot"

pytestmark = pytest.mark.usefixtures("brisk_discord")


class Hours:
    """The event loop's time, which can be moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._passed = 0.0
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + self._passed)

    async def pass_by(self, seconds: float) -> None:
        await asyncio.sleep(0.05)  # what is under way arrives first
        self._passed += seconds
        await asyncio.sleep(0.05)


@pytest.fixture
async def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    return Hours(monkeypatch)


@pytest.fixture
def half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first heartbeat is sent in the middle of the first interval."""
    monkeypatch.setattr(listening._DICE, "random", lambda: 0.5)


async def test_it_listens_without_discord_py(
    discord: DiscordServer, discord_bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "discord"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "discord", None)
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts == ["hello"])
    (identified,) = discord.sessions.identified
    assert identified["properties"] == {"os": sys.platform, "browser": "belino", "device": "belino"}


# Close codes, by the table of Discord's documentation.


@pytest.mark.parametrize("code", [4001, 4002, 4003, 4005, 4006, 4008, 4999, 1006, 1011, 1012])
async def test_a_close_code_that_leaves_the_session_is_followed_by_a_resume(
    discord: DiscordServer, discord_bot: Bot, code: int
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        await discord.drop_socket(None if code == 1006 else code)
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts == ["hello"])
    assert (len(discord.sessions.identified), discord.sessions.resumed) == (1, ["/resume/"])


@pytest.mark.parametrize("code", [4007, 4009])
async def test_a_close_code_that_ends_the_session_is_followed_by_a_new_one_and_no_resume(
    discord: DiscordServer, discord_bot: Bot, code: int
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        await discord.drop_socket(code)
        discord.say(ada, ada, "after")
        await until(lambda: len(discord_bot.texts) == 2)
    assert discord_bot.texts == ["before", "after"]
    assert (len(discord.sessions.identified), discord.gateway.resumes) == (2, 0)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (4004, r"reset it in the developer portal \(Bot, Reset Token\)"),
        (4010, "update belino"),
        (4011, r"\(2500\), which belino does not support; remove it from some"),
        (4012, "update belino"),
        (4013, "update belino"),
        (4014, r"switch them on in the developer portal \(Bot, Privileged Gateway Intents\)"),
    ],
)
async def test_a_permanent_close_code_is_not_tried_again_and_says_what_to_do(
    discord: DiscordServer, discord_bot: Bot, code: int, remedy: str
) -> None:
    discord.gateway.identify_code = code
    with pytest.raises(Unauthorized, match=remedy):
        await discord_bot.listen()
    # Without the content intent it is tried once more.
    assert discord.calls[GATEWAY] == (2 if code == 4014 else 1)


@pytest.mark.parametrize("code", [4004, 4010, 4011, 4012, 4013])
async def test_a_permanent_close_code_ends_a_session_that_runs_too(
    discord: DiscordServer, discord_bot: Bot, code: int
) -> None:
    async def close() -> None:
        await discord_bot.adapter.connected()
        await discord.drop_socket(code)

    async with asyncio.TaskGroup() as group:
        group.create_task(close())
        with pytest.raises(Unauthorized):
            await discord_bot.listen()
    assert discord.gateway.resumes == 0


# Opcodes.


async def test_a_gateway_that_asks_to_reconnect_in_place_of_a_hello_is_obeyed(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    discord.gateway.turned_away = 2
    async with discord_bot.listening():
        pass
    assert (discord.calls[GATEWAY], len(discord.sessions.identified)) == (3, 1)


async def test_a_gateway_that_asks_to_reconnect_while_it_resumes_is_obeyed(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.gateway.turned_away = 1
        await discord.ask_to_reconnect()
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts == ["hello"])
    assert (len(discord.sessions.identified), discord.gateway.resumes) == (1, 1)


async def test_a_gateway_that_never_says_hello_is_left(
    discord: DiscordServer, discord_bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "OPEN_SECONDS", 0.2)
    discord.gateway.frozen = True

    async def thaw() -> None:
        await until(lambda: discord.calls[GATEWAY] == 2)
        monkeypatch.setattr(listening, "OPEN_SECONDS", 20.0)
        discord.gateway.frozen = False

    async with asyncio.TaskGroup() as group:
        group.create_task(thaw())
        async with discord_bot.listening():
            assert len(discord.sessions.identified) == 1


@pytest.mark.parametrize("told", ['{"op": 77}', '{"op": null, "d": {}}', "{}", '{"op": "0", "t": "READY"}'])
async def test_an_opcode_that_is_unknown_is_passed_over(discord: DiscordServer, discord_bot: Bot, told: str) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        (connection,) = discord.gateway.connections
        await connection.blurt(told)
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts == ["hello"])
    assert discord.gateway.resumes == 0


@pytest.mark.parametrize(
    "told",
    [b"\x07rubbish\x00\x00\xff\xff", "{rubbish", "[1]", "[" * 200_000, '{"op": 10, "d": null}', '{"op": 10}'],
    ids=["not compressed", "no JSON", "a list", "too deep", "half a hello", "an empty hello"],
)
async def test_a_gateway_that_says_something_unreadable_is_left_and_resumed(
    discord: DiscordServer, discord_bot: Bot, told: str | bytes
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        (connection,) = discord.gateway.connections
        await connection.blurt(told)
        await until(lambda: discord.sessions.resumed)
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts == ["hello"])
    assert len(discord.sessions.identified) == 1


# Heartbeats.


@pytest.mark.usefixtures("half_way")
async def test_heartbeats_begin_at_a_random_moment_of_the_first_interval_and_name_the_last_event(hours: Hours) -> None:
    async with DiscordServer(heartbeat_seconds=400.0) as server:
        bot = Bot(server)
        async with bot.listening():
            (session,) = server.sessions.live.values()
            await hours.pass_by(150.0)
            assert server.gateway.heartbeats == 0
            await hours.pass_by(50.0)
            await until(lambda: server.gateway.heartbeats == 1)
            assert server.gateway.heartbeat_seq == session.seq
            await hours.pass_by(350.0)
            assert server.gateway.heartbeats == 1
            await hours.pass_by(50.0)
            await until(lambda: server.gateway.heartbeats == 2)
        await bot.client.close()


@pytest.mark.usefixtures("half_way")
async def test_a_line_whose_beats_are_far_apart_is_not_taken_for_dead(hours: Hours) -> None:
    async with DiscordServer(heartbeat_seconds=97.0) as server:
        bot = Bot(server)
        async with bot.listening():
            for beats in range(3):
                await hours.pass_by(97.0)
                await until(lambda beats=beats: server.gateway.heartbeats == beats + 1)  # type: ignore[misc]
        await bot.client.close()
    assert (len(server.sessions.identified), server.gateway.resumes) == (1, 0)


async def test_a_heartbeat_that_is_asked_for_is_sent_at_once(discord: DiscordServer, discord_bot: Bot) -> None:
    async with discord_bot.listening():
        (connection,) = discord.gateway.connections
        before = discord.gateway.heartbeats
        await connection.tell(HEARTBEAT)
        await until(lambda: discord.gateway.heartbeats == before + 1)


async def test_a_line_that_is_open_and_dead_is_given_up(discord: DiscordServer, discord_bot: Bot) -> None:
    discord.gateway.heartbeat_seconds = 0.2
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.gateway.frozen = True
        discord.say(ada, ada, "into the void")
        await until(lambda: not discord.gateway.connections)
        discord.gateway.frozen = False
        await until(lambda: discord_bot.texts)
    assert discord_bot.texts == ["into the void"]


async def test_a_line_that_brings_events_and_acknowledges_no_heartbeat_is_given_up_and_resumed(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    discord.gateway.heartbeat_seconds, discord.gateway.acknowledges = 0.2, False
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "one")
        await until(lambda: discord.sessions.resumed)
        discord.gateway.acknowledges = True
        discord.say(ada, ada, "two")
        await until(lambda: len(discord_bot.texts) == 2)
    assert discord_bot.texts == ["one", "two"]
    assert len(discord.sessions.identified) == 1


async def test_heartbeats_go_on_while_the_store_is_slow() -> None:
    async with DiscordServer(heartbeat_seconds=0.05) as server:
        bot, ada = Bot(server), server.user("ada")
        async with bot.listening():
            bot.may_take.clear()
            server.say(ada, ada, "one")
            before = server.gateway.heartbeats
            await until(lambda: server.gateway.heartbeats > before + 5)
            bot.may_take.set()
            await until(lambda: bot.texts == ["one"])
        await bot.client.close()
        assert len(server.sessions.identified) == 1


async def test_a_line_whose_acknowledgements_wait_behind_unread_events_is_not_taken_for_dead(
    discord: DiscordServer, discord_bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belino.adapters.discord.MOST_WAITING", 1)
    discord.gateway.heartbeat_seconds = 0.5
    ada = discord.user("ada")
    said = [str(number) for number in range(9)]
    async with discord_bot.listening():
        discord_bot.may_take.clear()
        for words in said:
            discord.say(ada, ada, words)
        before = discord.gateway.heartbeats
        await until(lambda: discord.gateway.heartbeats > before + 2)
        assert discord.gateway.resumes == 0
        discord_bot.may_take.set()
        await until(lambda: discord_bot.texts == said)


# Limits.


async def test_no_more_frames_are_sent_in_a_minute_than_the_gateway_takes(
    discord: DiscordServer, discord_bot: Bot, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening._DICE, "random", lambda: 1.0)
    async with discord_bot.listening():
        (connection,) = discord.gateway.connections
        for beats in range(1, listening.FRAMES_PER_MINUTE):  # the first frame was identify
            await connection.tell(HEARTBEAT)
            await until(lambda beats=beats: discord.gateway.heartbeats == beats)  # type: ignore[misc]
        for _ in range(SENDS_PER_MINUTE):
            await connection.tell(HEARTBEAT)
        await asyncio.sleep(0.1)
        assert discord.gateway.heartbeats == listening.FRAMES_PER_MINUTE - 1
        await hours.pass_by(listening.MINUTE)
        await until(lambda: discord.gateway.heartbeats >= listening.FRAMES_PER_MINUTE)
        assert discord.gateway.connections == [connection]


async def test_a_second_session_waits_until_the_bot_may_identify_again(
    discord: DiscordServer, discord_bot_at: BotAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "IDENTIFY_SECONDS", 5.0)
    waits: list[float] = []

    class Clock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)

    async with discord_bot_at(discord, clock=Clock()).listening():
        await discord.invalidate()
        await until(lambda: len(discord.sessions.identified) == 2)
    assert [round(wait) for wait in waits] == [5]


async def test_a_bot_that_identifies_too_often_is_let_in_later(discord: DiscordServer, discord_bot: Bot) -> None:
    discord.gateway.identify_seconds = 0.5
    async with discord_bot.listening():
        await discord.invalidate()
        await until(lambda: len(discord.sessions.identified) == 2)
    assert discord.calls[GATEWAY] > 2


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_payloads_that_come_in_several_frames_are_put_together(
    discord: DiscordServer, discord_bot: Bot, size: int
) -> None:
    discord.gateway.frame_bytes = size
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        discord.say(room, ada, "hello")
        discord.say(ada, ada, "and here")
        await until(lambda: discord_bot.texts == ["hello", "and here"])
    assert discord.gateway.resumes == 0


async def test_what_comes_uncompressed_is_heard_too(discord: DiscordServer, discord_bot: Bot) -> None:
    async with discord_bot.listening():
        (connection,) = discord.gateway.connections
        await connection.blurt(json.dumps({"op": RECONNECT, "d": None}))
        await until(lambda: discord.sessions.resumed)


async def test_a_payload_that_is_too_large_ends_the_connection_and_its_message_is_asked_for(
    discord: DiscordServer, discord_bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "PAYLOAD_BYTES", 10_000)
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        discord.say(ada, ada, "x" * 20_000)
        await until(lambda: len(discord_bot.texts) == 2)
        discord.say(ada, ada, "after")
        await until(lambda: len(discord_bot.texts) == 3)
    assert [words[:6] for words in discord_bot.texts] == ["before", "xxxxxx", "after"]
    assert (discord.gateway.resumes, len(discord.sessions.identified)) == (listening.MOST_RESUMES, 2)


def test_a_frame_that_inflates_without_end_is_inflated_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "PAYLOAD_BYTES", 1000)
    press = zlib.compressobj()
    fits, bomb = (press.compress(b"0" * size) + press.flush(zlib.Z_SYNC_FLUSH) for size in (1000, 10_000_000))
    inflater = Inflater()
    assert inflater.feed(fits) == b"0" * 1000
    assert inflater.feed(bomb[:3]) is None
    with pytest.raises(Disconnected, match="more than 1000 bytes"):
        inflater.feed(bomb[3:])
