"""From the phone to the agent and back, through a Slack that keeps the real one's rules."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.domain.media import ImageBlock, TextBlock
from belino.domain.outcome import MediaOutcome, MessageOutcome
from belino.testing import FakeClock, FakeUpload, ScriptedAgent, SlackPace, SlackServer, ToolCall, make_jpeg, make_png
from belino.testing.faults import CannedAnswer, Reset, Stall
from journeys.busy_place import KILLS, Curious, peak_megabytes, told, until
from journeys.busy_workspace import BOT, BusyWorkspace
from journeys.offering import opus, send

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
FAST = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=100_000)


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[BusyWorkspace]:
    async with SlackServer(pace=FAST) as slack:
        yield BusyWorkspace(slack, tmp_path / "home")


async def test_ten_files_with_text_are_one_turn_and_three_of_them_are_fetched(crew: BusyWorkspace) -> None:
    async with crew.gateway():
        crew.slack.say(crew.room, crew.bob, f"{BOT} all ten", files=[make_jpeg(64, 48 + n) for n in range(10)])
        await until(lambda: crew.answers() == ["turn 1"])
    (turn,) = crew.agent.turns
    assert len(re.findall(r"\[Image: .*?ref:sl_\w{12}\]", told(turn).partition("<<<media")[0])) == 10
    assert "@belino all ten" in told(turn)
    assert crew.downloads == 3


async def test_a_recording_that_cannot_be_heard_is_a_line_with_the_reason(crew: BusyWorkspace) -> None:
    async with crew.gateway():
        crew.slack.say(crew.ann, crew.ann, voice=FakeUpload(content=bytes(2000), duration=12))
        await until(lambda: len(crew.agent.turns) == 1)
    assert re.search(r"\[Voice: audio_message.m4a, 2KB, audio/mp4, ref:sl_\w{12}\]", told(crew.agent.turns[0]))
    assert "could not be read" in told(crew.agent.turns[0])
    assert crew.downloads == 1


async def test_ten_files_and_a_sound_leave_with_the_words(crew: BusyWorkspace) -> None:
    pictures, sound = [make_jpeg(320 + number, 240) for number in range(10)], opus(2.0)
    agent = ScriptedAgent(
        [
            send(crew.offer("note.ogg", sound)),
            *[send(crew.offer(f"p{number}.jpg", picture)) for number, picture in enumerate(pictures)],
            "All **ten**.",
        ]
    )
    async with crew.gateway(agent):
        crew.slack.say(crew.ann, crew.ann, "everything, please")
        await until(lambda: sum(len(message.get("files", ())) for message in crew.slack.sent) == 11)
    assert crew.answers() == ["All *ten*.", ""], "the words come with the first files"
    shown = [file["name"] for message in crew.slack.sent for file in message.get("files", ())]
    assert shown == ["note.ogg", *(f"p{number}.jpg" for number in range(10))]
    sent = [upload.sha256 for upload in crew.slack.received]
    assert sent == [hashlib.sha256(content).hexdigest() for content in (sound, *pictures)]
    assert [len(message["files"]) for message in crew.slack.sent] == [10, 1], "eleven files fill two messages"


async def test_a_picture_of_three_days_ago_is_fetched_once_when_somebody_asks_after_a_restart(tmp_path: Path) -> None:
    clock, picture = FakeClock(), make_png(320, 200)
    async with SlackServer(clock=clock, pace=FAST) as slack:
        crew = BusyWorkspace(slack, tmp_path / "home")
        async with crew.gateway() as gateway:
            photo = slack.say(crew.room, crew.bob, "the summit", files=[picture])
            (kept,) = await crew.stored(gateway, 1)
            assert kept.outcome is MessageOutcome.OBSERVED
        clock.shift(3 * 24 * 3600)
        curious = Curious()
        async with crew.gateway(curious):
            for asked in (1, 2):
                slack.say(crew.room, crew.ann, f"{BOT} which mountain is it?", thread=photo)
                await until(lambda count=asked: len(crew.answers()) == count)  # type: ignore[misc]
        pictures = [block for block in curious.seen if isinstance(block, ImageBlock)]
        assert pictures
        assert {block.data for block in pictures} == {picture}
        assert crew.downloads == 1
        assert {message["thread_ts"] for message in slack.sent} == {photo["ts"]}


async def test_a_link_that_moved_is_renewed_and_a_deleted_picture_is_told_as_gone(crew: BusyWorkspace) -> None:
    curious = Curious()
    async with crew.gateway(curious) as gateway:
        photo = crew.slack.say(crew.room, crew.bob, "look", files=[make_png(32, 20)])
        await crew.stored(gateway, 1)
        crew.slack.fail("file", CannedAnswer(status=404, body=b"gone"))
        crew.slack.say(crew.room, crew.ann, f"{BOT} what is it?", thread=photo)
        await until(lambda: len(crew.answers()) == 1)
        assert any(isinstance(block, ImageBlock) for block in curious.seen)
        crew.slack.delete(photo)

        async def is_gone() -> bool:
            return (await gateway.store.history(crew.channel(), limit=10))[0].deleted is not None

        await until(is_gone)
        (kept, *_) = await gateway.store.history(crew.channel(), limit=10)
        assert (kept.text, kept.media) == ("", ())


async def test_a_missing_scope_is_told_with_its_cure(crew: BusyWorkspace) -> None:
    curious = Curious()
    async with crew.gateway(curious) as gateway:
        crew.slack.scopes.discard("files:read")
        crew.slack.say(crew.room, crew.ann, f"{BOT} look", files=[make_png(8, 8)])
        await until(lambda: len(crew.answers()) == 1)
        (record,) = await gateway.store.refs(crew.channel())
    assert record.outcome is MediaOutcome.REFUSED
    assert "files:read" in record.reason


async def test_an_edit_is_kept_as_it_reads_and_a_preview_is_none(crew: BusyWorkspace) -> None:
    async with crew.gateway() as gateway:
        said = crew.slack.say(crew.room, crew.bob, "we meet at 8: https://example.org/map")
        await crew.stored(gateway, 1)
        crew.slack.unfurl(said, {"title": "A map", "from_url": "https://example.org/map"})
        crew.slack.edit(said, "we meet at 9")

        async def reads_nine() -> bool:
            kept = await gateway.store.history(crew.channel())
            return [message.text.partition("\n")[0] for message in kept if message.edited] == ["we meet at 9"]

        await until(reads_nine)


async def test_a_question_in_a_thread_of_600_replies_is_told_the_beginning_and_the_end_of_it(
    crew: BusyWorkspace,
) -> None:
    root = crew.slack.say(crew.room, crew.bob, "Shall we take the ridge?")
    channel = crew.slack.channels[crew.room["id"]]
    for number in range(600):
        crew.slack.compose(channel, crew.bob, f"reply {number}", thread=root)
    async with crew.gateway():
        crew.slack.say(crew.room, crew.ann, f"{BOT} so?", thread=root)
        await until(lambda: crew.answers() == ["turn 1"])
    assert crew.slack.sent[0]["thread_ts"] == root["ts"]
    shown = told(crew.agent.turns[0])
    assert "Shall we take the ridge?" in shown
    assert "reply 599" in shown
    assert crew.slack.calls["conversations.replies"] == 1
    assert crew.slack.calls["conversations.history"] <= 1


async def test_a_question_can_be_answered_in_a_thread_of_its_own(tmp_path: Path) -> None:
    async with SlackServer(pace=FAST) as slack:
        crew = BusyWorkspace(slack, tmp_path / "home", reply_in_threads=True)
        async with crew.gateway():
            asked = slack.say(crew.room, crew.ann, f"{BOT} who comes?")
            await until(lambda: crew.answers() == ["turn 1"])
            slack.say(crew.room, crew.ann, f"{BOT} and when?", thread=asked)
            await until(lambda: crew.answers() == ["turn 1", "turn 2"])
        assert {message["thread_ts"] for message in slack.sent} == {asked["ts"]}
        assert "who comes?" in told(crew.agent.turns[0])
        assert crew.agent.turns[0].conversation == crew.agent.turns[1].conversation
        assert slack.calls["conversations.replies"] == 0


async def test_a_socket_that_drops_in_the_middle_loses_nothing(crew: BusyWorkspace) -> None:
    async with crew.gateway():
        for number in range(10):
            opened = crew.slack.socket_mode.opened
            crew.slack.say(crew.ann, crew.ann, f"message {number}")
            await until(lambda count=number: len(crew.agent.turns) == count + 1)  # type: ignore[misc]
            if number % 5 == 2:
                crew.slack.drop_sockets()
                await until(lambda count=opened: crew.slack.socket_mode.opened > count and crew.is_heard())  # type: ignore[misc]
        await until(lambda: len(crew.answers()) == 10)
    assert crew.answers() == [f"turn {number}" for number in range(1, 11)]


async def test_a_429_and_a_lost_answer_delay_and_double_nothing(crew: BusyWorkspace) -> None:
    async with crew.gateway():
        crew.slack.fail("chat.postMessage", CannedAnswer(status=429, headers={"Retry-After": "1"}))
        crew.slack.fail("chat.postMessage", Reset())
        crew.slack.fail("chat.postMessage", CannedAnswer(status=502, body=b"<html>"))
        crew.slack.say(crew.ann, crew.ann, "one")
        await until(lambda: crew.answers() == ["turn 1"])
        crew.slack.say(crew.ann, crew.ann, "two")
        await until(lambda: crew.answers() == ["turn 1", "turn 2"])


async def test_a_stranger_gets_nothing_but_a_code_and_a_bot_not_even_that(crew: BusyWorkspace) -> None:
    robot = crew.slack.user("robot", bot=True)
    async with crew.gateway() as gateway:
        crew.slack.say(robot, robot, "beep", bot_id="B0ROBOT001")
        crew.slack.say(crew.bob, crew.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(crew.answers()) == 1)
        assert crew.agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(crew.channel(crew.bob)))


async def test_only_who_is_listed_and_speaks_to_the_agent_in_a_listed_channel_is_answered(crew: BusyWorkspace) -> None:
    other = crew.slack.channel("elsewhere", crew.ann)
    async with crew.gateway() as gateway:
        crew.slack.say(other, crew.ann, f"{BOT} here too?")
        crew.slack.say(crew.room, crew.ann, "not for you")
        crew.slack.say(crew.room, crew.ann, f"{BOT} for you")
        await until(lambda: len(crew.answers()) == 1)
        kept = await gateway.store.history(crew.channel())
    assert {message.text for message in kept if not message.author.is_agent} == {"not for you", "@belino for you"}
    assert crew.slack.sent[0]["channel"] == crew.room["id"]


async def test_an_answer_is_kept_once_although_slack_tells_of_it_too(crew: BusyWorkspace) -> None:
    async with crew.gateway() as gateway:
        for number in (1, 2):
            crew.slack.say(crew.ann, crew.ann, f"message {number}")
            await until(lambda count=number: len(crew.answers()) == count)  # type: ignore[misc]
        await until(lambda: not crew.slack.deliveries.waiting)
        kept = await gateway.store.history(crew.channel(crew.ann))
    assert [message.text for message in kept if message.author.is_agent] == ["turn 1", "turn 2"]
    assert len(crew.agent.turns) == 2


async def test_no_token_is_kept_or_told_anywhere(crew: BusyWorkspace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="belino")
    curious = Curious()
    async with crew.gateway(curious):
        crew.slack.fail("file", CannedAnswer(status=500))
        crew.slack.say(crew.room, crew.ann, f"{BOT} look", files=[make_png(8, 8)])
        await until(lambda: len(crew.answers()) == 1)
    secrets = [crew.slack.bot_token, crew.slack.app_token]
    for secret in secrets:
        assert secret not in caplog.text
        assert secret not in str(curious.seen)
    for path in crew.home.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in (*secrets, "files-pri") if secret.encode() in content], path.name


async def test_a_gateway_killed_again_and_again_takes_every_message_once_and_answers_it_once(tmp_path: Path) -> None:
    async with SlackServer(pace=FAST) as slack:
        said, parcels = await BusyWorkspace(slack, tmp_path / "home").outlives_kills()
    assert sorted(said) == sorted(f"message {number}" for number in range(KILLS * 4))
    assert {parcel["state"] for parcel in parcels} == {"sent"}
    assert len(slack.sent) == len(parcels)


async def test_an_upload_of_100_megabytes_costs_no_memory_and_survives_a_kill_in_the_middle(
    crew: BusyWorkspace,
) -> None:
    content = os.urandom(MEGABYTE) * 100
    root = crew.slack.say(crew.room, crew.ann, "large things go here")
    async with crew.process() as process:
        await crew.loaded(process)
        crew.slack.fail("upload", Stall(after=5 * MEGABYTE))
        crew.offer("pending/large.bin", content, crew.channel(crew.room, root))
        crew.slack.say(crew.room, crew.ann, f"{BOT} the file", thread=root)
        await until(lambda: crew.slack.stalled)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)
        before = await crew.loaded(process)
        await until(lambda: [one.sha256 for one in crew.slack.received] == [hashlib.sha256(content).hexdigest()])
        used = peak_megabytes(process) - before
        assert used < 16, used


async def test_a_file_of_100_megabytes_comes_in_without_costing_memory(crew: BusyWorkspace) -> None:
    content = os.urandom(MEGABYTE) * 100
    async with crew.process() as process:
        before = await crew.loaded(process)
        large = FakeUpload(content=content, name="film.bin", mime="application/octet-stream")
        crew.slack.say(crew.ann, crew.ann, "look at it", files=[large])
        await until(lambda: len(crew.slack.sent) == 2)
        assert crew.slack.bytes_served >= len(content)
        used = peak_megabytes(process) - before
        assert used < 16, used


async def test_old_threads_are_lively_from_the_first_message_on_and_cost_one_call(crew: BusyWorkspace) -> None:
    for number in range(3):
        root = crew.slack.say(crew.room, crew.bob, f"old question {number}")
        for reply in range(3):
            crew.slack.say(crew.room, crew.ann, f"reply {reply}", thread=root)
    async with crew.gateway() as gateway:
        crew.slack.say(crew.room, crew.bob, f"{BOT} what is going on?")
        await until(lambda: crew.answers() == ["turn 1"])
        known = await gateway.store.thread(crew.channel(), root["ts"])
    lines = [line for line in told(crew.agent.turns[0]).splitlines() if "|old question" in line]
    assert len(lines) == 3 and all(re.search(r"\|\(3 replies, last \d\d:\d\d\)$", line) for line in lines)
    assert known is not None and (known.total, known.stored) == (3, 0)
    assert (crew.slack.calls["conversations.history"], crew.slack.calls["conversations.replies"]) == (1, 0)


async def test_the_words_beside_one_file_are_the_text_of_its_message(crew: BusyWorkspace) -> None:
    async with crew.gateway() as gateway:
        crew.slack.say(crew.ann, crew.ann, "What is this?", files=[make_jpeg(64, 48)])
        await until(lambda: crew.answers() == ["turn 1"])
        names = [channel.name for channel in await gateway.store.channels()]
    assert "\ntext:\nWhat is this?\n" in told(crew.agent.turns[0])
    assert names == ["Ann"]


async def test_in_a_thread_the_agent_is_told_how_much_the_channel_said_and_can_read_it(crew: BusyWorkspace) -> None:
    root = crew.slack.say(crew.room, crew.bob, "the plan")
    async with crew.gateway():
        crew.slack.say(crew.room, crew.bob, f"{BOT} what do you think?", thread=root)
        await until(lambda: len(crew.answers()) == 1)
        for number in range(3):
            crew.slack.say(crew.room, crew.bob, f"news {number}: the ferry is cancelled")
        crew.slack.say(crew.room, crew.bob, f"{BOT} did you see the news in the channel?", thread=root)
        await until(lambda: len(crew.answers()) == 2)
        news = told(crew.agent.turns[1])
        found = re.search(r"3 said in the channel itself: channel_messages\(cursor=(\d+)\)", news)
        assert found is not None and "ferry" not in news
        crew.agent.script.append(
            [ToolCall(name="channel_messages", arguments={"cursor": found[1], "max_replies": 3}), "read"]
        )
        crew.slack.say(crew.room, crew.bob, f"{BOT} read it", thread=root)
        await until(lambda: len(crew.answers()) == 3)
    ((page,),) = crew.agent.answers
    assert isinstance(page, TextBlock) and re.findall(r"\|(news \d): the ferry", page.text) == [
        "news 0",
        "news 1",
        "news 2",
    ]
