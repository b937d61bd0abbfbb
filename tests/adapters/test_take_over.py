"""A webhook that keeps a bot from polling: removed if it is our own, else only if the operator says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from adapters.telegram_harness import Bot
from belino.domain.errors import ConfigError
from belino.testing import TelegramServer

ELSEWHERE = "http://127.0.0.1:9/secret-path"
TELEGRAM = ("telegram", "default")


def settings(server: TelegramServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, Any]:
    monkeypatch.setenv("TOKEN", server.token)
    return {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}, **more}


async def test_another_programs_webhook_is_told_and_left_alone_until_the_operator_takes_over(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.updates.webhook.url = ELSEWHERE
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", telegram=settings(server, monkeypatch)) as (gateway, _):
        await until(lambda: gateway.health()[TELEGRAM].state == "impaired")
        health = gateway.health()[TELEGRAM]
        assert health.can_take_over and "a webhook is set" in health.reason
        assert server.updates.webhook.url == ELSEWHERE and server.calls["deleteWebhook"] == 0
        server.say(ada, ada, "is anyone there?")
        assert await gateway.take_over(TELEGRAM) == "a webhook at 127.0.0.1"
        await until(lambda: server.sent)
        assert server.updates.webhook.url == "" and gateway.health()[TELEGRAM].works
        with pytest.raises(ConfigError, match="no other program gets the events of telegram:default"):
            await gateway.take_over(TELEGRAM)
        with pytest.raises(ConfigError, match="no other program"):
            await gateway.take_over(("telegram", "nobody"))


async def test_the_webhook_that_belino_itself_had_set_is_removed_when_its_mode_changes(
    server: TelegramServer, bot_at: Any
) -> None:
    bot: Bot = bot_at(server.url, public_url="http://localhost")
    server.updates.webhook.url = "http://localhost/hooks/telegram/default"
    ada = server.user("Ada")
    async with bot.listening():
        server.say(ada, ada, "hello")
        await until(lambda: bot.texts == ["hello"])
    assert server.calls["deleteWebhook"] == 1


async def test_no_text_about_a_webhook_has_its_path_or_the_token(server: TelegramServer, bot: Bot) -> None:
    server.updates.webhook.url = ELSEWHERE
    told = json.dumps([await bot.adapter.rival(), *[str(each) for each in await bot.adapter.check()]])
    assert "127.0.0.1" in told and "secret-path" not in told and server.token not in told
    server.updates.webhook.url = ""
    assert await bot.adapter.rival() == ""


def test_no_page_asks_people_to_open_an_address_with_a_token() -> None:
    root = Path(__file__).parent.parent.parent
    for page in [*(root / "docs").rglob("*.md"), root / "README.md", *(root / "src").rglob("*.html")]:
        assert "bot<token>" not in page.read_text(encoding="utf-8").lower(), page
