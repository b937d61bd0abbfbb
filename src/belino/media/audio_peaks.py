"""How loud a sound goes: every sample while that is quick, else a moment of each part; runs in the sandbox's child."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from belino.domain.errors import MediaRefused
from belino.media import stream_open

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame

LOUDEST = 100
POINTS_AT_MOST = 1_000
HEARD_RATE = 8_000
"""So many samples a second are enough to tell loud from quiet."""
CPU_SECONDS = 8.0
"""As long as every sample is looked at. Opus takes two of these for half an hour."""
MOMENT_SECONDS = 0.5
"""Of each part of a sound that takes longer."""
QUIET = 0.02
"""Where nothing is louder than this it is not made to look loud: noise on a line is no speech."""

# A sample format: the type of one sample in memory, and what full volume is.
_FORMS: dict[str, tuple[Literal["f", "d", "h", "i"], float]] = {
    "flt": ("f", 1.0), "dbl": ("d", 1.0), "s16": ("h", 32_768.0), "s32": ("i", 2_147_483_648.0),
}  # fmt: skip


def peaks(source: int, mime: str, seconds: float, points: int) -> list[int]:
    """The loudest of each part, as a share of the loudest of all."""
    heard = [0.0] * points
    if not _whole(source, mime, seconds, heard):
        heard = [0.0] * points
        _moments(source, mime, seconds, heard)
    top = max(*heard, QUIET)
    return [round(LOUDEST * min(height / top, 1.0)) for height in heard]


def _whole(source: int, mime: str, seconds: float, heard: list[float]) -> bool:
    """Every sample; False if that takes too long."""
    give_up = time.process_time() + CPU_SECONDS
    at, loudness, frames = 0.0, _Loudness(), 0
    with stream_open.opened(source, mime) as container:
        for frame in stream_open.frames_of(container, stream_open.audio_of(container)):
            part = min(int(at / seconds * len(heard)), len(heard) - 1)
            heard[part] = max(heard[part], loudness(frame))
            at += frame.samples / max(frame.sample_rate, 1)
            frames += 1
            if frames % 64 == 0 and time.process_time() > give_up:
                return False
    if not frames:
        raise MediaRefused("there is no sound in it that can be decoded")
    return True


def _moments(source: int, mime: str, seconds: float, heard: list[float]) -> None:
    """A moment of each part, by seeking."""
    from av.error import FFmpegError

    loudness, give_up = _Loudness(), time.process_time() + CPU_SECONDS
    with stream_open.opened(source, mime) as container:
        stream = stream_open.audio_of(container)
        begin, unit = stream_open.begins_at(container, stream), stream.time_base
        if unit is None:
            raise MediaRefused("the sound tells no times")
        for part in range(len(heard)):
            at = begin + (part + 0.5) * seconds / len(heard)
            with suppress(FFmpegError):  # this part cannot be reached; the others may
                container.seek(int(at / unit), stream=stream)
                heard[part] = loudness.of_moment(stream_open.frames_of(container, stream))
            if time.process_time() > give_up:
                raise MediaRefused("the sound is too long to be looked at")


class _Loudness:
    """The loudest sample of a frame, from 0 to 1."""

    def __init__(self) -> None:
        self._resampler: Any = None

    def __call__(self, frame: "AudioFrame") -> float:
        form = _FORMS.get(frame.format.name.removesuffix("p"))
        if form is None:
            return max(map(self, self._plain(frame)), default=0.0)
        code, full = form
        packed = 1 if frame.format.is_planar else frame.layout.nb_channels
        samples = memoryview(frame.planes[0]).cast("B")[: frame.samples * packed * frame.format.bytes]
        # An odd step goes through all channels where they alternate.
        step = max(1, frame.sample_rate * packed // HEARD_RATE) | 1
        some: Sequence[float] = samples.cast(code)[::step]
        return min(1.0, max(max(some), -min(some)) / full) if len(some) else 0.0

    def of_moment(self, frames: Any) -> float:
        """The loudest of the next moment."""
        loudest, heard = 0.0, 0.0
        for frame in frames:
            loudest = max(loudest, self(frame))
            heard += frame.samples / max(frame.sample_rate, 1)
            if heard >= MOMENT_SECONDS:
                break
        return loudest

    def _plain(self, frame: "AudioFrame") -> "list[AudioFrame]":
        """The same in a sample format of ours, for the few codecs that have another."""
        from av.audio.resampler import AudioResampler

        if self._resampler is None:
            self._resampler = AudioResampler(format="s16", layout="mono", rate=frame.sample_rate)
        made: list[AudioFrame] = self._resampler.resample(frame)
        return made
