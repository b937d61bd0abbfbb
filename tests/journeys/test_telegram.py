"""From the phone to the agent and back, through a Telegram that keeps the real one's rules."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from belino.adapters.telegram import SECRET_HEADER
from belino.cli.reading_setup import SPEECH
from belino.domain.media import ImageBlock
from belino.domain.outcome import MediaOutcome, MessageOutcome
from belino.domain.ports import Hook, TakesHooks
from belino.gateway.gateway import Gateway
from belino.testing import FakeClock, ScriptedAgent, TelegramPace, TelegramServer, ToolCall, make_jpeg, make_png
from belino.testing.faults import CannedAnswer, Reset
from belino.testing.file_server import FakeUpload
from belino.turns.reply import DOUBT
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import KILLS, LONG_AGO, Curious, text_of, told, until

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
PHOTO = make_jpeg(64, 48)
SECRET = "canary-hook-secret"


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[BusyGroup]:
    async with TelegramServer() as server:
        yield BusyGroup(server, tmp_path / "home")


async def test_an_album_of_ten_is_one_turn_with_every_caption_and_three_of_it_are_fetched(group: BusyGroup) -> None:
    async with group.gateway():
        for number in range(10):
            caption = f"{BOT} caption {number}" if number == 0 else f"caption {number}"
            group.server.say(group.chat, group.ann, photo=make_jpeg(64, 48), album="a1", caption=caption)
        await until(lambda: group.answers() == ["turn 1"])
    (turn,) = group.agent.turns
    assert len(re.findall(r"\[Image: .*?ref:tg_\w{12}\]", told(turn).partition("<<<media")[0])) == 10
    assert [number for number in range(10) if f"caption {number}" not in told(turn)] == []
    assert group.downloads == 3


async def test_a_voice_note_is_heard_when_it_is_answered_and_costs_nothing_before(group: BusyGroup) -> None:
    note = FakeUpload(content=SPEECH.read_bytes(), duration=5)
    async with group.gateway() as gateway:
        group.server.say(group.chat, group.ann, voice=note)
        await group.stored(gateway, 1)
        assert group.downloads == 0
        group.server.say(group.ann, group.ann, voice=note)
        await until(lambda: len(group.agent.turns) == 1)
    heard = told(group.agent.turns[0])
    assert re.search(r"\[Voice: 5s, \d+KB, audio/ogg, ref:tg_\w{12}\]", heard) and "Transcript:" in heard
    assert "thursday" in heard.lower()
    assert group.downloads == 1


async def test_a_picture_of_three_days_ago_is_fetched_once_when_somebody_asks_after_a_restart(tmp_path: Path) -> None:
    clock, picture = FakeClock(), make_png(320, 200)
    async with TelegramServer(clock=clock) as server:
        group = BusyGroup(server, tmp_path / "home")
        photo = server.say(group.chat, group.bob, photo=picture, caption="the summit")
        async with group.gateway() as gateway:
            (kept,) = await group.stored(gateway, 1)
            assert kept.outcome is MessageOutcome.OBSERVED
        clock.shift(3 * 24 * 3600)
        curious = Curious()
        async with group.gateway(curious):
            for asked in (1, 2):
                server.say(group.chat, group.ann, f"{BOT} which mountain is it?", reply_to=photo)
                await until(lambda count=asked: len(group.answers()) == count)  # type: ignore[misc]
        pictures = [block for block in curious.seen if isinstance(block, ImageBlock)]
        assert [block.data for block in pictures] == [picture, picture]
        assert group.downloads == 1


async def test_a_file_of_25_megabytes_is_told_and_not_lost(group: BusyGroup) -> None:
    curious = Curious()
    async with group.gateway(curious) as gateway:
        large = FakeUpload(
            content=lambda: bytes(25 * MEGABYTE), size=25 * MEGABYTE, name="film.mkv", mime="video/x-matroska"
        )
        group.server.say(group.chat, group.ann, document=large, caption=f"{BOT} what is in it?")
        await until(lambda: group.answers() == ["looked"])
        (record,) = await gateway.store.refs(group.channel())
    assert record.outcome is MediaOutcome.TOO_LARGE
    assert "20" in record.reason
    assert "20" in told(curious.turns[0])
    assert group.downloads == 0


async def test_a_picture_now_and_the_question_later_belong_together(group: BusyGroup) -> None:
    async with group.gateway() as gateway:
        group.server.say(group.chat, group.ann, photo=make_jpeg(64, 48))
        group.server.say(group.chat, group.bob, "nice weather")
        await group.stored(gateway, 2)
        group.server.say(group.chat, group.ann, f"{BOT} what do you see?")
        await until(lambda: len(group.agent.turns) == 1)
    assert re.search(r"\[Image: .*?ref:tg_\w{12}\]", told(group.agent.turns[0]))


async def test_an_edit_is_answered_as_it_reads_and_kept_afterwards(group: BusyGroup) -> None:
    async with group.gateway() as gateway:
        said = group.server.say(group.chat, group.bob, "we meet at 8")
        await group.stored(gateway, 1)
        group.server.edit(said, "we meet at 9")

        async def reads_nine() -> bool:
            return [m.text for m in await gateway.store.history(group.channel())] == ["we meet at 9"]

        await until(reads_nine)


async def test_ten_thousand_messages_are_kept_in_order_and_nothing_is_fetched(group: BusyGroup) -> None:
    for number in range(10_000):
        if number % 4 == 0:
            group.server.say(group.chat, group.bob, photo=PHOTO, caption=f"{number}")
        else:
            group.server.say(group.chat, group.bob, f"{number}")
    async with group.gateway() as gateway:
        kept = await group.stored(gateway, 10_000)
        assert [int(message.id) for message in kept] == list(range(1, 10_001))
        assert (await gateway.store.counts())["refs"] == 2_500
    assert group.downloads == 0


async def test_a_server_that_is_gone_for_a_while_loses_nothing(group: BusyGroup) -> None:
    async with group.gateway():
        group.server.say(group.ann, group.ann, "one")
        await until(lambda: group.answers() == ["turn 1"])
        group.server.fail("getUpdates", CannedAnswer(status=502, description="Bad Gateway"))
        group.server.fail("getUpdates", Reset(), times=2)
        group.server.say(group.ann, group.ann, "two")
        await until(lambda: group.answers() == ["turn 1", "turn 2"])


async def test_a_stranger_gets_nothing_but_a_code(group: BusyGroup) -> None:
    agent = ScriptedAgent()
    async with group.gateway(agent) as gateway:
        group.server.say(group.bob, group.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(group.answers()) == 1)
        assert agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(group.channel(group.bob)))


async def test_no_token_is_kept_or_told_anywhere(group: BusyGroup, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    curious = Curious()
    async with group.gateway(curious):
        group.server.fail("file", CannedAnswer(status=500, description="oops"))
        group.server.say(group.chat, group.ann, photo=make_png(8, 8), caption=f"{BOT} look")
        await until(lambda: len(group.answers()) == 1)
    secret = group.server.token.partition(":")[2]
    assert secret not in caplog.text
    assert secret not in str(curious.seen)
    for path in group.home.path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path.name


async def test_the_agent_lists_what_is_there_with_its_price(group: BusyGroup) -> None:
    agent = ScriptedAgent([ToolCall(name="list_media"), "done"])
    async with group.gateway(agent):
        group.server.say(group.chat, group.bob, photo=make_jpeg(640, 480), caption="the hut")
        group.server.say(group.chat, group.ann, f"{BOT} what was sent?")
        await until(lambda: group.answers() == ["done"])
    assert "the hut" in text_of(agent.answers[0])
    assert group.downloads == 0


async def test_a_gateway_killed_again_and_again_takes_every_message_once_and_flags_what_may_be_doubled(
    tmp_path: Path,
) -> None:
    async with TelegramServer(pace=TelegramPace(chat_burst=100)) as server:
        said, parcels = await BusyGroup(server, tmp_path / "home").outlives_kills()
    assert said == [f"message {number}" for number in range(KILLS * 4)]
    sent = sum(parcel["state"] == "sent" for parcel in parcels)
    uncertain = sum(parcel["state"] == "uncertain" for parcel in parcels)
    assert 0 < sent + uncertain == len(parcels) <= len(said)
    assert sent <= len(server.sent) <= sent + uncertain


class Called(BusyGroup):
    """Telegram calls here itself, over as many lines as it likes."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "BELINO_TEST_HOOK": SECRET}

    def adapter(self) -> dict[str, Any]:
        return {**super().adapter(), "mode": "webhook", "webhook_secret": "env:BELINO_TEST_HOOK"}

    async def call(self, gateway: Gateway, number: int, **update: object) -> int:
        adapter = gateway.adapters["telegram", "default"]
        assert isinstance(adapter, TakesHooks)
        body = json.dumps({"update_id": number, **update}).encode()
        hook = Hook(method="POST", path="", query="", headers={SECRET_HEADER: SECRET}, body=body)
        return (await adapter.take_hook(hook)).status


async def test_a_call_that_overtakes_another_with_an_edit_costs_no_words(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        group = Called(server, tmp_path / "home")
        said = {"message_id": 7, "date": LONG_AGO, "chat": {**group.ann, "type": "private"}, "from": group.ann}
        async with group.gateway() as gateway:
            edit = {**said, "edit_date": LONG_AGO + 5, "text": "what is 2+2?"}
            await until(lambda: gateway.adapters["telegram", "default"]._hooks.is_open)  # type: ignore[attr-defined]
            assert await group.call(gateway, 12, edited_message=edit) == 200
            assert await group.call(gateway, 11, message={**said, "text": "what is 1+1?"}) == 200
            await until(lambda: group.answers() == ["turn 1"])
        (turn,) = group.agent.turns
        assert "what is 2+2?" in told(turn) and "1+1" not in told(turn)


@pytest.mark.parametrize("done", [True, False], ids=["it arrived", "it was lost"])
async def test_after_an_answer_whose_fate_is_unknown_the_next_one_says_so_once(group: BusyGroup, done: bool) -> None:
    async with group.gateway() as gateway:
        group.server.fail("sendMessage", Reset(done=done))
        group.write("one")
        await until(lambda: gateway.counters.parcels["uncertain"] == 1)
        for number, text in enumerate(("two", "three"), 1):
            group.write(text)
            await until(lambda number=number: gateway.counters.parcels["sent"] == number)  # type: ignore[misc]
        assert (await gateway.audit()).is_balanced
    assert group.answers()[-2:] == [f"{DOUBT}\n\nturn 2", "turn 3"]
    assert len(group.answers()) == 2 + done
