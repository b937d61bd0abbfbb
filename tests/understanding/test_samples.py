"""The worker's material becomes arrays; anything else than plain samples and pixels is refused."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belino.domain.errors import ProviderError
from belino.testing import espeak
from belino.understanding.local.samples import pixels_of, samples_of


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_samples_are_fractions_of_full_volume(tmp_path: Path) -> None:
    espeak.write_wav(tmp_path / "a.wav", b"\x00\x00\x00\x40\x00\x80")
    with opened(tmp_path / "a.wav") as source:
        assert samples_of(source).tolist() == [0.0, 0.5, -1.0]


def test_a_quiet_sound_is_amplified_and_a_click_in_it_is_not_in_the_way(tmp_path: Path) -> None:
    quiet = b"\x40\x00\xc0\xff" * 5_000  # a five-hundredth of full volume
    espeak.write_wav(tmp_path / "a.wav", quiet + b"\xff\x7f")
    with opened(tmp_path / "a.wav") as source:
        samples = samples_of(source)
    assert samples[0] == pytest.approx(0.25, rel=0.01) and samples[1] == -samples[0]
    assert samples[-1] == 1.0


def test_silence_and_nothing_stay_what_they_are(tmp_path: Path) -> None:
    for name, content in (("a.wav", bytes(2_000)), ("b.wav", b"")):
        espeak.write_wav(tmp_path / name, content)
        with opened(tmp_path / name) as source:
            assert not samples_of(source).any()


def test_pixels_are_rows_of_red_green_and_blue(tmp_path: Path) -> None:
    (tmp_path / "a.ppm").write_bytes(b"P6\n2 1\n255\n\x0a\x01\x02\x20\x04\x05")
    with opened(tmp_path / "a.ppm") as source:
        assert pixels_of(source).tolist() == [[[10, 1, 2], [32, 4, 5]]]


@pytest.mark.parametrize("content", [b"", b"OggS" + bytes(100), b"RIFF" + bytes(40)])
def test_another_sound_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with opened(tmp_path / "a") as source, pytest.raises(ProviderError, match="no WAV of 16 kHz"):
        samples_of(source)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xd8\xff\xe0", "no portable pixmap"),
        (b"P6 2 1 65535 " + bytes(12), "no portable pixmap"),
        (b"P6 -2 1 255 " + bytes(12), "no portable pixmap"),
        (b"P6\n200 100\n255\n" + bytes(12), "ends too early"),
    ],
)
def test_another_picture_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with opened(tmp_path / "a") as source, pytest.raises(ProviderError, match=reason):
        pixels_of(source)
