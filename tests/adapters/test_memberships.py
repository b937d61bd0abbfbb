"""Added to a group, or removed: what adapters report, and what the owner is asked."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.discord_harness import Bot as DiscordTester
from adapters.harness import until
from adapters.in_house import at_work
from adapters.slack_harness import App
from adapters.telegram_harness import Bot
from belino.config import AccessConfig, ChannelAccess
from belino.domain.errors import Undeliverable
from belino.domain.message import UNKNOWN_AUTHOR, ChatType, ConversationKey, Presence, Unsupported
from belino.domain.outcome import Standing
from belino.domain.owner import GroupState
from belino.gateway.access import decide
from belino.testing import SlackServer, TelegramServer
from belino.testing.discord import DiscordServer


def told(arrival: object) -> tuple[Presence | None, str, str, ChatType, bool]:
    assert isinstance(arrival, Unsupported)
    return arrival.presence, arrival.author.name, arrival.channel_name or "", arrival.chat_type, arrival.is_event


async def test_telegram_reports_who_added_the_bot_to_a_group_and_that_it_was_removed(
    server: TelegramServer, bot: Bot
) -> None:
    ada, group = server.user("Ada"), server.group("Harbour")
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
        server.invite(group, ada)
        server.promote(group, ada)
        server.kick(group, ada)
        server.block(ada)
        await until(lambda: len(bot.taken) == 4)
    arrivals = [arrival for arrival, _ in bot.taken]
    assert [told(arrival) for arrival in arrivals] == [
        (Presence.ADDED, "Ada", "Harbour", ChatType.GROUP, True),
        (None, "Ada", "Harbour", ChatType.GROUP, True),
        (Presence.REMOVED, "Ada", "Harbour", ChatType.GROUP, True),
        (Presence.REMOVED, "Ada", "Ada", ChatType.DIRECT, True),
    ]
    assert arrivals[-1].what == "the person blocked the bot"  # type: ignore[union-attr]


async def test_slack_reports_who_invited_the_app_and_others_only_as_noise(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    room = slack.channel("harbour", ada, member=False)
    async with app.listening():
        slack.invite(room, by=ada)
        await until(lambda: len(app.taken) == 1)
        event = {"type": "member_joined_channel", "user": ada["id"], "channel": room["id"], "channel_type": "C"}
        slack.deliveries.event(event, "member_joined_channel")
        await until(lambda: len(app.taken) == 2)
        slack.kick(room)
        await until(lambda: len(app.taken) == 3)
    (first, _), (second, _), (third, _) = app.taken
    assert told(first) == (Presence.ADDED, "Ada", "harbour", ChatType.CHANNEL, True)
    assert isinstance(second, Unsupported) and (second.presence, second.is_event) == (None, True)
    assert isinstance(third, Unsupported) and (third.presence, third.author.id) == (Presence.REMOVED, "unknown")


async def test_the_direct_messages_with_a_person_can_be_opened(
    bot: Bot, slack: SlackServer, app: App, discord: DiscordServer, discord_bot: DiscordTester
) -> None:
    assert await bot.adapter.direct("4711") == "4711"
    bob = slack.user("Bob")
    assert await app.adapter.direct(bob["id"]) == slack.dm(bob)["id"]
    slack.scopes.discard("im:write")
    assert await app.adapter.direct(bob["id"]) == bob["id"]
    slack.scopes.add("im:write")
    with pytest.raises(Undeliverable, match="user_not_found"):
        await app.adapter.direct("U0NOBODY1")
    ada = discord.user("ada")
    assert await discord_bot.adapter.direct(ada["id"]) == discord.dm(ada)["id"]
    with pytest.raises(Undeliverable):
        await discord_bot.adapter.direct("1")


async def test_a_telegram_group_is_allowed_by_the_owner_without_a_restart(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    ada, bob, group = server.user("Ada"), server.user("Bob"), server.group("Harbour")
    settings: dict[str, Any] = {"token": "env:TOKEN", "api_url": server.url}
    owners = {"owners": [f"telegram:default:{ada['id']}"]}
    async with at_work(tmp_path / "home", telegram=settings, access=owners) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        server.invite(group, bob)
        await until(lambda: server.sent)
        (asked,) = server.sent
        assert asked["chat"]["id"] == ada["id"] and "added to “Harbour”" in asked["text"]
        (waiting,) = await gateway.groups.all()
        server.say(ada, ada, f"/allow {waiting.code}")
        await until(lambda: len(server.sent) == 2)
        server.say(group, bob, "@belino_bot hello")
        await until(lambda: len(server.sent) == 3)
        assert server.sent[-1]["chat"]["id"] == group["id"]
        assert [one.state for one in await gateway.groups.all()] == [GroupState.ALLOWED]


@pytest.mark.usefixtures("brisk_discord")
async def test_discord_reports_a_server_that_the_bot_was_just_added_to_and_not_those_where_it_has_been(
    discord: DiscordServer, discord_bot: DiscordTester
) -> None:
    discord.guild("Old Club")
    discord.guild("Added while away", new=True)
    async with discord_bot.listening():
        await until(lambda: len(discord_bot.taken) == 1)
        club = discord.guild("New Club", new=True)
        await until(lambda: len(discord_bot.taken) == 2)
        discord.sessions.dispatch("GUILD_DELETE", {"id": club["id"], "unavailable": True})
        discord.kick(club)
        await until(lambda: len(discord_bot.taken) == 3)
    arrivals = [arrival for arrival, _ in discord_bot.taken]
    assert [told(arrival)[:3] for arrival in arrivals] == [
        (Presence.ADDED, "someone", "Added while away"),
        (Presence.ADDED, "someone", "New Club"),
        (Presence.REMOVED, "someone", ""),
    ]
    assert arrivals[1].conversation.channel == f"server:{club['id']}"


def test_what_concerns_a_whole_server_is_stored_nowhere() -> None:
    where = ConversationKey(platform="discord", account="default", channel="server:7")
    event = Unsupported(
        conversation=where,
        id="1",
        author=UNKNOWN_AUTHOR,
        sent=datetime(2026, 1, 1, tzinfo=UTC),
        what="x",
        chat_type=ChatType.GROUP,
        is_event=True,
        presence=Presence.ADDED,
    )
    access = AccessConfig(channels={"server:7": ChannelAccess(senders=("*",))})
    assert decide(event, access).standing is Standing.DENIED
