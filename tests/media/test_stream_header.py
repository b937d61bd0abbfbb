"""What a WebM says of its picture is read from its beginning, and only if it says all of it."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.media.stream_header import FilmFacts, film_facts, sound_facts
from belino.testing.files import make_webm

STICKER = make_webm(size=(512, 480), seconds=2.5)


def test_codec_pixels_and_seconds_are_told() -> None:
    assert film_facts(STICKER) == FilmFacts(codec="vp9", width=512, height=480, seconds=2.5, silent=True)


def test_a_film_with_sound_is_not_silent() -> None:
    facts = film_facts(make_webm(codecs=(b"V_VP8", b"A_OPUS"), size=(640, 360), seconds=60.0))
    assert facts == FilmFacts(codec="vp8", width=640, height=360, seconds=60.0, silent=False)


def test_the_beginning_is_enough() -> None:
    assert film_facts(STICKER + b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7 + bytes(1000) + b"\x40") == film_facts(STICKER)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no film",
        make_webm(size=(512, 512)),
        make_webm(seconds=2.0),
        make_webm(codecs=(b"A_OPUS",), size=(512, 512), seconds=2.0),
        make_webm(codecs=(b"V_VP9", b"V_VP9"), size=(512, 512), seconds=2.0),
        make_webm(codecs=(b"V_THEORA",), size=(512, 512), seconds=2.0),
        make_webm(size=(0, 512), seconds=2.0),
        make_webm(size=(512, 512), seconds=float("nan")),
        make_webm(size=(512, 512), seconds=-1.0),
        make_webm(size=(512, 512), seconds=1e12),
    ],
    ids=[
        "nothing", "other bytes", "no duration", "no size", "sound only", "two pictures", "unknown codec", "no width",
        "not a number", "before it begins", "longer than a month",
    ],
)  # fmt: skip
def test_what_does_not_tell_all_of_it_is_not_believed(content: bytes) -> None:
    assert film_facts(content) is None


@given(st.integers(0, len(STICKER)), st.binary(max_size=40))
def test_a_header_that_ends_early_or_goes_on_as_noise_is_read_without_an_error(end: int, noise: bytes) -> None:
    film_facts(STICKER[:end] + noise)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(noise: bytes) -> None:
    film_facts(STICKER[:5] + noise)


@pytest.mark.parametrize(("turned", "size"), [(False, (640, 360)), (True, (360, 640))])
def test_the_size_of_a_video_is_in_its_header(turned: bool, size: tuple[int, int]) -> None:
    matrix = bytes(4 if turned else 1) + (b"" if turned else b"\1\0\0") + bytes(32)
    track = b"tkhd" + bytes(4 + 36) + matrix[:36].ljust(36, b"\0") + b"\2\x80\0\0" + b"\1\x68\0\0"
    sound = b"tkhd" + bytes(4 + 36 + 36 + 8)
    header = b"mvhd" + bytes(12) + (1000).to_bytes(4) + (2500).to_bytes(4) + bytes(80)
    body = b"".join((len(box) + 4).to_bytes(4) + box for box in (header, sound, track))
    film = (len(body) + 8).to_bytes(4) + b"moov" + body
    facts = sound_facts(io.BytesIO(film), "video/mp4")
    assert (facts.width, facts.height, facts.seconds) == (*size, 2.5)
