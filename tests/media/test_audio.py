"""Sounds: what their headers say, and voice messages made of them."""

import io
import math
import struct
import wave
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media import audio, stream_header, stream_open
from belino.media.audio import Sounds
from belino.media.sandbox.sandbox import Sandbox
from belino.media.stream_header import SoundFacts, sound_facts
from media.local_files import local_blob, open_local
from media.videos import Here, Lying, unmeasured, video

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
    return local_blob(path, mime=mime)


@pytest.fixture
async def sounds(tmp_path: Path) -> AsyncIterator[Sounds]:
    async with Sandbox() as sandbox:
        yield Sounds(sandbox, tmp_path / "scratch", open_local)


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
    mime=st.sampled_from(sorted(stream_header._READERS)),
)  # fmt: skip
def test_no_bytes_make_the_reader_stumble_or_believe_in_a_sound_of_months(start: bytes, rest: bytes, mime: str) -> None:
    seconds = facts(start + rest, mime).seconds
    assert seconds is None or 0 < seconds < 30 * 24 * 3600


@pytest.mark.slow
@pytest.mark.parametrize(("mime", "codec"), [("audio/ogg", "opus"), ("audio/mp4", "aac")])
async def test_a_sound_becomes_a_voice_message_in_the_sandbox(
    sounds: Sounds, tmp_path: Path, mime: str, codec: str
) -> None:
    async with sounds.voice(blob(tmp_path / "in", tone(), "audio/wav"), max_bytes=100_000, mime=mime) as path:
        made = facts(path.read_bytes(), mime)
    assert made.codec == codec
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


def quiet_then_loud() -> bytes:
    """Two seconds: silence, then a hum."""
    whole = bytearray(tone(2))
    samples = len(whole) - 44
    whole[44 : 44 + samples // 2] = bytes(samples // 2)
    return bytes(whole)


@pytest.mark.parametrize(
    ("content", "mime", "found"),
    [
        (tone, "audio/wav", SoundFacts(codec="pcm_s16le", seconds=SECONDS, rate=16_000, channels=1)),
        (lambda: tone(rate=8_000), "audio/wav", SoundFacts(codec="pcm_s16le", seconds=SECONDS, rate=8_000, channels=1)),
    ],
    ids=["usual", "telephone"],
)
async def test_a_sound_is_probed_for_what_its_headers_leave_out(
    tmp_path: Path, content: Callable[[], bytes], mime: str, found: SoundFacts
) -> None:
    assert await Sounds(Here(), tmp_path, open_local).probe(blob(tmp_path / "in", content(), mime)) == found


async def test_a_sound_called_something_else_is_known_by_its_bytes(tmp_path: Path) -> None:
    facts = await Sounds(Here(), tmp_path, open_local).probe(blob(tmp_path / "in", tone(), "audio/ogg"))
    assert facts.codec == "pcm_s16le"


async def test_a_waveform_tells_silence_from_sound(tmp_path: Path) -> None:
    heights = await Sounds(Here(), tmp_path, open_local).waveform(
        blob(tmp_path / "in", quiet_then_loud(), "audio/wav"), points=10
    )
    assert heights[:5] == (0,) * 5 and all(height >= 95 for height in heights[5:])


@pytest.mark.parametrize("points", [1, 120, 1_000])
async def test_a_waveform_has_as_many_points_as_were_asked_for_and_no_gaps(tmp_path: Path, points: int) -> None:
    heights = await Sounds(Here(), tmp_path, open_local).waveform(
        blob(tmp_path / "in", tone(), "audio/wav"), points=points
    )
    assert len(heights) == points and min(heights[: points - 1], default=100) > 50


async def test_a_sound_that_takes_too_long_is_sampled_by_seeking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audio, "_whole", lambda *_: False)
    heights = await Sounds(Here(), tmp_path, open_local).waveform(
        blob(tmp_path / "in", quiet_then_loud(), "audio/wav"), points=4
    )
    assert heights[0] == 0 and heights[3] >= 95


def test_that_a_sound_takes_too_long_is_known_before_that_time_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audio, "FIRST_LOOK", 0.0)
    blob(tmp_path / "in", encoded("ogg", "libopus"), "audio/ogg")
    with (tmp_path / "in").open("rb") as file:
        assert audio._whole(file.fileno(), "audio/ogg", SECONDS, [0.0] * 4)
        assert not audio._whole(file.fileno(), "audio/ogg", 1e9, [0.0] * 4)


async def test_noise_on_a_silent_line_does_not_look_like_speech(tmp_path: Path) -> None:
    hum = bytearray(tone())
    hum[44:] = b"\x05\0\xfb\xff" * ((len(hum) - 44) // 4)
    assert max(await Sounds(Here(), tmp_path, open_local).waveform(blob(tmp_path / "in", bytes(hum), "audio/wav"))) <= 1


async def test_a_sound_becomes_a_wav_file_of_one_channel_and_16_khz(tmp_path: Path) -> None:
    sounds = Sounds(Here(), tmp_path / "scratch", open_local)
    async with sounds.mono(blob(tmp_path / "in", tone(rate=44_100), "audio/wav")) as path:
        with wave.open(str(path), "rb") as made:
            assert (made.getnchannels(), made.getframerate(), made.getsampwidth()) == (1, 16_000, 2)
            assert made.getnframes() / 16_000 == pytest.approx(SECONDS, abs=0.01)
    assert not path.exists()
    with pytest.raises(MediaRefused, match="too large"):
        async with sounds.mono(blob(tmp_path / "in", tone(), "audio/wav"), max_bytes=1_000):
            pass


async def test_the_sound_of_a_video_is_a_sound(tmp_path: Path) -> None:
    content = video(form="webm", codec="libvpx", sound=True)
    assert (
        await Sounds(Here(), tmp_path, open_local).probe(blob(tmp_path / "in", content, "video/webm"))
    ).codec == "opus"
    with pytest.raises(MediaRefused, match="no sound"):
        await Sounds(Here(), tmp_path, open_local).waveform(blob(tmp_path / "in", video(), "video/mp4"))


async def test_an_empty_sound_says_so(tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match="empty"):
        await Sounds(Here(), tmp_path, open_local).probe(blob(tmp_path / "in", b"", "audio/ogg"))


def test_the_headers_of_a_webm_tell_its_length_unless_it_was_recorded_by_a_browser() -> None:
    content = video(form="webm", codec="libvpx", sound=True)
    told = facts(content, "video/webm")
    assert told.codec == "opus" and told.seconds == pytest.approx(2, abs=0.11)
    assert facts(unmeasured(content), "video/webm") == SoundFacts(codec="opus")


HONEST: dict[str, Any] = {"codec": "opus", "seconds": 2.0, "rate": 48_000, "channels": 1}


@pytest.mark.parametrize(
    "lie", [{"codec": "[x]"}, {"rate": 0}, {"rate": "8"}, {"channels": -1}, {"seconds": "2"}, {"codec": ""}], ids=str
)
async def test_what_a_child_says_of_a_sound_is_checked(tmp_path: Path, lie: dict[str, Any]) -> None:
    source = blob(tmp_path / "in", b"x", "audio/ogg")
    assert await Sounds(Lying(HONEST), tmp_path, open_local).probe(source) == SoundFacts(**HONEST)
    with pytest.raises(MediaRefused, match="no proper answer"):
        await Sounds(Lying({**HONEST, **lie}), tmp_path, open_local).probe(source)


@pytest.mark.parametrize("heights", [None, [], [0], [0, 101], [0, -1], [0, True], [0, "1"], [0, 1, 2]], ids=str)
async def test_the_waveform_a_child_tells_is_checked(tmp_path: Path, heights: Any) -> None:
    source = blob(tmp_path / "in", b"x", "audio/ogg")
    assert await Sounds(Lying({"heights": [0, 100]}), tmp_path, open_local).waveform(source, points=2) == (0, 100)
    with pytest.raises(MediaRefused, match="no proper answer"):
        await Sounds(Lying({"heights": heights}), tmp_path, open_local).waveform(source, points=2)


@pytest.mark.parametrize("content", [b"", b"RIFF" + bytes(40), tone(0.1)[:-1]], ids=["nothing", "no header", "short"])
async def test_the_wav_file_a_child_wrote_is_checked(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(MediaRefused, match="gave no sound"):
        async with Sounds(Lying({}, content), tmp_path / "scratch", open_local).mono(
            blob(tmp_path / "in", b"x", "audio/ogg")
        ):
            pass


@pytest.mark.slow
async def test_behind_the_walls_a_sound_is_looked_into_too(sounds: Sounds, tmp_path: Path) -> None:
    source = blob(tmp_path / "in", encoded("ogg", "libopus"), "audio/ogg")
    assert (await sounds.probe(source)).rate == 48_000
    assert max(await sounds.waveform(source)) == 100
    async with sounds.mono(source) as path:
        assert path.stat().st_size == pytest.approx(SECONDS * 32_000, rel=0.05)


@pytest.mark.slow
async def test_a_voice_note_of_25_minutes_has_a_waveform_within_the_time_a_child_has(
    sounds: Sounds, tmp_path: Path
) -> None:
    """All of it, or a sample on a slow machine: there are heights either way."""
    header, second = tone(1)[:44], tone(1)[44:]
    long = blob(tmp_path / "in", header + second * 1_500, "audio/wav")
    assert len(await sounds.waveform(long)) == 120


async def test_without_an_encoder_the_way_out_is_named_and_headers_still_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_open, "find_spec", lambda name: None)
    sounds, source = Sounds(Here(), tmp_path, open_local), blob(tmp_path / "in", tone(), "audio/wav")
    with pytest.raises(MediaRefused, match=r"belino\[av\]"):
        async with sounds.voice(source, max_bytes=100_000):
            pass
    with pytest.raises(MediaRefused, match=r"belino\[av\]"):
        await sounds.waveform(source)
    assert await sounds.probe(source) == SoundFacts(codec="pcm", seconds=SECONDS)
