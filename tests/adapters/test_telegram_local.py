"""A Bot API server with --local: its folder is read below a root, and nothing else on the disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.harness import until
from adapters.in_house import at_work, seen
from adapters.telegram_harness import CANARY, Bot, telegram
from belino.adapters.telegram import Config
from belino.domain.errors import AdapterError, ConfigError, MediaError
from belino.net.redact import Secret
from belino.testing import make_jpeg
from net.proxies import LoopbackProxy

BotAt = Callable[..., Bot]


async def received(bot: Bot) -> bytes:
    (message,) = bot.messages
    async with bot.adapter.open_media(message.media[0]) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def test_a_file_is_read_from_the_servers_folder(tmp_path: Path, bot_at: BotAt) -> None:
    body = make_jpeg(64, 48)
    async with telegram(local_root=tmp_path) as server:
        bot, ada = bot_at(server.url, local_root=tmp_path), server.user("Ada")
        async with bot.listening():
            server.say(ada, ada, photo=body)
            await until(lambda: bot.messages)
        assert await received(bot) == body
        found = {finding.name: finding for finding in await bot.adapter.check()}
    assert found["telegram:default files"].ok
    assert "media.max_bytes" in found["telegram:default size"].says


async def test_the_folder_may_have_another_name_on_this_machine(tmp_path: Path, bot_at: BotAt) -> None:
    body = make_jpeg(64, 48)
    inside, outside = tmp_path / "server", tmp_path / "mounted"
    async with telegram(local_root=inside) as server:
        bot, ada = bot_at(server.url, local_root=outside), server.user("Ada")
        async with bot.listening():
            server.say(ada, ada, document=body)
            await until(lambda: bot.messages)
        with pytest.raises(MediaError, match="local_root"):
            await received(bot)
        assert not next(each for each in await bot.adapter.check() if each.name.endswith(" files")).ok
        inside.rename(outside)
        assert await received(bot) == body


@pytest.mark.parametrize("kind", ["link", "folder link", "hard link"])
async def test_no_link_leads_out_of_the_folder(tmp_path: Path, bot_at: BotAt, kind: str) -> None:
    root, secret = tmp_path / "server", tmp_path / "secret"
    async with telegram(local_root=tmp_path / "elsewhere") as server:
        bot, ada = bot_at(server.url, local_root=root), server.user("Ada")
        async with bot.listening():
            server.say(ada, ada, document=b"harmless")
            await until(lambda: bot.messages)
        secret.mkdir()
        (secret / "file_1.bin").write_bytes(b"a secret")
        folder = root / CANARY / "documents"
        if kind == "folder link":
            folder.parent.mkdir(parents=True)
            folder.symlink_to(secret)
        else:
            folder.mkdir(parents=True)
        for name in [] if kind == "folder link" else ["file_1.bin"]:
            (folder / name).symlink_to(secret / name) if kind == "link" else (folder / name).hardlink_to(secret / name)
        with pytest.raises(MediaError):
            await received(bot)


@pytest.mark.parametrize("path", ["/etc/passwd", f"/srv/{CANARY}/../other/file", "/srv/777:another-bot/documents/file"])
async def test_a_path_outside_the_bots_folder_is_refused(tmp_path: Path, bot_at: BotAt, path: str) -> None:
    async with telegram(big_files=True) as server:
        bot, ada = bot_at(server.url, local_root=tmp_path), server.user("Ada")
        async with bot.listening():
            server.say(ada, ada, document=b"harmless")
            await until(lambda: bot.messages)
        for stored in server.files.by_id.values():
            stored.path = path
        with pytest.raises(AdapterError, match=r"outside the bot's own folder|named no file"):
            await received(bot)


def test_the_folder_belongs_to_a_server_of_your_own_and_is_a_whole_path() -> None:
    token = Secret("TOKEN", CANARY)
    with pytest.raises(ConfigError, match="api_url"):
        Config(token=token, local_root=Path("/srv"))
    with pytest.raises(ConfigError, match="whole path"):
        Config(token=token, api_url="http://127.0.0.1:8081", local_root=Path("srv"))


@pytest.mark.parametrize("scheme", ["socks5", "http"])
async def test_a_bot_behind_a_proxy_hears_answers_and_fetches_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    monkeypatch.setenv("PROXY_LOGIN", "ada:secret")
    async with telegram() as server, LoopbackProxy(login="ada:secret") as proxy:
        own = {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}}
        own |= {"proxy": f"{scheme}://127.0.0.1:{proxy.port}", "proxy_login": "env:PROXY_LOGIN"}
        async with at_work(tmp_path / "home", telegram=own) as (gateway, _):
            ada = server.user("Ada")
            server.say(ada, ada, photo=make_jpeg(64, 48), caption="what is this?")
            await until(lambda: server.sent)
            await seen(gateway, str(ada["id"]), lambda message: message.media)
        assert proxy.asked
