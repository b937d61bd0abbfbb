"""A picture's type, size and metadata from its header."""

import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.media.image.header import carries_metadata, image_size
from belino.testing.files import make_gif, make_jpeg, make_pdf, make_png, make_webp


def make_bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 54) + struct.pack("<Iii", 40, width, height) + bytes(28)


def make_vp8x(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + bytes(4) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + size


def make_vp8(width: int, height: int) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBPVP8 " + bytes(4) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)


@pytest.mark.parametrize(
    ("picture", "mime"),
    [
        (make_png(33, 21), "image/png"),
        (make_jpeg(33, 21), "image/jpeg"),
        (make_gif(33, 21), "image/gif"),
        (make_webp(33, 21), "image/webp"),
        (make_vp8x(33, 21), "image/webp"),
        (make_vp8(33, 21), "image/webp"),
        (make_bmp(33, 21), "image/bmp"),
        (make_bmp(33, -21), "image/bmp"),
    ],
)
def test_the_header_tells_the_real_type_and_size(picture: bytes, mime: str) -> None:
    assert image_size(picture) == (mime, 33, 21)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_taken_sideways_is_measured_as_it_is_seen(orientation: int) -> None:
    expected = (33, 21) if orientation < 5 else (21, 33)
    assert image_size(make_jpeg(33, 21, orientation=orientation)) == ("image/jpeg", *expected)


def test_a_little_endian_orientation_is_understood_too() -> None:
    tiff = b"II\x2a\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
    exif = b"\xff\xe1" + struct.pack(">H", len(tiff) + 8) + b"Exif\0\0" + tiff
    picture = make_jpeg(33, 21)
    assert image_size(picture[:2] + exif + picture[2:]) == ("image/jpeg", 21, 33)


@pytest.mark.parametrize(
    "other", [b"", b"hello", make_pdf(), b"<svg/>", b"\x89PNG\r\n\x1a\n", b"BMfoo" + bytes(40), make_png(0, 5)]
)
def test_what_is_no_picture_we_know_has_no_size(other: bytes) -> None:
    assert image_size(other) is None


@given(st.binary(max_size=400), st.sampled_from([b"", make_png(3, 4), make_jpeg(3, 4, orientation=6), make_webp(3, 4)]))
def test_no_bytes_make_the_reader_fail(noise: bytes, start: bytes) -> None:
    for cut in (0, 12, 30, len(start)):
        found = image_size(start[:cut] + noise)
        assert found is None or (found[1] > 0 and found[2] > 0)


@pytest.mark.parametrize("picture", [make_png(8, 8), make_jpeg(8, 8), make_gif(8, 8), make_webp(8, 8)])
def test_a_plain_picture_carries_no_metadata(picture: bytes) -> None:
    assert not carries_metadata(picture)


@pytest.mark.parametrize(
    "picture",
    [
        make_jpeg(8, 8, orientation=1),
        make_jpeg(8, 8)[:2] + b"\xff\xff\xed\0\x04ps" + make_jpeg(8, 8)[2:],
        make_png(8, 8)[:33] + b"\0\0\0\x04eXIfMM\0*\0\0\0\0" + make_png(8, 8)[33:],
        make_png(8, 8) + b"\0\0\0\x04tEXta\0bc\0\0\0\0",
        make_gif(8, 8)[:-1] + b"\x21\xff\x0bXMP DataXMP" + b"\0;",
        b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x08" + b"\0" * 20,
    ],
)
def test_what_a_camera_or_program_wrote_beside_the_picture_is_found(picture: bytes) -> None:
    assert carries_metadata(picture)


def test_metadata_is_looked_for_in_any_bytes_without_harm() -> None:
    rng = Random(7)
    starts = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X")
    for _ in range(400):
        assert carries_metadata(rng.choice(starts) + rng.randbytes(rng.randrange(64))) in (True, False)
