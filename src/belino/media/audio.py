"""Sounds: what one is, and the same as a voice message; decoding happens in the sandbox only."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media.audio_facts import SoundFacts, sound_facts

if TYPE_CHECKING:
    from belino.media.image import Runs

VOICE_MIME, VOICE_CODEC = "audio/ogg", "opus"
"""What every platform that has voice messages takes as one."""
VOICE_RATE = 48_000
VOICE_BITS = 32_000
"""Bits a second: speech sounds no better with more."""


class Sounds:
    """Asks the sandbox, and believes only what it can check."""

    def __init__(self, sandbox: "Runs", scratch: Path) -> None:
        self._sandbox = sandbox
        self._scratch = scratch

    def facts(self, blob: Blob) -> SoundFacts:
        """How it is encoded and how long it lasts, by its headers."""
        try:
            with blob.path.open("rb") as file:
                return sound_facts(file, blob.mime)
        except OSError:
            return SoundFacts()

    @asynccontextmanager
    async def voice(self, blob: Blob, *, max_bytes: int) -> AsyncIterator[Path]:
        """The sound as Ogg with Opus, in a file that is there as long as the context is."""
        if find_spec("av") is None:
            raise MediaRefused("belino has no encoder for voice here; install it with `pip install belino[av]`")
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"voice-{os.urandom(8).hex()}"
        try:
            await self._sandbox.run("audio.voice", blob.path, {"max_bytes": max_bytes}, output=output)
            _check(output, max_bytes)
            yield output
        finally:
            output.unlink(missing_ok=True)


def _check(output: Path, max_bytes: int) -> None:
    """The child may be in an enemy's hands: what it wrote must be what it was asked for."""
    with output.open("rb") as file:
        facts = sound_facts(file, VOICE_MIME) if file.read(4) == b"OggS" else SoundFacts()
    if facts.codec != VOICE_CODEC or output.stat().st_size > max_bytes:
        raise MediaRefused("encoding the sound gave no voice message")


# What follows runs in the sandbox's child.


def prepare() -> None:
    """Import what the job needs, if it is installed; in the child it would be too late."""
    with suppress(ImportError):
        import av.audio.resampler
        import av.subtitles.stream  # noqa: F401 - PyAV imports it with the first stream, whatever its kind


def voice(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first sound in `source`, in mono, as Ogg with Opus of at most `max_bytes`."""
    import av
    from av.audio.resampler import AudioResampler
    from av.audio.stream import AudioStream

    with (
        os.fdopen(os.dup(source), "rb") as reader,
        os.fdopen(os.dup(target), "wb") as writer,
        av.open(reader, "r") as sound,
        av.open(writer, "w", format="ogg") as made,
    ):
        if not sound.streams.audio:
            raise MediaRefused("there is no sound in it")
        stream = made.add_stream("libopus", rate=VOICE_RATE)
        assert isinstance(stream, AudioStream)
        stream.bit_rate = VOICE_BITS
        stream.layout = "mono"
        resampler = AudioResampler(format="s16", layout="mono", rate=VOICE_RATE)
        for frame in sound.decode(audio=0):
            for piece in resampler.resample(frame):
                made.mux(stream.encode(piece))
            if os.fstat(target).st_size > options["max_bytes"]:
                raise MediaRefused("as a voice message it is too large")
        for piece in resampler.resample(None):
            made.mux(stream.encode(piece))
        made.mux(stream.encode(None))
    return {}
