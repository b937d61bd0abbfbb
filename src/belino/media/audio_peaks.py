"""Audio peaks: the loudness of a sound, from every sample while that is fast, else from a part of each section."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from belino.domain.errors import MediaRefused
from belino.media import stream_open

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame

LOUDEST = 100
POINTS_AT_MOST = 1_000
HEARD_RATE = 8_000
"""So many samples a second are enough to measure loudness."""
CPU_SECONDS, PATIENCE = 6.0, 12.0
"""Limits for reading every sample, in CPU time and wall time. Half an hour of Opus takes three seconds of the first."""
FIRST_LOOK = 0.5
"""Seconds after which the remaining time can be estimated."""
MOMENT_SECONDS = 0.5
"""Seconds decoded of each part, if the sound takes longer."""
MOMENTS_PATIENCE = 5.0
"""For all moments together; a moment takes a millisecond."""
QUIET = 0.02
"""A quieter sound is not amplified: line noise is no speech."""

# A sample format: the type of one sample in memory, and full volume.
_FORMS: dict[str, tuple[Literal["f", "d", "h", "i"], float]] = {
    "flt": ("f", 1.0), "dbl": ("d", 1.0), "s16": ("h", 32_768.0), "s32": ("i", 2_147_483_648.0),
}  # fmt: skip


def peaks(source: int, mime: str, seconds: float, points: int) -> list[int]:
    """The peak of each part, relative to the overall peak."""
    heard = [0.0] * points
    if not _whole(source, mime, seconds, heard):
        heard = [0.0] * points
        _moments(source, mime, seconds, heard)
    top = min(1.0, max(*heard, QUIET))
    # A broken stream may hold samples above full volume.
    return [round(LOUDEST * min(1.0, height / top)) for height in heard]


def _whole(source: int, mime: str, seconds: float, heard: list[float]) -> bool:
    """Every sample; False as soon as this is going to take too long."""
    clock = _Clock()
    at, loudness, frames = 0.0, _Loudness(), 0
    with stream_open.opened(source, mime) as container:
        for frame in stream_open.frames_of(container, stream_open.audio_of(container)):
            frames += 1
            end = at + frame.samples / max(frame.sample_rate, 1)
            first, last = (min(int(each / seconds * len(heard)), len(heard) - 1) for each in (at, end))
            # A frame may span several parts; each of them gets its share.
            for part, loud in enumerate(loudness.of_parts(frame, last - first + 1), first):
                heard[part] = max(heard[part], loud)
            at = end
            if frames % 64 == 0 and clock.is_hopeless(at / max(seconds, at)):
                return False
    if not frames:
        raise MediaRefused("there is no sound in it that can be decoded")
    return True


def _moments(source: int, mime: str, seconds: float, heard: list[float]) -> None:
    """A moment of each part, by seeking."""
    from av.error import FFmpegError

    loudness, give_up = _Loudness(), time.monotonic() + MOMENTS_PATIENCE
    with stream_open.opened(source, mime) as container:
        stream = stream_open.audio_of(container)
        begin, unit = stream_open.begins_at(container, stream), stream.time_base
        if unit is None:
            raise MediaRefused("the sound tells no times")
        for part in range(len(heard)):
            at = begin + (part + 0.5) * seconds / len(heard)
            with suppress(FFmpegError):  # this part cannot be reached; others may
                container.seek(int(at / unit), stream=stream)
                heard[part] = loudness.of_moment(stream_open.frames_of(container, stream))
            if time.monotonic() > give_up:
                raise MediaRefused("the sound is too long to be looked at")


class _Clock:
    """The time spent since creation."""

    def __init__(self) -> None:
        self._begun = time.process_time(), time.monotonic()

    def is_hopeless(self, done: float) -> bool:
        """Whether the whole will take too long, given the time for this share."""
        worked, waited = time.process_time() - self._begun[0], time.monotonic() - self._begun[1]
        return worked > FIRST_LOOK and max(worked / CPU_SECONDS, waited / PATIENCE) > done


class _Loudness:
    """The peak of a frame, from 0 to 1."""

    def __init__(self) -> None:
        self._resampler: Any = None

    def of_parts(self, frame: "AudioFrame", parts: int) -> list[float]:
        """The peak of each of so many parts of a frame."""
        form = _FORMS.get(frame.format.name.removesuffix("p"))
        if form is None:
            plain = self._plain(frame)
            return self.of_parts(plain[0], parts) if plain else [0.0] * parts
        code, full = form
        packed = 1 if frame.format.is_planar else frame.layout.nb_channels
        samples = memoryview(frame.planes[0]).cast("B")[: frame.samples * packed * frame.format.bytes]
        # An odd step covers all channels of interleaved samples.
        some: Sequence[float] = samples.cast(code)[:: max(1, frame.sample_rate * packed // HEARD_RATE) | 1]
        cuts = [len(some) * part // parts for part in range(parts + 1)]
        return [_loudest(some[begin:end]) / full for begin, end in pairwise(cuts)]

    def of_moment(self, frames: "Iterable[AudioFrame]") -> float:
        """The peak of the next moment."""
        loudest, heard = 0.0, 0.0
        for frame in frames:
            loudest = max(loudest, *self.of_parts(frame, 1))
            heard += frame.samples / max(frame.sample_rate, 1)
            if heard >= MOMENT_SECONDS:
                break
        return loudest

    def _plain(self, frame: "AudioFrame") -> "list[AudioFrame]":
        """The same in a supported sample format, for the few codecs with another."""
        from av.audio.resampler import AudioResampler

        if self._resampler is None:
            self._resampler = AudioResampler(format="s16", layout=frame.layout.name, rate=frame.sample_rate)
        made: list[AudioFrame] = self._resampler.resample(frame)
        return made


def _loudest(samples: Sequence[float]) -> float:
    return max(max(samples), -min(samples)) if len(samples) else 0.0
