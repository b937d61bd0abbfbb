"""An account behind a proxy: its calls, its socket and its files go through it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work, seen
from belino.testing import SlackServer, make_jpeg
from belino.testing.discord import DiscordServer
from net.proxies import LoopbackProxy

pytestmark = pytest.mark.usefixtures("brisk_discord")


async def goes_through_a_proxy(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    settings: dict[str, Any],
    *,
    is_heard: Callable[[], object],
    say: Callable[[], str],
    sent: Callable[[], object],
) -> None:
    monkeypatch.setenv("PROXY_LOGIN", "ada:secret")
    async with LoopbackProxy(login="ada:secret") as proxy:
        own = {"access": {"senders": ["*"]}, "proxy": f"socks5://127.0.0.1:{proxy.port}"}
        account: Any = {platform: {**settings, **own, "proxy_login": "env:PROXY_LOGIN"}}
        async with at_work(path, **account) as (gateway, _):
            await until(is_heard)
            channel = say()
            await until(sent)
            message = await seen(gateway, channel, lambda message: message.media)
            async with gateway.adapters[platform, "default"].open_media(message.media[0]) as chunks:
                assert b"".join([chunk async for chunk in chunks]) == PICTURE
        places = set(proxy.asked)
    ports = {int(port) for url in settings.values() if (port := url.rpartition(":")[2].partition("/")[0]).isdecimal()}
    assert ports and ports == {port for _, port in places}


PICTURE = make_jpeg(64, 48)


async def test_discord_listens_answers_and_fetches_through_a_proxy(
    discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", discord.token)
    ada = discord.user("ada")

    def say() -> str:
        return str(discord.say(discord.dm(ada), ada, "what is this?", files=[PICTURE])["channel_id"])

    urls = {"api_url": discord.api_url, "cdn_url": discord.cdn.url, "gateway_url": discord.gateway_url}
    await goes_through_a_proxy(
        tmp_path / "home",
        monkeypatch,
        "discord",
        {"token": "env:TOKEN", **urls},
        is_heard=lambda: discord.sessions.identified,
        say=say,
        sent=lambda: discord.sent,
    )


async def test_slack_listens_answers_and_fetches_through_a_proxy(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BOT", slack.bot_token), ("APP", slack.app_token)):
        monkeypatch.setenv(name, value)
    ada = slack.user("Ada")

    def say() -> str:
        return str(slack.say(ada, ada, "what is this?", files=[PICTURE])["channel"])

    await goes_through_a_proxy(
        tmp_path / "home",
        monkeypatch,
        "slack",
        {"bot_token": "env:BOT", "app_token": "env:APP", "api_url": slack.api_url},
        is_heard=lambda: slack.socket_mode.connections,
        say=say,
        sent=lambda: slack.sent,
    )
