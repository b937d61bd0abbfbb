"""From the phone to the agent and back, through a WhatsApp that keeps the real one's rules."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.cli.reading_setup import SPEECH
from belino.domain.media import ImageBlock
from belino.domain.message import DeliveryState
from belino.domain.outcome import MediaOutcome
from belino.domain.reply import ParcelState
from belino.testing import (
    FakeUpload,
    ScriptedAgent,
    WhatsAppServer,
    make_jpeg,
    make_pdf,
    make_png,
)
from belino.testing.faults import CannedAnswer, Hang, Stall
from faults import looking
from journeys.busy_business import BOT, ENDURING, BusyBusiness
from journeys.busy_place import KILLS, Curious, peak_megabytes, told, until
from journeys.offering import opus, send
from journeys.test_speech import ANSWER, hummed, speaking
from media.pictures import animation

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
DAY = 24 * 3600.0


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[BusyBusiness]:
    async with WhatsAppServer(pace=ENDURING) as server:
        yield BusyBusiness(server, tmp_path / "home")


async def test_a_picture_comes_in_is_seen_once_and_another_goes_out(shop: BusyBusiness) -> None:
    came, goes = make_png(320, 200), make_jpeg(64, 48)
    agent = ScriptedAgent([send(shop.offer("chart.jpg", goes), caption="The chart"), "Here it is."])
    async with shop.gateway(agent):
        shop.write("What is this?", files=[came])
        await until(lambda: len(shop.sent) == 2)
    assert re.search(r"\[Image: (\d+B, )?image/png, ref:wa_\w{12}\]", agent.told()) and "What is this?" in agent.told()
    assert [block.data for block in agent.pictures()] == [came]
    assert [(sent["type"], sent["text"]) for sent in shop.sent] == [("image", "The chart"), ("text", "Here it is.")]
    assert [upload.content for upload in shop.server.received] == [goes]
    assert shop.downloads == 1


async def test_a_voice_note_is_heard_when_it_is_answered_and_costs_nothing_before(shop: BusyBusiness) -> None:
    async with shop.gateway() as gateway:
        shop.server.voice(shop.room, shop.ann, SPEECH.read_bytes())
        await shop.stored(gateway, 1)
        assert shop.downloads == 0
        shop.server.voice(shop.ann, shop.ann, SPEECH.read_bytes())
        await until(lambda: len(shop.agent.turns) == 1)
    heard = told(shop.agent.turns[0])
    assert re.search(r"\[Voice: (\w+, )*audio/ogg, ref:wa_\w{12}\]", heard) and "Transcript:" in heard
    assert "thursday" in heard.lower()
    assert shop.downloads == 1


async def test_a_voice_note_is_answered_aloud_and_in_writing(tmp_path: Path) -> None:
    async with WhatsAppServer() as server:
        shop = BusyBusiness(server, tmp_path / "home")
        speaking(shop, hummed(tmp_path))
        async with shop.gateway(ScriptedAgent(ANSWER)):
            server.voice(shop.ann, shop.ann, opus(0.5))
            await until(lambda: len(shop.sent) == 2)
        voice, text = shop.sent
    assert (voice["type"], voice["raw"]["audio"]["voice"], text["text"]) == ("audio", True, ANSWER)


async def test_documents_come_with_their_name_and_go_as_whatsapp_takes_them(shop: BusyBusiness) -> None:
    report = make_pdf("The hut has twelve beds.")
    offered = [("report.pdf", report), ("people.csv", b"name,beds\nAnn,2\n")]
    agent = ScriptedAgent([*(send(shop.offer(name, content)) for name, content in offered), "All there."])
    shop.offer("pending/tools.zip", b"PK\x05\x06" + bytes(18))
    async with shop.gateway(agent):
        shop.write("read it", files=[FakeUpload(content=report, name="hut.pdf", mime="application/pdf")])
        await until(lambda: any("All there." in text for text in shop.answers()))
    assert re.search(r"\[Document: hut.pdf, (\w+, )?application/pdf, ref:wa_\w{12}\]", agent.told())
    documents = [sent["raw"]["document"]["filename"] for sent in shop.sent if sent["type"] == "document"]
    assert documents == ["report.pdf", "people.csv"]
    assert [upload.mime for upload in shop.server.received] == ["application/pdf", "text/plain"]
    assert "application/zip is not taken as a document here" in " ".join(shop.answers())


async def test_several_pictures_come_and_leave_as_several_messages_each_once(shop: BusyBusiness) -> None:
    pictures = [make_jpeg(64 + number, 48) for number in range(3)]
    agent = ScriptedAgent(
        [*(send(shop.offer(f"p{number}.jpg", picture)) for number, picture in enumerate(pictures)), "Three."]
    )

    def seen() -> set[str]:
        return {ref for turn in agent.turns for ref in re.findall(r"ref:(wa_\w{12})", told(turn))}

    async with shop.gateway(agent):
        shop.server.say(shop.ann, shop.ann, "all three", files=[make_png(8 + number, 8) for number in range(3)])
        await until(lambda: "Three." in shop.answers() and len(seen()) == 3)
    assert [sent["type"] for sent in shop.sent][:4] == ["image", "image", "image", "text"]
    assert [upload.content for upload in shop.server.received] == pictures


async def test_a_moving_picture_is_refused_with_the_reason_and_the_text_goes(shop: BusyBusiness) -> None:
    shop.offer("pending/dance.gif", animation("GIF", 4))
    async with shop.gateway(ScriptedAgent("Look.")):
        shop.write("dance")
        await until(lambda: any("Look." in text for text in shop.answers()))
    assert "image/gif is not taken as a document here" in " ".join(shop.answers())


async def test_a_reply_to_an_older_picture_brings_it_along_after_a_restart(tmp_path: Path) -> None:
    picture = make_png(320, 200)
    async with WhatsAppServer(pace=ENDURING) as server:
        shop = BusyBusiness(server, tmp_path / "home")
        async with shop.gateway() as gateway:
            photo = server.say(shop.room, shop.bob, "the summit", files=[picture])
            await shop.stored(gateway, 1)
            assert (server.calls["media"], shop.downloads) == (0, 0)
        curious = Curious()
        async with shop.gateway(curious):
            for asked in (1, 2):
                server.say(shop.room, shop.ann, f"{BOT} which mountain is it?", reply=photo)
                await until(lambda count=asked: len(shop.answers()) == count)  # type: ignore[misc]
        pictures = [block for block in curious.seen if isinstance(block, ImageBlock)]
        assert pictures and {block.data for block in pictures} == {picture}
        assert shop.downloads == 1
        assert {sent["raw"]["context"]["message_id"] for sent in server.sent} < set(server.said)


async def test_after_a_week_a_picture_is_expired_and_the_agent_is_told(tmp_path: Path) -> None:
    async with WhatsAppServer(pace=ENDURING) as server:
        shop = BusyBusiness(server, tmp_path / "home")
        async with shop.gateway() as gateway:
            photo = server.say(shop.room, shop.bob, "the summit", files=[make_png(32, 20)])
            await shop.stored(gateway, 1)
        for file in server.files.values():
            file.until = 0.0
        curious = Curious()
        async with shop.gateway(curious) as gateway:
            server.say(shop.room, shop.ann, f"{BOT} which mountain is it?", reply=photo)
            await until(lambda: len(shop.answers()) == 1)
            (record,) = await gateway.store.refs(shop.channel())
    assert record.outcome is MediaOutcome.EXPIRED
    assert "keeps files for a week" in record.reason


async def test_an_edit_is_kept_as_it_reads_and_a_revoke_leaves_nothing(shop: BusyBusiness) -> None:
    async with shop.gateway() as gateway:
        said = shop.write("we meet at 8", files=[make_png(8, 8)])
        await until(lambda: shop.answers())
        text = shop.write("bring boots")
        await until(lambda: len(shop.answers()) == 2)
        shop.server.edit(shop.ann, text, "bring skis")
        shop.server.revoke(shop.ann, said)

        async def both() -> bool:
            kept = [each for each in await gateway.store.history(shop.private, limit=10) if not each.author.is_agent]
            return [each.deleted is not None for each in kept] == [True, False] and kept[1].text == "bring skis"

        await until(both)
        kept = await gateway.store.history(shop.private, limit=10)
        assert (kept[0].text, kept[0].media) == ("", ())


async def test_receipts_are_shown_in_the_outbox_and_by_explain(shop: BusyBusiness) -> None:
    async with shop.gateway() as gateway:
        asked = shop.write("are you there?")
        await until(lambda: shop.answers())
        shop.server.report(shop.ann["id"], shop.sent[0]["id"], "read")

        async def is_read() -> bool:
            (parcel,) = await gateway.store.parcels()
            return parcel.delivery is DeliveryState.READ

        await until(is_read)
        story = await gateway.store.story(shop.private, asked["id"])
    assert story is not None
    steps = [step.outcome for step in story.steps if step.stage == "delivery"]
    assert steps == ["sent", "sent", "delivered", "read"]


async def test_outside_the_24_hours_an_answer_is_held_and_sent_by_itself_once_the_person_writes(tmp_path: Path) -> None:
    async with WhatsAppServer(pace=ENDURING) as server:
        shop = BusyBusiness(server, tmp_path / "home")
        async with shop.gateway() as gateway:
            shop.write("hello")
            await until(lambda: shop.answers() == ["turn 1"])
            shop.write("are you there?")
            server.written[shop.ann["id"]] -= DAY + 1

            async def is_held() -> bool:
                return (await gateway.store.parcels())[0].state is ParcelState.HELD

            await until(is_held)
            (held, *_) = await gateway.store.parcels()
            assert "more than 24 hours" in held.reason
            ours = [each for each in await gateway.store.history(shop.private, limit=10) if each.author.is_agent]
            assert [(each.text, each.deleted is None) for each in ours] == [("turn 1", True), ("", False)]
            shop.write("now?")
            await until(lambda: shop.answers() == ["turn 1", "turn 2", "turn 3"])

            async def is_done() -> bool:
                return {each.state for each in await gateway.store.parcels()} == {ParcelState.SENT}

            await until(is_done)
            assert (await gateway.audit()).as_json()["ok"]


async def test_with_a_template_an_answer_outside_the_24_hours_goes_by_itself(tmp_path: Path) -> None:
    async with WhatsAppServer(pace=ENDURING) as server:
        server.templates["answer"] = 1
        shop = BusyBusiness(server, tmp_path / "home", template="answer")
        async with shop.gateway() as gateway:
            shop.write("hello")
            server.written[shop.ann["id"]] -= DAY + 1
            await until(lambda: shop.sent)

            async def is_sent() -> bool:
                return [each.state for each in await gateway.store.parcels()] == [ParcelState.SENT]

            await until(is_sent)
            assert (await gateway.audit()).as_json()["ok"]
    assert [(sent["type"], sent["text"]) for sent in server.sent] == [("template", "turn 1")]


async def test_a_stranger_gets_nothing_but_a_code_also_when_the_call_is_played_back_after_a_restart(
    shop: BusyBusiness,
) -> None:
    async with shop.gateway() as gateway:
        told = shop.server.say(shop.bob, shop.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(shop.answers()) == 1)
        assert shop.agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(shop.channel(shop.bob)))
        asked = shop.write("hello")
        await until(lambda: shop.answers()[1:] == ["turn 1"])
    async with shop.gateway() as gateway:
        for message in (told, asked):
            shop.server.tell({"contacts": [], "messages": [message]})
        await until(lambda: not shop.server.hook.waiting)
        shop.write("and now?")
        await until(lambda: len(shop.answers()) == 3)
        assert "Xyzzy-9" not in str(await gateway.store.history(shop.channel(shop.bob)))
        texts = [each.text for each in await gateway.store.history(shop.private) if not each.author.is_agent]
    assert texts == ["hello", "and now?"] and len(shop.answers()) == 3


async def test_limits_and_a_hung_server_delay_and_double_nothing(shop: BusyBusiness) -> None:
    async with shop.gateway():
        shop.server.fail("messages", CannedAnswer(status=429, headers={"Retry-After": "1"}))
        shop.server.fail("messages", CannedAnswer(status=400, parameters={"code": 131056}))
        shop.write("one")
        await until(lambda: shop.answers() == ["turn 1"])
        shop.server.fail("read", Hang(seconds=1))
        shop.write("two")
        await until(lambda: shop.answers() == ["turn 1", "turn 2"])


async def test_no_secret_is_kept_or_told_anywhere(shop: BusyBusiness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="belino")
    curious = Curious()
    async with shop.gateway(curious):
        shop.server.fail("file", CannedAnswer(status=500))
        shop.write("look", files=[make_png(8, 8)])
        await until(lambda: len(shop.answers()) == 1)
    secrets = [*shop.environment.values(), "whatsapp_business/attachments"]
    for secret in secrets:
        assert secret not in caplog.text
        assert secret not in str(curious.seen)
    for path in shop.home.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in content], path.name


async def test_a_gateway_killed_again_and_again_takes_every_message_once_and_flags_what_may_be_doubled(
    tmp_path: Path,
) -> None:
    async with WhatsAppServer(pace=ENDURING) as server:
        said, parcels = await BusyBusiness(server, tmp_path / "home").outlives_kills()
    assert sorted(said) == sorted(f"message {number}" for number in range(KILLS * 4))
    assert {parcel["state"] for parcel in parcels} <= {"sent", "uncertain"}
    unsure = [parcel for parcel in parcels if parcel["state"] == "uncertain" or parcel["reason"]]
    assert len(parcels) - len(unsure) <= len(server.sent) <= len(parcels) + len(unsure)


async def test_a_document_of_100_megabytes_goes_out_without_costing_memory_and_a_kill_in_the_middle_is_flagged(
    shop: BusyBusiness,
) -> None:
    content = b"%PDF-1.7\n" + os.urandom(MEGABYTE) * 99 + os.urandom(MEGABYTE - 9)
    assert len(content) == 100 * MEGABYTE
    async with shop.process() as process:
        await shop.loaded(process)
        shop.server.fail("upload", Stall(after=5 * MEGABYTE))
        shop.offer("pending/large.pdf", content, shop.channel())
        shop.server.say(shop.room, shop.ann, f"{BOT} the file")
        await until(lambda: shop.server.stalled)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)
        before = await shop.loaded(process)
        unsure: list[str] = []

        def is_flagged() -> bool:
            _, outbox = process.call("GET", "/api/outbox?state=uncertain&limit=200")
            unsure[:] = [parcel["key"] for parcel in outbox["parcels"]]
            return bool(unsure)

        await asyncio.to_thread(looking.until, is_flagged, "the document was not flagged")
        assert not any(upload.announced == len(content) for upload in shop.server.received)
        await asyncio.to_thread(process.call, "POST", f"/api/outbox/{unsure[0]}/retry")
        await until(lambda: hashlib.sha256(content).hexdigest() in {one.sha256 for one in shop.server.received})
        used = peak_megabytes(process) - before
        assert used <= 16, used


async def test_a_file_of_100_megabytes_comes_in_without_costing_memory(shop: BusyBusiness) -> None:
    content = os.urandom(MEGABYTE) * 100
    async with shop.process() as process:
        before = await shop.loaded(process)
        shop.write("look at it", files=[FakeUpload(content=content, name="film.bin", mime="application/octet-stream")])
        await until(lambda: len(shop.sent) == 2)
        assert shop.server.bytes_served >= len(content)
        used = peak_megabytes(process) - before
        assert used <= 16, used
