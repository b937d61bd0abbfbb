"""A bot on Discord: it listens from where it stopped, says what stands in its way, and answers."""

import json
from collections.abc import Callable
from typing import Any

from adapters.discord_harness import Bot, place
from adapters.harness import until
from belino.adapters.discord.authors import DiscordBot
from belino.adapters.discord.parse import DiscordParseContext, parse
from belino.domain.message import Arrival, Deletion, Edit, Message, Reaction
from belino.domain.reply import Parcel
from belino.testing import FakeClock, Trial, check_adapter, make_jpeg, make_pdf
from belino.testing.discord import BOT_ID, TOKEN, DiscordServer
from belino.testing.faults import CannedAnswer

BotAt = Callable[..., Bot]
SEND = "POST /channels/{channel}/messages"


async def test_discord_keeps_the_adapter_contract(discord: DiscordServer, discord_bot_at: BotAt) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    picture, report = make_jpeg(640, 480), make_pdf()
    said = [
        discord.say(room, ada, "see", files=[picture, report]),
        discord.say(ada, ada, "in private", files=[make_jpeg(10, 10)]),
        discord.say(room, ada, type=7),
    ]
    clock = FakeClock()

    def parsed(raw: Any) -> tuple[Arrival, ...]:
        return parse(
            raw, DiscordParseContext(account="default", me=DiscordBot(id=BOT_ID), channels={}, received=clock.now())
        )

    reply = discord.say(room, ada, "and then?", reply_to=said[0])
    aside = discord.say(room, ada, f"<@{discord.user('bob')['id']}> and then?", reply_to=said[0])
    events = [{"t": "MESSAGE_CREATE", "s": number, "d": raw} for number, raw in enumerate(said)]
    (first,) = parsed(events[0])
    assert isinstance(first, Message)
    checked = await check_adapter(
        Trial(
            make=lambda: discord_bot_at(discord).adapter,
            parse=parsed,
            samples=events,
            conversation=place(room),
            secrets=[TOKEN],
            media={ref.item: content for ref, content in zip(first.media, (picture, report), strict=True)},
            refuse=lambda status, headers: discord.fail(SEND, CannedAnswer(status=status, headers=headers)),
            in_thread={"t": "MESSAGE_CREATE", "s": 90, "d": {**reply, "guild_id": room["guild_id"]}},
            to_another={"t": "MESSAGE_CREATE", "s": 91, "d": {**aside, "guild_id": room["guild_id"]}},
        )
    )
    assert len(checked) == 12


async def test_everything_arrives_in_order_and_no_byte_of_it_is_fetched(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        first = discord.say(room, ada, "one")
        discord.say(room, ada, "two", files=[make_jpeg(800, 600)])
        discord.unfurl(first, {"type": "article", "title": "A page"})
        discord.edit(first, "one, again")
        discord.react(first, ada, "👍")
        discord.delete(first)
        await until(lambda: len(discord_bot.taken) == 5)
    kinds = [type(arrival) for arrival, _ in discord_bot.taken]
    assert kinds == [Message, Message, Edit, Reaction, Deletion]
    assert discord.bytes_served == 0
    assert set(discord.calls) == {"GET /users/@me", "GET /gateway/bot"}


async def test_an_answer_is_seen_in_the_channel_and_does_not_come_back(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        asked = discord.say(room, ada, f"<@{BOT_ID}> hello?")
        await until(lambda: discord_bot.taken)
        (arrival, cursor), *_ = discord_bot.taken
        assert isinstance(arrival, Message)
        assert (arrival.text, arrival.addressed, arrival.channel_name) == ("@belino hello?", True, "harbour")
        assert json.loads(cursor or "")["session"]["seq"] > 0
        receipt = await discord_bot.adapter.send(
            Parcel(key="a", conversation=arrival.conversation, text="Hello @everyone!", reply_to=arrival.id)
        )
        discord.say(room, ada, "thanks")
        await until(lambda: len(discord_bot.taken) == 2)
    (sent,) = discord.sent
    assert (sent["id"], sent["content"]) == (receipt.message_id, "Hello @everyone!")
    assert sent["message_reference"]["message_id"] == asked["id"]
    assert sent["mentions"] == []
    assert discord_bot.texts == ["@belino hello?", "thanks"]
