"""A window of any sound or video becomes plain samples; a picture becomes plain pixels; a video loses its metadata."""

import array
import io
import math
import wave
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media.image.plain import PlainPictures
from belino.media.remux import Remuxer
from belino.media.samples import FLAC, WAV, Windows
from belino.media.sandbox.sandbox import Sandbox
from media.local_files import local_blob, open_local
from media.videos import Here, Lying, video

RATE = 48_000
HUM = (6.0, 7.0)
SECONDS = 10.0


@cache
def silence_with_a_hum() -> bytes:
    """Ten seconds of stereo; only the seventh is not silent."""
    samples = array.array("h", bytes(4 * int(SECONDS * RATE)))
    for at in range(int(HUM[0] * RATE), int(HUM[1] * RATE)):
        samples[2 * at] = samples[2 * at + 1] = int(9_000 * math.sin(at * 440 * 2 * math.pi / RATE))
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def encoded(form: str, codec: str) -> Callable[[], bytes]:
    def make() -> bytes:
        import av

        written = io.BytesIO()
        with (
            av.open(io.BytesIO(silence_with_a_hum()), "r") as source,
            av.open(written, "w", format=form) as target,
        ):
            stream: Any = target.add_stream(codec, rate=RATE)
            stream.layout = "stereo"
            for frame in source.decode(audio=0):
                target.mux(stream.encode(frame))
            target.mux(stream.encode(None))
        return written.getvalue()

    return make


FORMATS: dict[str, tuple[Callable[[], bytes], str]] = {
    "wav": (silence_with_a_hum, "audio/wav"),
    "opus": (encoded("ogg", "libopus"), "audio/ogg"),
    "mp3": (encoded("mp3", "libmp3lame"), "audio/mpeg"),
    "aac": (encoded("ipod", "aac"), "audio/mp4"),
    "adts": (encoded("adts", "aac"), "audio/aac"),
    "flac": (encoded("flac", "flac"), "audio/flac"),
    "webm": (encoded("webm", "libopus"), "audio/webm"),
}


@pytest.fixture(scope="module")
def sounds() -> dict[str, bytes]:
    return {name: make() for name, (make, _) in FORMATS.items()}


def blob(path: Path, content: bytes, mime: str) -> Blob:
    path.write_bytes(content)
    return local_blob(path, mime=mime)


def loud_part(content: bytes) -> tuple[float, float]:
    """When the hum begins and ends, in seconds."""
    with wave.open(io.BytesIO(content)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 16_000)
        samples = array.array("h", sound.readframes(sound.getnframes()))
    loud = [at for at, height in enumerate(samples) if abs(height) > 2_000]
    return loud[0] / 16_000, loud[-1] / 16_000


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("start", [0.0, 1.0, 4.5, 5.9])
async def test_a_window_begins_exactly_where_it_was_asked_to(
    sounds: dict[str, bytes], tmp_path: Path, name: str, start: float
) -> None:
    windows = Windows(Here(), tmp_path / "scratch", open_local)
    source = blob(tmp_path / "in", sounds[name], FORMATS[name][1])
    async with windows.samples(source, start=start, end=8.0, mime=WAV) as made:
        begins, ends = loud_part(made.path.read_bytes())
        assert made.seconds == pytest.approx(8.0 - start, abs=0.01)
        assert not made.ended
    assert begins == pytest.approx(HUM[0] - start, abs=0.06)
    assert ends == pytest.approx(HUM[1] - start, abs=0.06)
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("name", FORMATS)
async def test_a_window_beyond_the_end_is_as_long_as_the_sound(
    sounds: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    windows = Windows(Here(), tmp_path / "scratch", open_local)
    source = blob(tmp_path / "in", sounds[name], FORMATS[name][1])
    async with windows.samples(source, start=5.0, end=600.0, mime=WAV) as made:
        assert made.ended
        assert made.seconds == pytest.approx(5.0, abs=0.2)


async def test_remote_readers_get_the_same_as_flac_without_metadata(sounds: dict[str, bytes], tmp_path: Path) -> None:
    import av

    windows = Windows(Here(), tmp_path / "scratch", open_local)
    source = blob(tmp_path / "in", sounds["opus"], "audio/ogg")
    async with (
        windows.samples(source, start=5.0, end=8.0, mime=FLAC) as made,
        windows.samples(source, start=5.0, end=8.0, mime=WAV) as plain,
    ):
        content = made.path.read_bytes()
        assert made.size == len(content) < plain.size
        with av.open(io.BytesIO(content), "r") as opened:
            assert (opened.streams.audio[0].rate, opened.streams.audio[0].channels) == (16_000, 1)
            decoded = b"".join(bytes(frame.planes[0])[: 2 * frame.samples] for frame in opened.decode(audio=0))
        assert decoded == plain.path.read_bytes()[44:]


async def test_a_silent_video_has_no_samples(tmp_path: Path) -> None:
    windows = Windows(Here(), tmp_path / "scratch", open_local)
    with pytest.raises(MediaRefused, match="no sound"):
        async with windows.samples(blob(tmp_path / "in", video(), "video/mp4"), start=0.0, end=1.0, mime=WAV):
            pass
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"samples": 2, "ended": True}, b"RIFF" + bytes(60)),
        ({"samples": -1, "ended": True}, b""),
        ({"samples": 10**9, "ended": True}, b""),
        ({"samples": "2", "ended": True}, b""),
        ({}, b""),
    ],
)
async def test_a_child_that_lies_about_samples_is_not_believed(
    tmp_path: Path, answer: dict[str, Any], content: bytes
) -> None:
    windows = Windows(Lying(answer, content), tmp_path / "scratch", open_local)
    for mime in (WAV, FLAC):
        with pytest.raises(MediaRefused):
            async with windows.samples(blob(tmp_path / "in", b"x", "audio/wav"), start=0.0, end=1.0, mime=mime):
                pass
    assert not list((tmp_path / "scratch").iterdir())


def picture(size: tuple[int, int], form: str = "PNG", **options: Any) -> bytes:
    drawn = Image.new("RGBA" if form == "PNG" else "RGB", size, (0, 0, 0, 0) if form == "PNG" else (10, 20, 30))
    drawn.paste((200, 0, 0), (0, 0, size[0] // 2, size[1]))
    file = io.BytesIO()
    drawn.save(file, form, **options)
    return file.getvalue()


async def test_pixels_are_upright_opaque_and_plain(tmp_path: Path) -> None:
    pictures = PlainPictures(Here(), tmp_path / "scratch", open_local)
    async with pictures.pixels(blob(tmp_path / "in", picture((6, 4)), "image/png")) as path:
        content = path.read_bytes()
    assert content.startswith(b"P6\n6 4\n255\n")
    opened = Image.open(io.BytesIO(content))
    assert (opened.getpixel((0, 0)), opened.getpixel((5, 3))) == ((200, 0, 0), (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = picture((60, 40), "JPEG", exif=exif, quality=95)
    async with pictures.pixels(blob(tmp_path / "in", turned, "image/jpeg")) as path:
        assert Image.open(io.BytesIO(path.read_bytes())).size == (40, 60)
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize(("ink", "ground"), [(255, 0), (0, 255), (120, 255)])
async def test_print_on_nothing_gets_a_ground_that_it_stands_out_from(
    tmp_path: Path, mode: str, ink: int, ground: int
) -> None:
    image, file = Image.new(mode, (60, 40)), io.BytesIO()
    image.paste((ink, 255) if mode == "LA" else (ink, ink, ink, 255), (10, 10, 40, 30))
    image.save(file, "PNG")
    pictures = PlainPictures(Here(), tmp_path / "scratch", open_local)
    async with pictures.pixels(blob(tmp_path / "in", file.getvalue(), "image/png")) as path:
        opened = Image.open(io.BytesIO(path.read_bytes()))
    assert (opened.getpixel((20, 20)), opened.getpixel((0, 0))) == ((ink,) * 3, (ground,) * 3)


async def test_grey_pictures_become_pixels_in_colour_and_large_ones_are_shrunk(tmp_path: Path) -> None:
    pictures = PlainPictures(Here(), tmp_path / "scratch", open_local)
    file = io.BytesIO()
    Image.new("L", (5_000, 4_000), 128).save(file, "PNG")
    async with pictures.pixels(blob(tmp_path / "in", file.getvalue(), "image/png")) as path:
        opened = Image.open(io.BytesIO(path.read_bytes()))
        assert opened.mode == "RGB"
        assert opened.width * opened.height <= 10_000_000
        assert opened.width / opened.height == pytest.approx(1.25, abs=0.01)


@pytest.mark.parametrize("answer", [{}, {"width": 3, "height": 3}, {"width": 10**9, "height": 10**9}, {"width": "3"}])
async def test_a_child_that_lies_about_pixels_is_not_believed(tmp_path: Path, answer: dict[str, Any]) -> None:
    pictures = PlainPictures(Lying(answer, b"P6\n3 3\n255\n" + bytes(26)), tmp_path / "scratch", open_local)
    with pytest.raises(MediaRefused):
        async with pictures.pixels(blob(tmp_path / "in", b"x", "image/png")):
            pass


def with_place(content: bytes) -> bytes:
    """The video with a title and the place where it was filmed."""
    import av

    written = io.BytesIO()
    with av.open(io.BytesIO(content), "r") as source, av.open(written, "w", format="mp4") as target:
        target.metadata["title"] = "secret title"
        target.metadata["location"] = "+48.2082+016.3738/"
        copies = {each.index: target.add_stream_from_template(each) for each in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = copies[packet.stream.index]
                target.mux(packet)
    return written.getvalue()


@pytest.mark.parametrize(("form", "codec", "mime"), [("mp4", "mpeg4", "video/mp4"), ("webm", "libvpx", "video/webm")])
async def test_a_video_is_copied_without_its_metadata(tmp_path: Path, form: str, codec: str, mime: str) -> None:
    import av

    content = video(sound=True, form=form, codec=codec)
    if form == "mp4":
        content = with_place(content)
        assert b"secret title" in content and b"loci" in content
    remuxer = Remuxer(Here(), tmp_path / "scratch", open_local)
    async with remuxer.remuxed(blob(tmp_path / "in", content, mime), max_bytes=1_000_000) as (path, found):
        copied = path.read_bytes()
    assert found == mime
    assert b"secret title" not in copied and b"loci" not in copied
    with av.open(io.BytesIO(copied), "r") as opened, av.open(io.BytesIO(content), "r") as before:
        assert len(list(opened.decode(video=0))) == len(list(before.decode(video=0)))
        assert len(opened.streams.audio) == 1
    assert not list((tmp_path / "scratch").iterdir())


async def test_a_video_over_the_limit_is_not_copied(tmp_path: Path) -> None:
    remuxer = Remuxer(Here(), tmp_path / "scratch", open_local)
    with pytest.raises(MediaRefused, match="over 1000B"):
        async with remuxer.remuxed(blob(tmp_path / "in", video(), "video/mp4"), max_bytes=1_000):
            pass


@pytest.mark.slow
async def test_all_of_it_works_behind_the_walls(sounds: dict[str, bytes], tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    async with Sandbox() as sandbox:
        for mime in (WAV, FLAC):
            source = blob(tmp_path / "in", sounds["opus"], "audio/ogg")
            async with Windows(sandbox, scratch, open_local).samples(source, start=5.0, end=8.0, mime=mime) as made:
                assert made.seconds == pytest.approx(3.0, abs=0.01)
        shown = blob(tmp_path / "in", picture((6, 4)), "image/png")
        async with PlainPictures(sandbox, scratch, open_local).pixels(shown) as path:
            assert path.read_bytes().startswith(b"P6\n6 4\n")
        for form, codec in (("mp4", "mpeg4"), ("webm", "libvpx")):
            film = blob(tmp_path / "in", video(sound=True, form=form, codec=codec), f"video/{form}")
            async with Remuxer(sandbox, scratch, open_local).remuxed(film, max_bytes=1_000_000) as (path, mime):
                assert mime == f"video/{form}"
    assert not list(scratch.iterdir())
