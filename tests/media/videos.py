"""Videos made on the spot by a real encoder, and odd ones made of them by hand."""

import importlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

from PIL import Image

from belino.domain.media import Blob
from belino.media.sandbox.sandbox import JOBS
from media.local_files import local_blob
from media.pictures import quarters

RATE = 10
SIZE = (64, 32)


def brightness(number: int) -> tuple[int, int, int]:
    """Tells frames apart: each is a little lighter than the one before."""
    return (number * 5 % 256,) * 3


def video(
    frames: int = 20,
    *,
    form: str = "mp4",
    codec: str = "mpeg4",
    size: tuple[int, int] = SIZE,
    key: int = 1,
    picture: Callable[[int], Image.Image] | None = None,
    times: Sequence[int] | None = None,
    pixel: Fraction | None = None,
    turned: int = 0,
    sound: bool = False,
    options: dict[str, str] | None = None,
    between: int = 0,
) -> bytes:
    """Frames a tenth of a second apart, unless `times` tells their tenths; a key frame every `key` of them."""
    import av

    written = io.BytesIO()
    draw = picture or (lambda number: Image.new("RGB", size, brightness(number)))
    with av.open(written, "w", format=form, options=options or {}) as target:
        stream: Any = target.add_stream(codec, rate=RATE)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = key
        if codec == "mpeg4":  # It would make a key frame of every frame that is brighter than the last.
            stream.options = {"sc_threshold": "1000000000"}
        stream.codec_context.max_b_frames = between
        stream.codec_context.time_base = Fraction(1, RATE)
        stream.bit_rate = 2_000_000
        if pixel is not None:
            stream.codec_context.sample_aspect_ratio = pixel
        if turned:
            stream.set_display_rotation(-turned)
        if sound:
            voice: Any = target.add_stream("libopus" if form == "webm" else "aac", rate=48_000)
            voice.layout = "mono"
        for number in range(frames):
            frame = av.VideoFrame.from_image(draw(number))  # type: ignore[no-untyped-call]
            frame.pts = times[number] if times is not None else number
            frame.time_base = Fraction(1, RATE)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
        if sound:
            target.mux(voice.encode(_hum(av)))
            target.mux(voice.encode(None))
    return written.getvalue()


def _hum(av: Any) -> Any:
    frame = av.AudioFrame(format="fltp", layout="mono", samples=960)
    frame.planes[0].update(bytes(960 * 4))
    frame.sample_rate, frame.pts, frame.time_base = 48_000, 0, Fraction(1, 48_000)
    return frame


def four_colours(_: int) -> Image.Image:
    return quarters(SIZE)


SUBTITLES = b"1\n00:00:00,000 --> 00:00:01,000\nHello <i>there</i>\n\n2\n00:00:01,200 --> 00:00:01,900\nsecond\nline\n"


def subtitled(form: str = "mp4") -> bytes:
    """Two seconds with two lines of subtitles, in Matroska or MP4."""
    import av

    written = io.BytesIO()
    with (
        av.open(io.BytesIO(video(20)), "r") as film,
        av.open(io.BytesIO(SUBTITLES), "r", format="srt") as words,
        av.open(written, "w", format=form) as target,
    ):
        shown: Any = target.add_stream_from_template(film.streams.video[0])
        track: Any = target.add_stream("mov_text" if form == "mp4" else "srt")
        track.codec_context.subtitle_header = b"[Script Info]\nScriptType: v4.00+\n"
        for packet in film.demux(film.streams.video[0]):
            if packet.dts is not None:
                packet.stream = shown
                target.mux(packet)
        for line in words.demux():
            if line.dts is not None:
                raw = bytes(line)
                told = av.Packet(len(raw).to_bytes(2) + raw if form == "mp4" else raw)
                told.pts, told.dts, told.duration, told.time_base = line.pts, line.dts, line.duration, line.time_base
                told.stream = track
                target.mux(told)
    return written.getvalue()


def song_with_cover(form: str = "mp3") -> bytes:
    """A second of silence with a picture on its sleeve."""
    import av

    written = io.BytesIO()
    with av.open(written, "w", format=form) as target:
        voice: Any = target.add_stream("libmp3lame" if form == "mp3" else "aac", rate=48_000)
        voice.layout = "mono"
        cover: Any = target.add_stream("mjpeg")
        cover.width, cover.height, cover.pix_fmt = *SIZE, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        picture = av.VideoFrame.from_image(quarters(SIZE))  # type: ignore[no-untyped-call]
        target.mux(cover.encode(picture))
        target.mux(cover.encode(None))
        for number in range(50):
            frame = av.AudioFrame(format="fltp", layout="mono", samples=960)
            frame.planes[0].update(bytes(960 * 4))
            frame.sample_rate, frame.pts, frame.time_base = 48_000, 960 * number, Fraction(1, 48_000)
            target.mux(voice.encode(frame))
        target.mux(voice.encode(None))
    return written.getvalue()


def elsewhere(content: bytes, path: bytes) -> bytes:
    """The MP4, but its first track says that its frames lie in another file."""
    entry = b"\0\0\0\x0curl \0\0\0\x01"
    at = content.index(entry)
    body = b"alis\0\0\0\0" + bytes(150) + b"\0\x02" + len(path).to_bytes(2) + path + b"\xff\xff\0\0"
    foreign = (len(body) + 4).to_bytes(4) + body
    changed = bytearray(content[:at] + foreign + content[at + len(entry) :])
    for name in (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"):
        box = changed.index(name) - 4
        size = int.from_bytes(changed[box : box + 4]) + len(foreign) - len(entry)
        changed[box : box + 4] = size.to_bytes(4)
    return bytes(changed)


def unmeasured(content: bytes) -> bytes:
    """The WebM without its length, as a browser records it."""
    about = content.index(b"\x15\x49\xa9\x66")
    at = content.index(b"\x44\x89", about)
    return content[:at] + b"\xec\x89" + content[at + 2 :]


def blob_of(path: Path, content: bytes, mime: str = "video/mp4") -> Blob:
    path.write_bytes(content)
    return local_blob(path, mime=mime)


class Here:
    """The sandbox's jobs without its walls: quick, and open to being watched."""

    async def run(
        self,
        job: str,
        source: int | Path,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        output: Path | None = None,
    ) -> dict[str, Any]:
        module, _, name = JOBS[job].partition(":")
        assert isinstance(source, Path)
        with ExitStack() as closing:
            files: list[BinaryIO] = [closing.enter_context(source.open("rb"))]
            if output is not None:
                files.append(closing.enter_context(output.open("x+b")))
            function = getattr(importlib.import_module(module), name)
            answer: dict[str, Any] = function(*(file.fileno() for file in files), options)
            return cast("dict[str, Any]", json.loads(json.dumps(answer)))


class Lying:
    """A child in an enemy's hands: answers and writes what it likes."""

    def __init__(self, answer: dict[str, Any], content: bytes = b"") -> None:
        self._answer, self._content = answer, content

    async def run(
        self,
        job: str,
        source: int | Path,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        output: Path | None = None,
    ) -> dict[str, Any]:
        if output is not None:
            output.write_bytes(self._content)
        return self._answer
