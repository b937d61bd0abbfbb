"""What adapters report about their accounts, and what the gateway makes of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.discord_harness import Bot as DiscordTester
from adapters.harness import until
from adapters.in_house import at_work
from adapters.slack_harness import App
from adapters.telegram_harness import Bot
from belino.adapters.discord.socket import MESSAGE_CONTENT
from belino.adapters.slack.authors import SlackApp
from belino.adapters.slack.parse import lost_access
from belino.domain.errors import ListeningRefused
from belino.gateway.gateway import Gateway
from belino.gateway.health import AdapterHealth
from belino.net.clock import SystemClock
from belino.testing import SlackServer, TelegramServer
from belino.testing.discord import DiscordServer
from belino.testing.faults import CannedAnswer

UNAUTHORIZED = CannedAnswer(status=401, description="Unauthorized")
TELEGRAM, SLACK = ("telegram", "default"), ("slack", "default")


class HourHand(SystemClock):
    """A clock on which a test lets hours pass."""

    hours = 0

    def monotonic(self) -> float:
        return super().monotonic() + self.hours * 3600


def telegram(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("TOKEN", server.token)
    return {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}}


def slack_app(server: SlackServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, Any]:
    for name, secret in (("BOT", server.bot_token), ("APP", server.app_token), ("HOOK", server.signing_secret)):
        monkeypatch.setenv(name, secret)
    tokens = {"bot_token": "env:BOT", "app_token": "env:APP", "signing_secret": "env:HOOK"}
    return {**tokens, "api_url": server.api_url, "access": {"senders": ["*"]}, **more}


def health(gateway: Gateway, account: tuple[str, str]) -> AdapterHealth:
    return gateway.health()[account]


async def test_an_answer_that_telegram_refuses_once_goes_out_with_the_next_poll_that_succeeds(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = server.user("Ada"), server.user("Bob")
    async with at_work(tmp_path / "home", telegram=telegram(server, monkeypatch)) as (gateway, _):
        server.fail("sendMessage", UNAUTHORIZED)
        server.say(ada, ada, "hello")
        await until(lambda: health(gateway, TELEGRAM).state == "unauthorized")
        assert "sending: Telegram does not know this bot token" in health(gateway, TELEGRAM).reason
        server.say(bob, bob, "another")
        await until(lambda: len(server.sent) == 2)
        await until(lambda: health(gateway, TELEGRAM).works)


async def test_a_poll_that_is_refused_once_is_made_again_as_soon_as_another_call_succeeds(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", telegram=telegram(server, monkeypatch)) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        server.fail("getUpdates", UNAUTHORIZED)
        server.say(ada, ada, "hello")
        await until(lambda: health(gateway, TELEGRAM).state == "unauthorized")
        await gateway.adapters[TELEGRAM].check()  # type: ignore[attr-defined]
        await until(lambda: server.sent)
        await until(lambda: health(gateway, TELEGRAM).works)


async def test_a_poll_that_conflicts_with_another_program_leaves_sending_alone(
    server: TelegramServer, bot: Bot
) -> None:
    server.updates.webhook.url = "https://elsewhere.example/hook"
    with pytest.raises(ListeningRefused, match="a webhook is set"):
        await bot.adapter.run(bot.accept, None)


@pytest.mark.usefixtures("brisk_discord")
async def test_a_bot_that_may_not_read_messages_says_so_until_it_may(
    discord: DiscordServer, discord_bot_at: Callable[..., DiscordTester]
) -> None:
    clock = HourHand()
    bot = discord_bot_at(discord, clock=clock)
    discord.gateway.allowed &= ~MESSAGE_CONTENT
    async with bot.listening():
        assert "Message Content Intent" in bot.context.problems["message content"]
        await discord.drop_socket(4009)
        await until(lambda: len(discord.sessions.identified) == 2)
        assert "message content" in bot.context.problems
        discord.gateway.allowed |= MESSAGE_CONTENT
        clock.hours += 1
        await discord.drop_socket(4009)
        await until(lambda: not bot.context.problems)
    wanted = [bool(identified["intents"] & MESSAGE_CONTENT) for identified in discord.sessions.identified]
    assert wanted == [False, False, True]


@pytest.mark.usefixtures("brisk_discord")
async def test_a_gateway_that_cannot_be_reached_any_more_is_reported_and_a_single_break_is_not(
    discord: DiscordServer, discord_bot: DiscordTester
) -> None:
    problems = discord_bot.context.problems
    ada = discord.user("ada")
    async with discord_bot.listening():
        await discord.drop_socket()
        discord.say(ada, ada, "back")
        await until(lambda: discord_bot.texts)
        assert problems == {}
        discord.gateway.turned_away = 10
        await discord.drop_socket()
        await until(lambda: "gateway" in problems)
        assert "the connection to the gateway fails" in problems["gateway"]
        discord.say(ada, ada, "back again")
        await until(lambda: not problems)


@pytest.mark.parametrize(
    ("end", "says"), [(SlackServer.revoke, "token was revoked"), (SlackServer.uninstall, "app was uninstalled")]
)
async def test_an_app_that_is_told_that_it_lost_its_access_says_so_until_a_call_succeeds(
    slack: SlackServer, app: App, end: Callable[[SlackServer], None], says: str
) -> None:
    async with app.listening():
        end(slack)
        await until(lambda: app.context.problems)
        assert says in app.context.problems["Web API"]
        slack.install()
        await app.adapter.check()
        assert app.context.problems == {}
    assert app.taken == []


def test_a_revoked_token_of_a_person_is_not_the_apps() -> None:
    me = SlackApp(user="U1")
    revoked = {"event": {"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}}}
    assert lost_access(revoked, me) == ""
    assert lost_access({"event": {"type": "tokens_revoked", "tokens": {"bot": ["U2"]}}}, me) == ""
    assert lost_access({"event": {"type": "tokens_revoked", "tokens": {"bot": [7]}}}, me)
    assert lost_access({"event": {"type": "message"}}, me) == ""


async def test_over_http_a_revoked_token_is_told_and_the_answer_goes_out_once_slack_accepts_it_again(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = slack.user("Ada")
    async with at_work(tmp_path / "home", slack=slack_app(slack, monkeypatch, mode="http")) as (gateway, url):
        await until(lambda: slack.calls["auth.test"])
        assert await slack.use_http(f"{url}/hooks/slack/default")
        slack.fail("chat.postMessage", CannedAnswer(status=200, description="token_revoked"))
        slack.say(ada, ada, "hello")
        await until(lambda: health(gateway, SLACK).state == "unauthorized")
        assert "token_revoked" in health(gateway, SLACK).reason
        slack.say(ada, ada, "anything new?")
        await until(lambda: len(slack.sent) == 2)
        await until(lambda: health(gateway, SLACK).works)
