"""What an agent sends arrives on Telegram once, whole, in the best form it takes; and what does not is said so."""

import asyncio
import hashlib
import io
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from PIL import Image

from belino.domain.message import ConversationKey
from belino.domain.reply import ParcelState
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent, TelegramServer, ToolCall, make_jpeg, make_pdf, make_png
from belino.testing.faults import CannedAnswer, Stall
from belino.testing.files import sample_files
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import peak_megabytes, settled_parcels, text_of, until
from journeys.offering import opus, send

if TYPE_CHECKING:
    from av import VideoFrame

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
LONG_AGO = 1_000_000_000
CHART, PAGE = make_png(640, 400), make_pdf()
REFUSED_MARKUP = CannedAnswer(status=400, description="Bad Request: can't parse entities: Unsupported start tag")


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[BusyGroup]:
    async with TelegramServer() as server:
        yield BusyGroup(server, tmp_path / "home")


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


async def test_chart_report_voice_and_album_arrive_each_in_its_form_and_then_the_words(group: BusyGroup) -> None:
    voice, photos = opus(), [make_jpeg(320 + number, 240) for number in range(3)]
    agent = ScriptedAgent(
        [
            send(group.offer("chart.png", CHART), caption="**Sales** in May"),
            send(group.offer("report.pdf", PAGE)),
            send(group.offer("note.ogg", voice), **{"as": "voice"}),
            *[send(group.offer(f"p{number}.jpg", photo)) for number, photo in enumerate(photos)],
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


def film(width: int, height: int, *, form: str = "webm", codec: str = "libvpx-vp9") -> bytes:
    """A second of a silent film, by the real encoder."""
    import av
    from av.video.stream import VideoStream

    written = io.BytesIO()
    with av.open(written, "w", format=form) as target:
        stream = target.add_stream(codec, rate=10)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for _ in range(10):
            target.mux(stream.encode(_green(av.VideoFrame(width, height, "yuv420p"))))
        target.mux(stream.encode(None))
    return written.getvalue()


def _green(frame: "VideoFrame") -> "VideoFrame":
    """A new frame shows whatever the memory held before; one colour is small every time."""
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    return frame


async def test_what_keeps_the_rules_of_stickers_is_one_and_any_other_film_a_document(group: BusyGroup) -> None:
    files = {"dance.tgs": sample_files()["dance.tgs"][1], "wave.webm": film(512, 384), "film.webm": film(640, 480)}
    agent = ScriptedAgent([*[send(group.offer(name, content)) for name, content in files.items()], "There."])
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "stickers, please")
        await until(lambda: confirmed(gateway, 4))
    assert forms(group) == ["sticker", "sticker", "document", "text"]
    assert hashes(group) == [sha256(content) for content in files.values()]
    told = [text_of(answer).partition("your answer ")[2].partition(" (")[0].rstrip(".") for answer in agent.answers]
    assert told == ["as a sticker", "as a sticker", "as a document"]


async def test_a_film_has_its_dimensions_and_length_without_the_decoder_too(
    group: BusyGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = film(320, 180, form="mp4", codec="mpeg4")
    monkeypatch.setitem(sys.modules, "av", None)
    async with group.gateway(ScriptedAgent([send(group.offer("film.mp4", content)), "There."])) as gateway:
        group.server.say(group.ann, group.ann, "the film, please")
        await until(lambda: confirmed(gateway, 2))
    shown = group.server.sent[0]["video"]
    assert (shown["width"], shown["height"], shown["duration"]) == (320, 180, 1)


async def test_a_still_picture_that_telegram_does_not_take_as_a_photo_is_made_one(group: BusyGroup) -> None:
    files = {f"still.{form}": drawn(form) for form in ("gif", "bmp", "tiff")}
    agent = ScriptedAgent([*[send(group.offer(name, content)) for name, content in files.items()], "There."])
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "pictures, please")
        await until(lambda: confirmed(gateway, 2))
    assert forms(group) == ["photo", "photo", "photo", "text"]


def drawn(form: str) -> bytes:
    """A still picture, by the real encoder."""
    written = io.BytesIO()
    Image.linear_gradient("L").save(written, form)
    return written.getvalue()


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_url_on_a_private_address_is_sent_where_the_operator_allows_it(
    group: BusyGroup, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    async with files_server({"/report": PAGE}) as place:
        table = group.table() | {"net": {"allow": [place] if allowed else []}}
        monkeypatch.setattr(group, "table", lambda: table)
        call = ToolCall(name="send_media", arguments={"url": f"http://{place}/report"})
        async with group.gateway(ScriptedAgent([call, "As you wished."])) as gateway:
            group.server.say(group.ann, group.ann, "the report, please")
            await until(lambda: confirmed(gateway, 2 if allowed else 1))
    assert forms(group) == (["document", "text"] if allowed else ["text"])
    assert hashes(group) == ([sha256(PAGE)] if allowed else [])


@asynccontextmanager
async def files_server(files: Mapping[str, bytes]) -> AsyncIterator[str]:
    """An HTTP server with these files, at its host and port."""

    async def serve(request: web.BaseRequest) -> web.Response:
        return web.Response(body=files[request.path], content_type="application/pdf")

    async with RawTestServer(serve) as server:
        yield f"127.0.0.1:{server.port}"


async def test_an_answer_in_a_topic_brings_its_files_there(group: BusyGroup) -> None:
    forum = group.server.group("Workshop", forum=True)
    where = ConversationKey(platform="telegram", account="default", channel=str(forum["id"]), thread="12")
    table = group.table()
    table["adapters"]["telegram"]["access"]["channels"][str(forum["id"])] = {"senders": ["*"], "mention": True}
    group.table = lambda: table  # type: ignore[method-assign]
    agent = ScriptedAgent([send(group.offer("chart.png", CHART, where=where)), "Here."])
    async with group.gateway(agent):
        group.server.say(forum, group.ann, f"{BOT} a chart", topic=12)
        await until(lambda: forms(group) == ["photo", "text"])
    assert {message["message_thread_id"] for message in group.server.sent} == {12}


async def test_a_caption_that_is_too_long_follows_as_text(group: BusyGroup) -> None:
    caption = "word " * 300
    agent = ScriptedAgent([send(group.offer("chart.png", CHART), caption=caption), "Done."])
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
    agent = ScriptedAgent([send(group.offer("large.png", written.getvalue())), "Large."])
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "the large one")
        await until(lambda: forms(group) == ["photo", "text"])
    (received,) = group.server.received
    assert received.announced <= 10 * MEGABYTE
    assert (received.width, received.height) == (2100, 1800)


async def test_sixty_megabytes_are_refused_with_the_reason_told_and_kept(group: BusyGroup) -> None:
    large = group.offer("pending/film.bin", b"")
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
        [send(group.offer("chart.png", CHART)), send(group.offer("report.pdf", PAGE)), "Both of them."]
    )
    group.server.fail("sendDocument", CannedAnswer(status=429, parameters={"retry_after": 1}), times=2)
    async with group.gateway(agent) as gateway:
        group.server.say(group.ann, group.ann, "both")
        await until(lambda: confirmed(gateway, 3))
    assert forms(group) == ["photo", "document", "text"]
    assert hashes(group) == [sha256(CHART), sha256(PAGE)]
    assert group.server.calls["sendDocument"] == 3


async def test_markup_telegram_refuses_is_sent_plain_once(group: BusyGroup) -> None:
    agent = ScriptedAgent([send(group.offer("report.pdf", PAGE), caption="**May**"), "It is **done**."])
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
    agent = ScriptedAgent([send(group.offer("note.ogg", opus()), **{"as": "voice"}), "Listen."])
    async with group.gateway(agent):
        group.server.say(group.ann, group.ann, "say it")
        await until(lambda: len(group.server.sent) == 2)
    assert forms(group) == ["text", "text"]
    said = [message["text"] for message in group.server.sent]
    assert "Listen." in said
    assert any("note.ogg could not be sent: this person takes no voice messages" in text for text in said)


def offer_45_megabytes(group: BusyGroup) -> str:
    """A file that is sent to Ann when she writes; its hash."""
    content = os.urandom(MEGABYTE) * 45
    group.offer("pending/large.bin", content)
    return sha256(content)


async def test_a_gateway_killed_in_the_middle_of_an_upload_flags_it_and_loses_nothing(group: BusyGroup) -> None:
    digest = offer_45_megabytes(group)
    group.server.fail("sendDocument", Stall(after=5 * MEGABYTE))
    async with group.process() as process:
        group.server.say(group.ann, group.ann, "hello")
        await until(lambda: group.server.stalled)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)
        parcels = await asyncio.to_thread(settled_parcels, process, 2)
        (flagged,) = [parcel for parcel in parcels if parcel["state"] == "uncertain"]
        assert "may have arrived" in flagged["reason"]
        assert "document" not in forms(group)
        assert "text" in forms(group), "the words do not wait for the file"
    async with group.gateway() as gateway:
        assert await gateway.retry_parcel(flagged["key"])
        await until(lambda: hashes(group) == [digest])


async def test_an_upload_of_45_megabytes_costs_no_memory(group: BusyGroup) -> None:
    digest = offer_45_megabytes(group)
    async with group.process() as process:
        group.server.say(group.bob, group.bob, "a stranger, so that everything is loaded")
        await until(lambda: group.server.sent)
        Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        before = peak_megabytes(process)
        group.server.say(group.ann, group.ann, "hello")
        await until(lambda: hashes(group) == [digest])
        assert peak_megabytes(process) - before < 32
