"""Sounds: what their headers say, and voice messages made of them."""

import io
import math
import struct
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media import audio_facts, stream_open
from belino.media.audio import Sounds
from belino.media.audio_facts import SoundFacts, sound_facts
from belino.media.sandbox import Sandbox

SECONDS = 1.5


def tone(seconds: float = SECONDS, rate: int = 16_000) -> bytes:
    """A WAV file with a hum in it."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(
            b"".join(struct.pack("<h", int(9_000 * math.sin(at / 9))) for at in range(int(rate * seconds)))
        )
    return file.getvalue()


def encoded(form: str, codec: str) -> bytes:
    """The hum in another format, by the real encoder."""
    import av
    from av.audio.stream import AudioStream

    written = io.BytesIO()
    with av.open(io.BytesIO(tone()), "r") as source, av.open(written, "w", format=form) as target:
        stream = target.add_stream(codec, rate=48_000)
        assert isinstance(stream, AudioStream)
        for frame in source.decode(audio=0):
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


def facts(content: bytes, mime: str) -> SoundFacts:
    return sound_facts(io.BytesIO(content), mime)


def blob(path: Path, content: bytes, mime: str) -> Blob:
    path.write_bytes(content)
    return Blob(sha256="0" * 64, mime=mime, size=len(content), path=path)


@pytest.fixture
async def sounds(tmp_path: Path) -> AsyncIterator[Sounds]:
    async with Sandbox() as sandbox:
        yield Sounds(sandbox, tmp_path / "scratch")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "encoder", "mime", "codec"),
    [
        ("ogg", "libopus", "audio/ogg", "opus"),
        ("mp3", "libmp3lame", "audio/mpeg", "mp3"),
        ("ipod", "aac", "audio/mp4", "aac"),
        ("flac", "flac", "audio/flac", "flac"),
    ],
)
def test_the_headers_tell_how_a_sound_is_encoded_and_how_long_it_lasts(
    form: str, encoder: str, mime: str, codec: str
) -> None:
    found = facts(encoded(form, encoder), mime)
    assert found.codec == codec
    assert found.seconds == pytest.approx(SECONDS, abs=0.1)


def test_the_headers_of_a_wav_file_tell_how_long_it_lasts() -> None:
    assert facts(tone(), "audio/wav") == SoundFacts(codec="pcm", seconds=SECONDS)


def test_what_no_header_says_is_not_invented() -> None:
    assert facts(b"RIFF\0\0\0\0WAVE", "audio/wav") == SoundFacts(codec="pcm")
    assert facts(b"whatever", "application/pdf") == SoundFacts()


@settings(max_examples=300, deadline=None)
@given(
    start=st.sampled_from([b"", b"OggS", b"ID3\x04\0\0\x7f\x7f\x7f\x7f", b"\xff\xfb\x90", b"fLaC", b"\0\0\0\x01moov",
                           tone(0.01)[:40], b"OggS" + b"\0" * 22 + b"\x01\0OpusHead"]),
    rest=st.binary(max_size=200),
    mime=st.sampled_from(sorted(audio_facts._READERS)),
)  # fmt: skip
def test_no_bytes_make_the_reader_stumble_or_believe_in_a_sound_of_months(start: bytes, rest: bytes, mime: str) -> None:
    seconds = facts(start + rest, mime).seconds
    assert seconds is None or 0 < seconds < 30 * 24 * 3600


@pytest.mark.slow
async def test_a_sound_becomes_a_voice_message_in_the_sandbox(sounds: Sounds, tmp_path: Path) -> None:
    async with sounds.voice(blob(tmp_path / "in", tone(), "audio/wav"), max_bytes=100_000) as path:
        made = facts(path.read_bytes(), "audio/ogg")
    assert made.codec == "opus"
    assert made.seconds == pytest.approx(SECONDS, abs=0.1)
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"not a sound at all", tone()[:30]], ids=["noise", "cut"])
async def test_what_is_no_sound_is_refused_and_leaves_nothing(sounds: Sounds, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(MediaRefused):
        async with sounds.voice(blob(tmp_path / "in", content, "audio/wav"), max_bytes=100_000):
            pass
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
async def test_a_voice_message_over_the_limit_is_refused(sounds: Sounds, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match=r"too large|no voice message"):
        async with sounds.voice(blob(tmp_path / "in", tone(20), "audio/wav"), max_bytes=2_000):
            pass


async def test_without_an_encoder_the_way_out_is_named(
    sounds: Sounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_open, "find_spec", lambda name: None)
    with pytest.raises(MediaRefused, match=r"belino\[av\]"):
        async with sounds.voice(blob(tmp_path / "in", tone(), "audio/wav"), max_bytes=100_000):
            pass
