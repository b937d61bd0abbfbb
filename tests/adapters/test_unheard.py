"""Catch-up where nothing was heard before: channels that the access rules name, and first direct messages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.discord_harness import Bot
from adapters.harness import until
from adapters.in_house import at_work, kept
from adapters.slack_harness import Apps, passing
from belino.adapters.slack import history
from belino.domain.message import SERVER
from belino.domain.places import CATCH_UP, MOST_UNHEARD
from belino.testing import FakeClock, ScriptedAgent, SlackServer
from belino.testing.discord import TOKEN, DiscordServer

BotAt = Callable[..., Bot]
HISTORY, OPENED = "GET /channels/{channel}/messages", "POST /users/@me/channels"


@pytest.mark.usefixtures("brisk_discord")
async def test_listed_channels_that_were_never_heard_are_asked_newest_first_if_something_is_new(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    club, other = discord.guild("Club", ada), discord.guild("Other", ada)
    heard, early, silent, strange = (discord.channel(club, name) for name in ("heard", "early", "silent", "strange"))
    late = discord.channel(other, "late")
    async with discord_bot.listening():
        discord.say(heard, ada, "before")
        await until(lambda: discord_bot.texts)
    await discord.forget_sessions()
    for channel in (early, strange, late):
        discord.say(channel, ada, f"missed in {channel['name']}")
    later = discord_bot_at(discord)
    later.context.named |= {early["id"], silent["id"], f"{SERVER}{other['id']}"}
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.texts) == 2)
        assert later.texts == ["missed in late", "missed in early"]
        discord.say(heard, ada, "live")
        await until(lambda: later.texts[-1] == "live")
    assert discord.calls[HISTORY] == 2 and not later.context.problems


@pytest.mark.usefixtures("brisk_discord")
async def test_no_more_than_twenty_are_asked_at_a_start_and_the_rest_is_counted(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    club = discord.guild("Club", ada)
    heard, *rooms = (discord.channel(club, f"room-{number}") for number in range(MOST_UNHEARD + 4))
    async with discord_bot.listening():
        discord.say(heard, ada, "before")
        await until(lambda: discord_bot.texts)
    await discord.forget_sessions()
    for room in rooms:
        discord.say(room, ada, f"missed in {room['name']}")
    later = discord_bot_at(discord)
    later.context.named.add("*")
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.context.problems)
    assert len(later.texts) == MOST_UNHEARD and later.texts[0] == f"missed in {rooms[-1]['name']}"
    assert discord.calls[HISTORY] == MOST_UNHEARD
    assert "3 channels" in later.context.problems[CATCH_UP]


@pytest.mark.usefixtures("brisk_discord")
async def test_the_first_direct_messages_of_a_listed_person_are_caught_up_and_their_channel_is_asked_for_once(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada, bo, silent = discord.user("ada"), discord.user("bo"), discord.user("silent")
    async with discord_bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: discord_bot.texts)
    await discord.forget_sessions()
    discord.say(bo, bo, "my first words")
    later = discord_bot_at(discord)
    later.context.senders += [ada["id"], bo["id"], silent["id"], "99"]
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.texts)
    assert later.texts == ["my first words"] and discord.calls[OPENED] == 3, "ada is known"
    await discord.forget_sessions()
    again = discord_bot_at(discord)
    again.context.senders += [ada["id"], bo["id"]]
    async with again.listening(cursor=later.cursor):
        discord.say(bo, bo, "and more")
        await until(lambda: again.texts)
    assert again.texts == ["and more"] and discord.calls[OPENED] == 3


@pytest.mark.usefixtures("brisk_discord")
async def test_at_the_first_start_no_channel_is_asked(
    discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "room")
    discord.say(room, ada, "long ago")
    settings = {"token": "env:TOKEN", "api_url": discord.api_url, "cdn_url": discord.cdn.url}
    access = {"senders": [ada["id"]], "channels": {room["id"]: {"senders": ["*"]}}}
    async with at_work(tmp_path / "home", discord={**settings, "access": access}) as (gateway, _):
        await gateway.adapters["discord", "default"].connected()  # type: ignore[attr-defined]
        discord.say(ada, ada, "now")
        await until(lambda: discord.sent)
        assert await kept(gateway, room["id"]) == ()
    assert discord.calls[HISTORY] == 1, "the context of the direct message"
    assert not discord.calls[OPENED]


@pytest.mark.usefixtures("brisk_discord")
async def test_discord_a_mention_in_a_listed_channel_that_was_never_heard_is_answered_after_a_restart(
    discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "room")
    settings: dict[str, Any] = {
        "token": "env:TOKEN",
        "api_url": discord.api_url,
        "cdn_url": discord.cdn.url,
        "access": {"senders": [ada["id"]], "channels": {room["id"]: {"senders": ["*"]}}},
    }
    async with at_work(tmp_path / "home", agent=ScriptedAgent(), discord=settings) as (gateway, _):
        await gateway.adapters["discord", "default"].connected()  # type: ignore[attr-defined]
        while await gateway.store.cursor("discord", "default") is None:
            await gateway.clock.sleep(0.002)
    await discord.forget_sessions()
    discord.say(room, ada, f"<@{discord.bot['id']}> in the room?")
    discord.say(ada, ada, "in private?")
    async with at_work(tmp_path / "home", agent=ScriptedAgent(), discord=settings):
        await until(lambda: len(discord.sent) == 2)
    assert {message["channel_id"] for message in discord.sent} == {room["id"], discord.dm(ada)["id"]}


async def test_slack_channels_that_were_never_heard_are_asked_by_one_call_each(slack: SlackServer, apps: Apps) -> None:
    ada, bo = slack.user("Ada"), slack.user("Bo")
    heard, listed, strange = (slack.channel(name, ada) for name in ("heard", "listed", "strange"))
    first = apps()
    async with first.listening():
        slack.say(heard, ada, "before")
        await until(lambda: first.texts)
    slack.deliveries.subscribed.clear()  # nothing of this is ever delivered
    slack.say(listed, ada, "missed in a channel")
    slack.say(strange, ada, "not for us")
    slack.say(slack.dm(bo), bo, "my first words")
    clock = FakeClock(slack.clock.now())
    second = apps(clock=clock)
    second.context.named.add(listed["id"])
    async with second.listening(first.cursor):
        await passing(clock, lambda: len(second.texts) == 2)
    assert sorted(second.texts) == ["missed in a channel", "my first words"]
    assert slack.calls["conversations.history"] == 3, "with the channel that was heard"
    assert not second.context.problems


async def test_slack_is_asked_for_twenty_unheard_channels_at_a_start_and_the_rest_is_counted(
    slack: SlackServer, apps: Apps
) -> None:
    ada = slack.user("Ada")
    heard, *rooms = (slack.channel(f"room-{number}", ada) for number in range(MOST_UNHEARD + 4))
    first = apps()
    async with first.listening():
        slack.say(heard, ada, "before")
        await until(lambda: first.texts)
    slack.deliveries.subscribed.clear()
    for room in rooms:
        slack.say(room, ada, f"missed in {room['name']}")
    clock = FakeClock(slack.clock.now())
    second = apps(clock=clock)
    second.context.named.add("*")
    async with second.listening(first.cursor):
        await passing(clock, lambda: len(second.texts) == MOST_UNHEARD)
    assert "3 channels" in second.context.problems[CATCH_UP]


async def test_an_app_without_the_scope_for_direct_messages_still_asks_its_channels(
    slack: SlackServer, apps: Apps
) -> None:
    ada = slack.user("Ada")
    heard, listed = slack.channel("heard", ada), slack.channel("listed", ada)
    first = apps()
    async with first.listening():
        slack.say(heard, ada, "before")
        await until(lambda: first.texts)
    slack.deliveries.subscribed.clear()
    slack.scopes.discard("im:read")
    slack.say(listed, ada, "missed")
    clock = FakeClock(slack.clock.now())
    second = apps(clock=clock)
    second.context.named.add(listed["id"])
    async with second.listening(first.cursor):
        await passing(clock, lambda: second.texts)
    assert second.texts == ["missed"]


async def test_slack_a_mention_in_a_listed_channel_that_was_never_heard_is_answered_after_a_restart(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT", slack.bot_token)
    monkeypatch.setenv("APP", slack.app_token)
    monkeypatch.setattr(history, "PAUSE_SECONDS", 0.0)
    ada = slack.user("Ada")
    room = slack.channel("room", ada)
    own: dict[str, Any] = {
        "bot_token": "env:BOT",
        "app_token": "env:APP",
        "api_url": slack.api_url,
        "access": {"senders": [ada["id"]], "channels": {room["id"]: {"senders": ["*"]}}},
    }
    async with at_work(tmp_path / "home", agent=ScriptedAgent(), slack=own) as (gateway, _):
        while await gateway.store.cursor("slack", "default") is None:
            await gateway.clock.sleep(0.002)
    subscribed, slack.deliveries.subscribed = slack.deliveries.subscribed, type(slack.deliveries.subscribed)()
    slack.say(room, ada, f"<@{slack.bot['id']}> in the room?")
    slack.say(slack.dm(ada), ada, "in private?")
    slack.deliveries.subscribed = subscribed
    async with at_work(tmp_path / "home", agent=ScriptedAgent(), slack=own):
        await until(lambda: len(slack.sent) == 2)
    assert {message["channel"] for message in slack.sent} == {room["id"], slack.dm(ada)["id"]}
