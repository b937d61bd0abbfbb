"""From the phone to the agent and back, through a signal-cli daemon that keeps the real one's protocol."""

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from belino.cli.reading_setup import SPEECH
from belino.domain.media import ImageBlock
from belino.domain.outcome import MessageOutcome
from belino.gateway.gateway import Gateway
from belino.testing import FakeClock, FakeUpload, GatewayProcess, ScriptedAgent, SignalServer, make_jpeg, make_png
from belino.testing.faults import CannedAnswer, Reset
from belino.turns.reply import DOUBT
from journeys.busy_device import BusyDevice
from journeys.busy_place import Curious, peak_megabytes, settled_parcels, told, until
from journeys.offering import opus, send

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[BusyDevice]:
    async with SignalServer() as daemon:
        yield BusyDevice(daemon, tmp_path / "home")


async def test_ten_pictures_with_text_are_one_turn_and_three_of_them_are_fetched(phone: BusyDevice) -> None:
    async with phone.gateway():
        phone.ask("look", files=[make_jpeg(64 + number, 48) for number in range(10)])
        await until(lambda: phone.answers() == ["turn 1"])
    (turn,) = phone.agent.turns
    assert len(re.findall(r"\[Image: .*?ref:sg_\w{12}\]", told(turn).partition("<<<media")[0])) == 10
    assert phone.downloads == 3


async def test_a_voice_note_is_heard_when_it_is_answered_and_one_goes_back(phone: BusyDevice) -> None:
    note = FakeUpload(content=SPEECH.read_bytes(), mime="audio/ogg")
    agent = ScriptedAgent([send(phone.offer("note.ogg", opus(2.0)), **{"as": "voice"}), ""])
    async with phone.gateway(agent):
        phone.daemon.say(phone.room, phone.bob, files=[note])
        phone.daemon.say(phone.ann, phone.ann, files=[note])
        await until(lambda: phone.daemon.received)
    heard = told(agent.turns[0])
    assert re.search(r"\[Voice: \d+KB, audio/ogg, ref:sg_\w{12}\]", heard) and "Transcript:" in heard
    assert "thursday" in heard.lower()
    assert phone.downloads == 1
    (sent,) = phone.sent
    assert sent["voiceNote"] is True
    assert (sent["files"][0].name, sent["files"][0].mime) == ("note.m4a", "audio/mp4"), "iPhones play no Ogg"


async def test_chart_report_and_album_leave_with_the_words(phone: BusyDevice) -> None:
    pictures, report = [make_jpeg(320 + number, 240) for number in range(3)], b"%PDF-1.4 a report" * 100
    offers = [send(phone.offer(f"p{number}.jpg", picture)) for number, picture in enumerate(pictures)]
    agent = ScriptedAgent([*offers, send(phone.offer("report.pdf", report)), "All of it, with **bold** words."])
    async with phone.gateway(agent):
        phone.write("everything, please")
        await until(lambda: len(phone.daemon.received) == 4)
    assert phone.answers()[0] == "All of it, with bold words."
    assert phone.sent[0]["textStyle"] == ["16:4:BOLD"]
    sent = [upload.sha256 for upload in phone.daemon.received]
    assert sent == [hashlib.sha256(content).hexdigest() for content in (*pictures, report)]


async def test_a_quoted_picture_of_three_days_ago_is_fetched_once_after_a_restart(tmp_path: Path) -> None:
    clock, picture = FakeClock(), make_png(320, 200)
    async with SignalServer(clock=clock) as daemon:
        phone = BusyDevice(daemon, tmp_path / "home")
        async with phone.gateway() as gateway:
            photo = daemon.say(phone.room, phone.bob, "the summit", files=[picture])
            (kept,) = await phone.stored(gateway, 1)
            assert kept.outcome is MessageOutcome.OBSERVED
        assert daemon.bytes_served == 0
        clock.shift(3 * 24 * 3600)
        curious = Curious()
        async with phone.gateway(curious):
            for asked in (1, 2):
                phone.ask("which mountain is it?", quote=photo)
                await until(lambda count=asked: len(phone.answers()) == count)  # type: ignore[misc]
        assert picture in [block.data for block in curious.seen if isinstance(block, ImageBlock)]
        assert "the summit" in told(curious.turns[0])


async def test_an_edit_is_kept_as_it_reads_and_a_deletion_takes_text_and_bytes(phone: BusyDevice) -> None:
    curious = Curious()
    async with phone.gateway(curious) as gateway:
        photo = phone.daemon.say(phone.room, phone.bob, "we meet at 8", files=[make_png(32, 20)])
        phone.ask("what is it?", quote=photo)
        await until(lambda: len(phone.answers()) == 1)
        phone.daemon.edit(photo, "we meet at 9")

        async def reads(text: str) -> bool:
            return (await gateway.store.history(phone.channel(), limit=10))[0].text == text

        await until(lambda: reads("we meet at 9"))
        phone.daemon.delete(photo)
        await until(lambda: reads(""))
        kept = (await gateway.store.history(phone.channel(), limit=10))[0]
        assert kept.deleted is not None and kept.media == ()

        async def is_let_go() -> bool:
            return not await gateway.store.taken_back()

        await until(is_let_go)


async def test_what_vanishes_by_its_timer_is_gone_from_everywhere_also_after_a_restart(phone: BusyDevice) -> None:
    phone.ann["timer"] = 3600
    phone.agent = ScriptedAgent("a SECRET answer")
    async with phone.gateway() as gateway:
        phone.write("a SECRET question", files=[make_png(32, 20)])
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        assert len(await gateway.store.history(phone.private)) == 2
    later = FakeClock(datetime.now(UTC) + timedelta(hours=2))
    async with (
        Gateway(phone.config(), phone.home, agent=phone.agent, clock=later) as gateway,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(gateway.run())

        async def is_gone() -> bool:
            return [message.text for message in await gateway.store.history(phone.private)] == ["", ""]

        await until(is_gone)
        assert [message.media for message in await gateway.store.history(phone.private)] == [(), ()]
        gateway.stop()
    with closing(sqlite3.connect(phone.home.database)) as database:
        assert "SECRET" not in "".join(database.iterdump())


async def test_media_to_be_viewed_once_are_answered_with_what_they_are_and_not_fetched(phone: BusyDevice) -> None:
    async with phone.gateway():
        phone.daemon.say(phone.ann, phone.ann, files=[make_png(32, 20)], viewOnce=True)
        await until(lambda: len(phone.agent.turns) == 1)
    assert "to be viewed once, which belino does not open or keep" in told(phone.agent.turns[0])
    assert phone.downloads == 0


async def test_a_daemon_that_is_gone_for_a_while_loses_nothing_and_status_says_so(phone: BusyDevice) -> None:
    async with phone.gateway() as gateway:
        phone.write("one")
        await until(lambda: phone.answers() == ["turn 1"])
        phone.daemon.fail("events", CannedAnswer(status=500), times=7)
        phone.daemon.drop_streams()
        await until(lambda: not gateway.health()["signal", "default"].works)
        assert "status 500" in gateway.health()["signal", "default"].reason
        phone.write("two")
        await until(lambda: phone.answers() == ["turn 1", "turn 2"])
        assert gateway.health()["signal", "default"].works


async def test_a_rate_limit_and_failures_delay_and_double_nothing(phone: BusyDevice) -> None:
    async with phone.gateway():
        phone.daemon.fail("send", CannedAnswer(status=429, headers={"Retry-After": "1"}))
        phone.daemon.fail("send", CannedAnswer(status=502, body=b"<html>"))
        phone.write("one")
        await until(lambda: phone.answers() == ["turn 1"])
        phone.write("two")
        await until(lambda: phone.answers() == ["turn 1", "turn 2"])


async def test_an_answer_that_leaves_after_a_restart_carries_what_it_quotes(phone: BusyDevice) -> None:
    phone.daemon.fail("send", CannedAnswer(status=429, headers={"Retry-After": "1"}), times=99)
    async with phone.gateway():
        phone.ask("when do we meet?")
        await until(lambda: phone.daemon.calls["send"])
    phone.daemon.heal()
    async with phone.gateway():
        await until(lambda: phone.answers() == ["turn 1"])
    assert phone.sent[0]["quoteMessage"] == "@belino when do we meet?"


async def test_a_reaction_that_replaces_another_is_the_only_one(phone: BusyDevice) -> None:
    async with phone.gateway() as gateway:
        said = phone.write("one")
        await until(lambda: phone.answers() == ["turn 1"])
        for emoji in ("👍", "🎉"):
            phone.daemon.react(phone.ann, said, emoji)

        async def is_replaced() -> bool:
            message = (await gateway.store.history(phone.private))[0]
            return message.reactions == (("🎉", 1),)

        await until(is_replaced)


async def test_after_an_answer_whose_fate_is_unknown_the_next_one_says_so_once(phone: BusyDevice) -> None:
    async with phone.gateway() as gateway:
        phone.daemon.fail("send", Reset(done=True))
        phone.write("one")
        await until(lambda: gateway.counters.parcels["uncertain"] == 1)
        for number, text in enumerate(("two", "three"), 1):
            phone.write(text)
            await until(lambda number=number: gateway.counters.parcels["sent"] == number)  # type: ignore[misc]
        assert (await gateway.audit()).is_balanced
    assert phone.answers() == ["turn 1", f"{DOUBT}\n\nturn 2", "turn 3"]


async def test_an_answer_whose_fate_another_device_knows_is_not_sent_again(phone: BusyDevice) -> None:
    """Read-back: the transcript of the account's devices shows it, although the daemon's answer was lost."""
    async with phone.gateway() as gateway:
        phone.daemon.fail("send", Reset())
        phone.write("one")
        await until(lambda: phone.daemon.calls["send"] == 1)
        synced = phone.daemon.sync(phone.ann, "turn 1")
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        *_, answer = await gateway.store.history(phone.private)
    assert (answer.id, answer.author.is_agent, answer.text) == (str(synced["timestamp"]), True, "turn 1")
    assert phone.answers() == []


async def test_a_stranger_gets_nothing_but_a_code(phone: BusyDevice) -> None:
    async with phone.gateway() as gateway:
        phone.daemon.say(phone.bob, phone.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(phone.answers()) == 1)
        assert phone.agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(phone.channel(phone.bob)))
    assert re.search(r"\b[A-Z0-9]{4}-?[A-Z0-9]{4}\b", phone.answers()[0])


async def test_all_kinds_of_media_pass_the_live_check_of_the_doctor(phone: BusyDevice) -> None:
    async with phone.gateway() as gateway:
        findings = await gateway.check_media(("signal", "default"), phone.private)
    assert [(found.name, found.ok) for found in findings] == [
        (f"signal:default {kind}", True) for kind in ("picture", "voice note", "document", "album")
    ]
    assert all(message.get("deleted") for message in phone.sent)


@pytest.mark.parametrize("done", [True, False], ids=["it arrived", "it was lost"])
async def test_a_gateway_killed_while_it_sends_flags_what_may_be_doubled_and_loses_nothing(
    tmp_path: Path, done: bool
) -> None:
    daemon = SignalServer()
    take, phone = daemon._take_call, BusyDevice(daemon, tmp_path / "home")
    process = GatewayProcess(phone.home.path)
    falls = 0

    async def fall(request: web.Request) -> web.StreamResponse:
        nonlocal falls
        if falls or b'"method": "send"' not in await request.read():
            return await take(request)
        falls += 1
        answer = await take(request) if done else web.Response(status=500)
        process.signal(signal.SIGKILL)
        return answer

    daemon._take_call = fall  # type: ignore[method-assign]
    async with daemon:
        (phone.home.path / "belino.json").write_text(json.dumps(phone.table()), encoding="utf-8")
        try:
            await asyncio.to_thread(process.start)
            await until(phone.is_heard)
            phone.write("one")
            await until(lambda: falls)
            await asyncio.to_thread(process.kill)
            await asyncio.to_thread(process.start)
            (parcel,) = await asyncio.to_thread(settled_parcels, process, 1)
            phone.write("two")
            await asyncio.to_thread(settled_parcels, process, 2)
        finally:
            await asyncio.to_thread(process.kill)
    assert parcel["state"] == "uncertain"
    assert len(phone.answers()) == 1 + done
    assert phone.answers()[-1].startswith(DOUBT)


async def test_a_document_of_100_megabytes_goes_out_without_costing_memory(phone: BusyDevice, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    phone.settings["shared_folder"] = str(shared)
    content = os.urandom(MEGABYTE) * 100
    async with phone.process() as process:
        before = await phone.loaded(process)
        phone.offer("pending/large.bin", content)
        phone.write("the file")
        await until(lambda: [one.sha256 for one in phone.daemon.received] == [hashlib.sha256(content).hexdigest()])
        await until(lambda: list(shared.iterdir()) == [])
        used = peak_megabytes(process) - before
    assert used < 16, used


async def test_a_file_of_100_megabytes_comes_in_without_costing_memory(phone: BusyDevice) -> None:
    content = os.urandom(MEGABYTE) * 99
    async with phone.process() as process:
        before = await phone.loaded(process)
        phone.write("look", files=[FakeUpload(content=content, name="film.bin", mime="application/octet-stream")])
        await until(lambda: len(phone.sent) == 2)
        assert phone.daemon.bytes_served >= len(content)
        used = peak_megabytes(process) - before
    assert used < 16, used
