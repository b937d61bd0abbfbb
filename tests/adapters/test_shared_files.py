"""The same file twice, and a platform's own transcript, in the whole house: what is known is not fetched."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.harness import until
from adapters.in_house import at_work, kept, seen
from belino.domain.errors import ToolError
from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.gateway.gateway import Gateway
from belino.gateway.reading_attempts import item_json
from belino.testing import DiscordServer, FakeUpload, SlackServer, TelegramServer, make_jpeg
from belino.testing.discord.request import CDN
from belino.understanding.told import BEGINNING
from cli.shell import run_belino


async def fetched(gateway: Gateway, platform: str, channel: str) -> list[MediaOutcome]:
    """Fetch all media of a channel, and say what became of it."""
    where = ConversationKey(platform=platform, account="default", channel=channel)
    for record in await gateway.store.refs(where):
        await gateway._fetcher.fetch(record)
    return [record.outcome for record in await gateway.store.refs(where)]


async def test_a_picture_that_telegram_forwards_is_downloaded_once(
    server: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    own = {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}}
    ada, bob = server.user("Ada"), server.user("Bob")
    async with at_work(tmp_path / "home", telegram=own) as (gateway, _):
        said = server.say(ada, ada, photo=make_jpeg(64, 48))
        await seen(gateway, str(ada["id"]), lambda message: message.media)
        again = {**server.compose(server.chats[bob["id"]], bob), "photo": said["photo"], "forward_date": 1}
        server.updates.add("message", again)
        await seen(gateway, str(bob["id"]), lambda message: message.media)
        for person in (ada, bob):
            assert await fetched(gateway, "telegram", str(person["id"])) == [MediaOutcome.HELD]
        mine, other = [(await kept(gateway, str(person["id"])))[0].media[0] for person in (ada, bob)]
    assert mine.id != other.id and mine.sha256 == other.sha256
    assert server.calls["getFile"] == 1


@pytest.mark.usefixtures("brisk_discord")
async def test_a_picture_that_discord_forwards_is_downloaded_once(
    discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", discord.token)
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    urls = {"api_url": discord.api_url, "cdn_url": discord.cdn.url}
    own = {"token": "env:TOKEN", **urls, "access": {"senders": ["*"], "channels": {room["id"]: {"senders": ["*"]}}}}
    async with at_work(tmp_path / "home", discord=own) as (gateway, _):
        await until(lambda: discord.sessions.identified)
        said = discord.say(room, ada, files=[make_jpeg(64, 48)])
        discord.say(ada, ada, forward=said)
        places = (room["id"], discord.dm(ada)["id"])
        for place in places:
            await seen(gateway, place, bool)
            assert await fetched(gateway, "discord", place) == [MediaOutcome.HELD]
    assert discord.calls[CDN] == 1


async def test_a_file_that_is_shared_twice_on_slack_is_downloaded_once(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = slack.user("Ada")
    room = slack.channel("general", ada)
    settings = slack_settings(slack, monkeypatch)
    settings["access"] |= {"channels": {room["id"]: {"senders": ["*"]}}}
    async with at_work(tmp_path / "home", slack=settings) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        said = slack.say(room, ada, files=[make_jpeg(64, 48)])
        slack.say(ada, ada, "look", share=said)
        places = (room["id"], slack.dm(ada)["id"])
        for place in places:
            await seen(gateway, place, bool)
            assert await fetched(gateway, "slack", place) == [MediaOutcome.HELD]
    assert slack.calls["file"] == 1


def slack_settings(slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name, value in (("BOT", slack.bot_token), ("APP", slack.app_token), ("HOOK", slack.signing_secret)):
        monkeypatch.setenv(name, value)
    tokens = {"bot_token": "env:BOT", "app_token": "env:APP", "signing_secret": "env:HOOK"}
    return {**tokens, "api_url": slack.api_url, "access": {"senders": ["*"]}}


async def test_a_change_that_brings_slacks_own_transcript_adds_it_to_the_readings(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = slack.user("Ada")
    told = {"status": "complete", "preview": {"content": "Can you move the meeting?", "has_more": False}}
    async with at_work(tmp_path / "home", slack=slack_settings(slack, monkeypatch)) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        said = slack.say(ada, ada, voice=FakeUpload(content=bytes(2000), duration=12))
        channel = slack.dm(ada)["id"]
        await seen(gateway, channel, lambda message: message.media)
        (file,) = slack.files.by_id.values()
        file.shape["transcription"] = told
        before = {**said, "files": [{**said["files"][0], "transcription": {"status": "processing"}}]}
        slack.send_changed(slack.channels[channel], slack.messages[channel][said["ts"]], before)
        heard = await seen(gateway, channel, lambda message: message.spoken)
        assert heard.spoken is not None and heard.spoken.text == "Can you move the meeting?"
        item = await item_json(gateway.store, heard.media[0].id)
    assert item is not None
    (reading,) = cast("list[dict[str, Any]]", item["readings"])
    assert (reading["kind"], reading["provider"], reading["partial"]) == ("audio.transcription", "slack", False)


async def test_slacks_own_transcript_is_read_without_bytes_and_calls_and_marked_if_partial(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = slack.user("Ada")
    told = {"status": "complete", "preview": {"content": "Can you", "has_more": True}}
    async with at_work(tmp_path / "home", slack=slack_settings(slack, monkeypatch)) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, voice=FakeUpload(content=bytes(2000), duration=12, extra={"transcription": told}))
        heard = await seen(gateway, slack.dm(ada)["id"], lambda message: message.spoken)
        assert heard.spoken is not None and (heard.spoken.text, heard.spoken.partial) == ("Can you…", True)
        await until(lambda: slack.sent)
        ((_, record),) = await gateway.store.attempts(ref=heard.media[0].id)
        item = await item_json(gateway.store, heard.media[0].id)
    assert (record.attempt.provider, record.attempt.reason, record.attempt.cached) == ("slack", BEGINNING, True)
    assert item is not None and cast("list[dict[str, Any]]", item["readings"])[0]["partial"] is True
    assert (slack.calls["files.info"], slack.downloads) == (0, [])


WHOLE = {"status": "complete", "preview": {"content": "Can you move the meeting?", "has_more": False}}


async def test_slacks_own_transcript_is_given_by_the_tool_and_the_command_line_without_bytes_and_calls(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = slack.user("Ada")
    async with at_work(tmp_path / "home", slack=slack_settings(slack, monkeypatch)) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, voice=FakeUpload(content=bytes(2000), duration=12, extra={"transcription": WHOLE}))
        heard = await seen(gateway, slack.dm(ada)["id"], lambda message: message.media)
        ref = heard.media[0].id
        (block,) = await gateway.toolbox(heard.conversation).call("fetch_media", {"ref": ref, "as": "transcript"})
        asked = partial(run_belino, "media", "fetch", ref, "--as", "transcript", home=tmp_path / "home", environment={})
        done = await asyncio.to_thread(asked)
    assert isinstance(block, TextBlock) and "Can you move the meeting?" in block.text
    assert (done.returncode, done.stdout.strip()) == (0, "Can you move the meeting?"), done.stderr
    assert (slack.calls["files.info"], slack.downloads) == (0, [])


async def test_where_sounds_are_not_read_slacks_own_transcript_is_not_read_either(
    slack: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, off = slack.user("Ada"), {"tools": {"media": {"audio": {"enabled": False}}}}
    async with at_work(tmp_path / "home", more=off, slack=slack_settings(slack, monkeypatch)) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, voice=FakeUpload(content=bytes(2000), duration=12, extra={"transcription": WHOLE}))
        await until(lambda: slack.sent)
        heard = (await kept(gateway, slack.dm(ada)["id"]))[0]
        attempts = await gateway.store.attempts(ref=heard.media[0].id)
        with pytest.raises(ToolError):
            await gateway.toolbox(heard.conversation).call(
                "fetch_media", {"ref": heard.media[0].id, "as": "transcript"}
            )
    assert not attempts
