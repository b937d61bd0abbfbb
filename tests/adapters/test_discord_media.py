"""The bytes of Discord's files: by fresh links, told to nobody else, gone when they are gone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.discord_harness import Bot, place
from adapters.harness import until
from belino.adapters.discord.client import DiscordClient
from belino.adapters.discord.media import DiscordDownload
from belino.domain.errors import AdapterError, MediaExpired, MediaTooLarge
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Message
from belino.net.client import Client
from belino.net.redact import Secret
from belino.testing import FakeClock, make_gif, make_jpeg, make_png
from belino.testing.discord import TOKEN, DiscordServer
from belino.testing.discord.request import CDN, DiscordPace, refusal
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer, Truncate
from belino.testing.file_server import FakeUpload

BotAt = Callable[..., Bot]
MESSAGE, REFRESH = "GET /channels/{channel}/messages/{message}", "POST /attachments/refresh-urls"
CHANNEL, HISTORY = "GET /channels/{channel}", "GET /channels/{channel}/messages"
PICTURE = make_jpeg(640, 480)


@pytest.fixture
def ada(discord: DiscordServer) -> Json:
    return discord.user("ada")


@pytest.fixture
def room(discord: DiscordServer, ada: Json) -> Json:
    return discord.channel(discord.guild("Club", ada), "harbour")


async def heard(bot: Bot, discord: DiscordServer, where: Json, who: Json, text: str = "", **fields: object) -> Message:
    """What somebody says, as it arrives."""
    async with bot.listening():
        discord.say(where, who, text, **fields)
        await until(lambda: bot.taken)
    arrival = bot.taken[-1][0]
    assert isinstance(arrival, Message)
    return arrival


async def test_a_file_is_fetched_by_a_link_of_its_message_and_the_cdn_is_told_nothing(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    said = await heard(discord_bot, discord, room, ada, files=[PICTURE])
    assert discord.calls[CDN] == 0
    assert await discord_bot.fetch(said.media[0]) == PICTURE
    assert (discord.calls[MESSAGE], discord.calls[CDN], discord.credentials_leaked) == (1, 1, 0)


async def test_files_whose_links_discord_makes_us_wait_for_come_all_the_same() -> None:
    pace = DiscordPace(routes={MESSAGE: (2, 0.2)})
    async with DiscordServer(pace=pace) as server:
        ada, bot, pictures = server.user("ada"), Bot(server), [make_jpeg(64, 48 + number) for number in range(5)]
        said = await heard(bot, server, ada, ada, files=pictures)
        server.fail(MESSAGE, CannedAnswer(status=502, body=b"<html>Bad Gateway</html>"))
        assert [await bot.fetch(ref) for ref in said.media] == pictures
        await bot.client.close()
        assert server.calls[MESSAGE] == 6


async def test_three_days_later_the_link_is_a_fresh_one() -> None:
    clock = FakeClock()
    async with DiscordServer(clock=clock) as server:
        ada, bot = server.user("ada"), Bot(server)
        said = await heard(bot, server, ada, ada, files=[PICTURE])
        await clock.advance(3 * 24 * 3600)
        assert await bot.fetch(said.media[0]) == PICTURE
        await bot.client.close()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_link_that_expires_under_way_is_asked_for_again(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json, status: int
) -> None:
    said = await heard(discord_bot, discord, room, ada, files=[PICTURE])
    discord.fail(CDN, CannedAnswer(status=status, body=b"This content is no longer available."))
    assert await discord_bot.fetch(said.media[0]) == PICTURE


async def test_a_link_that_expires_at_once_is_asked_for_again_once(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    said = await heard(discord_bot, discord, room, ada, files=[PICTURE])
    discord.fail(CDN, CannedAnswer(status=404, body=b"gone"), times=2)
    with pytest.raises(MediaExpired):
        await discord_bot.fetch(said.media[0])


async def test_a_download_that_breaks_off_is_continued(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    content = bytes(range(256)) * 4096
    said = await heard(discord_bot, discord, room, ada, files=[FakeUpload(content=content, name="a.bin")])
    discord.fail(CDN, Truncate(at=300_000))
    assert await discord_bot.fetch(said.media[0]) == content
    assert discord.bytes_served == len(content)


async def test_files_in_threads_forwards_and_quotes_are_found_where_they_are(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    shown = discord.say(room, ada, "look", files=[PICTURE])
    thread = discord.thread(room, ada, "talk")
    async with discord_bot.listening():
        discord.say(thread, ada, "in a thread", files=[make_png(8, 8)])
        discord.say(ada, ada, forward=shown)
        discord.say(room, ada, "this one?", reply_to=shown)
        await until(lambda: len(discord_bot.taken) == 3)
    inside, forward, reply = (arrival for arrival, _ in discord_bot.taken)
    assert isinstance(inside, Message) and isinstance(forward, Message) and isinstance(reply, Message)
    assert inside.conversation == place(room, thread) and forward.forward and reply.quote
    assert await discord_bot.fetch(inside.media[0]) == make_png(8, 8)
    assert await discord_bot.fetch(forward.forward.media[0]) == PICTURE
    assert await discord_bot.fetch(reply.quote.media[0]) == PICTURE


async def test_files_that_only_components_and_cards_show_are_found_in_their_message(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    gallery = {"type": 12, "items": [{"media": {"url": "attachment://image.jpg"}}]}
    card = {"type": "rich", "image": {"url": "attachment://image.png"}}
    files = [PICTURE, make_png(8, 8)]
    said = await heard(discord_bot, discord, room, ada, files=files, components=[gallery], embeds=[card])
    assert [await discord_bot.fetch(ref) for ref in said.media] == files


async def test_stickers_come_from_the_cdn_by_their_id(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    forms = {1: make_png(32, 32), 2: make_png(16, 16), 3: b'{"v": "5.5"}', 4: make_gif(8, 8)}
    made = [discord.sticker(f"s{form}", content, form=form) for form, content in forms.items()]
    said = await heard(discord_bot, discord, room, ada, stickers=made)
    assert [await discord_bot.fetch(ref) for ref in said.media] == list(forms.values())
    assert discord.calls[MESSAGE] == 0


async def test_the_file_of_a_command_is_fetched_by_a_renewed_link(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    channel = discord.dm(ada)
    kept = discord.cdn.put(channel["id"], discord.ids.next(), FakeUpload(content=PICTURE, name="harbour.jpg"))
    ref = replace(REF, locator={"path": f"attachments/{channel['id']}/{kept['id']}/harbour.jpg"})
    assert await discord_bot.fetch(ref) == PICTURE
    assert discord.calls[REFRESH] == 1
    with pytest.raises(MediaExpired):
        await discord_bot.fetch(replace(REF, locator={"path": "attachments/1/2/gone.jpg"}))


async def test_the_file_of_a_command_is_had_where_links_are_not_renewed(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    ref = (await heard(discord_bot, discord, room, ada, files=[PICTURE])).media[0]
    discord.cdn.put_plain("/ephemeral-attachments/1/2/p.jpg", PICTURE)
    discord.fail(REFRESH, refusal(404, 0, "404: Not Found"))
    assert await discord_bot.fetch(replace(ref, locator={"path": "ephemeral-attachments/1/2/p.jpg"})) == PICTURE


async def test_what_was_deleted_or_taken_out_of_its_message_is_gone(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    async with discord_bot.listening():
        deleted = discord.say(room, ada, files=[PICTURE])
        emptied = discord.say(room, ada, "text", files=[PICTURE])
        await until(lambda: len(discord_bot.taken) == 2)
    discord.delete(deleted)
    discord.edit(emptied, files=[])
    for arrival, _ in discord_bot.taken[:2]:
        assert isinstance(arrival, Message)
        with pytest.raises(MediaExpired, match="ask the sender"):
            await discord_bot.fetch(arrival.media[0])
    assert discord.bytes_served == 0


async def test_a_channel_the_bot_no_longer_sees_says_which_permission_is_missing(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    said = await heard(discord_bot, discord, room, ada, files=[PICTURE])
    discord.forbid(room, "READ_MESSAGE_HISTORY")
    with pytest.raises(MediaExpired, match="Read Message History"):
        await discord_bot.fetch(said.media[0])


async def test_a_file_that_is_too_large_by_its_own_word_is_refused_without_a_call(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    with pytest.raises(MediaTooLarge):
        await discord_bot.fetch(replace(REF, size=10**12))
    assert not discord.calls


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/a.png", "http://cdn.discordapp.com/a.png", "https://cdn.discordapp.com.evil.example/a"],
)
def test_a_link_of_the_real_discord_leads_to_its_own_servers(url: str) -> None:
    client = DiscordClient(Client(), FakeClock(), api_url="https://x", token=Secret("T", "abc"))
    download = DiscordDownload(client, FakeClock(), REF, limit=1, cdn_url="https://x", official=True)
    with pytest.raises(AdapterError, match="outside its own servers"):
        download._checked(url)


async def test_a_channel_is_asked_for_once_and_its_messages_come_under_their_ids(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    said = [discord.say(room, ada, f"message {number}", files=[PICTURE]) for number in range(60)]
    own = discord.say(room, discord.bot, "I said that")
    async with discord_bot.listening():
        found = await discord_bot.adapter.history(place(room), limit=50)
        earlier = await discord_bot.adapter.history(place(room), before=said[5]["id"], limit=50)
    assert [message.id for message in found] == [message["id"] for message in said[11:]] + [own["id"]]
    assert found[-1].author.is_agent and not found[0].author.is_agent
    assert [message.text for message in earlier] == [f"message {number}" for number in range(5)]
    assert await discord_bot.fetch(found[0].media[0]) == PICTURE
    assert discord.calls[HISTORY] == 2


async def test_a_thread_comes_with_the_message_it_began_at_in_one_call(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    root = discord.say(room, ada, "the beginning", files=[PICTURE])
    thread = discord.thread(room, ada, "talk", message=root)
    for number in range(5):
        discord.say(thread, ada, f"reply {number}")
    async with discord_bot.listening():
        found = await discord_bot.adapter.thread(place(room, thread))
    assert [message.text for message in found] == ["the beginning", *(f"reply {number}" for number in range(5))]
    assert (found[0].id, found[0].conversation) == (root["id"], place(room))
    assert {message.conversation for message in found[1:]} == {place(room, thread)}
    assert (discord.calls[HISTORY], discord.calls[MESSAGE], discord.calls[CHANNEL]) == (1, 0, 0)


async def test_a_thread_of_six_hundred_replies_costs_two_calls(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    root = discord.say(room, ada, "the beginning")
    thread = discord.thread(room, ada, "talk", message=root)
    for number in range(600):
        discord.compose(discord.channels[thread["id"]], ada, f"reply {number}")
    async with discord_bot.listening():
        found = await discord_bot.adapter.thread(place(room, thread))
    assert [message.text for message in found] == ["the beginning", *(f"reply {number}" for number in range(500, 600))]
    assert (discord.calls[HISTORY], discord.calls[MESSAGE]) == (1, 1)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_long_post_in_a_forum_begins_with_its_question(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json, is_known: bool
) -> None:
    forum = discord.channel(discord.guilds[room["guild_id"]], "help", 15)
    post = discord.post(forum, ada, "Keys", "My key does not fit")
    for number in range(150):
        discord.compose(discord.channels[post["channel_id"]], ada, f"reply {number}")
    async with discord_bot.listening():
        thread = {"id": post["channel_id"]}
        await until(lambda: forum["id"] in discord_bot.adapter._guilds.channels)
        assert await discord_bot.adapter.history(place(forum)) == ()
        if not is_known:
            del discord_bot.adapter._guilds.channels[forum["id"]]
        found = await discord_bot.adapter.thread(place(forum, thread))
    assert (found[0].text, len(found)) == ("My key does not fit", 101)
    assert {message.conversation for message in found} == {place(forum, thread)}
    assert (discord.calls[HISTORY], discord.calls[MESSAGE]) == (1, 1 if is_known else 2)


async def test_a_thread_of_another_channel_is_not_shown(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    other = discord.channel(discord.guilds[room["guild_id"]], "private")
    thread = discord.thread(other, ada, "secrets")
    said = discord.say(room, ada, "no thread at all")
    async with discord_bot.listening():
        assert await discord_bot.adapter.thread(place(room, thread)) == ()
        for _ in range(2):
            assert await discord_bot.adapter.thread(place(room, said)) == ()
        assert await discord_bot.adapter.thread(place(room, other)) == ()
    assert HISTORY not in discord.calls and discord.calls[CHANNEL] == 1


async def test_nothing_fetched_or_refused_says_the_token(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    said = await heard(discord_bot, discord, room, ada, files=[PICTURE])
    discord.fail(MESSAGE, refusal(404, 10008, f"Unknown Message {TOKEN}"))
    with pytest.raises(MediaExpired) as expired:
        await discord_bot.fetch(said.media[0])
    assert TOKEN not in str(expired.value) + str(expired.value.__cause__)


REF = MediaRef(
    platform="discord",
    account="default",
    channel_id="1",
    message_id="2",
    item="3",
    kind=MediaKind.IMAGE,
    mime="image/jpeg",
    created=FakeClock().now(),
    locator={"channel": "1", "message": "2", "attachment": "3"},
)
