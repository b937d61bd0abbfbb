"""Audio: the facts of a sound, its loudness, and conversions; decoded in the sandbox."""

import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from belino.domain.errors import MediaNotFound, MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.media import stream_open
from belino.media.stream_header import LONGEST, SoundFacts, sound_facts

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame

    from belino.media.image.images import Runs

VOICE_MIME, VOICE_CODEC = "audio/ogg", "opus"
"""The codec that every platform with voice messages accepts."""
VOICE_RATE = 48_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceFormat:
    """How a voice message is encoded: speech sounds no better with more bits a second."""

    codec: str
    encoder: str
    container: str
    suffix: str
    bits: int


VOICES = {
    VOICE_MIME: VoiceFormat(codec=VOICE_CODEC, encoder="libopus", container="ogg", suffix=".ogg", bits=32_000),
    "audio/mp4": VoiceFormat(codec="aac", encoder="aac", container="ipod", suffix=".m4a", bits=64_000),
}
"""By their type, the best first."""
MONO_RATE = 16_000
"""The sample rate of speech recognition."""
WAV_HEADER = 44
MONO_BYTES = 256 * 1024 * 1024
"""More than two hours; the sandbox writes no longer file."""

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


class Sounds:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    async def facts(self, blob: Blob) -> SoundFacts:
        """Encoding and length, from the headers."""
        import asyncio  # which the sandbox's parent does not need

        try:
            async with self._open_blob(blob.sha256) as path:
                return await asyncio.to_thread(_header_facts, path, blob.mime)
        except (OSError, MediaNotFound):
            return SoundFacts()

    async def probe(self, blob: Blob) -> SoundFacts:
        """The facts of the sound, of a video too; from headers where nothing can be decoded, else MediaRefused."""
        told = await self.facts(blob)
        if not stream_open.installed() and told.seconds is not None:
            return told
        stream_open.require()
        async with self._open_blob(blob.sha256) as path:
            return _facts(await self._sandbox.run("audio.probe", path, {"mime": blob.mime}))

    async def waveform(self, blob: Blob, *, points: int = 120) -> tuple[int, ...]:
        """Loudness from 0 to 100 at so many points from beginning to end; a very long sound is sampled."""
        stream_open.require()
        points = min(max(points, 1), POINTS_AT_MOST)
        async with self._open_blob(blob.sha256) as path:
            told = await self._sandbox.run("audio.waveform", path, {"mime": blob.mime, "points": points})
        return _heights(told, points)

    @asynccontextmanager
    async def voice(self, blob: Blob, *, max_bytes: int, mime: str = VOICE_MIME) -> AsyncIterator[Path]:
        """The sound as a voice message of a type in VOICES, in a file that exists as long as the context."""
        async with self._made("audio.voice", blob, max_bytes, target=mime) as output:
            _check_voice(output, max_bytes, mime)
            yield output

    @asynccontextmanager
    async def mono(self, blob: Blob, *, max_bytes: int = MONO_BYTES) -> AsyncIterator[Path]:
        """The sound as WAV of one channel and 16 kHz, in a file that exists as long as the context."""
        async with self._made("audio.mono", blob, min(max_bytes, MONO_BYTES)) as output:
            _check_mono(output, max_bytes)
            yield output

    @asynccontextmanager
    async def _made(self, job: str, blob: Blob, max_bytes: int, *, target: str = "") -> AsyncIterator[Path]:
        stream_open.require()
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"sound-{os.urandom(8).hex()}"
        try:
            async with self._open_blob(blob.sha256) as path:
                await self._sandbox.run(
                    job, path, {"mime": blob.mime, "max_bytes": max_bytes, "target": target}, output=output
                )
            yield output
        finally:
            output.unlink(missing_ok=True)


def _header_facts(path: Path, mime: str) -> SoundFacts:
    with path.open("rb") as file:
        return sound_facts(file, mime)


def _facts(told: Mapping[str, Any]) -> SoundFacts:
    match told:
        case {
            "codec": str(codec),
            "seconds": float() | None as seconds,
            "rate": int(rate),
            "channels": int(channels),
        } if codec.isascii() and codec.replace("_", "").isalnum() and len(codec) <= 32:
            plausible = seconds is not None and 0 < seconds < LONGEST
            if 0 < rate <= 10_000_000 and 0 < channels <= 1_000:
                return SoundFacts(codec=codec, seconds=seconds if plausible else None, rate=rate, channels=channels)
    raise MediaRefused("decoding the sound gave no proper answer")


def _heights(told: Mapping[str, Any], points: int) -> tuple[int, ...]:
    heights = told.get("heights")
    if not isinstance(heights, list) or len(heights) != points:
        raise MediaRefused("decoding the sound gave no proper answer")
    if any(type(height) is not int or not 0 <= height <= LOUDEST for height in heights):
        raise MediaRefused("decoding the sound gave no proper answer")
    return tuple(heights)


def _check_voice(output: Path, max_bytes: int, mime: str) -> None:
    """An attacker may control the child: its file must be what was asked for."""
    with output.open("rb") as file:
        head = file.read(8)
        begins = head[:4] == b"OggS" if mime == VOICE_MIME else head[4:] == b"ftyp"
        facts = sound_facts(file, mime) if begins else SoundFacts()
    if facts.codec != VOICES[mime].codec or output.stat().st_size > max_bytes:
        raise MediaRefused("encoding the sound gave no voice message")


def _check_mono(output: Path, max_bytes: int) -> None:
    """Everything in a WAV file except the samples is known in advance."""
    size = output.stat().st_size
    with output.open("rb") as file:
        head = file.read(WAV_HEADER)
    if not WAV_HEADER < size <= max_bytes or head != wav_header(size - WAV_HEADER):
        raise MediaRefused("decoding the sound gave no sound")


def wav_header(size: int) -> bytes:
    """Of `size` bytes of samples: one channel, two bytes each."""
    counts = (MONO_RATE.to_bytes(4, "little"), (2 * MONO_RATE).to_bytes(4, "little"))
    kind = b"\x10\0\0\0\x01\0\x01\0" + b"".join(counts) + b"\x02\0\x10\0"
    return (
        b"RIFF" + (size + WAV_HEADER - 8).to_bytes(4, "little") + b"WAVEfmt " + kind
        + b"data" + size.to_bytes(4, "little")
    )  # fmt: skip


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the jobs need; the child cannot import."""
    stream_open.prepare()


def probe(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the first sound."""
    with stream_open.opened(source, options["mime"]) as container:
        stream = stream_open.audio_of(container)
        context = stream.codec_context
        if not context.sample_rate or not context.channels:
            raise MediaRefused("the sound is damaged: it has no rate or no channels")
        facts = {"codec": stream.codec.canonical_name, "rate": context.sample_rate, "channels": context.channels}
        return {**facts, "seconds": stream_open.seconds_of(container, stream, os.fstat(source).st_size)}


def waveform(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The peak of each of so many parts of equal length."""
    with stream_open.opened(source, options["mime"]) as container:
        seconds = stream_open.seconds_of(container, stream_open.audio_of(container), os.fstat(source).st_size)
    if seconds is None:
        raise MediaRefused("there is no sound in it")
    return {"heights": _peaks(source, options["mime"], seconds, options["points"])}


def voice(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first sound in `source`, in mono, as a voice message of the type `target` of at most `max_bytes`."""
    import av
    from av.audio.resampler import AudioResampler
    from av.audio.stream import AudioStream

    wanted = VOICES[options["target"]]
    with (
        stream_open.opened(source, options["mime"]) as sound,
        os.fdopen(os.dup(target), "wb") as writer,
        av.open(writer, "w", format=wanted.container) as made,
    ):
        stream = made.add_stream(wanted.encoder, rate=VOICE_RATE)
        assert isinstance(stream, AudioStream)
        stream.bit_rate = wanted.bits
        stream.layout = "mono"
        resampler, heard = AudioResampler(format="s16", layout="mono", rate=VOICE_RATE), False
        # None flushes the resampler.
        for frame in chain(stream_open.frames_of(sound, stream_open.audio_of(sound)), (None,)):
            for piece in resampler.resample(frame):
                heard = True
                made.mux(stream.encode(piece))
            if os.fstat(target).st_size > options["max_bytes"]:
                raise MediaRefused("as a voice message it is too large")
        if not heard:
            raise MediaRefused("there is no sound in it that can be decoded")
        made.mux(stream.encode(None))
    return {}


def mono(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first sound in `source` as WAV of 16 kHz and one channel of at most `max_bytes`."""
    from av.audio.resampler import AudioResampler

    size = 0
    resampler = AudioResampler(format="s16", layout="mono", rate=MONO_RATE)
    with stream_open.opened(source, options["mime"]) as sound, os.fdopen(os.dup(target), "wb") as writer:
        writer.write(bytes(WAV_HEADER))
        # None flushes the resampler.
        for frame in chain(stream_open.frames_of(sound, stream_open.audio_of(sound)), (None,)):
            for piece in resampler.resample(frame):
                size += writer.write(bytes(piece.planes[0])[: 2 * piece.samples])
            if size + WAV_HEADER > options["max_bytes"]:
                raise MediaRefused("as a WAV file it is too large")
    if not size:
        raise MediaRefused("there is no sound in it that can be decoded")
    os.pwrite(target, wav_header(size), 0)
    return {"bytes": size}


def _peaks(source: int, mime: str, seconds: float, points: int) -> list[int]:
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
