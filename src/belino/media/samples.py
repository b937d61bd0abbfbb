"""Samples of a sound: a window of it as WAV or FLAC of 16 kHz and one channel, decoded only in the sandbox."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.media import stream_open
from belino.media.audio import MONO_RATE, WAV_HEADER, wav_header
from belino.media.stream_header import LONGEST

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame

    from belino.media.image.images import Runs

WAV, FLAC = "audio/wav", "audio/flac"
SAMPLES_BYTES = 32 * 1024 * 1024
"""The most bytes of one window: a quarter of an hour of plain samples."""
LEAD = 2.0
"""Seconds before the window at which decoding begins: a codec needs some to settle after a jump."""
FLAC_HEAD = b"fLaC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """A file of samples; it exists as long as the context that made it."""

    path: Path
    mime: str
    size: int
    seconds: float
    ended: bool
    """Whether the sound ends in this window."""


class Windows:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    @asynccontextmanager
    async def samples(self, blob: Blob, *, start: float, end: float, mime: str) -> AsyncIterator[Samples]:
        """The sound from `start` to `end` seconds; MediaRefused if there is none there."""
        stream_open.require()
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"samples-{os.urandom(8).hex()}"
        options = {"mime": blob.mime, "start": start, "end": end, "flac": mime == FLAC}
        try:
            async with self._open_blob(blob.sha256) as path:
                told = await self._sandbox.run("audio.samples", path, options, output=output)
            yield _checked(told, output, mime, most=end - start)
        finally:
            output.unlink(missing_ok=True)


def _checked(told: Mapping[str, Any], output: Path, mime: str, *, most: float) -> Samples:
    """An attacker may control the child: the file must be what was asked for."""
    size = output.stat().st_size
    with output.open("rb") as file:
        head = file.read(WAV_HEADER)
    match told:
        case {"samples": int(samples), "ended": bool(ended)} if 0 < samples <= (most + 1) * MONO_RATE:
            seconds = samples / MONO_RATE
        case _:
            raise MediaRefused("decoding the sound gave no proper answer")
    plain = mime == WAV and head == wav_header(2 * samples) and size == WAV_HEADER + 2 * samples
    if not plain and not (mime == FLAC and head.startswith(FLAC_HEAD) and WAV_HEADER < size <= SAMPLES_BYTES):
        raise MediaRefused("decoding the sound gave no sound")
    return Samples(path=output, mime=mime, size=size, seconds=seconds, ended=ended)


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the job needs; the child cannot import."""
    stream_open.prepare()


def samples(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first sound in `source`, from `start` to `end`."""
    start, end = float(options["start"]), float(options["end"])
    if not 0 <= start < end < LONGEST:
        raise MediaRefused("the time range ends before it begins")
    cut = _Cut(start, end)
    pieces = cut.pieces(source, options["mime"])
    if options["flac"]:
        _write_flac(target, pieces)
    else:
        _write_wav(target, pieces)
    if not cut.count:
        raise MediaRefused("there is no sound at that time")
    return {"samples": cut.count, "ended": cut.ended}


class _Cut:
    """The samples of a window; a gap in the time stamps is silence, so that later words keep their times."""

    def __init__(self, start: float, end: float) -> None:
        self.count = 0
        self.ended = True
        self._start = start
        self._total = round((end - start) * MONO_RATE)

    def pieces(self, source: int, mime: str) -> Iterator[bytes]:
        """Plain samples of the window, in order."""
        from av.audio.resampler import AudioResampler

        resampler = AudioResampler(format="s16", layout="mono", rate=MONO_RATE)
        with stream_open.opened(source, mime) as sound:
            stream = stream_open.audio_of(sound)
            begin = stream_open.begins_at(sound, stream)
            _seek(sound, stream, begin + self._start - LEAD)
            at: int | None = None
            # None flushes the resampler.
            for frame in chain(stream_open.frames_of(sound, stream), (None,)):
                if frame is not None and at is None:
                    at = round((_time_of(frame, begin if self._start <= LEAD else None) - begin) * MONO_RATE)
                for piece in resampler.resample(frame):
                    plain = bytes(piece.planes[0])[: 2 * piece.samples]
                    yield self._taken(plain, (at or 0) - round(self._start * MONO_RATE))
                    at = (at or 0) + piece.samples
                if self.count >= self._total:
                    self.ended = frame is None
                    return

    def _taken(self, plain: bytes, at: int) -> bytes:
        """Of samples that begin `at` samples after the window does, those in it."""
        if at < self.count:
            plain = plain[2 * (self.count - at) :]
        elif plain:
            plain = bytes(2 * min(at - self.count, self._total - self.count)) + plain
        plain = plain[: 2 * (self._total - self.count)]
        self.count += len(plain) // 2
        return plain


def _seek(sound: Any, stream: Any, to: float) -> None:
    """Jump to shortly before a time; where that fails, decoding begins at the beginning."""
    from av.error import FFmpegError

    begin = stream_open.begins_at(sound, stream)
    if to <= begin or not stream.time_base:
        return
    try:
        sound.seek(int(to / stream.time_base), stream=stream)
    except FFmpegError as error:
        raise MediaRefused("the sound cannot be read from the middle") from error


def _time_of(frame: "AudioFrame", otherwise: float | None) -> float:
    if frame.time is not None:
        return float(frame.time)
    if otherwise is None:
        raise MediaRefused("the sound tells no times")
    return otherwise


def _write_wav(target: int, pieces: Iterator[bytes]) -> None:
    size = 0
    with os.fdopen(os.dup(target), "wb") as writer:
        writer.write(bytes(WAV_HEADER))
        for plain in pieces:
            size += writer.write(plain)
            if size > SAMPLES_BYTES:
                raise MediaRefused("the window is too long")
    os.pwrite(target, wav_header(size), 0)


def _write_flac(target: int, pieces: Iterator[bytes]) -> None:
    import av
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream

    with os.fdopen(os.dup(target), "wb") as writer, av.open(writer, "w", format="flac") as made:
        stream = made.add_stream("flac", rate=MONO_RATE)
        assert isinstance(stream, AudioStream)
        stream.layout = "mono"
        stream.format = "s16"
        at = 0
        for plain in pieces:
            if not plain:
                continue
            frame = AudioFrame(format="s16", layout="mono", samples=len(plain) // 2)
            frame.planes[0].update(plain)
            frame.sample_rate, frame.pts = MONO_RATE, at
            at += frame.samples
            made.mux(stream.encode(frame))
            if os.fstat(target).st_size > SAMPLES_BYTES:
                raise MediaRefused("the window is too long")
        if at:
            made.mux(stream.encode(None))
