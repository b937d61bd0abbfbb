"""Bytes from Telegram: on demand, by a fresh link, within its limits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.telegram_harness import CANARY, Bot, telegram
from adapters.telegram_samples import parsed
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaTooLarge, RateLimited, Unauthorized
from belino.domain.media import MediaRef
from belino.domain.message import Message
from belino.testing import FakeClock, FakeUpload, TelegramServer, make_jpeg
from belino.testing.faults import CannedAnswer, Truncate

BotAt = Callable[..., Bot]
MEGABYTE = 1024 * 1024


def sent(server: TelegramServer, **fields: Any) -> MediaRef:
    """The ref of a file that somebody sends."""
    ada = server.user("Ada")
    (arrival,) = parsed({"update_id": 1, "message": server.say(ada, ada, **fields)})
    assert isinstance(arrival, Message)
    return replace(arrival.media[0], id="tg_k3v9d0q2m7xa")


async def test_the_bytes_are_the_platforms_and_cost_one_link_and_one_download(server: TelegramServer, bot: Bot) -> None:
    picture = make_jpeg(640, 480)
    ref = sent(server, photo=picture)
    assert await bot.fetch(ref) == picture
    assert (server.calls["getFile"], server.calls["file"]) == (1, 1)


async def test_a_file_over_20_mb_is_refused_without_a_call_and_says_what_to_do(
    server: TelegramServer, bot: Bot
) -> None:
    ref = sent(server, document=FakeUpload(content=b"", size=25 * MEGABYTE))
    with pytest.raises(MediaTooLarge, match=r"up to 20 MB, and this one has 25.0 MB; ask the sender") as caught:
        await bot.fetch(ref)
    assert caught.value.limit == 20 * MEGABYTE == bot.adapter.limits.fetch_bytes
    assert server.calls["getFile"] == 0


async def test_a_file_whose_size_was_not_told_is_refused_when_telegram_says_so(
    server: TelegramServer, bot: Bot
) -> None:
    ref = replace(sent(server, document=FakeUpload(content=b"", size=25 * MEGABYTE)), size=None)
    with pytest.raises(MediaTooLarge, match="up to 20 MB, and this one is larger"):
        await bot.fetch(ref)
    assert server.calls["file"] == 0


async def test_a_server_of_ones_own_hands_out_larger_files(bot_at: BotAt) -> None:
    async with telegram(big_files=True) as server:
        bot = bot_at(server.url, local_files=True)
        ref = sent(server, document=FakeUpload(content=b"x" * 1000, size=25 * MEGABYTE))
        assert ref.size == 25 * MEGABYTE
        async with bot.adapter.open_media(ref):
            pass
        assert server.calls["getFile"] == 1
        assert bot.adapter.limits.fetch_bytes == 2000 * MEGABYTE


async def test_a_link_whose_hour_is_over_is_asked_for_again_once(server: TelegramServer, bot: Bot) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    server.fail("file", CannedAnswer(status=404, description="Not Found"))
    assert await bot.fetch(ref) == make_jpeg(64, 48)
    assert (server.calls["getFile"], server.calls["file"]) == (2, 2)


async def test_a_stream_that_is_opened_late_gets_a_fresh_link(bot_at: BotAt) -> None:
    clock = FakeClock()
    async with telegram(clock=clock) as server:
        bot = bot_at(server.url, clock=clock)
        ref = sent(server, photo=make_jpeg(64, 48))
        async with bot.adapter.open_media(ref) as chunks:
            clock.shift(2 * 3600)
            assert b"".join([chunk async for chunk in chunks]) == make_jpeg(64, 48)
        assert server.calls["getFile"] == 2


async def test_a_file_that_is_gone_has_expired_and_is_named(server: TelegramServer, bot: Bot) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    server.fail("getFile", CannedAnswer(status=400, description="Bad Request: invalid file_id"))
    with pytest.raises(MediaExpired, match=r"tg_k3v9d0q2m7xa .*invalid file_id"):
        await bot.fetch(ref)


async def test_a_fresh_link_that_leads_nowhere_is_no_proof_that_the_file_is_gone(
    server: TelegramServer, bot: Bot
) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    server.fail("file", CannedAnswer(status=404, description="Not Found"), times=2)
    with pytest.raises(MediaError, match=r"tg_k3v9d0q2m7xa leads nowhere") as told:
        await bot.fetch(ref)
    assert not isinstance(told.value, MediaExpired)
    assert (server.calls["getFile"], server.calls["file"]) == (2, 2)
    assert await bot.fetch(ref) == make_jpeg(64, 48)


async def test_a_file_that_is_unavailable_for_now_may_be_asked_for_again(server: TelegramServer, bot: Bot) -> None:
    ref = replace(sent(server, photo=make_jpeg(64, 48)), locator={"file_id": "unknown"})
    with pytest.raises(AdapterError, match="temporarily unavailable"):
        await bot.fetch(ref)


async def test_a_stream_that_breaks_off_goes_on_where_it_was(server: TelegramServer, bot: Bot) -> None:
    content = bytes(range(256)) * 4096
    ref = sent(server, document=content)
    server.fail("file", Truncate(at=300_000))
    assert await bot.fetch(ref) == content
    assert server.calls["file"] == 2
    assert server.bytes_served < 2 * len(content), "the second request asked only for the rest"


async def test_a_link_that_is_not_to_be_had_just_now_is_asked_for_again_and_what_was_refused_is_not(
    server: TelegramServer, bot: Bot
) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    server.fail("getFile", CannedAnswer(status=502, body=b"<html>"))
    server.fail("getFile", CannedAnswer(status=429, parameters={"retry_after": 1, "adaptive_retry": 10}))
    assert await bot.fetch(ref) == make_jpeg(64, 48)
    assert (server.calls["getFile"], server.calls["file"]) == (3, 1)
    server.fail("getFile", CannedAnswer(status=400, description="Bad Request: file is too big"))
    with pytest.raises(MediaTooLarge):
        await bot.fetch(ref)
    server.fail("getFile", CannedAnswer(status=429, parameters={"retry_after": 600}))
    with pytest.raises(RateLimited):
        await bot.fetch(ref)
    assert server.calls["getFile"] == 5


async def test_a_busy_server_is_tried_again_and_a_refused_token_is_not(server: TelegramServer, bot: Bot) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    server.fail("file", CannedAnswer(status=502, body=b"<html>"))
    assert await bot.fetch(ref) == make_jpeg(64, 48)
    server.fail("file", CannedAnswer(status=401, description="Unauthorized"))
    with pytest.raises(Unauthorized):
        await bot.fetch(ref)


@pytest.mark.parametrize(
    "folder",
    [f"/var/lib/telegram-bot-api/{CANARY}", f"/srv/{CANARY}", f"/srv/{CANARY.replace(':', '~')}"],
    ids=["usual", "other", "no_colons"],
)
async def test_a_path_on_the_servers_disk_is_fetched_over_http_and_never_opened(
    server: TelegramServer, bot_at: BotAt, folder: str
) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    bot = bot_at(server.url, local_files=True)
    path = server.files.by_id[ref.locator["file_id"]].path
    async with bot.adapter.open_media(ref):
        pass  # the server now hands out the file
    _answer_path(server, f"{folder}/{path}")
    assert await bot.fetch(ref) == make_jpeg(64, 48)


@pytest.mark.parametrize("path", ["/etc/passwd", f"/srv/{CANARY}/../../etc/passwd", "../x", "a//b", "", "a\\b", "."])
async def test_a_path_that_leads_elsewhere_is_not_followed(server: TelegramServer, bot: Bot, path: str) -> None:
    ref = sent(server, photo=make_jpeg(64, 48))
    _answer_path(server, path)
    with pytest.raises(AdapterError) as caught:
        await bot.fetch(ref)
    assert server.calls["file"] == 0
    assert CANARY not in str(caught.value)


def _answer_path(server: TelegramServer, path: str) -> None:
    escaped = path.replace("\\", "\\\\")
    body = '{"ok": true, "result": {"file_id": "f", "file_unique_id": "u", "file_path": "' + escaped + '"}}'
    server.fail("getFile", CannedAnswer(status=200, body=body.encode()))
