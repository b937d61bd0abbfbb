"""A cassette holds no secret, no real id and no real name, however one looks at it; and nothing of a denied sender."""

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from belino.cassette.file import read_cassette
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.gateway.gateway import Gateway
from belino.gateway.replay import replay
from belino.testing import DiscordServer, SlackServer, TelegramServer
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import BusyPlace, Curious
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace
from journeys.recording import answered, readings, record, show_photo

pytestmark = pytest.mark.slow

CANARIES = (
    "987654321:AAcanary-token-of-another-bot-9",
    "xoxb-4711-canary-token-in-a-text",
    "canary-bearer-0815-secret",
    "canary-signature-0815",
)
LEAKY = (
    f"my token is bot{CANARIES[0]} and {CANARIES[1]}, call with Authorization: Bearer {CANARIES[2]} or "
    f"https://files.example.com/a.png?signature={CANARIES[3]}&ex=1, write to ann.walker@example.org or +43 660 1234567"
)
PERSONAL = ("ann.walker", "1234567")


def hits(path: Path, *wanted: str) -> list[str]:
    """Which of these stand in the file, raw, unpacked, decoded from Base64 or from an address."""
    return [each for each in wanted for reading in readings(path) if each.lower() in reading.lower()]


async def leak(place: BusyPlace, gateway: Gateway) -> None:
    await show_photo(place, gateway, LEAKY)


async def test_a_cassette_of_telegram_holds_no_secret_id_or_name(tmp_path: Path) -> None:
    async with TelegramServer(token="123456789:AAcanary-bot-token-of-ours") as server:
        place = BusyGroup(server, tmp_path / "home")
        place.ann = server.user("Annegret", username="annegret_w")
        written = await record(place, talk=leak)
        ids = [str(each["id"]).lstrip("-") for each in (place.ann, place.chat)]
        assert not hits(written.path, server.token, "canary", *CANARIES, *PERSONAL)
        assert not hits(written.path, "annegret", "hikers", "belino_bot", *ids)


async def test_a_cassette_of_discord_holds_no_secret_id_or_name(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        place = BusyServer(discord, tmp_path / "home")
        place.ann = discord.user("annegret")
        written = await record(place, talk=leak)
        ids = [place.ann["id"], place.room["id"], place.club["id"]]
        assert not hits(written.path, discord.token, "canary", *CANARIES, *PERSONAL)
        assert not hits(written.path, "annegret", "trips", *ids)


async def test_a_cassette_of_slack_holds_no_secret_id_or_name(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        place = BusyWorkspace(slack, tmp_path / "home")
        written = await record(place, talk=leak)
        ids = [place.ann["id"], place.bob["id"], place.room["id"]]
        assert not hits(written.path, slack.bot_token, slack.app_token, slack.signing_secret, *CANARIES, *PERSONAL)
        assert not hits(written.path, "trips", *ids)
        cassette = read_cassette(written.path)
        assert not (await replay(cassette)).differences


async def test_the_journal_of_a_running_recording_holds_no_secret_either(tmp_path: Path) -> None:
    async with TelegramServer(token="123456789:AAcanary-bot-token-of-ours") as server:
        place = BusyGroup(server, tmp_path / "home")
        async with place.gateway(Curious()) as gateway:
            await gateway.record()
            await leak(place, gateway)
            await answered(gateway)
            journal = (place.home.cassettes / "recording.jsonl").read_text(encoding="utf-8")
    assert server.token not in journal
    assert not [canary for canary in CANARIES if canary in journal]


async def test_keys_that_came_with_media_are_never_written(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        place = BusyGroup(server, tmp_path / "home")
        async with place.gateway(Curious()) as gateway:
            await gateway.record()
            where = place.channel()
            ref = MediaRef(
                platform="telegram", account="default", channel_id=where.channel, message_id="900", item="i-1",
                kind=MediaKind.IMAGE, mime="image/png", created=gateway.clock.now(), locator={"file_id": "f-1"},
                sealed={"key": "canary-sealed-key"},
            )  # fmt: skip
            said = Message(
                conversation=where, id="900", author=Author(id="4711471", name="Ann"), sent=gateway.clock.now(),
                text="look", media=(ref,), addressed=False, chat_type=ChatType.GROUP,
            )  # fmt: skip
            gateway.recorder.parsed({"media": {"key": "canary-sealed-key"}}, dict, [said])
            await gateway.accept(said)
            written = await gateway.stop_recording()
    assert written.records == 1
    assert not hits(written.path, "canary")


async def test_nothing_of_a_denied_sender_is_recorded(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        place = BusyGroup(server, tmp_path / "home")
        eve = server.user("Evelyn")
        async with place.gateway(Curious()) as gateway:
            await gateway.record()
            server.say(eve, eve, "the denied words of a stranger")
            await show_photo(place, gateway)
            await answered(gateway)
            while not [parcel for parcel in await gateway.store.parcels() if parcel.conversation == place.channel(eve)]:
                await asyncio.sleep(0.01)
            journal = (place.home.cassettes / "recording.jsonl").read_text(encoding="utf-8")
            written = await gateway.stop_recording()
    for text in (journal, gzip.decompress(written.path.read_bytes()).decode()):
        assert "denied words" not in text
        assert "Evelyn" not in text
        assert str(eve["id"]) not in text


async def test_with_a_conversation_nothing_of_another_is_recorded(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        place = BusyGroup(server, tmp_path / "home")
        async with place.gateway(Curious()) as gateway:
            await gateway.record(place.channel())
            place.write("something private")
            server.say(place.chat, place.ann, f"{BOT} something for the group")
            await answered(gateway)
            written = await gateway.stop_recording()
    cassette = read_cassette(written.path)
    assert len({record["conversation"] for record in cassette.records}) == 1
    assert not hits(written.path, "something private")
    assert hits(written.path, "something for the group")
    assert not (await replay(replace(cassette))).differences


async def test_one_name_has_one_stand_in_in_the_whole_file(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        place = BusyGroup(server, tmp_path / "home")
        written = await record(place)
    cassette = read_cassette(written.path)
    arrival: Any = cassette.records[0]
    name, own = arrival["arrival"]["author"]["name"], arrival["arrival"]["author"]["id"]
    assert arrival["payload"]["message"]["from"]["first_name"] == name
    assert str(arrival["payload"]["message"]["from"]["id"]) == own
    exchange = next(record for record in cassette.records if record["record"] == "exchange")
    assert any(f"from: {name}" in block.get("text", "") for block in exchange["blocks"])
    assert ConversationKey.parse(arrival["conversation"]).channel == str(arrival["payload"]["message"]["chat"]["id"])
