"""Audio: the facts of a sound, its loudness, and conversions; decoded in the sandbox."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media import stream_open
from belino.media.audio_facts import LONGEST, SoundFacts, sound_facts
from belino.media.audio_peaks import LOUDEST, POINTS_AT_MOST, peaks

if TYPE_CHECKING:
    from belino.media.image.images import Runs

VOICE_MIME, VOICE_CODEC = "audio/ogg", "opus"
"""The codec that every platform with voice messages accepts."""
VOICE_RATE = 48_000
VOICE_BITS = 32_000
"""Bits a second: speech sounds no better with more."""
MONO_RATE = 16_000
"""The sample rate of speech recognition."""
WAV_HEADER = 44
MONO_BYTES = 256 * 1024 * 1024
"""More than two hours; the sandbox writes no longer file."""


class Sounds:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path) -> None:
        self._sandbox = sandbox
        self._scratch = scratch

    def facts(self, blob: Blob) -> SoundFacts:
        """Encoding and length, from the headers."""
        try:
            with blob.path.open("rb") as file:
                return sound_facts(file, blob.mime)
        except OSError:
            return SoundFacts()

    async def probe(self, blob: Blob) -> SoundFacts:
        """The facts of the sound, of a video too; from headers where nothing can be decoded, else MediaRefused."""
        told = self.facts(blob)
        if not stream_open.installed() and told.seconds is not None:
            return told
        stream_open.require()
        return _facts(await self._sandbox.run("audio.probe", blob.path, {"mime": blob.mime}))

    async def waveform(self, blob: Blob, *, points: int = 120) -> tuple[int, ...]:
        """Loudness from 0 to 100 at so many points from beginning to end; a very long sound is sampled."""
        stream_open.require()
        points = min(max(points, 1), POINTS_AT_MOST)
        return _heights(
            await self._sandbox.run("audio.waveform", blob.path, {"mime": blob.mime, "points": points}), points
        )

    @asynccontextmanager
    async def voice(self, blob: Blob, *, max_bytes: int) -> AsyncIterator[Path]:
        """The sound as Ogg with Opus, in a file that exists as long as the context."""
        async with self._made("audio.voice", blob, max_bytes) as output:
            _check_voice(output, max_bytes)
            yield output

    @asynccontextmanager
    async def mono(self, blob: Blob, *, max_bytes: int = MONO_BYTES) -> AsyncIterator[Path]:
        """The sound as WAV of one channel and 16 kHz, in a file that exists as long as the context."""
        async with self._made("audio.mono", blob, min(max_bytes, MONO_BYTES)) as output:
            _check_mono(output, max_bytes)
            yield output

    @asynccontextmanager
    async def _made(self, job: str, blob: Blob, max_bytes: int) -> AsyncIterator[Path]:
        stream_open.require()
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"sound-{os.urandom(8).hex()}"
        try:
            await self._sandbox.run(job, blob.path, {"mime": blob.mime, "max_bytes": max_bytes}, output=output)
            yield output
        finally:
            output.unlink(missing_ok=True)


def _facts(told: Mapping[str, Any]) -> SoundFacts:
    match told:
        case {
            "codec": str(codec),
            "seconds": float() | None as seconds,
            "rate": int(rate),
            "channels": int(channels),
        } if codec.isascii() and codec.replace("_", "").isalnum() and len(codec) <= 32:
            believed = seconds is not None and 0 < seconds < LONGEST
            if 0 < rate <= 10_000_000 and 0 < channels <= 1_000:
                return SoundFacts(codec=codec, seconds=seconds if believed else None, rate=rate, channels=channels)
    raise MediaRefused("decoding the sound gave no proper answer")


def _heights(told: Mapping[str, Any], points: int) -> tuple[int, ...]:
    heights = told.get("heights")
    if not isinstance(heights, list) or len(heights) != points:
        raise MediaRefused("decoding the sound gave no proper answer")
    if any(type(height) is not int or not 0 <= height <= LOUDEST for height in heights):
        raise MediaRefused("decoding the sound gave no proper answer")
    return tuple(heights)


def _check_voice(output: Path, max_bytes: int) -> None:
    """An attacker may control the child: its file must be what was asked for."""
    with output.open("rb") as file:
        facts = sound_facts(file, VOICE_MIME) if file.read(4) == b"OggS" else SoundFacts()
    if facts.codec != VOICE_CODEC or output.stat().st_size > max_bytes:
        raise MediaRefused("encoding the sound gave no voice message")


def _check_mono(output: Path, max_bytes: int) -> None:
    """Everything in a WAV file except the samples is known in advance."""
    size = output.stat().st_size
    with output.open("rb") as file:
        head = file.read(WAV_HEADER)
    if not WAV_HEADER < size <= max_bytes or head != _wav_header(size - WAV_HEADER):
        raise MediaRefused("decoding the sound gave no sound")


def _wav_header(size: int) -> bytes:
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
    return {"heights": peaks(source, options["mime"], seconds, options["points"])}


def voice(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first sound in `source`, in mono, as Ogg with Opus of at most `max_bytes`."""
    import av
    from av.audio.resampler import AudioResampler
    from av.audio.stream import AudioStream

    with (
        stream_open.opened(source, options["mime"]) as sound,
        os.fdopen(os.dup(target), "wb") as writer,
        av.open(writer, "w", format="ogg") as made,
    ):
        stream = made.add_stream("libopus", rate=VOICE_RATE)
        assert isinstance(stream, AudioStream)
        stream.bit_rate = VOICE_BITS
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
    os.pwrite(target, _wav_header(size), 0)
    return {"bytes": size}
