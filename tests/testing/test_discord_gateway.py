"""Discord's gateway as discord.py itself meets it: sessions, resume, refusals."""

import asyncio
import json
from pathlib import Path
from typing import Any

import discord
import pytest

from belino.testing import FakeClock
from belino.testing.discord import DiscordServer
from belino.testing.discord.gateway import SESSION_SECONDS
from belino.testing.discord.shapes import ChannelType
from testing.discord_listener import LIMIT, Curl, Listener, aimed_at, listening

SAMPLES = Path(__file__).parent.parent / "samples" / "discord"
# Less than Discord promises, which parse must take and the library does not.
BARE = {"sparse", "update_partial"}


async def test_a_message_said_in_a_channel_reaches_discord_py_with_its_author_and_server() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        async with listening(server) as client:
            server.say(channel, ada, "hello there")
            message = await client.next("message")
        assert (message.content, message.author.name, message.guild.name) == ("hello there", "ada", "Club")
        assert message.channel.name == "general"
        assert server.gateway.heartbeats


async def test_discord_py_learns_who_is_in_a_server_and_finds_one_by_name() -> None:
    async with DiscordServer() as server:
        server.allow(members=True)
        ada, bo = server.user("ada"), server.user("bo")
        club = server.guild("Club", ada, bo)
        async with listening(server, members=True) as client:
            guild = client.get_guild(int(club["id"]))
            assert guild is not None and guild.chunked
            assert {member.name for member in guild.members} == {"belino", "ada", "bo"}
            assert [member.id for member in await guild.query_members("a", cache=False)] == [int(ada["id"])]
            assert [m.name for m in await guild.query_members(user_ids=[int(bo["id"]), 5], cache=False)] == ["bo"]


async def test_edits_deletions_reactions_and_threads_reach_discord_py() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        one, two = (server.say(channel, ada, word) for word in ("one", "two"))
        async with listening(server) as client:
            server.edit(one, "three")
            server.react(one, ada, "🔥")
            server.react(one, ada, "🔥", remove=True)
            thread = server.thread(channel, ada, "Side talk", message=two)
            server.say(thread, ada, "in here")
            server.delete(one)
            server.delete(two, server.say(channel, ada, "four"))
            assert (await client.next("raw_message_edit")).data["content"] == "three"
            assert str((await client.next("raw_reaction_add")).emoji) == "🔥"
            assert (await client.next("raw_reaction_remove")).user_id == int(ada["id"])
            assert (await client.next("thread_create")).parent.name == "general"
            assert (await client.next("message")).type is discord.MessageType.thread_starter_message
            assert (await client.next("message")).channel.id == int(two["id"])
            assert (await client.next("raw_message_delete")).message_id == int(one["id"])
            assert len((await client.next("raw_bulk_message_delete")).message_ids) == 2


async def test_a_post_in_a_forum_is_a_thread_that_shares_its_first_messages_id() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        forum = server.channel(server.guild("Club", ada), "help", ChannelType.FORUM)
        async with listening(server) as client:
            server.post(forum, ada, "My key does not fit", "It is bent.", files=[b"picture"])
            thread = await client.next("thread_create")
            message = await client.next("message")
        assert (thread.parent.name, thread.name, message.content) == ("help", "My key does not fit", "It is bent.")
        assert message.id == thread.id == message.channel.id


async def test_after_the_line_broke_the_session_is_resumed_and_what_was_said_meanwhile_arrives() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        async with listening(server) as client:
            await server.drop_socket()
            server.say(ada, ada, "did you hear that?")
            assert (await client.next("message")).content == "did you hear that?"
            await client.next("resumed")
        assert len(server.sessions.identified) == 1
        assert server.sessions.resumed == ["/resume"]


@pytest.mark.parametrize("resumable", [True, False])
async def test_an_invalid_session_is_resumed_or_begun_anew_as_the_gateway_says(resumable: bool) -> None:
    async with DiscordServer() as server:
        async with listening(server) as client:
            await server.invalidate(resumable=resumable)
            await client.next("resumed" if resumable else "ready")
        assert len(server.sessions.resumed) == (1 if resumable else 0)
        assert len(server.sessions.identified) == (1 if resumable else 2)


async def test_a_forgotten_session_is_begun_anew_after_resuming_was_tried() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        async with listening(server) as client:
            await server.forget_sessions()
            server.say(ada, ada, "lost")
            await client.next("ready")
            server.say(ada, ada, "found")
            assert (await client.next("message")).content == "found"
        assert (len(server.sessions.identified), server.sessions.resumed) == (2, [])


async def test_asked_to_reconnect_discord_py_comes_back_to_the_address_for_resuming() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        async with listening(server) as client:
            await server.ask_to_reconnect()
            server.say(ada, ada, "still there?")
            assert (await client.next("message")).content == "still there?"
        assert server.sessions.resumed == ["/resume"]


async def test_every_sample_is_something_discord_py_understands() -> None:
    names = sorted(path.stem for path in SAMPLES.glob("*.json") if path.stem not in BARE)
    told = {name: json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8")) for name in names}
    messages = [event for event in told.values() if event["t"] == "MESSAGE_CREATE"]
    async with DiscordServer() as server, listening(server) as client:
        server.sessions.dispatch("GUILD_CREATE", told["guild_create"]["d"])
        for event in [event for name, event in told.items() if name not in ("ready", "guild_delete")]:
            next(iter(server.sessions.live.values())).add(event["t"], event["d"])
        heard = [await client.next("message") for _ in messages]
    assert len(heard) == len(messages) > 60


async def test_a_privileged_intent_that_is_switched_off_is_refused_with_4014() -> None:
    async with DiscordServer(message_content=False) as server, aimed_at(server), Listener() as client:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await client.start(server.token)


async def test_without_the_content_intent_words_are_told_only_where_they_are_meant_for_the_bot() -> None:
    async with DiscordServer(message_content=False) as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        async with listening(server, message_content=False) as client:
            server.say(channel, ada, "among us", files=[b"secret"])
            server.say(channel, ada, f"<@{server.bot['id']}> to you")
            server.say(ada, ada, "to you alone")
            heard = [await client.next("message") for _ in range(3)]
        assert [message.content for message in heard] == ["", f"<@{server.bot['id']}> to you", "to you alone"]
        assert heard[0].attachments == []


@pytest.mark.parametrize(
    ("intents", "code"),
    [(1 << 17, 4013), (-1, 4013), ("many", 4013), (1 << 15, 4014), (1 << 1, 4014), (1 << 8, 4014)],
    ids=["unknown", "negative", "no number", "content", "members", "presences"],
)
async def test_intents_that_do_not_exist_or_are_not_allowed_end_the_connection(intents: Any, code: int) -> None:
    async with DiscordServer(message_content=False) as server, Curl(server) as bot, bot.socket(v="10") as socket:
        await socket.identify(intents)
        assert await socket.closed() == code


async def test_every_breach_of_the_protocol_has_its_close_code() -> None:
    async with DiscordServer() as server, Curl(server) as bot:
        async with bot.socket(v="10") as socket:
            await socket.identify(token="wrong")
            assert await socket.closed() == 4004
        async with bot.socket(v="10") as socket:
            await socket.say(3, {"status": "online"})
            assert await socket.closed() == 4003
        async with bot.socket(v="10") as socket:
            await socket.say(77, None)
            assert await socket.closed() == 4001
        async with bot.socket(v="10") as socket:
            await socket.say(1, "not a number")
            assert await socket.closed() == 4001
        async with bot.socket(v="10") as socket:
            await socket.identify(properties=None)
            assert await socket.closed() == 4001
        async with bot.socket(v="10") as socket:
            await socket.write("not json")
            assert await socket.closed() == 4002
        async with bot.socket(v="10") as socket:
            await socket.write(json.dumps({"op": 1, "d": "x" * 5000}))
            assert await socket.closed() == 4002
        async with bot.socket(v="10") as socket:
            await socket.identify()
            await socket.identify()
            assert await socket.closed() == 4005
        async with bot.socket(v="10") as socket:
            await socket.identify(shard=[3, 2])
            assert await socket.closed() == 4010
        async with bot.socket(v="6") as socket:
            assert await socket.closed() == 4012
        async with bot.socket(v="10") as socket:
            for _ in range(121):
                await socket.say(1, None)
            assert await socket.closed() == 4008


async def test_who_does_not_send_heartbeats_is_hung_up_on_and_may_resume() -> None:
    async with DiscordServer(heartbeat_seconds=0.05) as server, Curl(server) as bot:
        async with bot.socket(v="10") as socket:
            assert (await socket.hear())["d"]["heartbeat_interval"] == 50
            await socket.identify()
            ready = await socket.hear_event("READY")
            assert await socket.closed() == 4000
        async with bot.socket(v="10") as socket:
            await socket.resume(ready["d"]["session_id"], ready["s"])
            await socket.hear_event("RESUMED")


async def test_who_identifies_again_too_soon_is_told_that_the_session_is_invalid() -> None:
    async with DiscordServer() as server, Curl(server) as bot:
        server.gateway.identify_seconds = 60.0
        async with bot.socket(v="10") as first, bot.socket(v="10") as second:
            await first.identify()
            await first.hear_event("READY")
            await second.hear()
            await second.identify()
            refused = await second.hear()
        assert (refused["op"], refused["d"], len(server.sessions.identified)) == (9, False, 1)


async def test_a_gateway_that_turns_connections_away_asks_to_reconnect_in_place_of_a_hello() -> None:
    async with DiscordServer() as server, Curl(server) as bot:
        server.gateway.turned_away = 1
        heard = []
        for _ in range(2):
            async with bot.socket(v="10") as socket:
                heard.append((await socket.hear())["op"])
        assert heard == [7, 10]


async def test_a_frozen_gateway_acknowledges_nothing_until_it_thaws() -> None:
    async with DiscordServer() as server, Curl(server) as bot, bot.socket(v="10") as socket:
        await socket.hear()
        server.gateway.frozen = True
        await socket.say(1, None)
        async with asyncio.timeout(LIMIT):
            while not server.gateway.heartbeats:
                await asyncio.sleep(0)
        server.gateway.frozen = False
        await socket.say(1, None)
        assert (await socket.hear())["op"] == 11
        assert server.gateway.heartbeats == 2


async def test_resuming_tells_again_exactly_what_was_missed_in_order() -> None:
    async with DiscordServer() as server, Curl(server) as bot:
        ada = server.user("ada")
        async with bot.socket(v="10") as socket:
            await socket.identify()
            session = (await socket.hear_event("READY"))["d"]["session_id"]
            server.say(ada, ada, "one")
            first = await socket.hear_event("MESSAGE_CREATE")
            await socket.hang_up(4000)
        server.say(ada, ada, "two")
        server.say(ada, ada, "three")
        async with bot.socket(v="10") as socket:
            await socket.hear()
            await socket.resume(session, first["s"])
            again = [await socket.hear() for _ in range(3)]
        assert [(event["t"], event["d"].get("content")) for event in again] == [
            ("MESSAGE_CREATE", "two"),
            ("MESSAGE_CREATE", "three"),
            ("RESUMED", None),
        ]
        assert [event["s"] for event in again] == [first["s"] + n for n in (1, 2, 3)]


@pytest.mark.parametrize("why", ["closed by the bot", "too late", "forgotten", "unknown"])
async def test_a_session_that_is_over_cannot_be_resumed(why: str) -> None:
    clock = FakeClock()
    async with DiscordServer(clock=clock) as server, Curl(server) as bot:
        async with bot.socket(v="10") as socket:
            await socket.identify()
            ready = await socket.hear_event("READY")
            await socket.hang_up(1000 if why == "closed by the bot" else 4000)
        async with asyncio.timeout(LIMIT):
            while server.gateway.connections:
                await asyncio.sleep(0)
        if why == "too late":
            clock.shift(SESSION_SECONDS + 1)
        if why == "forgotten":
            await server.forget_sessions()
        async with bot.socket(v="10") as socket:
            await socket.hear()
            await socket.resume("0" * 32 if why == "unknown" else ready["d"]["session_id"], ready["s"])
            invalid = await socket.hear()
        assert (invalid["op"], invalid["d"]) == (9, False)


async def test_a_number_that_was_never_told_ends_the_session_with_4007() -> None:
    async with DiscordServer() as server, Curl(server) as bot:
        async with bot.socket(v="10") as socket:
            await socket.identify()
            ready = await socket.hear_event("READY")
            await socket.hang_up(4000)
        async with bot.socket(v="10") as socket:
            await socket.resume(ready["d"]["session_id"], 999)
            assert await socket.closed() == 4007
        assert not server.sessions.live


async def test_only_what_was_asked_for_is_told() -> None:
    async with DiscordServer() as server, Curl(server) as bot, bot.socket(v="10") as socket:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        await socket.identify(1 << 12)
        await socket.hear_event("READY")
        message = server.say(channel, ada, "in the server")
        server.react(message, ada, "🔥")
        server.say(ada, ada, "directly")
        await socket.hear_event("MESSAGE_CREATE")
        (session,) = server.sessions.live.values()
        assert [event["t"] for event in session.events] == ["READY", "MESSAGE_CREATE"]


async def test_what_happens_in_a_channel_the_bot_may_not_see_is_not_told() -> None:
    async with DiscordServer() as server, Curl(server) as bot, bot.socket(v="10") as socket:
        ada = server.user("ada")
        guild = server.guild("Club", ada)
        hidden, shown = server.channel(guild, "board"), server.channel(guild, "general")
        server.forbid(hidden, "VIEW_CHANNEL")
        await socket.identify()
        await socket.hear_event("READY")
        server.say(hidden, ada, "not for bots")
        message = server.say(shown, ada, "for everybody")
        assert (await socket.hear_event("MESSAGE_CREATE"))["d"]["id"] == message["id"]
