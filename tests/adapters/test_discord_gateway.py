"""Listening on Discord's gateway: through broken lines, new sessions and restarts, without losing a word."""

import asyncio
import json
import logging
from collections.abc import Callable
from random import Random

import pytest

from adapters.discord_harness import Bot, place
from adapters.harness import until
from belino.adapters.discord import Config, may_resume_at
from belino.adapters.discord import socket as listening
from belino.adapters.discord.authors import DiscordChannel
from belino.adapters.discord.history import MOST_CHANNELS, DiscordCursor
from belino.adapters.discord.socket import INTENTS, MESSAGE_CONTENT, GatewaySession
from belino.domain.errors import AdapterError, RateLimited, Unauthorized
from belino.domain.message import Arrival, Message, Unsupported
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing.discord import BOT_ID, TOKEN, DiscordServer
from belino.testing.discord.request import cloudflare_ban, slow_down
from belino.testing.faults import CannedAnswer

BotAt = Callable[..., Bot]
HISTORY, CHANNEL = "GET /channels/{channel}/messages", "GET /channels/{channel}"

pytestmark = pytest.mark.usefixtures("brisk_discord")


async def test_a_bot_asks_for_what_it_needs_and_no_more(discord: DiscordServer, discord_bot: Bot) -> None:
    async with discord_bot.listening():
        (identified,) = discord.sessions.identified
    assert identified["intents"] == INTENTS
    assert set(discord.calls) == {"GET /users/@me", "GET /gateway/bot"}


@pytest.mark.parametrize("code", [None, 1000, 1001, 4000, 4008])
async def test_a_line_that_breaks_is_resumed_and_nothing_is_lost(
    discord: DiscordServer, discord_bot: Bot, code: int | None
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        discord.say(room, ada, "before")
        await until(lambda: discord_bot.texts == ["before"])
        await discord.drop_socket(code)
        discord.say(room, ada, "meanwhile")
        await until(lambda: len(discord_bot.texts) == 2)
        discord.say(room, ada, "after")
        await until(lambda: len(discord_bot.texts) == 3)
    assert discord_bot.texts == ["before", "meanwhile", "after"]
    assert (len(discord.sessions.identified), discord.sessions.resumed) == (1, ["/resume/"])


async def test_a_gateway_that_asks_to_come_back_is_obeyed(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        await discord.ask_to_reconnect()
        discord.say(ada, ada, "hello")
        await until(lambda: discord_bot.texts)
        await until(lambda: discord.sessions.resumed)
    assert discord_bot.texts == ["hello"]


async def test_a_restarted_bot_resumes_and_is_told_what_it_missed_edits_too(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        first = discord.say(room, ada, "one")
        await until(lambda: discord_bot.taken)
    discord.edit(first, "one, again")
    discord.say(room, ada, "two")
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.taken) == 2)
    assert [arrival.kind for arrival, _ in later.taken] == ["edit", "message"]
    assert len(discord.sessions.identified) == 1
    assert HISTORY not in discord.calls


async def test_what_was_not_stored_is_told_again(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada, discord.gateway.heartbeat_seconds = discord.user("ada"), 0.1
    async with discord_bot.listening():
        discord.say(ada, ada, "one")
        await until(lambda: discord_bot.taken)
        discord_bot.may_take.clear()
        discord.say(ada, ada, "two")
        (session,) = discord.sessions.live.values()
        await until(lambda: discord.gateway.heartbeat_seq == session.seq)
    assert discord_bot.texts == ["one"]
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.taken)
    assert later.texts == ["two"]


@pytest.mark.parametrize(("resumable", "sessions"), [(True, 1), (False, 2)])
async def test_a_session_the_gateway_ends_is_resumed_or_begun_anew(
    discord: DiscordServer, discord_bot: Bot, resumable: bool, sessions: int
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        await discord.invalidate(resumable=resumable)
        discord.say(ada, ada, "meanwhile")
        await until(lambda: len(discord_bot.texts) == 2)
    assert discord_bot.texts == ["before", "meanwhile"]
    assert len(discord.sessions.identified) == sessions


@pytest.mark.parametrize(("code", "tries"), [(4007, 1), (4009, 1), (4003, listening.MOST_RESUMES)])
async def test_a_session_that_every_resume_is_hung_up_on_is_begun_anew(
    discord: DiscordServer, discord_bot: Bot, code: int, tries: int
) -> None:
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        discord.gateway.resume_code = code
        await discord.drop_socket()
        discord.say(ada, ada, "meanwhile")
        await until(lambda: len(discord_bot.texts) == 2)
    assert discord_bot.texts == ["before", "meanwhile"]
    assert (discord.gateway.resumes, len(discord.sessions.identified)) == (tries, 2)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9/", "http://127.0.0.1", "none"])
async def test_a_session_is_resumed_at_the_front_door_if_its_own_place_cannot_be_reached(
    discord: DiscordServer, discord_bot: Bot, url: str
) -> None:
    ada, discord.resume_url = discord.user("ada"), url
    async with discord_bot.listening():
        first = discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        await discord.drop_socket()
        discord.edit(first, "before, again")
        await until(lambda: len(discord_bot.taken) == 2)
    assert [arrival.kind for arrival, _ in discord_bot.taken] == ["message", "edit"]
    assert (discord.sessions.resumed, len(discord.sessions.identified)) == (["/"], 1)


async def test_a_thread_nobody_told_of_is_asked_for_once(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    club = discord.guild("Club", ada)
    room = discord.channel(club, "harbour")
    async with discord_bot.listening():
        discord.say(ada, ada, "a session to resume")
        await until(lambda: discord_bot.taken)
    thread = discord.thread(room, ada, "new")
    later = discord_bot_at(discord)
    # The thread's own event is replayed; the channel's was told in a session nobody remembers.
    async with later.listening(cursor=discord_bot.cursor):
        for words in ("one", "two"):
            discord.say(thread, ada, words)
            discord.say(room, ada, words)
        await until(lambda: len(later.texts) == 4)
    wheres = {arrival.conversation for arrival, _ in later.taken if isinstance(arrival, Message)}
    assert wheres == {place(room, thread), place(room)}
    assert discord.calls[CHANNEL] == 1


async def test_a_channel_that_cannot_be_asked_for_now_is_no_reason_to_lose_a_message(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        discord.say(ada, ada, "a session to resume")
        await until(lambda: discord_bot.taken)
    thread = discord.thread(room, ada, "new")
    discord.say(thread, ada, "hello")
    discord.fail(CHANNEL, CannedAnswer(status=502))
    later = discord_bot_at(discord)
    with pytest.raises(AdapterError):
        await later.listen(discord_bot.cursor)
    assert later.texts == []
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.texts)
    assert later.texts == ["hello"]


async def test_a_wrong_token_is_told_to_the_operator(discord: DiscordServer, discord_bot_at: BotAt) -> None:
    with pytest.raises(Unauthorized, match="does not know this bot token"):
        await discord_bot_at(discord, token="NotTheToken.x.y").listen()


async def test_a_token_that_is_revoked_while_we_listen_ends_it(discord: DiscordServer, discord_bot: Bot) -> None:
    async def revoke() -> None:
        await discord_bot.adapter.connected()
        await discord.drop_socket(4004)

    async with asyncio.TaskGroup() as group:
        group.create_task(revoke())
        with pytest.raises(Unauthorized, match="does not know this bot token"):
            await discord_bot.listen()


async def test_without_the_content_intent_it_listens_all_the_same_and_says_so(
    discord: DiscordServer, discord_bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    discord.allow(message_content=False)
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    with caplog.at_level(logging.WARNING):
        async with discord_bot.listening():
            discord.say(room, ada, "not for you")
            discord.say(room, ada, f"<@{BOT_ID}> for you")
            await until(lambda: len(discord_bot.taken) == 2)
    assert "Message Content Intent" in caplog.text
    assert isinstance(discord_bot.taken[0][0], Unsupported)
    assert discord_bot.texts == ["@belino for you"]
    assert discord.sessions.identified[-1]["intents"] == INTENTS & ~MESSAGE_CONTENT


async def test_too_many_sessions_are_waited_out(discord: DiscordServer, discord_bot: Bot) -> None:
    limit = {"total": 1000, "remaining": 0, "reset_after": 7000, "max_concurrency": 1}
    body = json.dumps({"url": discord.gateway_url, "shards": 1, "session_start_limit": limit}).encode()
    discord.fail("GET /gateway/bot", CannedAnswer(status=200, body=body, headers={"Content-Type": "application/json"}))
    with pytest.raises(RateLimited) as limited:
        await discord_bot.listen()
    assert limited.value.retry_after == 7


@pytest.mark.parametrize(
    "fault", [cloudflare_ban(9), slow_down(9), slow_down(9, "global")], ids=["page", "user", "all"]
)
async def test_who_is_asked_to_wait_before_the_start_waits(
    discord: DiscordServer, discord_bot: Bot, fault: CannedAnswer
) -> None:
    discord.fail("GET /users/@me", fault)
    with pytest.raises(RateLimited) as limited:
        await discord_bot.listen()
    assert limited.value.retry_after == 9


async def test_the_bots_own_words_do_not_come_back(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        own = discord.say(room, discord.bot, "said by another program with this token")
        discord.react(own, discord.bot, "👍")
        discord.edit(own, "and changed")
        discord.say(room, ada, "hello")
        await until(lambda: discord_bot.taken)
    assert discord_bot.texts == ["hello"] and len(discord_bot.taken) == 1


async def test_every_command_is_acknowledged_in_time(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    outcomes = iter([MessageOutcome.DENIED, MessageOutcome.WAITING])

    async def accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        discord_bot.taken.append((arrival, cursor))
        return Taken(outcome=next(outcomes))

    discord_bot.accept = accept  # type: ignore[method-assign]
    async with discord_bot.listening():
        denied = discord.command(room, ada, "ask", question="may I?")
        heard = discord.command(room, ada, "ask", question="When?")
        await until(lambda: discord.interactions[heard["token"]].acknowledged)
    assert discord_bot.texts == ["/ask question: may I?", "/ask question: When?"]
    assert discord.interactions[denied["token"]].acknowledged
    assert discord.interactions[denied["token"]].answer is None
    assert heard["token"] not in json.dumps([cursor for _, cursor in discord_bot.taken])


async def test_no_token_stands_in_cursor_or_log(
    discord: DiscordServer, discord_bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    ada = discord.user("ada")
    with caplog.at_level(logging.INFO):
        async with discord_bot.listening():
            discord.say(ada, ada, "psst, a secret")
            await until(lambda: discord_bot.taken)
            await discord.drop_socket(4000)
            await until(lambda: discord.sessions.resumed)
    assert TOKEN not in (discord_bot.cursor or "") + caplog.text
    assert "psst" not in (discord_bot.cursor or "") + caplog.text


def test_a_cursor_is_bounded_keeps_the_newest_and_reads_anything() -> None:
    cursor = DiscordCursor(None)
    for number in range(1, 3 * MOST_CHANNELS):
        cursor.heard(str(number), str(number * 10), DiscordChannel(kind=11, parent="7"))
    cursor.heard(str(3 * MOST_CHANNELS - 1), "5", None)
    session = GatewaySession(id="abc", seq=12, url="wss://gateway.discord.gg")
    again = DiscordCursor(cursor.written(session, ["1", "2"]))
    assert (again.session, sorted(again.roles), len(again.newest)) == (session, ["1", "2"], MOST_CHANNELS)
    assert again.newest[str(3 * MOST_CHANNELS - 1)] == str((3 * MOST_CHANNELS - 1) * 10)
    assert again.channels[str(3 * MOST_CHANNELS - 1)] == DiscordChannel(kind=11, parent="7")
    for odd in ("", "12", "[]", '{"session": 1, "channels": [1], "roles": {}}', "{", '{"channels": {"x": {}}}'):
        assert DiscordCursor(odd).session is None and not DiscordCursor(odd).newest


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("wss://gateway.discord.gg", True),
        ("wss://gateway-us-east1-b.discord.gg/", True),
        ("ws://gateway.discord.gg", False),
        ("wss://gateway.discord.gg.evil.example", False),
        ("wss://evildiscord.gg", False),
        ("wss://gateway.discord.gg@evil.example", False),
        ("wss://gateway.discord.gg:8443", False),
        ("https://gateway.discord.gg", False),
        ("wss://[", False),
        ("wss:///", False),
        ("", False),
    ],
)
def test_the_token_is_said_only_at_discords_own_gateways(url: str, may: bool) -> None:
    for api_url in ("https://discord.com/api/v10", "https://discord.com/api", "https://canary.Discord.com/api/v9/"):
        assert may_resume_at(Config(token=Secret("T", TOKEN), api_url=api_url), url) is may


def test_a_gateway_of_ones_own_is_told_the_token_and_nobody_it_names() -> None:
    config = Config(token=Secret("T", TOKEN), gateway_url="ws://127.0.0.1:9000")
    allowed = ("ws://127.0.0.1:9000/resume", "wss://gateway.discord.gg")
    assert all(may_resume_at(config, url) for url in allowed)
    assert not any(may_resume_at(config, url) for url in ("ws://127.0.0.1:9001", "wss://evil.example", ""))


async def test_a_place_to_resume_at_that_is_none_of_discords_is_not_told_the_token(
    discord: DiscordServer, discord_bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belino.adapters.discord.may_resume_at", lambda config, url: "/resume" not in url)
    ada = discord.user("ada")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
        await discord.drop_socket()
        await until(lambda: not discord.gateway.connections)
        discord.say(ada, ada, "meanwhile")
        await until(lambda: len(discord_bot.texts) == 2)
    assert discord_bot.texts == ["before", "meanwhile"]
    assert (discord.sessions.resumed, len(discord.sessions.identified)) == (["/"], 1)


async def test_pauses_grow_and_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    waits: list[float] = []

    class Clock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 12:
                raise asyncio.CancelledError

    async def nowhere() -> str:
        raise AdapterError("nobody is there")

    listener = listening.GatewayListener(
        Client(), Clock(), token=Secret("T", TOKEN), gateway=nowhere, way_back=lambda session: session, rng=Random(7)
    )

    async def take(_: object) -> None:
        raise AssertionError("nothing can be heard")

    with pytest.raises(asyncio.CancelledError):
        await listener.run(take)
    assert all(1.0 <= wait <= 60.0 for wait in waits) and max(waits[8:]) > 5.0
