"""What is deleted on the platform is gone from everywhere within a minute, and whoever is at work is told."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from belino.domain.errors import MediaError, ToolError
from belino.domain.media import FileBlock
from belino.domain.message import ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome
from belino.domain.reply import OutgoingFile, Parcel, ParcelState
from belino.domain.turn import Accepted, Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent, make_png
from blob_files import content_of, is_here, path_of
from gateway.house import House, until

PICTURE = make_png(40, 30)


def gone(message: Message, channel: str = "dm") -> Deletion:
    where = ConversationKey(platform="memory", account="default", channel=channel)
    return Deletion(conversation=where, id=f"gone-{message.id}", message_id=message.id, author=None, sent=message.sent)


async def picture(
    house: House, gateway: Gateway, *, channel: str = "dm", item: str = "f1", content: bytes = PICTURE
) -> tuple[Message, str]:
    """Somebody sends a picture; its message and its ref."""
    house.wire._far_side.files[item] = content
    message = house.say("look", channel=channel)
    message = replace(message, media=(house.picture(message, item=item),))
    await house.ask(gateway, message)
    (ref,) = [record.ref.id for record in await gateway.store.refs(message.conversation) if record.ref.item == item]
    return message, ref


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def quiet(gateway: Gateway) -> None:
    """Until nothing of what was deleted is left."""
    async with asyncio.timeout(60):
        while await gateway.store.taken_back():
            await asyncio.sleep(0.001)


async def test_a_deleted_picture_leaves_bytes_copies_and_memory_and_is_answered_as_deleted(house: House) -> None:
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        message, ref = await picture(house, gateway)
        toolbox = gateway.toolbox(message.conversation)
        file = next(
            b for b in await toolbox.call("fetch_media", {"ref": ref, "as": "file"}) if isinstance(b, FileBlock)
        )
        blob = await gateway.store.blob(file.sha256)
        assert blob is not None
        await gateway._fetcher.read(blob, 1000)
        await gateway.accept(gone(message))
        await until(lambda: not path_of(gateway.store, blob).exists() and not len(gateway._fetcher._memory._opened()))
        assert not file.path.exists()
        with pytest.raises(ToolError, match=f"{ref} was deleted by its sender"):
            await toolbox.call("fetch_media", {"ref": ref})
        (listed,) = await toolbox.call("list_media", {})
        assert ref not in str(listed)


async def test_bytes_that_another_channel_uses_stay(house: House) -> None:
    async with house.at_work() as gateway:
        message, ref = await picture(house, gateway)
        there, other = await picture(house, gateway, channel="team", item="f2")
        for where, each in ((message, ref), (there, other)):
            await gateway.toolbox(where.conversation).call("fetch_media", {"ref": each})
        record = await gateway.store.find_ref(other)
        assert record is not None
        await gateway.accept(gone(message))
        await quiet(gateway)
        assert await gateway.store.find_ref(ref) is None
        blob = await gateway.store.blob(record.ref.sha256 or "")
        assert blob is not None
        assert await content_of(gateway.store, blob) == PICTURE


class Patient:
    """Fetches a picture, waits until it is told to go on, and fetches it again."""

    remembers = True
    sees_images = True

    def __init__(self) -> None:
        self.ref = ""
        self.looked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.heard = ""

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        if self.ref:
            await turn.toolbox.call("fetch_media", {"ref": self.ref})
            self.looked.set()
            await self.go_on.wait()
            try:
                await turn.toolbox.call("fetch_media", {"ref": self.ref, "again": True})
            except ToolError as error:
                self.heard = str(error)
        yield Final(text="done")


async def test_a_running_turn_is_told_by_its_next_call_and_keeps_the_bytes_for_half_a_minute_at_most(
    house: House,
) -> None:
    agent = Patient()
    house.agent = agent
    async with house.at_work() as gateway:
        message, ref = await picture(house, gateway)
        agent.ref = ref
        await gateway.accept(house.say("what is it?"))
        await agent.looked.wait()
        (record,) = await gateway.store.refs(message.conversation)
        blob = await gateway.store.blob(record.ref.sha256 or "")
        assert blob is not None
        await gateway.accept(gone(message))
        async with asyncio.timeout(60):
            while await is_here(gateway.store, blob):
                await house.clock.advance(1)
                await asyncio.sleep(0.001)
        agent.go_on.set()
        await until(lambda: agent.heard)
        assert "was deleted by its sender" in agent.heard


async def test_the_next_turn_is_told_that_a_message_it_knew_is_deleted(house: House) -> None:
    agent = ScriptedAgent()
    house.agent = agent
    async with house.at_work() as gateway:
        message, ref = await picture(house, gateway)
        assert ref in agent.told()
        await gateway.accept(gone(message))
        await house.ask(gateway, house.say("and now?"))
        assert "1 changed" in agent.told()
        assert "deleted" in agent.told()
        assert ref not in agent.told()


async def test_damaged_bytes_are_fetched_again_once_and_without_the_platform_say_why(house: House) -> None:
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        _, ref = await picture(house, gateway)
        record = await gateway.store.find_ref(ref)
        assert record is not None
        blob = await gateway.fetch(record)
        for has_it in (True, False):
            if not has_it:
                house.wire._far_side.files.clear()
            record = await gateway.store.find_ref(ref)
            assert record is not None
            path_of(gateway.store, blob).write_bytes(PICTURE[:-1] + b"?")
            if has_it:
                assert await content_of(gateway.store, await gateway.fetch(record)) == PICTURE
            else:
                with pytest.raises(MediaError):
                    await gateway.fetch(record)
        ended = await gateway.store.find_ref(ref)
        assert ended is not None
        assert ended.outcome in (MediaOutcome.EXPIRED, MediaOutcome.NOT_FOUND)
        findings = {finding.name: finding for finding in gateway.soundness()}
        assert not findings["media"].ok
        assert "2 files" in findings["media"].says


async def test_a_parcel_whose_bytes_are_damaged_is_held_with_the_reason(house: House) -> None:
    where = ConversationKey(platform="memory", account="default", channel="dm")
    async with house.gateway() as resting:
        blob = await resting.store.keep(pieces(PICTURE), mime="image/png", limit=len(PICTURE))
        file = OutgoingFile(name="chart.png", mime="image/png", size=blob.size, sha256=blob.sha256)
        await resting.store.put_parcels((Parcel(key="p", conversation=where, files=(file,)),))
    path_of(resting.store, blob).write_bytes(PICTURE[:-1] + b"?")
    async with house.at_work() as gateway:
        async with asyncio.timeout(60):
            while (parcel := (await gateway.store.parcels())[0]).state is not ParcelState.HELD:
                await asyncio.sleep(0.001)
        assert parcel.reason == "the bytes of chart.png are damaged or missing on this disk"
        assert house.wire.offered == []


async def test_the_database_is_looked_through_after_the_start(house: House) -> None:
    async with house.at_work() as gateway:
        await until(lambda: gateway.soundness()[0].says == "whole, by quick_check")
        assert gateway.soundness()[0].ok


async def test_strays_are_counted_by_the_doctor_and_put_aside_an_hour_after_the_start(house: House) -> None:
    async with house.at_work() as gateway:
        await until(lambda: gateway.soundness()[0].says != "it is being checked")
        assert [finding.name for finding in gateway.soundness()] == ["database"]
        for number in range(9):
            await picture(house, gateway, item=f"f{number}", content=make_png(40, 30 + number))
        for record in await gateway.store.refs(None):
            await gateway.fetch(record)
        stray = house.home.blobs / "ab" / "ab" / ("ab" * 32)
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"lost")
        assert (await gateway.tidy()).strays == 1
        (finding,) = gateway.soundness()[1:]
        assert (finding.ok, finding.says) == (True, "one file (4B) of 10 in blobs/ is not in the database")
        await house.clock.advance(3600)
        await until(lambda: not stray.exists())
        await until(lambda: "aside" in gateway.soundness()[1].says)
        (finding,) = gateway.soundness()[1:]
        assert (finding.ok, finding.says) == (True, "one file (4B) put aside in blobs/aside/ for a week")
        assert "belino restore DIR" in finding.cure


async def test_many_strays_stay_and_the_doctor_says_what_to_do(house: House) -> None:
    async with house.at_work() as gateway:
        await picture(house, gateway)
        for record in await gateway.store.refs(None):
            await gateway.fetch(record)
        stray = house.home.blobs / "ab" / "ab" / ("ab" * 32)
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"lost")
        for _ in range(3):
            await house.clock.advance(3600)
            assert (await gateway.tidy()).strays == 1
        assert stray.exists()
        (finding,) = gateway.soundness()[1:]
        assert not finding.ok
        assert "belino restore DIR" in finding.cure
        assert "belino media gc --all-strays" in finding.cure
        assert (await gateway.tidy(all_strays=True)).put_aside == 1
        assert gateway.soundness()[1].ok
