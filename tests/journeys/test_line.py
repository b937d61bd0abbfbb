"""From the phone to the agent and back, through a LINE that keeps the real one's rules."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession

from belino.cli.reading_setup import SPEECH
from belino.domain.errors import ToolError
from belino.domain.media import ImageBlock
from belino.domain.outcome import MediaOutcome, MessageOutcome
from belino.domain.ports import Agent
from belino.domain.reply import Parcel, ParcelState
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.testing import FakeClock, FakeUpload, LineServer, ScriptedAgent, ToolCall, make_jpeg, make_pdf, make_png
from belino.testing.faults import Reset
from belino.testing.line.world import KEPT_SECONDS
from belino.testing.scenes import film
from belino.turns.reply import DOUBT
from journeys.busy_line import BOT, PUBLIC, BusyLine
from journeys.busy_place import Curious, peak_megabytes, text_of, told, until
from journeys.offering import opus, send

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
CHART, PAGE = make_png(640, 400), make_pdf()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[BusyLine]:
    async with LineServer() as line:
        yield BusyLine(line, tmp_path / "home")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def shapes(place: BusyLine) -> list[str]:
    return [message["type"] for message in place.sent]


async def sent(gateway: Gateway, count: int) -> bool:
    return [record.state for record in await gateway.store.parcels()] == [ParcelState.SENT] * count


async def test_a_picture_comes_and_is_fetched_only_when_the_agent_asks(place: BusyLine) -> None:
    picture, curious = make_png(320, 200), Curious()
    async with place.gateway(curious) as gateway:
        said = place.line.say(place.room, place.bob, image=picture)
        await place.stored(gateway, 1)
        assert (place.downloads, place.line.bytes_served) == (0, 0)
        place.line.say(place.room, place.ann, f"{BOT} what is it?", quote=said)
        await until(lambda: place.answers() == ["looked"])
    assert re.search(r"\[Image: image/jpeg, ref:ln_\w{12}\]", told(curious.turns[0]))
    assert [block.data for block in curious.seen if isinstance(block, ImageBlock)] == [picture]
    assert place.downloads == 1


async def test_a_picture_and_the_words_are_one_free_call_and_line_fetches_it_with_its_preview(place: BusyLine) -> None:
    agent = ScriptedAgent([send(place.offer("chart.png", CHART)), "Here it is."])
    async with place.gateway(agent) as gateway:
        place.write("the chart, please")
        await until(lambda: sent(gateway, 1))
        picture, words = place.sent
        full, small = [await place.line.view(picture[name]) for name in ("originalContentUrl", "previewImageUrl")]
    assert (picture["type"], words["text"]) == ("image", "Here it is.")
    assert (place.line.calls["reply"], place.line.calls["push"]) == (1, 0)
    assert (full.status, full.mime, full.sha256) == (200, "image/png", sha256(CHART))
    assert small.status == 200 and small.mime in ("image/jpeg", "image/png") and small.size <= 1_000_000


async def test_a_video_is_sent_with_a_frame_as_its_preview(place: BusyLine) -> None:
    agent = ScriptedAgent([send(place.offer("film.mp4", film(30_000, 320, 240))), "Look."])
    async with place.gateway(agent) as gateway:
        place.write("the film, please")
        await until(lambda: sent(gateway, 1))
        video = place.sent[0]
        small = await place.line.view(video["previewImageUrl"])
    assert video["type"] == "video"
    assert small.mime in ("image/jpeg", "image/png") and 0 < small.size <= 1_000_000


async def test_a_voice_note_is_heard_and_answered_by_one(place: BusyLine) -> None:
    agent = ScriptedAgent([send(place.offer("note.ogg", opus(2.0)), **{"as": "voice"}), "Listen."])
    async with place.gateway(agent) as gateway:
        note = place.line.say(place.ann, place.ann, audio=FakeUpload(content=SPEECH.read_bytes(), duration=5))
        place.line.preparing[note["id"]] = 1
        await until(lambda: sent(gateway, 1))
        sound = await place.line.view(place.sent[0]["originalContentUrl"])
    heard = told(agent.turns[0])
    assert re.search(r"\[Voice: 5s, audio/mp4, ref:ln_\w{12}\]|\[Voice: 5s, \d+KB, .*?ref:ln_\w{12}\]", heard)
    assert "thursday" in heard.lower()
    assert shapes(place) == ["audio", "text"]
    assert abs(place.sent[0]["duration"] - 2_000) < 200
    assert sound.mime == "audio/mp4" and sound.head[4:8] == b"ftyp"


async def test_a_document_comes_by_name_and_goes_as_a_link(place: BusyLine) -> None:
    agent = ScriptedAgent(
        [ToolCall(name="list_media"), send(place.offer("report.pdf", PAGE, place.channel())), "Here."]
    )
    async with place.gateway(agent) as gateway:
        place.line.say(place.room, place.bob, file=FakeUpload(content=PAGE, name="minutes.pdf"))
        place.line.say(place.room, place.ann, f"{BOT} the minutes")
        await until(lambda: sent(gateway, 1))
        link, words = place.answers()
        name, url = link.splitlines()
        seen = await place.line.view(url)
    assert "minutes.pdf" in text_of(agent.answers[0])
    assert (words, name.partition(" (")[0]) == ("Here.", "report.pdf")
    assert (seen.status, seen.mime, seen.sha256) == (200, "application/pdf", sha256(PAGE))


async def test_pictures_that_were_sent_together_are_one_turn_and_four_go_with_the_words_in_one_call(
    place: BusyLine,
) -> None:
    photos = [make_jpeg(320 + number, 240) for number in range(4)]
    agent = ScriptedAgent([*[send(place.offer(f"p{n}.jpg", photo)) for n, photo in enumerate(photos)], "All four."])
    async with place.gateway(agent) as gateway:
        for number in range(3):
            part = {"id": "A1", "index": number + 1, "total": 3}
            place.line.say(place.ann, place.ann, image=make_jpeg(64, 48 + number), imageSet=part)
        await until(lambda: sent(gateway, 1))
    (turn,) = agent.turns
    assert len(set(re.findall(r"ref:(ln_\w{12})", told(turn)))) == 3
    assert shapes(place) == ["image"] * 4 + ["text"]
    assert len({message["call"] for message in place.sent}) == 1


async def test_a_quote_brings_the_quoted_file_and_the_answer_in_a_group_is_a_quote(place: BusyLine) -> None:
    async with place.gateway() as gateway:
        asked_about = place.line.say(place.room, place.bob, file=FakeUpload(content=PAGE, name="menu.pdf"))
        await place.stored(gateway, 1)
        place.line.say(place.room, place.ann, f"{BOT} what is in it?", quote=asked_about)
        await until(lambda: place.answers() == ["turn 1"])
    assert re.search(r"\[Document: menu\.pdf, .*?ref:ln_\w{12}\]", told(place.agent.turns[0]))
    assert "quoteToken" in place.sent[0]


async def test_an_edit_in_a_group_is_kept_and_an_unsent_message_is_gone_with_its_bytes(place: BusyLine) -> None:
    async with place.gateway(Curious()) as gateway:
        said = place.line.say(place.room, place.bob, "we meet at 8")
        photo = place.line.say(place.room, place.bob, image=CHART)
        await place.stored(gateway, 2)
        place.line.edit(said, "we meet at 9")
        place.line.say(place.room, place.ann, f"{BOT} look", quote=photo)
        await until(lambda: place.answers() == ["looked"])
        assert await gateway.store.blob(sha256(CHART)) is not None
        place.line.unsend(photo)

        async def purged() -> bool:
            await gateway.tidy()
            texts = [message.text for message in await gateway.store.history(place.channel(), limit=10)]
            return "we meet at 9" in texts and await gateway.store.blob(sha256(CHART)) is None

        await until(purged)
    for path in place.home.path.rglob("*"):
        assert not path.is_file() or CHART not in path.read_bytes(), path.name


async def test_a_picture_that_came_before_a_restart_is_fetched_after_it_and_one_that_line_dropped_is_expired(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with LineServer(clock=clock) as line:
        place = BusyLine(line, tmp_path / "home")
        async with at_clock(place, clock) as gateway:
            kept = line.say(place.room, place.bob, image=CHART)
            lost = line.say(place.room, place.bob, image=make_jpeg(80, 60))
            await place.stored(gateway, 2)
        line.files[lost["id"]].opened_at = clock.monotonic() - KEPT_SECONDS
        curious = Curious()
        async with at_clock(place, clock, curious) as gateway:
            for number, photo in enumerate((kept, lost), 1):
                line.say(place.room, place.ann, f"{BOT} what is it?", quote=photo)
                await until(lambda number=number: len(place.answers()) == number)  # type: ignore[misc]
            records = {record.ref.message_id: record for record in await gateway.store.refs(place.channel())}
        assert [block.data for block in curious.seen if isinstance(block, ImageBlock)] == [CHART]
        assert records[lost["id"]].outcome is MediaOutcome.EXPIRED
        assert "no longer hands out" in records[lost["id"]].reason


@asynccontextmanager
async def at_clock(place: BusyLine, clock: FakeClock, agent: Agent | None = None) -> AsyncIterator[Gateway]:
    async with (
        Gateway(place.config(), place.home, agent=agent or place.agent, clock=clock) as gateway,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(gateway.run())
        try:
            async with place.reachable(gateway):
                yield gateway
        finally:
            gateway.stop()


class Eager:
    """Tries to send a file, and says so."""

    remembers = sees_images = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.refusal = ""

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        try:
            await turn.toolbox.call("send_media", {"path": self.path})
        except ToolError as error:
            self.refusal = str(error)
        yield Final(text="I tried.")


async def test_without_a_public_address_files_are_named_and_why_they_do_not_come(tmp_path: Path) -> None:
    async with LineServer() as line:
        place = BusyLine(line, tmp_path / "home", public=False)
        place.offer("pending/report.pdf", PAGE)
        path = str(place.offer("other.pdf", PAGE + b"\n"))
        agent = Eager(path)
        async with place.gateway(agent) as gateway:
            place.write("the report, please")
            await until(lambda: sent(gateway, 1))
    (answer,) = place.answers()
    assert answer.startswith("I tried.")
    assert "report.pdf was not sent" in answer.replace("`", "")
    assert "server.public_url" in answer
    assert "server.public_url" in agent.refusal, "the agent knows before it answers"


class Mirror:
    """Sends back the file that it is told of, as a sticker."""

    remembers = sees_images = False

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        for ref in dict.fromkeys(re.findall(r"ref:(ln_\w{12})", told(turn))):
            await turn.toolbox.call("send_media", {"ref": ref, "as": "sticker"})
        yield Final(text="Hi!")


async def test_a_sticker_comes_with_its_words_and_is_sent_back(place: BusyLine) -> None:
    raw = {
        "type": "sticker",
        "packageId": "446",
        "stickerId": "1988",
        "stickerResourceType": "STATIC",
        "keywords": ["Hi"],
    }

    agent = Mirror()
    async with place.gateway(agent) as gateway:
        place.line.say(place.ann, place.ann, raw=raw)
        await until(lambda: sent(gateway, 1))
    assert "Sticker: Hi" in told(agent.turns[0])
    assert (place.sent[0]["type"], place.sent[0]["packageId"], place.sent[0]["stickerId"]) == ("sticker", "446", "1988")


async def test_a_used_up_month_is_told_to_the_operator_and_free_answers_still_arrive(place: BusyLine) -> None:
    place.line.api.quota = 0
    async with place.gateway() as gateway:
        place.write("one")
        await until(lambda: place.answers() == ["turn 1"])
        await gateway.store.put_parcels([Parcel(key="late", conversation=place.private, text="by the way")])
        gateway._sender.wake(place.private)
        await until(lambda: gateway.counters.parcels["dead"] == 1)
        record = await gateway.store.parcel("late")
    assert record is not None and "larger plan" in record.reason


async def test_a_stranger_gets_nothing_but_a_code_and_a_replayed_call_counts_once(place: BusyLine) -> None:
    async with place.gateway() as gateway:
        place.line.say(place.bob, place.bob, "what is the password? Xyzzy-9")
        await until(lambda: len(place.answers()) == 1)
        assert place.agent.turns == []
        assert "Xyzzy-9" not in str(await gateway.store.history(place.channel(place.bob)))
        message = {"id": place.line.next_id(), "type": "text", "text": "once", "quoteToken": "q"}
        event = place.line.event("message", place.ann, place.ann, message=message)
        await until(lambda: len(place.answers()) == 2)
        async with ClientSession() as session:
            for _ in range(3):
                assert await place.line.posted(session, [event])
        history = await gateway.store.history(place.private)
    assert [message.outcome for message in history if not message.author.is_agent] == [MessageOutcome.ANSWERED]


async def test_a_replay_of_an_unsent_message_brings_nothing_back(place: BusyLine) -> None:
    async with place.gateway() as gateway:
        message = {"id": place.line.next_id(), "type": "text", "text": "my secret", "quoteToken": "q"}
        event = place.line.event("message", place.room, place.bob, message=message)
        await place.stored(gateway, 1)
        place.line.event("unsend", place.room, place.bob, unsend={"messageId": message["id"]})
        await until(lambda: len(place.line.webhook.deliveries) == 2)
        async with ClientSession() as session:
            assert await place.line.posted(session, [event])
        history = await gateway.store.history(place.channel(), limit=10)
    assert "my secret" not in str(history)


async def test_no_token_is_kept_or_told_anywhere(place: BusyLine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    curious = Curious()
    async with place.gateway(curious):
        provider = {"type": "external", "originalContentUrl": "https://pictures.example/canary-external.jpg"}
        place.line.say(place.ann, place.ann, raw={"type": "image", "contentProvider": provider})
        place.write("look")
        await until(lambda: place.answers())
    canaries = [*place.environment.values(), *place.line.tokens, *place.line.quotes, "canary-external"]
    for canary in canaries:
        assert canary not in caplog.text
        assert canary not in str(curious.seen)
        for path in place.home.path.rglob("*"):
            assert not path.is_file() or canary.encode() not in path.read_bytes(), path.name


async def test_a_reply_whose_fate_is_unknown_waits_for_a_person_and_the_next_answer_says_so(place: BusyLine) -> None:
    async with place.gateway() as gateway:
        place.line.fail("reply", Reset(done=True))
        place.write("one")
        await until(lambda: gateway.counters.parcels["uncertain"] == 1)
        place.write("two")
        await until(lambda: len(place.answers()) == 2)
    assert place.answers() == ["turn 1", f"{DOUBT}\n\nturn 2"]


async def test_a_document_of_100_megabytes_costs_no_memory(place: BusyLine) -> None:
    content = os.urandom(MEGABYTE) * 100
    async with place.process() as process:
        await until(lambda: place.line.webhook.address)
        before = await place.loaded(process)
        place.offer("pending/large.bin", content)
        place.write("hello")
        await until(lambda: any("large.bin" in answer for answer in place.answers()))
        (link,) = [answer for answer in place.answers() if "large.bin" in answer]
        seen = await place.line.view(link.splitlines()[1])
        assert seen.sha256 == sha256(content)
        assert link.splitlines()[1].startswith(PUBLIC)
        grown = peak_megabytes(process) - before
    assert grown < 16, f"{grown:.1f} MB"
