"""From the phone to the agent and back, as a linked device, with a program of its own for the connection."""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.domain.linking import LinksDevice
from belino.domain.media import ImageBlock
from belino.domain.outcome import MediaOutcome, MessageOutcome
from belino.gateway.doctor import examine_adapters
from belino.gateway.gateway import Gateway
from belino.testing import FakeUpload, ScriptedAgent, make_jpeg, make_png
from belino.testing.linked import ME, LinkedWorld
from journeys.busy_phone import BusyPhone
from journeys.busy_place import KILLS, Curious, peak_megabytes, told, until
from journeys.offering import opus, send

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[BusyPhone]:
    async with LinkedWorld() as world:
        yield BusyPhone(world, tmp_path / "home")


async def test_a_picture_is_fetched_when_it_is_wanted_and_one_is_sent_back(crew: BusyPhone) -> None:
    picture, answer = make_jpeg(640, 480), make_png(320, 200)
    curious = Curious()
    async with crew.gateway(curious):
        photo = crew.in_room(crew.bob, "look", file=picture)
        crew.in_room(crew.ann, "what is it?", asks=True, quote=photo)
        await until(lambda: crew.answers() == ["looked"])
    assert {block.data for block in curious.seen if isinstance(block, ImageBlock)} == {picture}
    assert crew.downloads == 1
    async with crew.gateway(ScriptedAgent([send(crew.offer("p.png", answer)), "here"])):
        crew.write("now you")
        await until(lambda: len(crew.sent) == 3)
    assert [entry["kind"] for entry in crew.sent[1:]] == ["imageMessage", "conversation"]
    assert crew.sent[1]["sha256"] == hashlib.sha256(answer).hexdigest()


async def test_a_voice_message_is_told_as_one_and_one_is_sent_with_its_waveform(crew: BusyPhone) -> None:
    sound = opus(2.0)
    async with crew.gateway(ScriptedAgent([send(crew.offer("note.ogg", sound), **{"as": "voice"}), "there"])):
        crew.world.say(crew.ann, file=FakeUpload(content=sound, duration=2), part="audioMessage", voice=True)
        await until(lambda: any(entry["kind"] == "audioMessage" for entry in crew.sent))
    (voice,) = [entry for entry in crew.sent if entry["kind"] == "audioMessage"]
    assert voice["sha256"] == hashlib.sha256(sound).hexdigest()
    assert voice["message"]["audioMessage"]["PTT"] is True
    assert voice["message"]["audioMessage"]["waveform"]


async def test_an_album_is_one_turn_and_its_parent_starts_none(crew: BusyPhone) -> None:
    async with crew.gateway():
        album = crew.world.message(crew.ann, crew.ann, {"albumMessage": {"expectedImageCount": 3}})
        crew.world.tell("message", album)
        for number in range(3):
            crew.world.say(crew.ann, text=f"number {number}", file=make_png(8 + number, 8), album=album)
        await until(lambda: crew.answers() == ["turn 1"])
    (turn,) = crew.agent.turns
    assert len(set(re.findall(r"ref:(wa_\w{12})", told(turn)))) == 3
    assert all(f"number {number}" in told(turn) for number in range(3))


async def test_a_quoted_picture_and_a_document_come_along(crew: BusyPhone) -> None:
    async with crew.gateway():
        photo = crew.in_room(crew.bob, "the summit", file=make_png(32, 20))
        crew.in_room(crew.ann, "which mountain?", asks=True, quote=photo)
        await until(lambda: len(crew.answers()) == 1)
        report = FakeUpload(content=b"%PDF-1.4 report", name="report.pdf", mime="application/pdf")
        crew.world.say(crew.ann, text="and this", file=report, part="documentMessage")
        await until(lambda: len(crew.answers()) == 2)
    assert "the summit" in told(crew.agent.turns[0])
    assert len(set(re.findall(r"ref:(wa_\w{12})", told(crew.agent.turns[0])))) == 1, "the quote is the same file"
    assert re.search(r"\[Document: report.pdf, 15B, application/pdf, ref:wa_\w{12}\]", told(crew.agent.turns[1]))
    assert crew.downloads == 1, "the quoted picture is shown, and the document is not fetched"


async def test_an_edit_is_told_and_a_message_deleted_for_everyone_is_purged(crew: BusyPhone) -> None:
    async with crew.gateway() as gateway:
        said = crew.in_room(crew.bob, "eight o'clock")
        key = {"remoteJID": crew.room, "fromMe": True, "ID": said["Info"]["ID"]}
        edited = {"protocolMessage": {"type": "MESSAGE_EDIT", "key": key, "editedMessage": {"conversation": "nine"}}}
        crew.world.tell("message", crew.world.message(crew.bob, crew.room, edited))
        await crew.stored(gateway, 1)

        async def reads() -> str:
            return (await gateway.store.history(crew.channel(), limit=1))[0].text

        async def is_edited() -> bool:
            return await reads() == "nine"

        async def is_gone() -> bool:
            return await reads() == ""

        await until(is_edited)
        revoked = {"protocolMessage": {"type": "REVOKE", "key": key}}
        crew.world.tell("message", crew.world.message(crew.bob, crew.room, revoked))
        await until(is_gone)


async def test_a_picture_is_fetched_after_a_restart_and_an_expired_one_from_the_phone(crew: BusyPhone) -> None:
    picture = make_png(320, 200)
    async with crew.gateway() as gateway:
        photo = crew.in_room(crew.bob, "the summit", file=picture)
        await crew.stored(gateway, 1)
    crew.world.expire_files()
    curious = Curious()
    async with crew.gateway(curious):
        crew.in_room(crew.ann, "which mountain is it?", asks=True, quote=photo)
        await until(lambda: len(crew.answers()) == 1)
    assert {block.data for block in curious.seen if isinstance(block, ImageBlock)} == {picture}
    assert (crew.downloads, crew.world.calls["reupload"]) == (2, 1)


async def test_a_file_that_the_phone_does_not_have_either_is_told_as_expired(crew: BusyPhone) -> None:
    crew.world.phone_has_files = False
    async with crew.gateway(Curious()) as gateway:
        photo = crew.in_room(crew.bob, "the summit", file=make_png(32, 20))
        await crew.stored(gateway, 1)
        crew.world.expire_files()
        crew.in_room(crew.ann, "which mountain is it?", asks=True, quote=photo)
        await until(lambda: len(crew.answers()) == 1)
        (record,) = await gateway.store.refs(crew.channel())
    assert record.outcome is MediaOutcome.EXPIRED
    assert record.ref.id in record.reason


async def test_a_picture_to_be_viewed_once_is_refused_with_a_sentence(crew: BusyPhone) -> None:
    async with crew.gateway(Curious()) as gateway:
        photo = crew.in_room(crew.bob, file=make_png(32, 20), once=True)
        await crew.stored(gateway, 1)
        crew.in_room(crew.ann, "what did he send?", asks=True, quote=photo)
        await until(lambda: len(crew.answers()) == 1)
        (record,) = await gateway.store.refs(crew.channel())
    assert (record.outcome, crew.downloads) == (MediaOutcome.REFUSED, 0)
    assert "viewed once" in record.reason


async def test_the_history_of_the_phone_is_context_and_starts_no_turn(crew: BusyPhone) -> None:
    async with crew.gateway() as gateway:
        past = [
            crew.world.message(crew.bob, crew.room, {"conversation": f"old {number}"}, pushname="Bob")
            for number in range(3)
        ]
        mine = crew.world.message(crew.ann, crew.ann, {"conversation": "an old question"})
        denied = crew.world.message(crew.bob, crew.bob, {"conversation": "private"}, pushname="Bob")
        crew.world.tell("history", {"messages": [*past, mine, denied]})
        await until(lambda: not crew.world.events)
        kept = await gateway.store.history(crew.channel(), limit=9)
        assert [message.outcome for message in kept] == [MessageOutcome.RECALLED] * 3
        assert (await gateway.store.counts())["messages"] == 4, "what access denies is not stored"
        crew.in_room(crew.ann, "what was said?", asks=True)
        await until(lambda: len(crew.answers()) == 1)
    assert all(f"old {number}" in told(crew.agent.turns[0]) for number in range(3))
    assert len(crew.agent.turns) == 1


@pytest.mark.parametrize(
    ("event", "data", "says"),
    [
        ("logged out", {}, "the phone logged this device out"),
        ("banned", {"Code": "SENT_TOO_MANY_SAME_MESSAGE", "Expire": 7200}, "banned this account for 2 hours"),
        ("replaced", {}, "another program opened this session"),
    ],
)
async def test_an_end_of_the_session_is_one_sentence_in_status_and_doctor(
    crew: BusyPhone, event: str, data: dict[str, object], says: str
) -> None:
    async with crew.gateway() as gateway:
        crew.world.end(event, data)
        health = gateway.health
        await until(lambda: says in health()["whatsapp", "default"].reason)
    (device,) = [found for found in await examine_adapters(crew.config(), crew.home) if "device" in found.name]
    assert not device.ok
    assert says in device.says


async def test_a_device_is_linked_by_a_code_and_its_session_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    async with LinkedWorld() as world:
        crew = BusyPhone(world, tmp_path / "home", linked=False)
        async with Gateway(crew.config(), crew.home, agent=crew.agent) as gateway, asyncio.TaskGroup() as group:
            group.create_task(gateway.run())
            await until(lambda: "not linked" in gateway.health()["whatsapp", "default"].reason)
            adapter = gateway.adapters["whatsapp", "default"]
            assert isinstance(adapter, LinksDevice)
            assert await adapter.needs_link()
            async for code in adapter.link():
                assert code.scan.startswith("2@")
                world.scan()
            assert not await adapter.needs_link()
            gateway.stop()
        async with crew.gateway():
            crew.write("hello")
            await until(lambda: crew.answers() == ["turn 1"])
    for file in crew.folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    assert stat.S_IMODE(crew.folder.stat().st_mode) == 0o700


async def test_the_live_check_of_the_doctor_passes(crew: BusyPhone) -> None:
    async with crew.gateway() as gateway:
        findings = await gateway.check_media(("whatsapp", "default"), crew.private)
    assert findings
    assert all(found.ok for found in findings), findings


async def test_kills_lose_no_message(crew: BusyPhone) -> None:
    texts, parcels = await crew.outlives_kills()
    assert texts == [f"message {number}" for number in range(KILLS * 4)]
    assert {parcel["state"] for parcel in parcels} <= {"sent", "uncertain"}


async def test_a_document_of_100_megabytes_takes_less_than_sixteen_of_memory(crew: BusyPhone) -> None:
    content = os.urandom(MEGABYTE) * 100
    async with crew.process() as process:
        before = await crew.loaded(process)
        crew.offer("pending/large.bin", content)
        crew.write("the file, please")
        await until(lambda: any(entry.get("size") == len(content) for entry in crew.sent))
        used = peak_megabytes(process) - before
        assert used <= 16, used


async def test_a_file_of_95_megabytes_is_decrypted_in_less_than_sixteen_of_memory(crew: BusyPhone) -> None:
    content = os.urandom(MEGABYTE) * 95
    async with crew.process() as process:
        before = await crew.loaded(process)
        film = FakeUpload(content=content, name="film.bin", mime="application/octet-stream")
        crew.write("look at it", files=[film])
        await until(lambda: len(crew.sent) == 2)
        assert crew.world.bytes_served >= len(content)
        used = peak_megabytes(process) - before
        assert used < 16, used


async def test_what_the_owner_writes_to_others_is_context_and_a_note_to_oneself_is_answered(crew: BusyPhone) -> None:
    async with crew.gateway() as gateway:
        crew.world.say(ME, crew.room, "I am on my way")
        (kept,) = await crew.stored(gateway, 1)
        assert (kept.author.is_agent, kept.outcome) == (True, MessageOutcome.OBSERVED)
        crew.world.say(ME, ME, "remind me")
        await until(lambda: crew.answers() == ["turn 1"])
    assert crew.sent[0]["to"] == ME
