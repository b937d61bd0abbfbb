"""From the phone to the agent and back, through a Discord that keeps the real one's rules."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from belino.domain.media import ImageBlock
from belino.domain.outcome import MessageOutcome
from belino.testing import FakeClock, ScriptedAgent, make_jpeg, make_png
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import CDN, DiscordPace, slow_down
from belino.testing.faults import CannedAnswer, Reset, Stall
from belino.testing.file_server import FakeUpload
from journeys.busy_place import KILLS, Curious, peak_megabytes, settled_parcels, told, until
from journeys.busy_server import BOT, BusyServer
from journeys.offering import opus, send

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
SEND, HISTORY = "POST /channels/{channel}/messages", "GET /channels/{channel}/messages"


@pytest.fixture
async def club(tmp_path: Path) -> AsyncIterator[BusyServer]:
    async with DiscordServer() as discord:
        yield BusyServer(discord, tmp_path / "home", upload_mb=25)


async def test_ten_files_with_text_are_one_turn_and_three_of_them_are_fetched(club: BusyServer) -> None:
    async with club.gateway():
        club.discord.say(club.room, club.bob, f"{BOT} all ten", files=[make_jpeg(64, 48 + n) for n in range(10)])
        await until(lambda: club.answers() == ["turn 1"])
    (turn,) = club.agent.turns
    assert len(re.findall(r"\[Image: .*?ref:dc_\w{12}\]", told(turn).partition("<<<media")[0])) == 10
    assert "@belino all ten" in told(turn)
    assert club.downloads == 3


async def test_a_recording_that_cannot_be_heard_is_a_line_with_the_reason(club: BusyServer) -> None:
    async with club.gateway():
        club.discord.say(club.ann, club.ann, voice=FakeUpload(content=b"OggS" + bytes(2000), duration=12))
        await until(lambda: len(club.agent.turns) == 1)
    assert re.search(r"\[Voice: voice-message.ogg, 2KB, audio/ogg, ref:dc_\w{12}\]", told(club.agent.turns[0]))
    assert "could not be read" in told(club.agent.turns[0])
    assert club.downloads == 1


async def test_what_is_forwarded_and_what_a_card_says_is_told_to_the_agent(club: BusyServer) -> None:
    shown = club.discord.say(club.room, club.bob, "the summit at noon", files=[make_jpeg(64, 48)])
    async with club.gateway():
        club.discord.say(club.ann, club.ann, forward=shown)
        await until(lambda: len(club.agent.turns) == 1)
        club.discord.say(club.ann, club.ann, "see", embeds=[{"title": "Weather", "description": "Rain until five"}])
        await until(lambda: len(club.agent.turns) == 2)
    forwarded, card = (told(turn) for turn in club.agent.turns)
    assert "the summit at noon" in forwarded and re.search(r"\[Image: .*?ref:dc_\w{12}\]", forwarded)
    assert "Embed: Weather" in card and "Rain until five" in card


async def test_ten_files_and_a_voice_message_leave_with_the_words(club: BusyServer) -> None:
    pictures, voice = [make_jpeg(320 + number, 240) for number in range(10)], opus(2.0)
    agent = ScriptedAgent(
        [
            send(club.offer("note.ogg", voice), **{"as": "voice"}),
            *[send(club.offer(f"p{number}.jpg", picture)) for number, picture in enumerate(pictures)],
            "All **ten**.",
        ]
    )
    async with club.gateway(agent):
        club.discord.say(club.ann, club.ann, "everything, please")
        await until(lambda: len(club.discord.sent) == 2)
    spoken, shown = club.discord.sent
    assert spoken["flags"] & 1 << 13 and spoken["attachments"][0]["duration_secs"] == pytest.approx(2.0, abs=0.1)
    assert (shown["content"], len(shown["attachments"])) == ("All **ten**.", 10)
    sent = [upload.sha256 for upload in club.discord.received]
    assert sent == [hashlib.sha256(content).hexdigest() for content in (voice, *pictures)]


async def test_a_picture_of_three_days_ago_is_fetched_once_when_somebody_asks_after_a_restart(tmp_path: Path) -> None:
    clock, picture = FakeClock(), make_png(320, 200)
    async with DiscordServer(clock=clock) as discord:
        club = BusyServer(discord, tmp_path / "home")
        async with club.gateway() as gateway:
            photo = discord.say(club.room, club.bob, "the summit", files=[picture])
            (kept,) = await club.stored(gateway, 1)
            assert kept.outcome is MessageOutcome.OBSERVED
        clock.shift(3 * 24 * 3600)
        curious = Curious()
        async with club.gateway(curious):
            for asked in (1, 2):
                discord.say(club.room, club.ann, f"{BOT} which mountain is it?", reply_to=photo)
                await until(lambda count=asked: len(club.answers()) == count)  # type: ignore[misc]
        pictures = [block for block in curious.seen if isinstance(block, ImageBlock)]
        assert pictures and {block.data for block in pictures} == {picture}
        assert club.downloads == 1


async def test_an_expired_link_is_renewed_and_a_deleted_picture_is_told_as_gone(club: BusyServer) -> None:
    curious = Curious()
    async with club.gateway(curious) as gateway:
        photo = club.discord.say(club.room, club.bob, "look", files=[make_png(32, 20)])
        await club.stored(gateway, 1)
        club.discord.fail(CDN, CannedAnswer(status=404, body=b"This content is no longer available."))
        club.discord.say(club.room, club.ann, f"{BOT} what is it?", reply_to=photo)
        await until(lambda: len(club.answers()) == 1)
        assert any(isinstance(block, ImageBlock) for block in curious.seen)
        club.discord.delete(photo)

        async def is_gone() -> bool:
            return (await gateway.store.history(club.channel(), limit=10))[0].deleted is not None

        await until(is_gone)
        (kept, *_) = await gateway.store.history(club.channel(), limit=10)
        assert (kept.text, kept.media) == ("", ())


async def test_an_edit_is_kept_as_it_reads_and_a_preview_is_none(club: BusyServer) -> None:
    async with club.gateway() as gateway:
        said = club.discord.say(club.room, club.bob, "we meet at 8: https://example.org/map")
        await club.stored(gateway, 1)
        club.discord.unfurl(said, {"type": "article", "title": "A map"})
        club.discord.edit(said, "we meet at 9")

        async def reads_nine() -> bool:
            kept = await gateway.store.history(club.channel())
            return [message.text for message in kept if message.edited] == ["we meet at 9\nEmbed: A map"]

        await until(reads_nine)


async def test_a_question_in_a_thread_of_600_replies_is_told_the_beginning_and_the_end_of_it(club: BusyServer) -> None:
    root = club.discord.say(club.room, club.bob, "Shall we take the ridge?")
    thread = club.discord.thread(club.room, club.bob, "ridge", message=root)
    for number in range(600):
        club.discord.compose(club.discord.channels[thread["id"]], club.bob, f"reply {number}")
    async with club.gateway():
        club.discord.say(thread, club.ann, f"{BOT} so?")
        await until(lambda: club.answers() == ["turn 1"])
    assert club.discord.sent[0]["channel_id"] == thread["id"]
    shown = told(club.agent.turns[0])
    assert "Shall we take the ridge?" in shown and "reply 599" in shown
    assert club.discord.calls[HISTORY] <= 2


async def test_a_socket_that_drops_in_the_middle_loses_nothing(club: BusyServer) -> None:
    async with club.gateway():
        for number in range(10):
            club.discord.say(club.ann, club.ann, f"message {number}")
            if number % 5 == 2:
                await club.discord.drop_socket()
            await until(lambda count=number: len(club.agent.turns) == count + 1)  # type: ignore[misc]
        await until(lambda: len(club.answers()) == 10)
    assert club.answers() == [f"turn {number}" for number in range(1, 11)]


async def test_a_429_and_a_lost_answer_delay_and_double_nothing(club: BusyServer) -> None:
    async with club.gateway():
        club.discord.fail(SEND, slow_down(0.5))
        club.discord.fail(SEND, Reset(done=True))
        club.discord.fail(SEND, CannedAnswer(status=502, body=b"<html>"))
        club.discord.say(club.ann, club.ann, "one")
        await until(lambda: club.answers() == ["turn 1"])
        club.discord.say(club.ann, club.ann, "two")
        await until(lambda: len(club.answers()) == 2)


async def test_a_stranger_gets_nothing_but_a_code_and_a_bot_not_even_that(club: BusyServer) -> None:
    robot = club.discord.user("robot", bot=True)
    async with club.gateway() as gateway:
        club.discord.say(robot, robot, "beep")
        club.discord.say(club.bob, club.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(club.answers()) == 1)
        assert club.agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(club.channel(club.bob)))


async def test_only_who_is_listed_and_speaks_to_the_agent_in_a_listed_channel_is_answered(club: BusyServer) -> None:
    other = club.discord.channel(club.club, "elsewhere")
    async with club.gateway() as gateway:
        club.discord.say(other, club.ann, f"{BOT} here too?")
        club.discord.say(club.room, club.ann, "not for you")
        club.discord.say(club.room, club.ann, f"{BOT} for you")
        await until(lambda: len(club.answers()) == 1)
        kept = await gateway.store.history(club.channel())
    assert [message.text for message in kept][:2] == ["not for you", "@belino for you"]
    assert club.discord.sent[0]["channel_id"] == club.room["id"]


async def test_two_bots_answer_each_in_their_own_server(club: BusyServer, tmp_path: Path) -> None:
    async with DiscordServer(token="another.bot.altogether") as discord:
        other = BusyServer(discord, tmp_path / "other")
        table, second = club.table(), other.table()["adapters"]["discord"]
        table["adapters"]["discord"]["accounts"] = {"work": {**second, "token": "env:BELINO_OTHER_TOKEN"}}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BELINO_OTHER_TOKEN", discord.token)
            patch.setattr(club, "table", lambda: table)
            async with club.gateway() as gateway:
                await until(other.is_heard)
                club.discord.say(club.ann, club.ann, "to the first")
                discord.say(other.ann, other.ann, "to the second")
                await until(lambda: club.answers() and other.answers())
                where = replace(other.channel(other.ann), account="work")
                assert (await gateway.store.history(where))[0].text == "to the second"


async def test_no_token_is_kept_or_told_anywhere(club: BusyServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="belino")
    curious = Curious()
    async with club.gateway(curious):
        club.discord.fail(CDN, CannedAnswer(status=500))
        club.discord.say(club.room, club.ann, f"{BOT} look", files=[make_png(8, 8)])
        await until(lambda: len(club.answers()) == 1)
    secret = club.discord.token.rpartition(".")[2]
    assert secret not in caplog.text and "hm=" not in caplog.text
    assert secret not in str(curious.seen)
    for path in club.home.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert secret.encode() not in content and b"hm=" not in content, path.name


async def test_a_gateway_killed_again_and_again_takes_every_message_once_and_answers_it_once(tmp_path: Path) -> None:
    async with DiscordServer(pace=DiscordPace(routes={})) as discord:
        said, parcels = await BusyServer(discord, tmp_path / "home").outlives_kills()
    assert said == [f"message {number}" for number in range(KILLS * 4)]
    assert {parcel["state"] for parcel in parcels} == {"sent"}
    assert len(discord.sent) == len(parcels)


def hashes(club: BusyServer) -> list[str]:
    return [upload.sha256 for upload in club.discord.received]


async def test_an_upload_of_25_megabytes_costs_no_memory(club: BusyServer) -> None:
    content = os.urandom(1_000_000) * 25
    thread = club.discord.thread(club.room, club.ann, "large")
    async with club.process() as process:
        before = await club.loaded(process)
        club.offer("pending/large.bin", content, club.channel(club.room, thread))
        club.discord.say(thread, club.ann, f"{BOT} the file")
        await until(lambda: hashes(club) == [hashlib.sha256(content).hexdigest()])
        used = peak_megabytes(process) - before
        assert used < 16, used


async def test_an_upload_that_is_killed_in_the_middle_arrives_once(club: BusyServer) -> None:
    content = os.urandom(1_000_000) * 9
    async with club.process() as process:
        await club.loaded(process)
        club.discord.fail(SEND, Stall(after=5 * MEGABYTE))
        thread = club.discord.thread(club.room, club.ann, "large")
        club.offer("pending/large.bin", content, club.channel(club.room, thread))
        club.discord.say(thread, club.ann, f"{BOT} the file")
        await until(lambda: club.discord.calls[SEND] >= 2)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)
        parcels = await asyncio.to_thread(settled_parcels, process, 2)
    assert {parcel["state"] for parcel in parcels} == {"sent"}
    assert hashes(club) == [hashlib.sha256(content).hexdigest()]


async def test_a_file_of_25_megabytes_comes_in_without_costing_memory(club: BusyServer) -> None:
    content = os.urandom(1_000_000) * 25
    async with club.process() as process:
        before = await club.loaded(process)
        large = FakeUpload(content=content, name="film.bin", mime="application/octet-stream")
        club.discord.say(club.ann, club.ann, "look at it", files=[large])
        await until(lambda: len(club.discord.sent) == 2)
        assert club.discord.bytes_served >= len(content)
        used = peak_megabytes(process) - before
        assert used < 16, used


async def test_an_old_thread_is_lively_from_the_first_message_on_and_its_notice_is_no_reply(club: BusyServer) -> None:
    root = club.discord.say(club.room, club.bob, "old question")
    thread = club.discord.thread(club.room, club.bob, "talk", message=root)
    for number in range(4):
        club.discord.say(thread, club.ann, f"reply {number}")
    async with club.gateway() as gateway:
        club.discord.say(club.room, club.bob, f"{BOT} what is going on?")
        await until(lambda: club.answers() == ["turn 1"])
        club.discord.say(club.ann, club.ann, "and here?")
        await until(lambda: len(club.answers()) == 2)
        names = {channel.name for channel in await gateway.store.channels()}
    (line,) = [line for line in told(club.agent.turns[0]).splitlines() if "|old question" in line]
    assert re.search(r"\|\(4 replies, last \d\d:\d\d\)$", line)
    assert names == {"trips", "Ann"}
