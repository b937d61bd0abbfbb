"""Frames of a hostile video or animation, upright and with square pixels; runs in the sandbox's child.

A video is read by seeking; an animation (GIF, WebP) in one pass, because every frame needs the ones before it.
"""

import io
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.units import format_duration
from belino.media import stream_open
from belino.media.image import decode
from belino.media.image.decode import MAX_SIDE, max_pixels

if TYPE_CHECKING:
    from av.container.input import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from PIL import Image

FRAMES_AT_MOST = 24
PATIENCE = 8.0
"""For all frames together. Beyond it the last reached frame is returned, with its own time."""
POSTER_SHARE, POSTER_SECONDS = 0.1, 3.0
"""The latest time of a poster: the very first frame is often black."""
SAME = 0.001
"""Seconds: closer times are the same, because containers round them."""
EARLIER = (0.0, 2.0, 10.0, 60.0)
"""Seconds: seeking may overshoot where the index does not use presentation times."""
ODDEST_PIXEL = 10
"""The maximum pixel aspect ratio, either way."""

ANIMATIONS = frozenset({"image/gif", "image/webp"})
_LOADERS = {"image/gif": "gifload_source", "image/webp": "webpload_source"}
_PILLOW = {"image/gif": "GIF", "image/webp": "WEBP"}
FRAME_PIXELS_AT_MOST = 400_000_000
"""Of all frames of an animation together: to reach one, all before it are decoded."""
FRAMES_LISTED_AT_MOST = 10_000
HASTY, USUAL = 10, 100
"""Milliseconds: a delay up to the first value means the second, as in every browser."""

Taken = tuple[float, "Image.Image"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameOptions:
    """The requested frames and their maximum size."""

    count: int
    start: float | None
    end: float | None
    max_side: int
    poster: bool = False
    """Any frame that is quick to reach."""

    def times(self, seconds: float | None) -> list[float]:
        """The midpoints of so many parts of equal length."""
        begin = self.start or 0.0
        if seconds is not None and begin >= seconds:
            raise MediaRefused(f"it lasts {format_duration(seconds)}; there is nothing at {format_duration(begin)}")
        ends = [each for each in (self.end, seconds) if each is not None]
        if self.poster or not ends:
            return [min((seconds or 0.0) * POSTER_SHARE, POSTER_SECONDS) if self.poster else begin]
        part = (min(ends) - begin) / self.count
        return [begin + (number + 0.5) * part for number in range(self.count)]


def look(source: int, mime: str) -> dict[str, Any]:
    """The facts of the video."""
    if (found := stream_open.type_of(source, mime)) in ANIMATIONS:
        return _animation_facts(source, found)
    with stream_open.opened(source, mime) as container:
        stream = _moving(container)
        first = next(stream_open.frames_of(container, stream), None)
        turned = _turn(first) if first is not None else 0
        width, height = _shown(stream.width, stream.height, stream.sample_aspect_ratio, turned)
        sounds: Sequence[Any] = container.streams.audio
        heard = (sound.codec.canonical_name for sound in sounds if sound.codec_context is not None)
        rate = stream.average_rate or stream.guessed_rate
        return {
            "seconds": stream_open.seconds_of(container, stream, os.fstat(source).st_size),
            "codec": stream.codec.canonical_name,
            "width": width,
            "height": height,
            "rotation": turned,
            "fps": float(rate) if rate else None,
            "audio_codec": next(heard, ""),
            "subtitles": len(container.streams.subtitles),
            "seen": None,
        }


def taken(source: int, mime: str, wish: FrameOptions) -> Sequence[Taken]:
    """The requested frames, each once, with their times."""
    if (found := stream_open.type_of(source, mime)) in ANIMATIONS:
        return _animation_frames(source, found, wish.times, wish.max_side)
    with stream_open.opened(source, mime) as container:
        stream = _moving(container)
        seconds = stream_open.seconds_of(container, stream, os.fstat(source).st_size)
        seeker = _Seeker(container, stream, near=wish.poster)
        frames: dict[float, Image.Image] = {}
        for at, frame in seeker.frames(wish.times(seconds)):
            if at not in frames:
                frames[at] = _upright(frame, stream.sample_aspect_ratio, wish.max_side)
    if not frames:
        raise MediaRefused("no frame of it can be decoded")
    return sorted(frames.items())


class _Seeker:
    """Moves forward through a video, by seeking or decoding."""

    def __init__(self, container: "InputContainer", stream: "VideoStream", *, near: bool) -> None:
        self._container, self._stream = container, stream
        self._near = near
        self._unit = stream.time_base or Fraction(1, 1_000)
        self._begin = stream_open.begins_at(container, stream)
        self._step = float(1 / stream.average_rate) if stream.average_rate else 0.04
        self._coming: Iterator[VideoFrame] = iter(())
        self._last: tuple[float, VideoFrame] | None = None

    def frames(self, times: Sequence[float]) -> Iterator[tuple[float, "VideoFrame"]]:
        """The frame shown at each time, or the last reachable one before it."""
        end = time.monotonic() + PATIENCE
        for number, at in enumerate(times):
            now = time.monotonic()
            found = self._at(at, give_up=now + (end - now) / (len(times) - number))
            if found is not None:
                yield found
        if self._last is None:
            # The length may be false, or seeking impossible: the first frame is better than none.
            self._seek(0.0)
            yield from self._forward(0.0, give_up=end)

    def _at(self, at: float, *, give_up: float) -> tuple[float, "VideoFrame"] | None:
        if self._is_on_the_way(at):
            return next(self._forward(at, give_up=give_up), None)
        found = None
        for earlier in EARLIER:
            self._seek(at - earlier)
            found = next(self._forward(at, give_up=give_up), None)
            if (found is not None and found[0] <= at + SAME) or earlier >= at or time.monotonic() > give_up:
                break
        return found

    def _is_on_the_way(self, at: float) -> bool:
        """Whether there is no key frame in between: seeking would go back."""
        if self._last is None or self._last[0] > at:
            return False
        entries = self._stream.index_entries
        place = entries.search_timestamp(int((at + self._begin) / self._unit)) if len(entries) else -1
        return place >= 0 and float(entries[place].timestamp * self._unit) - self._begin <= self._last[0]

    def _seek(self, at: float) -> None:
        from av.error import FFmpegError

        # Where seeking is impossible, decode from the beginning, as far as the limit allows.
        with suppress(FFmpegError):
            self._container.seek(int((at + self._begin) / self._unit), stream=self._stream)
        self._last = None
        self._coming = stream_open.frames_of(self._container, self._stream)

    def _forward(self, at: float, *, give_up: float) -> Iterator[tuple[float, "VideoFrame"]]:
        """One frame, the last that is not later than `at`; the first if all are."""
        before = self._last
        for frame in self._coming:
            self._last = (self._time(frame), frame)
            if self._last[0] > at + SAME:
                yield before or self._last
                return
            before = self._last
            if self._near or self._last[0] > at - SAME or time.monotonic() > give_up:
                break
        if before is not None:
            yield before

    def _time(self, frame: "VideoFrame") -> float:
        if frame.pts is None or frame.time_base is None:
            return self._last[0] + self._step if self._last else 0.0
        return max(0.0, round(float(frame.pts * frame.time_base) - self._begin, 3))


def _moving(container: "InputContainer") -> "VideoStream":
    stream = stream_open.video_of(container)
    if stream is None:
        raise MediaRefused("there are no moving pictures in it")
    if stream.width * stream.height > max_pixels() or max(stream.width, stream.height) > MAX_SIDE:
        most = f"at most {max_pixels():,} pixels are decoded (media.max_pixels)"
        raise MediaRefused(f"the video is {stream.width}×{stream.height}; {most}")
    if min(stream.width, stream.height) < 1:
        raise MediaRefused("the video is damaged: it has no size")
    # Threads would take address space, which is limited, and save no CPU time.
    stream.thread_count = 1
    return stream


def _turn(frame: "VideoFrame") -> int:
    """Clockwise rotation to upright, in degrees; only quarters are applied."""
    return -round(frame.rotation / 90) * 90 % 360


def _shown(width: int, height: int, pixel: Fraction | None, turned: int) -> tuple[int, int]:
    if pixel and Fraction(1, ODDEST_PIXEL) < pixel < ODDEST_PIXEL:
        width = min(max(1, round(width * pixel)), MAX_SIDE)
    return (height, width) if turned in (90, 270) else (width, height)


def _upright(frame: "VideoFrame", pixel: Fraction | None, max_side: int) -> "Image.Image":
    from PIL import Image

    width, height = _shown(frame.width, frame.height, pixel, 0)
    scale = min(1.0, max_side / max(width, height))
    picture: Image.Image = frame.to_image(  # type: ignore[no-untyped-call]
        width=max(1, round(width * scale)), height=max(1, round(height * scale)), interpolation="AREA"
    )
    turns = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
    turned = _turn(frame)
    return picture.transpose(turns[turned]) if turned else picture


def _animation_facts(source: int, mime: str) -> dict[str, Any]:
    """The facts of an animation, in the form of a video's."""
    ends, header = _frame_ends(source, mime)
    width, height = header.upright
    reached = _reached(header)
    return {
        "seconds": ends[-1],
        "codec": mime.removeprefix("image/"),
        "width": width,
        "height": height,
        "rotation": 0,
        "fps": len(ends) / ends[-1],
        "audio_codec": "",
        "subtitles": 0,
        "seen": ends[reached - 1] if reached < len(ends) else None,
    }


def _animation_frames(
    source: int, mime: str, times: Callable[[float | None], list[float]], max_side: int
) -> Sequence[tuple[float, "Image.Image"]]:
    """The frames of an animation shown at those times, each once."""
    from PIL import Image

    ends, header = _frame_ends(source, mime)
    ends = ends[: _reached(header)]
    numbers = sorted({min(bisect_right(ends, at), len(ends) - 1) for at in times(ends[-1])})
    os.lseek(source, 0, os.SEEK_SET)
    found = []
    try:
        with Image.open(io.FileIO(source, closefd=False), formats=(_PILLOW[mime],)) as picture:
            for number in numbers:
                picture.seek(number)
                found.append((ends[number - 1] if number else 0.0, _opaque(picture, max_side)))
    except decode.PILLOW_ERRORS as error:
        if not found:
            raise MediaRefused(f"the {mime} is damaged or cut off") from error
    return found


def _frame_ends(source: int, mime: str) -> tuple[list[float], decode.Header]:
    """The end of each frame, in seconds."""
    header = decode.look(source)
    if header.frames < 2:
        raise MediaRefused("it is a still picture; nothing moves in it")
    pyvips = decode.vips()
    image = getattr(pyvips.Image, _LOADERS[mime])(pyvips.Source.new_from_descriptor(source))
    told = image.get("delay") if "delay" in image.get_fields() else []
    count = min(header.frames, FRAMES_LISTED_AT_MOST)
    delays = [*told, *[USUAL] * count][:count]
    ends = accumulate(delay if delay > HASTY else USUAL for delay in delays)
    return [end / 1_000 for end in ends], header


def _reached(header: decode.Header) -> int:
    """The number of frames, from the first, that are looked at."""
    return max(1, FRAME_PIXELS_AT_MOST // (header.width * header.height))


def _opaque(picture: "Image.Image", max_side: int) -> "Image.Image":
    from PIL import Image

    frame = picture.convert("RGBA")
    frame.thumbnail((max_side, max_side))
    white = Image.new("RGBA", frame.size, "white")
    white.alpha_composite(frame)
    return white.convert("RGB")
