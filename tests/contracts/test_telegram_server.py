"""The Telegram we test against keeps the rules Telegram documents."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from belino.testing import FakeClock, FakeUpload, TelegramPace, TelegramServer, make_jpeg, make_pdf, make_webp, settle
from belino.testing.faults import CannedAnswer, Changed, Endless, Hang, NoLength, Reset, Trickle, Truncate, WrongLength
from belino.testing.platform_server import Loopback

Told = dict[str, Any]
LIMIT = 60.0


class Bot:
    """A bot that is as plain as curl."""

    def __init__(self, server: TelegramServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def call(self, method: str, **fields: Any) -> Told:
        async with asyncio.timeout(LIMIT):
            where = f"{self.server.url}/bot{self.server.token}/{method}"
            async with self.session.post(where, json=fields) as answer:
                told: Told = await answer.json()
                assert told["ok"] is (answer.status == 200)
                return told

    async def result(self, method: str, **fields: Any) -> Any:
        told = await self.call(method, **fields)
        assert told["ok"], told
        return told["result"]

    async def refused(self, method: str, **fields: Any) -> tuple[int, str]:
        told = await self.call(method, **fields)
        assert not told["ok"], told
        return told["error_code"], told["description"]

    async def link(self, file_id: str) -> str:
        file = await self.result("getFile", file_id=file_id)
        return f"{self.server.url}/file/bot{self.server.token}/{file['file_path']}"

    async def get(self, url: str, **headers: str) -> tuple[int, bytes, Any]:
        async with asyncio.timeout(LIMIT), self.session.get(url, headers=headers) as answer:
            return answer.status, await answer.read(), answer.headers


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(clock=FakeClock()) as server:
        yield server


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[Bot]:
    async with aiohttp.ClientSession() as session:
        yield Bot(server, session)


async def polling(server: TelegramServer, count: int) -> None:
    """Until so many polls have reached the server and wait."""
    async with asyncio.timeout(LIMIT):
        while server.calls["getUpdates"] < count:
            await asyncio.sleep(0)
    await settle()


def clock_of(server: TelegramServer) -> FakeClock:
    assert isinstance(server.clock, FakeClock)
    return server.clock


async def test_an_update_comes_again_until_a_higher_offset_confirms_it(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    server.say(ana, ana, "one")
    server.say(ana, ana, "two")
    first = await bot.result("getUpdates")
    assert [update["message"]["text"] for update in first] == ["one", "two"]
    assert await bot.result("getUpdates", offset=first[0]["update_id"]) == first
    assert await bot.result("getUpdates", offset=first[1]["update_id"]) == first[1:]
    assert await bot.result("getUpdates", offset=first[1]["update_id"] + 1) == []
    assert await bot.result("getUpdates") == []
    assert server.updates.confirmed == 2


async def test_a_limit_and_a_negative_offset_are_kept(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    for number in range(5):
        server.say(ana, ana, str(number))
    assert len(await bot.result("getUpdates", limit=2)) == 2
    assert len(await bot.result("getUpdates", limit=1000)) == 5
    (last,) = await bot.result("getUpdates", offset=-1)
    assert last["message"]["text"] == "4"
    assert await bot.result("getUpdates") == [last]


async def test_updates_are_forgotten_after_a_day(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    server.say(ana, ana, "yesterday")
    clock_of(server).shift(24 * 3600 + 1)
    assert await bot.result("getUpdates") == []


async def test_a_long_poll_ends_with_a_message_or_with_its_time(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(bot.result("getUpdates", timeout=30))
        await polling(server, 1)
        assert not waiting.done()
        server.say(ana, ana, "hello")
    (update,) = waiting.result()
    async with asyncio.TaskGroup() as group:
        empty = group.create_task(bot.result("getUpdates", timeout=30, offset=update["update_id"] + 1))
        await polling(server, 2)
        await clock_of(server).advance(31)
    assert empty.result() == []


async def test_a_second_poller_ends_the_first(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bot.refused("getUpdates", timeout=30))
        await polling(server, 1)
        second = group.create_task(bot.result("getUpdates", timeout=30))
        code, text = await first
        server.say(ana, ana, "hello")
    assert code == 409
    assert text.startswith("Conflict: terminated by other getUpdates request; make sure that only one bot instance")
    assert len(second.result()) == 1


async def test_only_the_kinds_asked_for_come_and_reactions_must_be_asked_for(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    said = server.say(ana, ana, "hello")
    server.react(said, ana, "👍")
    (update,) = await bot.result("getUpdates")
    assert "message" in update
    await bot.result("getUpdates", offset=update["update_id"] + 1, allowed_updates=["message_reaction"])
    server.say(ana, ana, "unwanted")
    server.react(said, ana, "🎉", before=("👍",))
    (update,) = await bot.result("getUpdates")  # not given: the previous setting holds
    assert update["message_reaction"]["new_reaction"] == [{"type": "emoji", "emoji": "🎉"}]


async def test_a_webhook_shuts_polling_out_and_carries_the_secret(server: TelegramServer, bot: Bot) -> None:
    seen: list[tuple[str | None, Told]] = []
    statuses = [500, 200, 200]
    enough = asyncio.Event()

    async def take(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-Telegram-Bot-Api-Secret-Token"), await request.json()))
        if len(seen) == 3:
            enough.set()
        return web.Response(status=statuses[len(seen) - 1])

    app = web.Application()
    app.router.add_post("/hook", take)
    async with Loopback(app) as loopback:
        await bot.result("setWebhook", url=f"{loopback.urls[0]}/hook", secret_token="s3cret_-")
        assert await bot.refused("getUpdates") == (
            409,
            "Conflict: can't use getUpdates method while webhook is active; "
            "use deleteWebhook to delete the webhook first",
        )
        ana = server.user("Ana")
        server.say(ana, ana, "one")
        server.say(ana, ana, "two")
        async with asyncio.timeout(LIMIT):
            while not server.updates.webhook.deliveries:
                await asyncio.sleep(0)
            info = await bot.result("getWebhookInfo")
            await clock_of(server).advance(2)
            await enough.wait()
    assert info["last_error_message"] == "Wrong response from the webhook: 500 Internal Server Error"
    assert [(secret, told["message"]["text"]) for secret, told in seen] == [
        ("s3cret_-", "one"),
        ("s3cret_-", "one"),
        ("s3cret_-", "two"),
    ]
    assert await bot.result("deleteWebhook")
    assert await bot.result("getUpdates", offset=-1) is not None


async def test_a_webhook_ends_a_poll_that_waits_and_is_checked(server: TelegramServer, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(bot.refused("getUpdates", timeout=30))
        await polling(server, 1)
        await bot.result("setWebhook", url="https://example.test/hook")
    assert waiting.result() == (409, "Conflict: terminated by setWebhook request")
    await bot.result("deleteWebhook")
    code, text = await bot.refused("setWebhook", url="http://example.test/hook")
    assert (code, text) == (400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
    assert (await bot.refused("setWebhook", url="https://example.test", secret_token="a b"))[0] == 400


async def test_a_token_that_is_none_and_a_method_that_is_none(server: TelegramServer, bot: Bot) -> None:
    for token, code in (("4242:wrong", 401), ("nonsense", 404)):
        status, _, _ = await bot.get(f"{server.url}/bot{token}/getMe")
        assert status == code
    assert await bot.refused("getNothing") == (404, "Not Found: method not found")
    assert (await bot.result("GETME"))["username"] == "belino_bot"


async def test_calls_may_be_queries_forms_and_uploads(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    where = f"{server.url}/bot{server.token}"
    async with bot.session.get(f"{where}/sendMessage", params={"chat_id": ana["id"], "text": "by query"}) as answer:
        assert (await answer.json())["ok"]
    async with bot.session.post(f"{where}/sendMessage", data={"chat_id": str(ana["id"]), "text": "by form"}) as answer:
        assert (await answer.json())["ok"]
    form = aiohttp.FormData({"chat_id": str(ana["id"]), "caption": "look"})
    form.add_field("photo", make_jpeg(40, 30), filename="a.jpg", content_type="image/jpeg")
    async with bot.session.post(f"{where}/sendPhoto", data=form) as answer:
        assert (await answer.json())["ok"]
    assert [message.get("text") or message["caption"] for message in server.sent] == ["by query", "by form", "look"]


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"chat_id": 1, "text": "x"}, 400, "Bad Request: chat not found"),
        ({"text": "x"}, 400, "Bad Request: chat_id is empty"),
        ({"chat_id": 100_001, "text": " \n"}, 400, "Bad Request: message text is empty"),
        ({"chat_id": 100_001, "text": "x" * 4097}, 400, "Bad Request: message is too long"),
        (
            {"chat_id": 100_001, "text": "x", "reply_parameters": {"message_id": 99}},
            400,
            "Bad Request: message to be replied not found",
        ),
        ({"chat_id": 100_001, "text": "x", "message_thread_id": 7}, 400, "Bad Request: message thread not found"),
        ({"chat_id": 100_002, "text": "x"}, 403, "Forbidden: bot was blocked by the user"),
        ({"chat_id": -1_001_000_000_001, "text": "x"}, 403, "Forbidden: bot was kicked from the supergroup chat"),
    ],
)
async def test_what_cannot_be_sent_is_refused_in_telegrams_words(
    server: TelegramServer, bot: Bot, fields: Told, code: int, text: str
) -> None:
    server.user("Ana")
    server.block(server.user("Bo"))
    server.kick(server.group("Left"))
    assert await bot.refused("sendMessage", **fields) == (code, text)
    assert not server.sent


async def test_markup_that_does_not_close_is_refused(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    code, text = await bot.refused("sendMessage", chat_id=ana["id"], text="<b>bold", parse_mode="HTML")
    assert code == 400
    assert text.startswith("Bad Request: can't parse entities: ")
    sent = await bot.result("sendMessage", chat_id=ana["id"], text="<b>a</b> &lt; b", parse_mode="HTML")
    assert sent["text"] == "a < b"


async def test_a_group_that_became_a_supergroup_tells_its_new_id(server: TelegramServer, bot: Bot) -> None:
    old = server.group("Club", kind="group")
    new = server.migrate(old)
    told = await bot.call("sendMessage", chat_id=old["id"], text="x")
    assert told["parameters"] == {"migrate_to_chat_id": new["id"]}
    updates = await bot.result("getUpdates")
    assert [update["message"].get("migrate_to_chat_id") for update in updates] == [new["id"], None]


async def test_a_group_takes_twenty_messages_a_minute(bot: Bot, server: TelegramServer) -> None:
    group = server.group("Busy")
    for _ in range(20):
        await bot.result("sendMessage", chat_id=group["id"], text="x")
        clock_of(server).shift(1.5)
    told = await bot.call("sendMessage", chat_id=group["id"], text="x")
    assert told["error_code"] == 429
    wait = told["parameters"]["retry_after"]
    assert told["description"] == f"Too Many Requests: retry after {wait}"
    assert wait == 30
    clock_of(server).shift(wait)
    assert await bot.result("sendMessage", chat_id=group["id"], text="x")


async def test_a_burst_to_one_chat_is_slowed_down() -> None:
    async with (
        TelegramServer(clock=FakeClock(), pace=TelegramPace(chat_burst=2)) as server,
        aiohttp.ClientSession() as session,
    ):
        bot, ana = Bot(server, session), server.user("Ana")
        for _ in range(2):
            await bot.result("sendMessage", chat_id=ana["id"], text="x")
        told = await bot.call("sendMessage", chat_id=ana["id"], text="x")
        assert told["parameters"] == {"retry_after": 2}


async def test_a_photo_comes_in_sizes_and_the_last_is_the_original(server: TelegramServer, bot: Bot) -> None:
    ana, picture = server.user("Ana"), make_jpeg(1300, 900)
    sizes = server.say(ana, ana, photo=picture, caption="Look @belino_bot")["photo"]
    assert [size["width"] for size in sizes] == [90, 320, 800, 1280, 1300]
    assert len({size["file_unique_id"] for size in sizes}) == 5
    status, content, headers = await bot.get(await bot.link(sizes[-1]["file_id"]))
    assert (status, content) == (200, picture)
    assert headers["Content-Length"] == str(len(picture))
    assert server.bytes_served == len(picture)
    assert server.calls["getFile"] == server.calls["file"] == 1


async def test_every_kind_has_the_fields_telegram_gives_it(server: TelegramServer) -> None:
    ana, made = server.user("Ana"), b"bytes"
    said = server.say(ana, ana, document=FakeUpload(content=make_pdf(), name="plan.pdf", mime="application/pdf"))
    assert said["document"]["file_name"] == "plan.pdf"
    assert server.say(ana, ana, voice=made)["voice"].keys() >= {"duration", "mime_type", "file_size"}
    assert server.say(ana, ana, video_note=made)["video_note"]["length"] == 640
    assert server.say(ana, ana, sticker=make_webp(512, 512))["sticker"]["is_animated"] is False
    moving = server.say(ana, ana, animation=made)
    assert moving["document"] == moving["animation"]
    assert server.say(ana, ana, audio=made)["audio"]["mime_type"] == "audio/mpeg"
    assert "thumbnail" in server.say(ana, ana, video=made)["video"]
    place = {"latitude": 1.0, "longitude": 2.0}
    assert server.say(ana, ana, location=place)["location"] == place


async def test_entities_count_as_utf_16_does(server: TelegramServer) -> None:
    ana = server.user("Ana")
    said = server.say(ana, ana, "😀 @belino_bot /start")
    assert said["entities"] == [
        {"offset": 3, "length": 11, "type": "mention"},
        {"offset": 15, "length": 6, "type": "bot_command"},
    ]


async def test_a_reply_repeats_what_it_answers_but_no_deeper(server: TelegramServer) -> None:
    ana, club = server.user("Ana"), server.group("Club", forum=True)
    first = server.say(club, ana, "one", topic=5)
    second = server.say(club, ana, "two", reply_to=first, quote="on", topic=5)
    third = server.say(club, ana, "three", reply_to=second, album="a1")
    assert third["reply_to_message"]["text"] == "two"
    assert "reply_to_message" not in third["reply_to_message"]
    assert second["quote"] == {"text": "on", "position": 0, "is_manual": True}
    assert (second["message_thread_id"], third["media_group_id"]) == (5, "a1")


async def test_privacy_mode_hides_what_is_not_meant_for_the_bot(server: TelegramServer, bot: Bot) -> None:
    server.hears_all = False
    ana, club = server.user("Ana"), server.group("Club")
    server.say(club, ana, "between us")
    server.say(club, ana, "hello @belino_bot")
    server.say(club, ana, "/help")
    updates = await bot.result("getUpdates")
    assert [update["message"]["text"] for update in updates] == ["hello @belino_bot", "/help"]
    assert (await bot.result("getMe"))["can_read_all_group_messages"] is False


async def test_edits_posts_and_business_messages_are_updates_of_their_own(server: TelegramServer, bot: Bot) -> None:
    ana, news = server.user("Ana"), server.group("News", kind="channel")
    server.edit(server.say(ana, ana, "helo"), "hello")
    server.edit(server.say(news, None, "post"), "better")
    server.delete_business(server.say_business(ana, "secret"))
    kinds = [next(kind for kind in update if kind != "update_id") for update in await bot.result("getUpdates")]
    assert kinds == [
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_message",
        "deleted_business_messages",
    ]


async def test_files_over_twenty_megabytes_are_only_had_from_a_local_server(server: TelegramServer, bot: Bot) -> None:
    big = FakeUpload(content=lambda: b"x", size=20 * 1024 * 1024 + 1)
    ana = server.user("Ana")
    file_id = server.say(ana, ana, document=big)["document"]["file_id"]
    assert await bot.refused("getFile", file_id=file_id) == (400, "Bad Request: file is too big")
    wrong = "Bad Request: wrong file_id or the file is temporarily unavailable"
    assert await bot.refused("getFile", file_id="nonsense") == (400, wrong)
    async with TelegramServer(big_files=True) as local:
        ana = local.user("Ana")
        file_id = local.say(ana, ana, document=big)["document"]["file_id"]
        assert await Bot(local, bot.session).result("getFile", file_id=file_id)


async def test_a_link_is_good_for_an_hour_and_a_new_one_can_be_had(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    file_id = server.say(ana, ana, voice=b"oggs")["voice"]["file_id"]
    link = await bot.link(file_id)
    clock_of(server).shift(3599)
    assert (await bot.get(link))[0] == 200
    clock_of(server).shift(1)
    assert (await bot.get(link))[0] == 404
    assert (await bot.get(await bot.link(file_id)))[0] == 200


async def test_a_range_is_served_only_of_the_same_bytes(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    link = await bot.link(server.say(ana, ana, voice=b"0123456789")["voice"]["file_id"])
    _, _, headers = await bot.get(link)
    status, content, told = await bot.get(link, Range="bytes=4-", **{"If-Range": headers["ETag"]})
    assert (status, content, told["Content-Range"]) == (206, b"456789", "bytes 4-9/10")
    assert (await bot.get(link, Range="bytes=4-6"))[1] == b"456"
    assert (await bot.get(link, Range="bytes=10-"))[0] == 416
    server.fail("file", Changed(content=b"abcdefghij"))
    assert (await bot.get(link, Range="bytes=4-", **{"If-Range": headers["ETag"]}))[:2] == (200, b"abcdefghij")


async def test_scripted_answers_last_as_long_as_scripted(server: TelegramServer, bot: Bot) -> None:
    server.fail("getMe", CannedAnswer(status=502, description="Bad Gateway"), times=2)
    for _ in range(2):
        assert await bot.refused("getMe") == (502, "Bad Gateway")
    assert await bot.result("getMe")
    server.fail("getMe", CannedAnswer(status=429, description="Too Many Requests", parameters={"retry_after": 7}))
    async with bot.session.get(f"{server.url}/bot{server.token}/getMe") as answer:
        assert answer.headers["Retry-After"] == "7"
    server.fail("*", CannedAnswer(status=502, body=b"<html>"))
    async with bot.session.get(f"{server.url}/bot{server.token}/getMe") as answer:
        assert await answer.read() == b"<html>"
    server.fail("getMe", Reset())
    server.heal()
    assert await bot.result("getMe")


async def test_a_broken_connection_may_come_before_or_after_the_deed(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    for fault, sent in ((Reset(), 0), (Reset(done=True), 1)):
        server.fail("sendMessage", fault)
        with pytest.raises(aiohttp.ClientError):
            await bot.call("sendMessage", chat_id=ana["id"], text="x")
        assert len(server.sent) == sent


async def test_a_hung_call_answers_when_the_clock_says_so(server: TelegramServer, bot: Bot) -> None:
    server.fail("getMe", Hang(seconds=60))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(bot.result("getMe"))
        async with asyncio.timeout(LIMIT):
            while not clock_of(server).sleeping:
                await asyncio.sleep(0)
        assert not waiting.done()
        await clock_of(server).advance(60)
    assert waiting.result()["is_bot"]


async def test_downloads_break_in_every_way(server: TelegramServer, bot: Bot) -> None:
    ana, content = server.user("Ana"), bytes(range(256)) * 1000
    link = await bot.link(server.say(ana, ana, voice=content)["voice"]["file_id"])
    server.fail("file", NoLength())
    status, got, headers = await bot.get(link)
    assert (status, got == content, "Content-Length" in headers) == (200, True, False)
    for fault in (Truncate(at=1000), WrongLength(length=len(content) + 5)):
        server.fail("file", fault)
        with pytest.raises(aiohttp.ClientError):
            await bot.get(link)
    for odd, least in ((Endless(), len(content) * 2), (Trickle(after=3000), 3000)):
        server.fail("file", odd)
        async with asyncio.timeout(LIMIT), bot.session.get(link) as answer:
            assert len(await answer.content.readexactly(least)) == least
            answer.close()
    assert server.calls["file"] == 5


async def test_a_server_that_goes_away_says_so_to_who_waits() -> None:
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        async with TelegramServer() as server:
            waiting = group.create_task(Bot(server, session).refused("getUpdates", timeout=30))
            await polling(server, 1)
        assert await waiting == (500, "Internal Server Error: restart")
