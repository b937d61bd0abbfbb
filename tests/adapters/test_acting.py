"""Reactions and deletions: what the agent does to messages, under each platform's rules."""

from datetime import timedelta
from typing import Any

import pytest

from adapters import discord_harness, slack_harness, telegram_harness
from adapters.slack_harness import Apps
from belino.adapters import discord as discord_adapter
from belino.adapters import slack as slack_adapter
from belino.adapters import telegram, web
from belino.domain.errors import Undeliverable
from belino.domain.message import ConversationKey
from belino.domain.ports import Deletes, Edits, Reacts
from belino.domain.reply import Parcel
from belino.testing import DiscordServer, FakeClock, FakeContext, SlackServer, TelegramServer

MAIN = ConversationKey(platform="web", account="default", channel="main")


def chat(user: Any) -> ConversationKey:
    return ConversationKey(platform="telegram", account="default", channel=str(user["id"]))


def parcel(where: ConversationKey, text: str = "Hello") -> Parcel:
    return Parcel(key=f"key of {text}", conversation=where, text=text)


def test_every_platform_of_ours_can_react_edit_and_delete() -> None:
    for adapter in (telegram.Adapter, discord_adapter.Adapter, slack_adapter.Adapter, web.Adapter):
        for protocol in (Deletes, Edits, Reacts):
            assert issubclass(adapter, protocol)


async def test_telegram_shows_one_reaction_and_removes_it_again(
    server: TelegramServer, bot: telegram_harness.Bot
) -> None:
    ada = server.user("Ada")
    said = server.say(ada, ada, "Is it done?")
    place, own = (ada["id"], said["message_id"]), str(said["message_id"])
    await bot.adapter.react(chat(ada), own, "👀")
    assert server.reacted[place] == ["👀"]
    await bot.adapter.react(chat(ada), own, ":+1:")
    assert server.reacted[place] == ["👍"]
    await bot.adapter.react(chat(ada), own, "👀", added=False)
    assert server.reacted[place] == ["👍"]
    await bot.adapter.react(chat(ada), own, "👍", added=False)
    assert server.reacted[place] == []


async def test_telegram_refuses_an_emoji_it_does_not_have(server: TelegramServer, bot: telegram_harness.Bot) -> None:
    ada = server.user("Ada")
    said = server.say(ada, ada, "Is it done?")
    with pytest.raises(Undeliverable, match="no reaction ✅"):
        await bot.adapter.react(chat(ada), str(said["message_id"]), "✅")
    with pytest.raises(Undeliverable, match="not found"):
        await bot.adapter.react(chat(ada), "99", "👍")


async def test_telegram_deletes_what_is_not_older_than_two_days(bot_at: Any) -> None:
    clock = FakeClock()
    async with telegram_harness.telegram(clock=clock) as server:
        bot = bot_at(server.url, clock=clock)
        ada = server.user("Ada")
        first = await bot.adapter.send(parcel(chat(ada)))
        await bot.adapter.delete(chat(ada), first.message_id)
        await bot.adapter.delete(chat(ada), first.message_id)
        assert server.deleted == [int(first.message_id)]
        second = await bot.adapter.send(parcel(chat(ada), "Again"))
        await clock.advance(timedelta(hours=49).total_seconds())
        with pytest.raises(Undeliverable, match="can't be deleted"):
            await bot.adapter.delete(chat(ada), second.message_id)


async def test_discord_reacts_by_character_and_deletes(
    discord: DiscordServer, discord_bot: discord_harness.Bot
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    said, where = discord.say(room, ada, "Is it done?"), discord_harness.place(room)
    adapter = discord_bot.adapter
    for emoji in ("eyes", "👀"):
        await adapter.react(where, said["id"], emoji)
    assert discord.reactions[said["id"]] == {"👀": [discord.bot["id"]]}
    for _ in range(2):
        await adapter.react(where, said["id"], "👀", added=False)
    assert not any(discord.reactions[said["id"]].values())
    with pytest.raises(Undeliverable, match="no emoji nonsense"):
        await adapter.react(where, said["id"], "nonsense")
    receipt = await adapter.send(parcel(where))
    for _ in range(2):
        await adapter.delete(where, receipt.message_id)
    assert receipt.message_id not in discord.messages[room["id"]]
    with pytest.raises(Undeliverable, match="the message is gone"):
        await adapter.react(where, receipt.message_id, "👀")


async def test_discord_says_when_it_may_not_react(discord: DiscordServer, discord_bot: discord_harness.Bot) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    said = discord.say(room, ada, "Is it done?")
    discord.forbid(room, "ADD_REACTIONS")
    with pytest.raises(Undeliverable, match="may not do this here"):
        await discord_bot.adapter.react(discord_harness.place(room), said["id"], "👀")


async def test_slack_reacts_by_name_and_deletes(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    room = slack.channel("harbour", ada)
    said, where = slack.say(room, ada, "Is it done?"), slack_harness.place(room)
    adapter, place = apps().adapter, (room["id"], said["ts"])
    for emoji in ("👀", ":eyes:", "⚠\N{VARIATION SELECTOR-16}"):
        await adapter.react(where, said["ts"], emoji)
    assert set(slack.reactions[place]) == {"eyes", "warning"}
    for _ in range(2):
        await adapter.react(where, said["ts"], "👀", added=False)
    assert not slack.reactions[place]["eyes"]
    with pytest.raises(Undeliverable, match="by their names"):
        await adapter.react(where, said["ts"], "🪕")
    receipt = await adapter.send(parcel(where))
    for _ in range(2):
        await adapter.delete(where, receipt.message_id)
    assert receipt.message_id not in slack.messages[room["id"]]
    with pytest.raises(Undeliverable, match="will not delete it: cant_delete_message"):
        await adapter.delete(where, said["ts"])


async def test_slack_names_the_scope_that_reactions_need(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    room = slack.channel("harbour", ada)
    said = slack.say(room, ada, "Is it done?")
    slack.scopes.discard("reactions:write")
    with pytest.raises(Undeliverable, match="reactions:write"):
        await apps().adapter.react(slack_harness.place(room), said["ts"], "👀")


async def test_the_web_page_shows_what_is_stored() -> None:
    adapter = web.Adapter(web.Config(), FakeContext(clock=FakeClock()))
    await adapter.react(MAIN, "m1", "👀")
    await adapter.delete(MAIN, "m1")
    assert (await adapter.edit("m1", parcel(MAIN))).message_id == "m1"
