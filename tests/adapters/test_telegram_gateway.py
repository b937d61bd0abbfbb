"""Telegram in the whole house: two bots at once, a webhook through the web door, and what happens to messages later."""

from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work, kept, seen
from belino.testing import TelegramServer, make_jpeg

HOOK_SECRET = "canary-hook-secret"


def settings(server: TelegramServer, token: str, **more: Any) -> dict[str, Any]:
    return {"token": f"env:{token}", "api_url": server.url, "access": {"senders": ["*"]}, **more}


async def test_two_bots_answer_each_in_their_own_chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with TelegramServer() as first, TelegramServer(token="777:another-bot-altogether") as second:
        monkeypatch.setenv("FIRST", first.token)
        monkeypatch.setenv("SECOND", second.token)
        both = settings(first, "FIRST", accounts={"work": settings(second, "SECOND")})
        async with at_work(tmp_path / "home", telegram=both) as (gateway, _):
            ada, bob = first.user("Ada"), second.user("Bob")
            first.say(ada, ada, "to the first")
            second.say(bob, bob, "to the second")
            await until(lambda: first.sent and second.sent)
            assert (await kept(gateway, str(ada["id"])))[0].text == "to the first"
            work = await kept(gateway, str(bob["id"]), account="work")
            assert work[0].text == "to the second"


async def test_telegram_calls_at_the_web_door_and_is_answered(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    monkeypatch.setenv("HOOK", HOOK_SECRET)
    called = settings(server, "TOKEN", mode="webhook", webhook_secret="env:HOOK")
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", telegram=called) as (gateway, url):
        await until(lambda: server.calls["getMe"])
        hook = server.updates.webhook
        hook.url, hook.secret_token = f"{url}/hooks/telegram/default", HOOK_SECRET
        # Our Telegram looks for its webhook after each call.
        await gateway.adapters["telegram", "default"].check()  # type: ignore[attr-defined]
        server.say(ada, ada, "hello")
        await until(lambda: server.sent)
        assert (await kept(gateway, str(ada["id"])))[0].text == "hello"
    assert hook.deliveries[-1] == 200
    assert server.calls["getUpdates"] == 0


async def test_what_is_deleted_in_a_business_chat_is_gone_and_nobody_is_answered_there(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", telegram=settings(server, "TOKEN")) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        said = server.say_business(ada, "my secret", photo=make_jpeg(64, 48))
        channel = f"{ada['id']}@bc_1"
        await seen(gateway, channel, lambda message: message.media)
        server.delete_business(said)
        gone = await seen(gateway, channel, lambda message: message.deleted)
        assert (gone.text, gone.media) == ("", ())
    assert server.sent == []


async def test_an_edited_caption_is_read_as_it_is_now(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", telegram=settings(server, "TOKEN")) as (gateway, _):
        said = server.say(ada, ada, photo=make_jpeg(64, 48), caption="before")
        await seen(gateway, str(ada["id"]), lambda message: message.text == "before")
        server.edit(said, caption="after")
        edited = await seen(gateway, str(ada["id"]), lambda message: message.edited)
        assert (edited.text, [ref.caption for ref in edited.media]) == ("after", ["after"])
