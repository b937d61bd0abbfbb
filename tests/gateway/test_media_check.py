"""Media that is sent, read back, compared and deleted, on the owner's request."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until as soon
from adapters.in_house import at_work
from belino.config import AdapterConfig, Config, OwnersConfig
from belino.domain.errors import ConfigError, RateLimited, Unauthorized, Undeliverable
from belino.domain.limits import FileLimit, Limits, Once, SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.reply import Parcel, Receipt
from belino.testing import LineServer, SlackServer, TelegramServer, WhatsAppServer, make_jpeg
from belino.testing.discord import DiscordServer
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryAdapter
from gateway.house import House

MEMORY = ("memory", "default")
HERE = ConversationKey(platform="memory", account="default", channel="dm")
FORMS = (SendAs.PHOTO, SendAs.VOICE, SendAs.DOCUMENT)
LIMITS = Limits(
    text_chars=4096,
    once=Once.KEY,
    files={form: FileLimit(max_bytes=1_000_000) for form in FORMS},
    album_items=10,
    album_mixes=(frozenset(FORMS),),
)


class Gallery(MemoryAdapter):
    """A platform whose files a test can spoil."""

    limits = LIMITS

    def __init__(self, config: MemoryConfig, desk: AdapterContext) -> None:
        super().__init__(config, desk)
        self.refusals: list[Exception] = []
        self.spoil: bytes | None = None
        self.kept: list[Parcel] = []

    async def send(self, parcel: Parcel) -> Receipt:
        if self.refusals:
            raise self.refusals.pop(0)
        receipt = await super().send(parcel)
        self.kept.append(parcel)
        if self.spoil is not None:
            for name in self._far_side.files:
                self._far_side.files[name] = self.spoil
        return receipt

    @property
    def shown(self) -> int:
        return len(self._far_side.sent)


class GalleryHouse(House):
    """A house on that platform."""

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        self.gallery = Gallery(config.options, desk)
        return self.gallery

    def config(self) -> Config:
        return replace(super().config(), access=OwnersConfig(owners=("memory:default:ann",)))


@pytest.fixture
def house(tmp_path: Path) -> GalleryHouse:
    return GalleryHouse(tmp_path / "home")


async def test_one_of_each_kind_is_sent_read_back_unchanged_and_deleted(house: GalleryHouse) -> None:
    async with house.at_work() as gateway:
        findings = await gateway.check_media(MEMORY, HERE)
        audit = await gateway.audit()
    assert [(one.name, one.ok) for one in findings] == [
        (f"memory:default {kind}", True) for kind in ("picture", "voice note", "document", "album")
    ]
    assert all("unchanged" in one.says and one.says.endswith("deleted") for one in findings)
    assert [[file.send_as for file in parcel.files] for parcel in house.gallery.kept] == [
        [SendAs.PHOTO],
        [SendAs.VOICE],
        [SendAs.DOCUMENT],
        [SendAs.PHOTO, SendAs.PHOTO],
    ]
    assert house.gallery.shown == 0
    assert audit.as_json()["ok"]


async def test_bytes_that_are_not_those_that_were_sent_are_found_and_the_messages_are_deleted(
    house: GalleryHouse,
) -> None:
    async with house.at_work() as gateway:
        house.gallery.spoil = b"something else"
        picture, voice, document, album = await gateway.check_media(MEMORY, HERE)
    assert not any(one.ok for one in (picture, voice, document, album))
    assert "no picture is read back" in picture.says and "14 others read back" in document.says
    assert all(one.says.endswith("deleted") for one in (picture, voice, document, album))
    assert house.gallery.shown == 0


async def test_a_picture_that_the_platform_encoded_again_is_compared_by_its_dimensions(
    house: GalleryHouse,
) -> None:
    async with house.at_work() as gateway:
        house.gallery.spoil = make_jpeg(72, 72)
        picture, voice, _, _ = await gateway.check_media(MEMORY, HERE)
        house.gallery.spoil = make_jpeg(48, 27)
        smaller, *_ = await gateway.check_media(MEMORY, HERE)
    assert picture.ok and "encoded again (image/jpeg, 72×72" in picture.says
    assert not voice.ok
    assert not smaller.ok and "72×72 pixels, read back with 48×27" in smaller.says


async def test_a_refused_send_is_told_for_its_kind_and_counts_for_the_health_of_the_account(
    house: GalleryHouse,
) -> None:
    async with house.at_work() as gateway:
        house.gallery.refusals = [Undeliverable("the chat takes no photos"), Unauthorized("who are you?")]
        picture, voice, document, _ = await gateway.check_media(MEMORY, HERE)
        assert (picture.ok, picture.says) == (False, "the chat takes no photos")
        assert (voice.ok, voice.says) == (False, "who are you?")
        assert document.ok and gateway.health()[MEMORY].works


async def test_a_platform_that_asks_for_a_short_wait_is_given_it_and_a_long_one_is_told(house: GalleryHouse) -> None:
    async with house.at_work() as gateway:
        house.gallery.refusals = [RateLimited("slowly", retry_after=0), RateLimited("too much", retry_after=3600)]
        picture, *_ = await gateway.check_media(MEMORY, HERE)
        assert (picture.ok, picture.says) == (False, "too much")


async def test_a_kind_that_the_platform_has_not_is_told_as_such(house: GalleryHouse) -> None:
    async with house.at_work() as gateway:
        house.gallery.limits = replace(LIMITS, files={SendAs.PHOTO: FileLimit(max_bytes=10)})
        findings = await gateway.check_media(MEMORY, HERE)
        assert not any(one.ok for one in findings) and house.gallery.kept == []
        assert "it cannot be sent here" in findings[0].says
        house.gallery.limits = replace(LIMITS, album_items=1)
        *_, album = await gateway.check_media(MEMORY, HERE)
        assert album.ok and "in 2 messages" in album.says


async def test_it_goes_to_the_owner_or_to_a_conversation_of_the_account_and_nowhere_else(house: GalleryHouse) -> None:
    async with house.at_work() as gateway:
        with pytest.raises(ConfigError, match="name a conversation of memory:default"):
            await gateway.check_media(MEMORY)
        with pytest.raises(ConfigError, match="name a conversation of memory:default"):
            await gateway.check_media(MEMORY, replace(HERE, account="other"))
        with pytest.raises(ConfigError, match="memory:nobody is no account"):
            await gateway.check_media(("memory", "nobody"), HERE)
        await house.ask(gateway, house.say())
        assert all(one.ok for one in await gateway.check_media(MEMORY))
        assert {parcel.conversation for parcel in house.gallery.kept} == {HERE}


async def test_telegram_discord_and_slack_store_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with TelegramServer() as telegram, DiscordServer() as discord, SlackServer() as slack:
        for name, secret in (
            ("TG", telegram.token),
            ("DC", discord.token),
            ("BOT", slack.bot_token),
            ("APP", slack.app_token),
        ):
            monkeypatch.setenv(name, secret)
        ada, eve, bob = telegram.user("Ada"), discord.user("eve"), slack.user("Bob")
        places = {"telegram": ada["id"], "discord": discord.dm(eve)["id"], "slack": slack.dm(bob)["id"]}
        platforms: dict[str, Any] = {
            "telegram": {"token": "env:TG", "api_url": telegram.url},
            "discord": {"token": "env:DC", "api_url": discord.api_url, "cdn_url": discord.cdn.url},
            "slack": {"bot_token": "env:BOT", "app_token": "env:APP", "api_url": slack.api_url},
        }
        async with at_work(tmp_path / "home", agent=None, more=None, **platforms) as (gateway, _):
            await soon(lambda: all(health.state == "running" for health in gateway.health().values()))
            for platform, channel in places.items():
                to = ConversationKey(platform=platform, account="default", channel=str(channel))
                findings = await gateway.check_media((platform, "default"), to)
                assert [(one.ok, "read back" in one.says) for one in findings] == [(True, True)] * 4, findings


async def test_whatsapp_stores_what_is_sent_in_one_message_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WhatsAppServer() as server:
        ada = server.user("Ada")
        server.say(ada, ada, "hello")
        for name, secret in (("T", server.token), ("S", server.app_secret), ("V", server.verify_token)):
            monkeypatch.setenv(name, secret)
        table = {"token": "env:T", "app_secret": "env:S", "verify_token": "env:V", **server.settings}
        async with at_work(tmp_path / "home", whatsapp=table) as (gateway, url):
            assert await server.subscribe(f"{url}/hooks/whatsapp/default")
            to = ConversationKey(platform="whatsapp", account="default", channel=ada["id"])
            findings = await gateway.check_media(("whatsapp", "default"), to)
    assert [(one.ok, "read back" in one.says) for one in findings] == [(True, True)] * 4, findings
    assert "in 2 messages" in findings[-1].says
    assert all("its messages stay" in one.says for one in findings)


async def test_line_shows_what_it_fetches_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LineServer() as line:
        for name, secret in (("LN", line.token), ("LS", line.channel_secret)):
            monkeypatch.setenv(name, secret)
        ada = line.user("Ada")
        to = ConversationKey(platform="line", account="default", channel=ada["userId"])
        table = {"channel_access_token": "env:LN", "channel_secret": "env:LS", "api_url": line.url}
        public = {"server": {"port": 0, "public_url": "https://belino.example"}}
        async with at_work(tmp_path / "a", agent=None, more=public, line=table) as (gateway, _):
            run = json.loads((tmp_path / "a" / "run.json").read_text(encoding="utf-8"))
            address = run["url"].rstrip("/")
            await soon(lambda: all(health.state == "running" for health in gateway.health().values()))
            findings = await gateway.check_media(("line", "default"), to)
            line.origins["https://belino.example"] = address
            links = [word for sent in line.sent for word in (sent.get("originalContentUrl") or sent["text"]).split()]
            seen = [await line.view(link) for link in links if link.startswith("https://belino.example/files/")]
            assert (await gateway.audit()).is_balanced
        assert [each.status for each in seen] == [200] * 5 and all(each.size for each in seen)
        assert [one.ok for one in findings] == [True] * 4, findings
        assert [message["type"] for message in line.sent] == [
            "image", "text", "audio", "text", "text", "text", "image", "image", "text",
        ]  # fmt: skip
        async with at_work(tmp_path / "b", agent=None, more=None, line=table) as (gateway, _):
            await soon(lambda: all(health.state == "running" for health in gateway.health().values()))
            findings = await gateway.check_media(("line", "default"), to)
        assert not any(one.ok for one in findings) and "server.public_url" in findings[0].says
