"""Discord's REST and CDN, by discord.py where it speaks, by plain calls where it would not dare."""

import hashlib
import io
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import discord
import pytest
from aiohttp import ClientError

from belino.testing import FakeClock, FakeUpload, make_jpeg, make_png
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import CDN, DiscordPace, cloudflare_ban, refusal, slow_down
from belino.testing.discord.sends import NONCE_SECONDS
from belino.testing.discord.shapes import LINK_SECONDS
from belino.testing.faults import Reset, Truncate
from testing.discord_listener import AGENT, Curl, Listener, aimed_at, listening

MIB = 1024 * 1024
MESSAGES = "POST /channels/{channel}/messages"
VOICE = {"id": 0, "filename": "voice.ogg", "duration_secs": 2.5, "waveform": b64encode(bytes(64)).decode()}


class Scene:
    """A server with Ada in it, a channel, and a plain bot."""

    def __init__(self, server: DiscordServer, clock: FakeClock, bot: Curl) -> None:
        self.server = server
        self.clock = clock
        self.bot = bot
        self.ada = server.user("ada")
        self.guild = server.guild("Club", self.ada)
        self.channel = server.channel(self.guild, "general")
        self.at = f"/channels/{self.channel['id']}"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    clock = FakeClock()
    async with DiscordServer(clock=clock) as server, Curl(server) as bot:
        yield Scene(server, clock, bot)


# With discord.py.


async def test_discord_py_sends_ten_files_with_text_and_gets_back_the_same_bytes() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        contents = [make_jpeg(40 + n, 30) for n in range(10)]
        async with listening(server) as client:
            place = client.get_channel(int(channel["id"]))
            assert isinstance(place, discord.TextChannel)
            files = [discord.File(io.BytesIO(content), f"{n}.jpg") for n, content in enumerate(contents)]
            sent = await place.send("all of them", files=files)
            assert [await attachment.read() for attachment in sent.attachments] == contents
        assert [one.sha256 for one in server.received] == [hashlib.sha256(c).hexdigest() for c in contents]
        assert [(a.width, a.content_type) for a in sent.attachments][3] == (43, "image/jpeg")
        assert server.credentials_leaked == 0


async def test_discord_py_replies_edits_reacts_reads_history_opens_a_thread_and_deletes() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        said = [server.say(channel, ada, str(n)) for n in range(5)]
        async with listening(server) as client:
            place = client.get_channel(int(channel["id"]))
            assert isinstance(place, discord.TextChannel)
            question = await place.fetch_message(int(said[0]["id"]))
            answer = await question.reply("an answer")
            assert answer.reference is not None and answer.reference.message_id == question.id
            await answer.edit(content="a better answer")
            await question.add_reaction("👍")
            assert [m.content async for m in place.history(after=question, limit=2)] == ["1", "2"]
            assert [m.content async for m in place.history(limit=2)] == ["a better answer", "4"]
            thread = await question.create_thread(name="More")
            assert thread.parent_id == place.id
            await thread.send("in the thread")
            await answer.delete()
            direct = await client.get_partial_messageable(int(server.dm(ada)["id"])).send("hello Ada")
        assert server.reactions[said[0]["id"]] == {"👍": [server.bot["id"]]}
        assert server.edited == [(str(answer.id), "a better answer")]
        assert str(answer.id) not in server.messages[channel["id"]]
        assert direct.content == "hello Ada"


async def test_discord_py_shows_files_in_cards_and_components_and_they_are_no_attachments_then() -> None:
    async with DiscordServer() as server:
        channel = server.channel(server.guild("Club", server.user("ada")), "general")
        picture = make_jpeg(40, 30)
        async with listening(server) as client:
            place = client.get_partial_messageable(int(channel["id"]))
            card = discord.Embed(title="Tides").set_image(url="attachment://a.jpg")
            both = [discord.File(io.BytesIO(picture), "a.jpg"), discord.File(io.BytesIO(picture), "b.jpg")]
            sent = await place.send(embed=card, files=both)
            assert [file.filename for file in sent.attachments] == ["b.jpg"]
            assert str(sent.embeds[0].image.url).startswith(f"{server.cdn.url}/attachments/")
            view = discord.ui.LayoutView().add_item(discord.ui.TextDisplay("Tides"))
            view.add_item(discord.ui.MediaGallery(discord.MediaGalleryItem("attachment://a.jpg")))
            shown = await place.send(view=view, file=discord.File(io.BytesIO(picture), "a.jpg"))
            with pytest.raises(discord.HTTPException) as refused:
                await place.send("and words", view=view)  # type: ignore[call-overload]
        gallery = shown.components[1]
        assert isinstance(gallery, discord.MediaGalleryComponent) and not shown.attachments
        assert str(gallery.items[0].media.attachment_id) in str(gallery.items[0].media.url)
        assert refused.value.code == 50035


async def test_discord_py_pins_clears_reactions_asks_in_polls_posts_in_forums_and_archives() -> None:
    async with DiscordServer() as server:
        club = server.guild("Club", server.user("ada"))
        room, forum = server.channel(club, "general"), server.channel(club, "help", 15)
        async with listening(server) as client:
            place, shelf = client.get_channel(int(room["id"])), client.get_channel(int(forum["id"]))
            assert isinstance(place, discord.TextChannel) and isinstance(shelf, discord.ForumChannel)
            said = await place.send("read this")
            await said.add_reaction("👍")
            await said.clear_reactions()
            assert (await client.next("raw_reaction_clear")).message_id == said.id
            await said.pin()
            assert [pin.id async for pin in place.pins()] == [said.id]
            poll = discord.Poll(question="When?", duration=timedelta(hours=1)).add_answer(text="Friday")
            asked = await place.send(poll=poll)
            assert asked.poll is not None and (await asked.poll.end()).is_finalised()
            post = await shelf.create_thread(name="Keys", content="My key does not fit")
            assert post.thread.id == post.message.id and post.thread.parent_id == shelf.id
            assert (await post.thread.edit(archived=True)).archived
            await post.thread.delete()
            roles = await place.guild.fetch_roles()
        assert server.reactions[str(said.id)] == {} and str(post.thread.id) not in server.channels
        assert [role.name for role in roles] == ["@everyone", "belino"]


async def test_discord_py_waits_when_it_is_limited_and_the_message_appears_once() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        async with listening(server) as client:
            server.fail(MESSAGES, slow_down(0.01))
            server.fail(MESSAGES, slow_down(0.01, "global"))
            await client.get_partial_messageable(int(server.dm(ada)["id"])).send("patience")
        assert server.calls[MESSAGES] == 3
        assert [message["content"] for message in server.sent] == ["patience"]


async def test_discord_py_registers_a_slash_command_and_answers_it() -> None:
    async with DiscordServer() as server:
        ada = server.user("ada")
        channel = server.channel(server.guild("Club", ada), "general")
        async with listening(server) as client:
            tree = discord.app_commands.CommandTree(client)

            @tree.command(name="ask", description="Ask something")
            async def ask(interaction: discord.Interaction, question: str) -> None:
                await interaction.response.defer()
                await interaction.followup.send(f"You asked: {question}")

            await tree.sync()
            server.command(channel, ada, "ask", question="why?")
            told = await client.next("message")
        assert (told.content, told.type) == ("You asked: why?", discord.MessageType.chat_input_command)
        assert [command["name"] for command in server.commands.values()] == ["ask"]


async def test_a_wrong_token_is_refused_at_the_first_call() -> None:
    async with DiscordServer() as server, aimed_at(server), Listener() as client:
        with pytest.raises(discord.LoginFailure):
            await client.login("wrong")


# What a message may be.


async def test_what_nobody_may_send_is_refused_with_its_code(scene: Scene) -> None:
    send, server, channel = scene.bot.send, scene.server, scene.channel

    async def code(body: Any, *files: tuple[str, bytes, str]) -> tuple[int, int]:
        scene.clock.shift(10)
        status, told, _ = await send(channel, body, *files)
        return status, told["code"]

    assert await code({"content": "  "}) == (400, 50006)
    assert await code({"content": "x" * 2001}) == (400, 50035)
    assert await code({"content": 7}) == (400, 50035)
    assert await code({"content": "x", "nonce": "n" * 26}) == (400, 50035)
    assert await code({"content": "x", "embeds": [{"title": "t"}] * 11}) == (400, 50035)
    assert await code({"embeds": [{"description": "x" * 4000}] * 2}) == (400, 50035)
    assert await code({"content": "x", "allowed_mentions": {"parse": ["all"]}}) == (400, 50035)
    assert await code({"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}}) == (400, 50035)
    assert await code({"content": "x", "message_reference": {"message_id": "1"}}) == (400, 50035)
    assert await code({"sticker_ids": ["1"]}) == (400, 50081)
    assert await code({}, *[(f"{n}.txt", b"x", "text/plain") for n in range(11)]) == (400, 50035)
    assert server.sent == []
    _, told, _ = await send(channel, {"content": "x", "message_reference": {"message_id": "1"}})
    assert told["errors"]["message_reference"]["_errors"][0]["code"] == "REPLIES_UNKNOWN_MESSAGE"
    lenient = {"content": "x", "message_reference": {"message_id": "1", "fail_if_not_exists": False}}
    assert (await send(channel, lenient))[0] == 200
    assert (await send(channel, {"content": "x" * 2000}))[0] == 200


async def test_places_and_messages_that_are_unknown_or_closed_are_refused_with_their_code(scene: Scene) -> None:
    server, refused = scene.server, scene.bot.refused
    text = {"content": "x"}
    theirs = server.say(scene.channel, scene.ada, "hers")
    assert await refused("POST", "/channels/1/messages", text) == (404, 10003)
    assert await refused("GET", f"{scene.at}/messages/1") == (404, 10008)
    assert await refused("PATCH", f"{scene.at}/messages/{theirs['id']}", text) == (403, 50005)
    assert await refused("PUT", f"{scene.at}/messages/{theirs['id']}/reactions/nonsense/@me") == (400, 10014)
    server.forbid(scene.channel, "SEND_MESSAGES")
    assert await refused("POST", f"{scene.at}/messages", text) == (403, 50013)
    server.forbid(scene.channel, "ATTACH_FILES")
    status, told, _ = await scene.bot.send(scene.channel, {}, ("a.txt", b"x", "text/plain"))
    assert (status, told["code"]) == (403, 50013)
    server.forbid(scene.channel, "VIEW_CHANNEL")
    assert await refused("GET", f"{scene.at}/messages") == (403, 50001)
    server.blocked.add(scene.ada["id"])
    assert await refused("POST", f"/channels/{server.dm(scene.ada)['id']}/messages", text) == (403, 50007)
    assert await refused("POST", "/users/@me/channels", {"recipient_id": "1"}) == (400, 50033)
    assert await refused("GET", "/nowhere") == (404, 0)
    assert await refused("DELETE", "/gateway/bot") == (405, 0)
    assert await refused("GET", "/users/@me", token="wrong") == (401, 0)
    assert await refused("POST", f"{scene.at}/messages", data=b"content=x") == (400, 50035)


async def test_a_file_may_weigh_what_the_servers_boosts_allow_and_a_request_25_mib(scene: Scene) -> None:
    server, send = scene.server, scene.bot.send
    boosted = server.channel(server.guild("Boosted", scene.ada, tier=2), "films")
    fits, heavy = bytes(10 * MIB), bytes(10 * MIB + 1)
    assert (await send(scene.channel, {}, ("a.bin", fits, "application/octet-stream")))[0] == 200
    status, told, _ = await send(scene.channel, {}, ("a.bin", heavy, "application/octet-stream"))
    assert (status, told["code"]) == (413, 40005)
    assert (await send(boosted, {}, ("a.bin", bytes(25_000_000), "application/octet-stream")))[0] == 200
    status, told, _ = await send(boosted, {}, ("a.bin", bytes(25 * MIB), "application/octet-stream"))
    assert (status, told["code"]) == (413, 40005)
    assert [len(_bytes(upload)) for upload in server.received] == [10 * MIB, 25_000_000]


async def test_a_voice_message_is_one_sound_with_its_length_and_waveform_and_nothing_else(scene: Scene) -> None:
    sound = ("voice.ogg", b"OggS" + bytes(100), "audio/ogg")

    async def code(body: Any, *files: tuple[str, bytes, str]) -> Any:
        scene.clock.shift(10)
        status, told, _ = await scene.bot.send(scene.channel, {"flags": 1 << 13, **body}, *files)
        return status if status == 200 else told["code"]

    assert await code({"content": "listen", "attachments": [VOICE]}, sound) == 50159
    assert await code({"attachments": [VOICE]}, ("a.png", make_png(9, 9), "image/png")) == 50160
    assert await code({"attachments": [VOICE]}, sound, sound) == 50160
    assert await code({"attachments": [{"id": 0}]}, sound) == 50161
    assert await code({"attachments": [VOICE | {"waveform": "no base64!"}]}, sound) == 50161
    assert await code({"attachments": [VOICE | {"waveform": b64encode(bytes(257)).decode()}]}, sound) == 50161
    assert await code({"attachments": [VOICE]}, sound) == 200
    (sent,) = scene.server.sent
    assert (sent["attachments"][0]["duration_secs"], sent["flags"]) == (2.5, 1 << 13)
    assert await scene.bot.refused("PATCH", f"{scene.at}/messages/{sent['id']}", {"content": "x"}) == (400, 50162)


async def test_a_nonce_that_is_enforced_makes_one_message_for_a_few_minutes(scene: Scene) -> None:
    body = {"content": "once", "nonce": "k3v9d0q2", "enforce_nonce": True}
    _, first, _ = await scene.bot.send(scene.channel, body)
    _, again, _ = await scene.bot.send(scene.channel, body | {"content": "other words"})
    assert (again["id"], again["content"], again["nonce"]) == (first["id"], "once", "k3v9d0q2")
    _, loose, _ = await scene.bot.send(scene.channel, body | {"enforce_nonce": False})
    assert loose["id"] != first["id"]
    scene.clock.shift(NONCE_SECONDS + 1)
    _, late, _ = await scene.bot.send(scene.channel, body)
    assert late["id"] not in (first["id"], loose["id"])
    _, kept, _ = await scene.bot.call("GET", f"{scene.at}/messages/{first['id']}")
    assert "nonce" not in kept


async def test_only_mentions_that_are_allowed_mention_anybody(scene: Scene) -> None:
    words = f"<@{scene.ada['id']}> look"
    _, told, _ = await scene.bot.send(scene.channel, {"content": words})
    assert [user["id"] for user in told["mentions"]] == [scene.ada["id"]]
    _, told, _ = await scene.bot.send(scene.channel, {"content": words, "allowed_mentions": {"parse": []}})
    assert told["mentions"] == []


async def test_an_edit_keeps_only_the_files_it_names(scene: Scene) -> None:
    files = [(f"{n}.txt", b"x", "text/plain") for n in range(3)]
    _, sent, _ = await scene.bot.send(scene.channel, {"content": "three"}, *files)
    kept = sent["attachments"][1]["id"]
    body = {"content": "one", "attachments": [{"id": kept}]}
    _, told, _ = await scene.bot.call("PATCH", f"{scene.at}/messages/{sent['id']}", body)
    assert [attachment["id"] for attachment in told["attachments"]] == [kept]
    assert told["edited_timestamp"]


async def test_history_comes_newest_first_before_after_and_around_an_id(scene: Scene) -> None:
    said = [scene.server.say(scene.channel, scene.ada, str(n))["id"] for n in range(9)]

    async def page(**query: Any) -> list[str]:
        scene.clock.shift(10)
        _, told, _ = await scene.bot.call("GET", f"{scene.at}/messages", params=query)
        return [message["content"] for message in told]

    assert await page(limit=2) == ["8", "7"]
    assert await page(limit=2, before=said[4]) == ["3", "2"]
    assert await page(limit=2, after=said[4]) == ["6", "5"]
    assert await page(limit=3, around=said[4]) == ["5", "4", "3"]
    assert len(await page()) == 9
    assert await scene.bot.refused("GET", f"{scene.at}/messages?limit=101") == (400, 50035)
    scene.server.forbid(scene.channel, "READ_MESSAGE_HISTORY")
    assert await page() == []


async def test_an_answer_tells_what_it_answers_while_that_exists(scene: Scene) -> None:
    picture = scene.server.say(scene.channel, scene.ada, "look", files=[make_png(20, 10)])
    reply = scene.server.say(scene.channel, scene.ada, "what is it?", reply_to=picture)
    assert reply["referenced_message"]["attachments"][0]["width"] == 20
    scene.server.delete(picture)
    _, told, _ = await scene.bot.call("GET", f"{scene.at}/messages/{reply['id']}")
    assert told["referenced_message"] is None


async def test_a_forward_keeps_its_snapshot_whatever_becomes_of_the_original(scene: Scene) -> None:
    original = scene.server.say(scene.channel, scene.ada, "the original", files=[b"%PDF-1.7"])
    forward = scene.server.say(scene.ada, scene.ada, forward=original)
    scene.server.delete(original)
    _, told, _ = await scene.bot.call("GET", f"/channels/{forward['channel_id']}/messages/{forward['id']}")
    (snapshot,) = told["message_snapshots"]
    assert snapshot["message"]["content"] == "the original" and "author" not in snapshot["message"]
    assert await scene.bot.get(snapshot["message"]["attachments"][0]["url"]) == (200, b"%PDF-1.7")


# Limits.


async def test_a_route_takes_so_many_calls_a_window_for_each_channel(scene: Scene) -> None:
    other = scene.server.channel(scene.guild, "other")
    answers = [await scene.bot.send(scene.channel, {"content": "x"}) for _ in range(6)]
    assert [status for status, _, _ in answers] == [200] * 5 + [429]
    assert [headers["X-RateLimit-Remaining"] for _, _, headers in answers] == ["4", "3", "2", "1", "0", "0"]
    _, told, headers = answers[-1]
    assert (told["retry_after"], told["global"], headers["Retry-After"]) == (5.0, False, "5")
    assert (headers["X-RateLimit-Scope"], headers["X-RateLimit-Limit"], headers["Via"]) == ("user", "5", "1.1 google")
    assert (await scene.bot.send(other, {"content": "x"}))[0] == 200
    scene.clock.shift(5.0)
    assert (await scene.bot.send(scene.channel, {"content": "x"}))[0] == 200


async def test_fifty_calls_a_second_are_enough_for_everybody(scene: Scene) -> None:
    other = (100, 1.0)
    async with DiscordServer(clock=scene.clock, pace=DiscordPace(other=other)) as server, Curl(server) as bot:
        answers = [await bot.call("GET", "/users/@me") for _ in range(51)]
    assert [status for status, _, _ in answers] == [200] * 50 + [429]
    _, told, headers = answers[-1]
    assert told["global"] is True and headers["X-RateLimit-Global"] == "true"


async def test_who_is_refused_too_often_is_shut_out_by_a_page_without_json() -> None:
    async with DiscordServer(pace=DiscordPace(invalid_per_ten_minutes=3)) as server, Curl(server) as bot:
        for _ in range(3):
            assert await bot.refused("GET", "/users/@me", token="wrong") == (401, 0)
        status, told, headers = await bot.call("GET", "/users/@me")
    assert status == 429 and "<html>" in told and "Via" not in headers


# Files.


async def test_a_link_lives_a_day_and_a_fetched_message_has_a_new_one(scene: Scene) -> None:
    said = scene.server.say(scene.channel, scene.ada, files=[FakeUpload(content=b"the plan", name="plan (1).txt")])
    (old,) = said["attachments"]
    assert old["filename"] == "plan_1_.txt"
    assert await scene.bot.get(old["url"]) == (200, b"the plan")
    scene.clock.shift(LINK_SECONDS + 1)
    assert (await scene.bot.get(old["url"]))[0] == 404
    _, told, _ = await scene.bot.call("GET", f"{scene.at}/messages/{said['id']}")
    assert await scene.bot.get(told["attachments"][0]["url"]) == (200, b"the plan")
    foreign = "https://example.org/x.png"
    links = {"attachment_urls": [old["url"], foreign]}
    _, told, _ = await scene.bot.call("POST", "/attachments/refresh-urls", links)
    fresh, unknown = told["refreshed_urls"]
    assert fresh["original"] == old["url"] and unknown["refreshed"] is None
    assert await scene.bot.get(fresh["refreshed"]) == (200, b"the plan")
    assert (await scene.bot.get(fresh["refreshed"].replace("hm=", "hm=0")))[0] == 404


async def test_stickers_and_emojis_have_links_that_are_not_signed(scene: Scene) -> None:
    sticker = scene.server.sticker("wave", b"lottie", form=3)
    written = scene.server.emoji("yay", b"webp")
    number = written.rpartition(":")[2].rstrip(">")
    assert await scene.bot.get(f"{scene.server.cdn.url}/stickers/{sticker['id']}.json") == (200, b"lottie")
    assert await scene.bot.get(f"{scene.server.cdn.url}/emojis/{number}.webp") == (200, b"webp")


async def test_credentials_that_reach_the_cdn_are_counted(scene: Scene) -> None:
    said = scene.server.say(scene.channel, scene.ada, files=[b"x"])
    await scene.bot.get(said["attachments"][0]["url"], Authorization="Bot secret")
    assert scene.server.credentials_leaked == 1


# Bad days.


async def test_a_route_fails_as_often_as_it_is_told_to(scene: Scene) -> None:
    scene.server.fail(MESSAGES, refusal(500, 0, "500: Internal Server Error"))
    scene.server.fail(MESSAGES, cloudflare_ban(7))
    assert (await scene.bot.send(scene.channel, {"content": "x"}))[0] == 500
    status, _, headers = await scene.bot.send(scene.channel, {"content": "x"})
    assert (status, headers["Retry-After"]) == (429, "7")
    assert scene.server.sent == []
    assert (await scene.bot.send(scene.channel, {"content": "x"}))[0] == 200
    assert {call.agent for call in scene.server.requests} == {AGENT}


async def test_a_line_that_breaks_after_the_message_leaves_the_nonce_to_find_it(scene: Scene) -> None:
    body = {"content": "once", "nonce": "abc", "enforce_nonce": True}
    scene.server.fail(MESSAGES, Reset(done=True))
    with pytest.raises(ClientError):
        await scene.bot.send(scene.channel, body)
    assert (await scene.bot.send(scene.channel, body))[1]["id"] == scene.server.sent[0]["id"]
    assert len(scene.server.sent) == 1


async def test_a_download_can_break_off(scene: Scene) -> None:
    said = scene.server.say(scene.channel, scene.ada, files=[bytes(5000)])
    scene.server.fail(CDN, Truncate(at=1000))
    with pytest.raises(ClientError):
        await scene.bot.get(said["attachments"][0]["url"])
    assert (await scene.bot.get(said["attachments"][0]["url"]))[0] == 200


# Commands and the application.


async def test_a_command_must_be_answered_within_three_seconds_and_once(scene: Scene) -> None:
    def use() -> str:
        asked = scene.server.command(scene.channel, scene.ada, "ask", question="why?")
        return f"/interactions/{asked['id']}/{asked['token']}/callback"

    answer = {"type": 4, "data": {"content": "because"}}
    path = use()
    assert (await scene.bot.call("POST", path, answer))[0] == 204
    assert await scene.bot.refused("POST", path, answer) == (400, 40060)
    late = use()
    scene.clock.shift(3.5)
    assert await scene.bot.refused("POST", late, answer) == (404, 10062)
    (sent,) = scene.server.sent
    assert (sent["content"], sent["interaction_metadata"]["user"]["id"]) == ("because", scene.ada["id"])


async def test_the_application_says_which_privileged_intents_are_on(scene: Scene) -> None:
    _, told, _ = await scene.bot.call("GET", "/applications/@me")
    assert told["flags"] & 1 << 19
    scene.server.allow(message_content=False)
    _, told, _ = await scene.bot.call("GET", "/applications/@me")
    assert not told["flags"] & 1 << 19
    scene.server.say(scene.channel, scene.ada, "unheard")
    _, history, _ = await scene.bot.call("GET", f"{scene.at}/messages")
    assert [message["content"] for message in history] == [""]


async def test_the_gateway_is_found_by_asking(scene: Scene) -> None:
    _, told, _ = await scene.bot.call("GET", "/gateway/bot")
    assert (told["url"], told["shards"], told["session_start_limit"]["remaining"]) == (
        scene.server.gateway_url,
        1,
        1000,
    )
    _, guilds, _ = await scene.bot.call("GET", "/users/@me/guilds")
    assert [guild["name"] for guild in guilds] == ["Club"]


def _bytes(upload: FakeUpload) -> bytes:
    return upload.content if isinstance(upload.content, bytes) else upload.content()
