"""A bot on Telegram: it listens from where it stopped, says what stands in its way, and answers."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from adapters.harness import LIMIT, until
from adapters.telegram_harness import CANARY, Bot
from adapters.telegram_samples import ME, sample
from belino.adapters import telegram
from belino.adapters.telegram import POLL_TRIES, client
from belino.adapters.telegram.parse import ALLOWED_UPDATES, parse
from belino.domain.errors import AdapterError, ConfigError, RateLimited, Unauthorized, Undeliverable, Unreached
from belino.domain.limits import Once
from belino.domain.message import Arrival, ConversationKey, Deletion, Edit, Message, Reaction, Unsupported
from belino.domain.ports import Adapter, Incoming, Taken
from belino.domain.reply import Parcel
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeClock, TelegramServer, Trial, check_adapter, make_jpeg, make_pdf
from belino.testing.faults import CannedAnswer, Fault, Reset

BotAt = Callable[..., Bot]


def place(chat: Mapping[str, Any], thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform="telegram", account="default", channel=str(chat["id"]), thread=thread)


async def test_telegram_keeps_the_adapter_contract(server: TelegramServer, bot_at: BotAt) -> None:
    ada = server.user("Ada")
    picture, report = make_jpeg(640, 480), make_pdf()
    updates = [
        {"update_id": 1, "message": server.compose(server.chats[ada["id"]], ada, photo=picture, caption="see")},
        {"update_id": 2, "message": server.compose(server.chats[ada["id"]], ada, document=report)},
        {"update_id": 3, "message": server.compose(server.chats[ada["id"]], ada, new_chat_title="x")},
    ]
    clock = FakeClock()

    def parsed(raw: Any) -> tuple[Arrival, ...]:
        return parse(raw, account="default", me=ME, received=clock.now())

    async def deliver(_adapter: Adapter, raw: Any) -> None:
        before = server.updates.confirmed
        server.updates.add("message", raw["message"])
        await until(lambda: server.updates.confirmed > before)

    media = {}
    for raw, content in zip(updates[:2], (picture, report), strict=True):
        (arrival,) = parsed(raw)
        assert isinstance(arrival, Message)
        media[arrival.media[0].item] = content

    mention = {"text": "@carl_c and then?", "entities": [{"type": "mention", "offset": 0, "length": 7}]}
    checked = await check_adapter(
        Trial(
            make=lambda: bot_at(server.url).adapter,
            parse=parsed,
            samples=updates,
            conversation=place(ada),
            secrets=[CANARY],
            deliver=deliver,
            media=media,
            refuse=lambda status, headers: server.fail("sendMessage", CannedAnswer(status=status, headers=headers)),
            in_thread={"update_id": 90, "message": {**sample("topic")["message"], "text": "and then?", "entities": []}},
            to_another={"update_id": 91, "message": {**sample("topic")["message"], **mention}},
        )
    )
    assert len(checked) == 14


async def test_everything_arrives_in_order_and_no_byte_of_it_is_fetched(server: TelegramServer, bot: Bot) -> None:
    ada, group = server.user("Ada"), server.group("Engine room")
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
        first = server.say(group, ada, "one")
        server.say(group, ada, photo=make_jpeg(800, 600), caption="two")
        server.edit(first, "one, again")
        server.react(first, ada, "👍")
        server.say(group, ada, left_chat_member=ada)
        server.delete_business(server.say_business(ada, "psst"))
        await until(lambda: len(bot.taken) == 7)
    kinds = [type(arrival) for arrival, _ in bot.taken]
    assert kinds == [Message, Message, Edit, Reaction, Unsupported, Message, Deletion]
    assert [cursor for _, cursor in bot.taken] == [str(700_000_002 + number) for number in range(7)]
    assert (server.calls["getFile"], server.calls["file"], server.bytes_served) == (0, 0, 0)


async def test_a_bot_asks_by_name_for_what_it_wants_and_leaves_a_webhook_alone(
    server: TelegramServer, bot: Bot
) -> None:
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
    assert server.updates.allowed == frozenset(ALLOWED_UPDATES)
    assert set(server.calls) == {"getMe", "getUpdates"}


async def test_a_restarted_bot_goes_on_from_its_cursor(server: TelegramServer, bot: Bot, bot_at: BotAt) -> None:
    ada = server.user("Ada")
    for word in ("one", "two"):
        server.say(ada, ada, word)
    async with bot.listening():
        await until(lambda: len(bot.taken) == 2)
    server.say(ada, ada, "three")
    later = bot_at(server.url)
    async with later.listening(cursor=bot.taken[-1][1]):
        await until(lambda: later.taken)
    assert later.texts == ["three"]


async def test_what_was_not_stored_is_offered_again(server: TelegramServer, bot: Bot, bot_at: BotAt) -> None:
    ada = server.user("Ada")
    server.say(ada, ada, "one")
    bot.may_take.clear()
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
    assert server.updates.pending
    later = bot_at(server.url)
    async with later.listening():
        await until(lambda: later.taken)
    assert later.texts == ["one"]


async def test_several_arrivals_of_one_update_move_the_cursor_only_with_the_last(
    server: TelegramServer, bot: Bot
) -> None:
    ada = server.user("Ada")
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
        server.react({"chat": server.group("x"), "message_id": 1}, ada, "👍", "❤", before=("🔥",))
        await until(lambda: len(bot.taken) == 3)
    assert [cursor for _, cursor in bot.taken] == [None, None, "700000002"]


async def test_it_is_connected_once_telegram_has_said_who_it_is(server: TelegramServer, bot: Bot) -> None:
    server.fail("getMe", CannedAnswer(status=502, description="Bad Gateway"))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(bot.adapter.connected())
        with pytest.raises(AdapterError):
            await bot.listen()
        assert not waiting.done()
        async with bot.listening(), asyncio.timeout(LIMIT):
            await waiting


async def test_what_one_poll_brings_is_handed_in_together(server: TelegramServer, bot: Bot) -> None:
    ada, handed = server.user("Ada"), list[Sequence[Incoming]]()

    class Accept:
        async def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
            raise AssertionError("handed in alone")

        async def many(self, incoming: Sequence[Incoming]) -> tuple[Taken, ...]:
            handed.append(incoming)
            return ()

    for word in ("one", "two", "three"):
        server.say(ada, ada, word)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bot.adapter.run(Accept(), None))
        await until(lambda: server.updates.confirmed == 3)  # it asks for more once they are on disk
        running.cancel()
    assert [[cursor for _, cursor in incoming] for incoming in handed] == [["700000002", "700000003", "700000004"]]


async def test_a_long_poll_ends_at_once_when_it_is_cancelled(server: TelegramServer, bot: Bot) -> None:
    async with asyncio.timeout(LIMIT), bot.listening():
        await until(lambda: server.calls["getUpdates"])


async def test_a_webhook_that_is_still_set_is_named_with_its_cure(server: TelegramServer, bot: Bot) -> None:
    server.updates.webhook.url = "https://elsewhere.example/hook"
    with pytest.raises(AdapterError, match="take over from it"):
        await bot.listen()
    assert server.updates.webhook.url, "nobody asked us to delete it"


async def test_a_second_listener_is_named_with_its_cure(server: TelegramServer, bot: Bot, bot_at: BotAt) -> None:
    other = bot_at(server.url)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with bot.listening():
            await until(lambda: server.calls["getUpdates"])
            async with other.listening():
                await until(lambda: server.calls["getUpdates"] > 1)
                await asyncio.Event().wait()
    assert caught.group_contains(AdapterError, match="another program listens with this bot's token", depth=1)


def _reached(server: TelegramServer, polls: int) -> bool:
    return server.calls["getUpdates"] >= polls


class Restless(SystemClock):
    """A clock for those who cannot wait."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "fault",
    [
        Reset(),
        CannedAnswer(status=502, body=b"<html>Bad Gateway</html>"),
        CannedAnswer(status=429, parameters={"retry_after": 3}),
        CannedAnswer(status=200, body=b"<html>Sign in to the hotel's network</html>"),
    ],
    ids=["broken", "bad_gateway", "too_many", "unreadable"],
)
async def test_a_poll_that_breaks_is_made_again_and_nobody_has_to_start_anew(
    server: TelegramServer, bot_at: BotAt, fault: Fault
) -> None:
    ada, bot = server.user("Ada"), bot_at(server.url, clock=Restless())
    async with bot.listening():
        await until(lambda: server.calls["getUpdates"])
        for word in ("one", "two", "three"):
            polls = server.calls["getUpdates"] + POLL_TRIES
            server.fail("getUpdates", fault, times=POLL_TRIES - 1)
            server.say(ada, ada, word)
            await until(partial(_reached, server, polls))
    assert (bot.texts, server.calls["getMe"]) == (["one", "two", "three"], 1)


async def test_updates_that_are_too_long_together_are_taken_one_by_one(
    server: TelegramServer, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_BYTES", 2_000)
    ada = server.user("Ada")
    for number in range(3):
        server.say(ada, ada, f"{number}" * 1_000)
    async with bot.listening():
        await until(lambda: len(bot.taken) == 3)
    assert [text[0] for text in bot.texts] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (CannedAnswer(status=429, parameters={"retry_after": 17}), RateLimited, "17 seconds"),
        (CannedAnswer(status=429, headers={"Retry-After": "9"}, body=b"busy"), RateLimited, "9 seconds"),
        (CannedAnswer(status=502, body=b"<html>Bad Gateway</html>"), Unreached, "status 502"),
        (CannedAnswer(status=500, description="Internal Server Error: restart"), Unreached, "status 500"),
        (CannedAnswer(status=404, body=b"<html>Not Found</html>"), Unreached, "status 404"),
        (CannedAnswer(status=401, description="Unauthorized"), Unauthorized, "@BotFather"),
        (CannedAnswer(status=200, body=b"[]"), AdapterError, "cannot be read"),
        (CannedAnswer(status=200, body=b'{"ok": true, "result": {}}'), AdapterError, "cannot be read"),
        (CannedAnswer(status=200, body=b'{"ok": true, "result": [{}]}'), AdapterError, "without a number"),
        (CannedAnswer(status=200, body=b"[" * 100_000), AdapterError, "cannot be read"),
    ],
)
async def test_what_telegram_says_instead_of_updates_is_an_error_that_fits(
    server: TelegramServer, bot_at: BotAt, answer: CannedAnswer, error: type[AdapterError], says: str
) -> None:
    bot = bot_at(server.url, clock=Restless())
    server.fail("getUpdates", answer, times=POLL_TRIES)
    with pytest.raises(error, match=says) as caught:
        await bot.listen()
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after in (9, 17)


@pytest.mark.parametrize("token", ["4242:another-token-altogether", "not-a-token-at-all"])
async def test_a_wrong_token_is_the_operators_business(server: TelegramServer, bot_at: BotAt, token: str) -> None:
    with pytest.raises(Unauthorized, match="@BotFather") as caught:
        await bot_at(server.url, token=token).listen()
    assert token not in str(caught.value)


async def test_a_server_that_answers_empty_at_once_is_not_asked_in_a_tight_loop(
    server: TelegramServer, bot_at: BotAt
) -> None:
    clock = FakeClock()
    bot = bot_at(server.url, clock=clock)
    server.fail("getUpdates", CannedAnswer(status=200, body=b'{"ok": true, "result": []}'), times=2)
    async with bot.listening():
        await until(lambda: clock.sleeping)
        assert server.calls["getUpdates"] == 1
        clock.shift(telegram.LEAST_PAUSE)
        await clock.advance(0)
        await until(lambda: server.calls["getUpdates"] == 2)


async def test_a_server_that_tells_the_same_again_is_not_asked_in_a_tight_loop(
    server: TelegramServer, bot_at: BotAt
) -> None:
    clock = FakeClock()
    bot = bot_at(server.url, clock=clock)
    same = json.dumps({"ok": True, "result": [sample("text")]}).encode()
    server.fail("getUpdates", CannedAnswer(status=200, body=same), times=20)
    async with bot.listening():
        await until(lambda: clock.sleeping)
        assert server.calls["getUpdates"] == 2


async def test_text_is_sent_as_an_answer_and_its_receipt_names_the_message(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    asked = server.say(ada, ada, "hello?")
    parcel = Parcel(key="p", conversation=place(ada), text="hi", reply_to=str(asked["message_id"]))
    receipt = await bot.adapter.send(parcel)
    (sent,) = server.sent
    assert (sent["text"], sent["reply_to_message"]["message_id"]) == ("hi", asked["message_id"])
    assert receipt.message_id == str(sent["message_id"])
    assert bot.adapter.limits.once is Once.UNCERTAIN


async def test_an_answer_goes_into_its_topic_and_outlives_the_message_it_answers(
    server: TelegramServer, bot: Bot
) -> None:
    forum, ada = server.group("Workshop", forum=True), server.user("Ada")
    server.say(forum, ada, "hello", topic=12)
    await bot.adapter.send(Parcel(key="p", conversation=place(forum, "12"), text="hi", reply_to="99999"))
    assert server.sent[0]["message_thread_id"] == 12
    assert "reply_to_message" not in server.sent[0]


async def test_business_chats_and_a_channels_direct_messages_are_answered_where_they_are(
    server: TelegramServer, bot: Bot
) -> None:
    ada = server.user("Ada")
    business = ConversationKey(platform="telegram", account="default", channel=f"{ada['id']}@bc_1")
    await bot.adapter.send(Parcel(key="p", conversation=business, text="hi"))
    await bot.adapter.send(Parcel(key="q", conversation=place(ada, f"direct-{ada['id']}"), text="hi"))
    fields = [call.fields for call in server.requests]
    assert (fields[0]["chat_id"], fields[0]["business_connection_id"]) == (ada["id"], "bc_1")
    assert fields[1]["direct_messages_topic_id"] == ada["id"]


async def test_a_group_that_became_a_supergroup_is_followed(server: TelegramServer, bot: Bot) -> None:
    old = server.group("Engine room", kind="group")
    new = server.migrate(old)
    receipt = await bot.adapter.send(Parcel(key="p", conversation=place(old), text="hi", reply_to="1"))
    assert server.sent[0]["chat"]["id"] == new["id"]
    assert receipt.message_id == f"{server.sent[0]['message_id']}@{new['id']}", "the old group may have that number too"


async def test_what_telegram_will_never_take_is_undeliverable_and_says_why(server: TelegramServer, bot: Bot) -> None:
    ada, group = server.user("Ada"), server.group("Engine room")
    server.block(ada)
    server.kick(group)
    nowhere = ConversationKey(platform="telegram", account="default", channel="elsewhere")
    for where, text, says in (
        (place(ada), "hi", "blocked by the user"),
        (place(group), "hi", "kicked from the supergroup"),
        (place({"id": 5}), "hi", "chat not found"),
        (place(server.user("Bob")), "x" * 4097, "too long"),
        (place(server.user("Eve")), "  ", "empty"),
        (nowhere, "hi", "no chat of Telegram"),
    ):
        with pytest.raises(Undeliverable, match=says):
            await bot.adapter.send(Parcel(key="p", conversation=where, text=text))
    assert server.sent == []


async def test_a_send_that_breaks_off_may_be_tried_again(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    server.fail("sendMessage", Reset(done=True))
    with pytest.raises(AdapterError) as caught:
        await bot.adapter.send(Parcel(key="p", conversation=place(ada), text="hi"))
    assert not isinstance(caught.value, Undeliverable)


async def test_the_token_stands_in_no_error_and_no_log(
    server: TelegramServer, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = server.user("Ada")
    said: list[str] = [repr(bot.config), repr(bot.adapter)]
    echoes = CannedAnswer(status=400, description=f"Bad Request: no such bot{CANARY}", parameters={})
    for fault in (
        echoes,
        CannedAnswer(status=500),
        Reset(),
        CannedAnswer(status=301, headers={"Location": "https://x.example/"}),
    ):
        server.fail("*", fault)
        with pytest.raises(AdapterError) as caught:
            await bot.adapter.send(Parcel(key="p", conversation=place(ada), text="hi"))
        said += [str(caught.value), repr(caught.value), str(caught.value.__cause__)]
    secret = CANARY.partition(":")[2]
    assert secret not in "\n".join([*said, caplog.text])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mode": "webhook"}, "webhook_secret is needed"),
        ({"mode": "webhook", "webhook_secret": Secret("S", "")}, "webhook_secret is needed"),
        ({"mode": "webhook", "webhook_secret": Secret("S", "  ")}, "webhook_secret is needed"),
        ({"mode": "webhook", "webhook_secret": Secret("S", "ä!")}, "webhook_secret is needed"),
        ({"api_url": "ftp://x"}, "api_url must be"),
        ({"api_url": "https://user:pw@x"}, "api_url must be"),
        ({"api_url": "https://x?y"}, "api_url must be"),
        ({"api_url": "https://x:99999999"}, "api_url is not a URL"),
        ({"api_url": "http://api.telegram.org"}, "must be encrypted"),
        ({"public_url": "http://127.0.0.1:8787"}, "must be encrypted"),
        ({"token": Secret("T", "1:2/../../evil")}, "token is not a bot token"),
    ],
)
def test_a_setting_that_would_be_unsafe_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        telegram.Config(**{"token": Secret("TOKEN", CANARY), **settings})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.telegram.org", "api.telegram.org"),
        ("http://127.0.0.1:8081", "127.0.0.1:8081"),
        ("http://[::1]:8081", "[::1]:8081"),
        ("http://telegram-bot-api/x", "telegram-bot-api:80"),
        ("https://bots.example.org", "bots.example.org:443"),
    ],
)
def test_the_token_goes_to_the_configured_host_alone(url: str, host: str) -> None:
    config = telegram.Config(token=Secret("TOKEN", CANARY), api_url=url)
    assert telegram.hosts(config) == frozenset({host})
