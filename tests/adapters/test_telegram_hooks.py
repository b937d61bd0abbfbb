"""Telegram calls: who it is comes before what it says, and 200 only after commit. And what the doctor finds."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from adapters.harness import LIMIT, until
from adapters.telegram_harness import Bot
from adapters.telegram_samples import sample
from belino.adapters.telegram import SECRET_HEADER
from belino.adapters.telegram.parse import ALLOWED_UPDATES
from belino.domain.ports import Checks, Hook, TakesHooks
from belino.net.clock import SystemClock
from belino.net.redact import Secret
from belino.testing import FakeClock, TelegramServer
from belino.testing.faults import CannedAnswer

BotAt = Callable[..., Bot]
SECRET = "canary-hook-secret"


@pytest.fixture
def called(server: TelegramServer, bot_at: BotAt) -> Bot:
    return bot_at(
        server.url,
        mode="webhook",
        webhook_secret=Secret("HOOK", SECRET),
        public_url="http://127.0.0.1:1/",
    )


def hook(
    update: object = None, *, secret: str | None = SECRET, method: str = "POST", body: bytes | None = None
) -> Hook:
    headers = {} if secret is None else {SECRET_HEADER: secret}
    raw = json.dumps(update if update is not None else sample("text")).encode() if body is None else body
    return Hook(method=method, path="/hooks/telegram/default", query="", headers=headers, body=raw)


async def status(bot: Bot, call: Hook) -> int:
    assert isinstance(bot.adapter, TakesHooks)
    async with asyncio.timeout(LIMIT):
        return (await bot.adapter.take_hook(call)).status


async def test_a_call_with_the_secret_is_taken_in(server: TelegramServer, called: Bot) -> None:
    async with called.listening():
        await until(lambda: server.calls["setWebhook"])
        await until(lambda: called.adapter._hooks.is_open)
        assert await status(called, hook()) == 200
    assert called.texts == ["Hello, what can you do?"]
    assert called.taken[0][1] == "870000002"


def test_a_call_without_the_secret_is_refused_before_its_body_is_read(called: Bot, bot_at: BotAt) -> None:
    for secret, method, expected in ((None, "POST", 401), ("guess", "POST", 401), (SECRET, "GET", 405)):
        refused = called.adapter.screen_hook(hook(secret=secret, method=method, body=b""))
        assert refused is not None and refused.status == expected
    assert called.adapter.screen_hook(hook(body=b"")) is None


async def test_the_webhook_is_set_with_the_secret_the_kinds_and_one_line_so_that_order_holds(
    server: TelegramServer, called: Bot
) -> None:
    async with called.listening():
        await until(lambda: server.calls["setWebhook"])
    (fields,) = [call.fields for call in server.requests if call.method == "setWebhook"]
    assert fields == {
        "url": "http://127.0.0.1:1/hooks/telegram/default",
        "secret_token": SECRET,
        "allowed_updates": list(ALLOWED_UPDATES),
        "max_connections": 1,
    }


@pytest.mark.parametrize("secret", [None, "", " ", SECRET[:-1], SECRET + "x", SECRET.upper(), "ä", "\udc80"])
async def test_a_call_without_the_secret_is_not_even_parsed(
    server: TelegramServer, called: Bot, secret: str | None
) -> None:
    async with called.listening():
        await until(lambda: called.adapter._hooks.is_open)
        assert await status(called, hook(secret=secret)) == 401
        assert await status(called, hook(secret=secret, body=b"{")) == 401
    assert called.taken == []


async def test_a_call_is_answered_only_after_commit(server: TelegramServer, called: Bot) -> None:
    called.may_take.clear()
    async with called.listening():
        await until(lambda: called.adapter._hooks.is_open)
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(status(called, hook()))
            await asyncio.sleep(0)
            assert not answer.done()
            called.may_take.set()
    assert answer.result() == 200


async def test_two_calls_at_once_are_taken_one_after_the_other(server: TelegramServer, called: Bot) -> None:
    called.may_take.clear()
    first, second = sample("text"), sample("command_private")
    async with called.listening():
        await until(lambda: called.adapter._hooks.is_open)
        async with asyncio.TaskGroup() as group:
            for update in (first, second):
                group.create_task(status(called, hook(update)))
                await asyncio.sleep(0)
            called.may_take.set()
    assert called.texts == ["Hello, what can you do?", "/start"]


async def test_nobody_is_told_200_while_nobody_listens(called: Bot) -> None:
    assert await status(called, hook()) == 503


async def test_what_is_no_update_is_refused_and_what_is_unknown_is_told(server: TelegramServer, called: Bot) -> None:
    async with called.listening():
        await until(lambda: called.adapter._hooks.is_open)
        for body in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000):
            assert await status(called, hook(body=body)) == 400
        assert await status(called, hook(method="GET")) == 405
        assert await status(called, hook([1])) == 200
    assert [arrival.kind for arrival, _ in called.taken] == ["unsupported"]


async def test_a_bot_that_polls_takes_no_calls(server: TelegramServer, bot: Bot) -> None:
    assert await status(bot, hook(secret="")) == 404


async def findings(bot: Bot) -> dict[str, tuple[bool, str, str]]:
    assert isinstance(bot.adapter, Checks)
    async with asyncio.timeout(LIMIT):
        return {
            found.name.removeprefix("telegram:default "): (found.ok, found.says, found.cure)
            for found in await bot.adapter.check()
        }


async def test_a_healthy_bot_is_told_to_be_so(server: TelegramServer, bot: Bot) -> None:
    found = await findings(bot)
    assert list(found) == ["token", "privacy", "webhook", "clock"]
    assert all(ok for ok, _, _ in found.values())
    assert found["token"][1] == "it is @belino_bot's"


async def test_privacy_mode_is_told_with_the_clicks_that_end_it(server: TelegramServer, bot: Bot) -> None:
    server.hears_all = False
    ok, says, cure = (await findings(bot))["privacy"]
    assert ok and "privacy mode is on" in says and "/setprivacy" in cure


async def test_a_webhook_in_the_way_and_one_that_is_missing_are_found(
    server: TelegramServer, bot: Bot, called: Bot
) -> None:
    assert (await findings(called))["webhook"][:2] == (False, "none is set")
    server.updates.webhook.url = "https://elsewhere.example/hook"
    ok, says, cure = (await findings(bot))["webhook"]
    assert not ok and "still set" in says and "--take-over" in cure
    assert (await findings(called))["webhook"][0]
    server.updates.webhook.last_error = (1_767_268_800, "Connection refused")
    assert (await findings(called))["webhook"][2] == "Telegram says: Connection refused"


async def test_a_wrong_token_and_a_silent_server_are_found(server: TelegramServer, bot: Bot, bot_at: BotAt) -> None:
    wrong: dict[str, Any] = await findings(bot_at(server.url, token="4242:another-token"))
    assert not wrong["token"][0] and "@BotFather" in wrong["token"][2]
    server.fail("getMe", CannedAnswer(status=503, body=b""))
    silent = await findings(bot)
    assert not silent["token"][0] and "reaches the Bot API" in silent["token"][2]
    server.fail("getWebhookInfo", CannedAnswer(status=404, description="Not Found"))
    partly = await findings(bot)
    assert partly["token"][0] and not partly["webhook"][0]


async def test_a_clock_that_is_wrong_is_found(server: TelegramServer, bot_at: BotAt) -> None:
    late = FakeClock(SystemClock().now() - timedelta(minutes=10))
    ok, says, _ = (await findings(bot_at(server.url, clock=late)))["clock"]
    assert not ok and "seconds away" in says
