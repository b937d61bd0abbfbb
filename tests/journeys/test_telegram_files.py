"""What an agent sends arrives on Telegram once, whole, in the best form it takes; and what does not is said so."""

import asyncio
import hashlib
import io
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from belino.domain.message import ConversationKey
from belino.domain.reply import ParcelState
from belino.gateway.gateway import Gateway
from belino.testing import GatewayProcess, ScriptedAgent, TelegramServer, ToolCall, make_jpeg, make_pdf, make_png
from belino.testing.samples import sample_files
from belino.testing.telegram_faults import Answer, Stall
from faults import looking
from journeys.busy_group import BOT, BusyGroup, text_of, until

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
LONG_AGO = 1_000_000_000
CHART, PAGE = make_png(640, 400), make_pdf()
REFUSED_MARKUP = Answer(status=400, description="Bad Request: can't parse entities: Unsupported start tag")


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[BusyGroup]:
    async with TelegramServer() as server:
        yield BusyGroup(server, tmp_path / "home")


def offer(group: BusyGroup, name: str, content: bytes, *, where: ConversationKey | None = None) -> Path:
    """A file in Ann's conversation, as an agent or a script leaves it there."""
    place = group.home.outgoing(where or group.channel(group.ann)) / name
    place.write_bytes(content)
    os.utime(place, (LONG_AGO, LONG_AGO))
    return place


def send(path: Path, **more: str) -> ToolCall:
    return ToolCall(name="send_media", arguments={"path": str(path), **more})


def forms(group: BusyGroup) -> list[str]:
    """What Ann sees, in order."""
    kinds = ("animation", "sticker", "photo", "video", "audio", "voice", "document", "text")
    return [next(kind for kind in kinds if kind in message) for message in group.server.sent]


async def confirmed(gateway: Gateway, count: int) -> bool:
    """Whether so many parcels were made, and every one has its receipt."""
    return [record.state for record in await gateway.store.parcels()] == [ParcelState.SENT] * count


def hashes(group: BusyGroup) -> list[str]:
    return [received.sha256 for received in group.server.received]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def opus(seconds: float = 1.0) -> bytes:
    """A voice note, by the real encoder."""
    import av
    from av.audio.stream import AudioStream

    written, rate = io.BytesIO(), 48_000
    with av.open(written, "w", format="ogg") as target:
        stream = target.add_stream("libopus", rate=rate)
        assert isinstance(stream, AudioStream)
        frame = av.AudioFrame(format="s16", layout="mono", samples=960)
        frame.sample_rate = rate
        for number in range(int(seconds * 50)):
            frame.planes[0].update(bytes(1920))
            frame.pts = number * 960
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


async def test_chart_report_voice_and_album_arrive_each_in_its_form_and_then_the_words(group: BusyGroup) -> None:
    voice, photos = opus(), [make_jpeg(320 + number, 240) for number in range(3)]
    agent = ScriptedAgent(
        [
            send(offer(group, "chart.png", CHART), caption="**Sales** in May"),
            send(offer(group, "report.pdf", PAGE)),
            send(offer(group, "note.ogg", voice), **{"as": "voice"}),
            *[send(offer(group, f"p{number}.jpg", photo)) for number, photo in enumerate(photos)],
            "All of it, with `code` & <brackets>.",
        ]
    )
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "everything, please")
        await until(lambda: confirmed(gateway, 5))
        history = await gateway.store.history(group.channel(group.ann))
    assert forms(group) == ["photo", "document", "voice", "photo", "photo", "photo", "text"]
    assert hashes(group) == [sha256(content) for content in (CHART, PAGE, voice, *photos)]
    assert group.server.sent[0]["caption"] == "Sales in May"
    assert group.server.sent[-1]["text"] == "All of it, with code & <brackets>."
    assert len({message.get("media_group_id") for message in group.server.sent[3:6]}) == 1
    assert [len(message.media) for message in history] == [0, 1, 1, 1, 3, 0]


def film(width: int, height: int) -> bytes:
    """A second of a silent WebM, by the real encoder."""
    import av
    from av.video.stream import VideoStream

    written = io.BytesIO()
    with av.open(written, "w", format="webm") as target:
        stream = target.add_stream("libvpx-vp9", rate=10)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for _ in range(10):
            target.mux(stream.encode(av.VideoFrame(width, height, "yuv420p")))
        target.mux(stream.encode(None))
    return written.getvalue()


async def test_what_keeps_the_rules_of_stickers_is_one_and_any_other_film_a_document(group: BusyGroup) -> None:
    files = {"dance.tgs": sample_files()["dance.tgs"][1], "wave.webm": film(512, 384), "film.webm": film(640, 480)}
    agent = ScriptedAgent([*[send(offer(group, name, content)) for name, content in files.items()], "There."])
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "stickers, please")
        await until(lambda: confirmed(gateway, 4))
    assert forms(group) == ["sticker", "sticker", "document", "text"]
    assert hashes(group) == [sha256(content) for content in files.values()]
    told = [text_of(answer).partition("your answer ")[2].partition(" (")[0].rstrip(".") for answer in agent.answers]
    assert told == ["as a sticker", "as a sticker", "as a document"]


async def test_an_answer_in_a_topic_brings_its_files_there(group: BusyGroup) -> None:
    forum = group.server.group("Workshop", forum=True)
    where = ConversationKey(platform="telegram", account="default", channel=str(forum["id"]), thread="12")
    table = group.table()
    table["adapters"]["telegram"]["access"]["channels"][str(forum["id"])] = {"senders": ["*"], "mention": True}
    group.table = lambda: table  # type: ignore[method-assign]
    agent = ScriptedAgent([send(offer(group, "chart.png", CHART, where=where)), "Here."])
    async with group.gateway(agent):
        group.server.say(forum, group.ann, f"{BOT} a chart", topic=12)
        await until(lambda: forms(group) == ["photo", "text"])
    assert {message["message_thread_id"] for message in group.server.sent} == {12}


async def test_a_caption_that_is_too_long_follows_as_text(group: BusyGroup) -> None:
    caption = "word " * 300
    agent = ScriptedAgent([send(offer(group, "chart.png", CHART), caption=caption), "Done."])
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "a chart")
        await until(lambda: forms(group) == ["photo", "text", "text"])
    assert "caption" not in group.server.sent[0]
    assert [message["text"] for message in group.server.sent[1:]] == [caption.strip(), "Done."]


async def test_a_photo_over_ten_megabytes_is_shrunk_only_as_far_as_telegram_demands(group: BusyGroup) -> None:
    noise = Image.frombytes("RGB", (2100, 1800), os.urandom(2100 * 1800 * 3))
    written = io.BytesIO()
    noise.save(written, "PNG", compress_level=0)
    assert len(written.getvalue()) > 10 * MEGABYTE
    agent = ScriptedAgent([send(offer(group, "large.png", written.getvalue())), "Large."])
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "the large one")
        await until(lambda: forms(group) == ["photo", "text"])
    (received,) = group.server.received
    assert received.announced <= 10 * MEGABYTE
    assert (received.width, received.height) == (2100, 1800)


async def test_sixty_megabytes_are_refused_with_the_reason_told_and_kept(group: BusyGroup) -> None:
    large = offer(group, "pending/film.bin", b"")
    os.truncate(large, 60 * MEGABYTE)
    os.utime(large, (LONG_AGO, LONG_AGO))
    async with group.gateway(ScriptedAgent("Here it is.")):
        group.server.say(group.ann, group.ann, "the film")
        await until(lambda: forms(group) == ["text"])
        error = group.home.outgoing(group.channel(group.ann)) / "error"
        await until(lambda: {path.name for path in error.iterdir()} == {"film.bin", "film.bin.error.txt"})
    (message,) = group.server.sent
    assert message["text"].startswith("Here it is.")
    assert "film.bin was not sent" in message["text"]
    assert "50" in message["text"]
    assert "50" in (error / "film.bin.error.txt").read_text(encoding="utf-8")
    assert group.server.received == []


async def test_a_telegram_that_asks_for_patience_in_the_middle_gets_everything_once_and_in_order(
    group: BusyGroup,
) -> None:
    agent = ScriptedAgent(
        [send(offer(group, "chart.png", CHART)), send(offer(group, "report.pdf", PAGE)), "Both of them."]
    )
    group.server.fail("sendDocument", Answer(status=429, parameters={"retry_after": 1}), times=2)
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "both")
        await until(lambda: confirmed(gateway, 3))
    assert forms(group) == ["photo", "document", "text"]
    assert hashes(group) == [sha256(CHART), sha256(PAGE)]
    assert group.server.calls["sendDocument"] == 3


async def test_markup_telegram_refuses_is_sent_plain_once(group: BusyGroup) -> None:
    agent = ScriptedAgent([send(offer(group, "report.pdf", PAGE), caption="**May**"), "It is **done**."])
    group.server.fail("sendMessage", REFUSED_MARKUP)
    group.server.fail("sendDocument", REFUSED_MARKUP)
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "the report")
        await until(lambda: forms(group) == ["document", "text"])
    assert (group.server.sent[0]["caption"], group.server.sent[1]["text"]) == ("May", "It is done.")
    plain = [call for call in group.server.requests if call.method in ("sendMessage", "sendDocument")]
    assert ["parse_mode" in call.fields for call in plain] == [True, False, True, False]


async def test_a_voice_message_to_somebody_who_takes_none_is_told_in_words(group: BusyGroup) -> None:
    group.server.no_voice.add(group.ann["id"])
    agent = ScriptedAgent([send(offer(group, "note.ogg", opus()), **{"as": "voice"}), "Listen."])
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "say it")
        await until(lambda: len(group.server.sent) == 2)
    assert forms(group) == ["text", "text"]
    said = [message["text"] for message in group.server.sent]
    assert "Listen." in said
    assert any("note.ogg could not be sent: this person takes no voice messages" in text for text in said)


def upload_45_megabytes(group: BusyGroup) -> tuple[GatewayProcess, str]:
    """A gateway process that is about to send a file of 45 MB to whoever writes to it."""
    content = os.urandom(MEGABYTE) * 45
    offer(group, "pending/large.bin", content)
    (group.home.path / "belino.json").write_text(json.dumps(group.table()), encoding="utf-8")
    environment = {"BELINO_TEST_TOKEN": group.server.token}
    return GatewayProcess(group.home.path, environment=environment), sha256(content)


async def test_a_gateway_killed_in_the_middle_of_an_upload_flags_it_and_loses_nothing(group: BusyGroup) -> None:
    process, digest = upload_45_megabytes(group)
    group.server.fail("sendDocument", Stall(after=5 * MEGABYTE))
    await asyncio.to_thread(process.start)
    try:
        group.server.say(group.ann, group.ann, "hello")
        await until(lambda: group.server.stalled)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)
        parcels = await asyncio.to_thread(settled, process)
        (flagged,) = [parcel for parcel in parcels if parcel["state"] == "uncertain"]
        assert "may have arrived" in flagged["reason"]
        assert "document" not in forms(group)
        assert "text" in forms(group), "the words do not wait for the file"
    finally:
        await asyncio.to_thread(process.kill)
    async with group.gateway() as gateway:
        assert await gateway.retry_parcel(flagged["key"])
        await until(lambda: hashes(group) == [digest])


def settled(process: GatewayProcess) -> list[dict[str, Any]]:
    """The outbox, once none is on its way."""
    parcels: list[dict[str, Any]] = []

    def ended() -> bool:
        nonlocal parcels
        parcels = process.call("GET", "/api/outbox?limit=50")[1]["parcels"]
        return len(parcels) >= 2 and all(p["state"] in {"sent", "uncertain", "dead"} for p in parcels)

    looking.until(ended, "some parcel never came to its end")
    return parcels


async def test_an_upload_of_45_megabytes_costs_no_memory(group: BusyGroup) -> None:
    process, digest = upload_45_megabytes(group)
    await asyncio.to_thread(process.start)
    try:
        group.server.say(group.bob, group.bob, "a stranger, so that everything is loaded")
        await until(lambda: group.server.sent)
        Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        before = peak_megabytes(process)
        group.server.say(group.ann, group.ann, "hello")
        await until(lambda: hashes(group) == [digest])
        assert peak_megabytes(process) - before < 32
    finally:
        await asyncio.to_thread(process.kill)


def peak_megabytes(process: GatewayProcess) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
