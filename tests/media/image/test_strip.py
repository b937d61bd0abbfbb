"""Metadata goes, pixels stay."""

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from PIL.PngImagePlugin import PngInfo

from belino.media.image.strip import strip
from belino.testing import make_gif, make_jpeg, make_png
from media.pictures import GENEROUS, Fit, exif, fitter, opened, photo, saved, with_hole

# Thousands of encodes: too long for `make check`.
pytestmark = pytest.mark.slow

CANARY = "CANARY-48.8584N"


@pytest.fixture
def fitted(tmp_path: Path) -> Fit:
    return fitter(tmp_path)


def place() -> Image.Exif:
    made = exif()
    made[0x010E] = CANARY
    made.get_ifd(0x8825).update({1: "N", 2: (48.0, 51.0, 30.0), 3: "E", 4: (2.0, 17.0, 40.0)})
    return made


def words() -> PngInfo:
    made = PngInfo()
    made.add_text("Comment", CANARY)
    made.add_text("Place", CANARY, zip=True)
    made.add_itxt("XML:com.adobe.xmp", CANARY)
    return made


def small() -> Image.Image:
    return photo(300, 200)


def with_segment(picture: bytes, marker: int, body: bytes) -> bytes:
    """The JPEG with this segment behind its first one."""
    return picture[:20] + bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2) + body + picture[20:]


def with_control(gif: bytes, words: bytes) -> bytes:
    """The GIF with these words where one is told how long its frame is shown."""
    frame = 13 + 3 * (2 << (gif[10] & 7))
    return gif[:frame] + b"\x21\xf9" + bytes([len(words)]) + words + b"\0" + gif[frame:]


XMP = f'<x:xmpmeta xmlns:x="adobe:ns:meta/">{CANARY}</x:xmpmeta>'.encode()
TELLING: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: saved(small(), "JPEG", exif=place(), comment=CANARY.encode(), xmp=XMP),
    "jpeg with another behind": lambda: saved(small(), "JPEG") + saved(small(), "JPEG", exif=place()),
    "jpeg with a preview in its first segment": lambda: with_segment(
        saved(small(), "JPEG"), 0xE0, b"JFIF\0\1\2\1\0\x48\0\x48\1\5" + CANARY.encode()
    ),
    "jpeg with a preview in an extension": lambda: with_segment(
        saved(small(), "JPEG"), 0xE0, b"JFXX\0\x13" + CANARY.encode()
    ),
    "jpeg with words behind its colours": lambda: with_segment(
        saved(small(), "JPEG"), 0xEE, b"Adobe\0\x64\0\0\0\0\1" + CANARY.encode()
    ),
    "progressive jpeg": lambda: saved(small(), "JPEG", progressive=True, exif=place(), xmp=XMP),
    "webp": lambda: saved(small(), "WEBP", exif=place(), xmp=XMP),
    "webp with alpha": lambda: saved(with_hole(small()), "WEBP", exif=place(), xmp=XMP),
    "tiff": lambda: saved(small(), "TIFF", exif=place()),
    "heic": lambda: saved(small(), "HEIF", exif=place(), xmp=XMP),
    "avif": lambda: saved(small(), "AVIF", exif=place(), xmp=XMP),
    "gif": lambda: saved(small().quantize(16), "GIF", comment=CANARY.encode()),
    "gif with words in a frame's control": lambda: with_control(saved(small().quantize(16), "GIF"), CANARY.encode()),
    "png": lambda: saved(small(), "PNG", pnginfo=words(), exif=place()),
    "png of one pixel": lambda: saved(Image.new("RGB", (1, 1)), "PNG", pnginfo=words(), exif=place()),
}


@cache
def telling(name: str) -> bytes:
    """A picture that says where it was taken."""
    content = TELLING[name]()
    assert b"Exif" in content or b"EXIF" in content or b"eXIf" in content or CANARY.encode() in content
    return content


@pytest.mark.parametrize("max_bytes", [GENEROUS, 6_000])
@pytest.mark.parametrize("name", TELLING)
def test_no_metadata_survives(name: str, max_bytes: int, fitted: Fit) -> None:
    _, made = fitted(telling(name), max_bytes=max_bytes)
    assert len(made) <= max_bytes
    for mark in (CANARY.encode(), b"Exif", b"eXIf", b"EXIF", b"GPS", b"xmpmeta", b"XMP", b"tEXt", b"iTXt", b"zTXt"):
        assert mark not in made
    picture = opened(made)
    assert not dict(picture.getexif())
    assert "icc_profile" not in picture.info


@pytest.mark.parametrize(
    "name", [*(name for name in TELLING if "jpeg" in name), "webp", "webp with alpha", "png", "gif"]
)
def test_a_picture_that_fits_loses_its_metadata_and_not_one_pixel(name: str, fitted: Fit) -> None:
    answer, made = fitted(telling(name))
    assert answer["encodes"] == 0
    before, after = (opened(content).convert("RGBA") for content in (telling(name), made))
    assert ImageChops.difference(before, after).getbbox() is None


@pytest.mark.parametrize("content", [make_png(9, 7), make_jpeg(16, 8), make_gif(5, 4)], ids=["png", "jpeg", "gif"])
def test_a_clean_picture_that_fits_is_left_as_it_is(content: bytes, fitted: Fit) -> None:
    answer, made = fitted(content)
    assert made == content
    assert answer["encodes"] == 0


def test_a_jpeg_packed_as_few_decoders_know_is_drawn_anew(fitted: Fit) -> None:
    huffman = saved(small(), "JPEG")
    arithmetic = huffman.replace(b"\xff\xc0", b"\xff\xc9")
    assert opened(arithmetic).size == (300, 200)
    answer, made = fitted(arithmetic)
    assert answer["encodes"] > 0
    assert b"\xff\xc9" not in made


@pytest.mark.parametrize("name", ["jpeg", "webp", "png", "gif"])
def test_bytes_that_do_not_follow_their_format_are_not_cut(name: str) -> None:
    content = telling(name)
    assert strip(f"image/{name}", content, len(content)) is not None
    for end in (13, 40, len(content) // 2, len(content) - 3):
        assert strip(f"image/{name}", content[:end], len(content)) is None


@pytest.mark.parametrize("kind", [b"gAMA", b"sRGB", b"sBIT", b"tRNS"], ids=bytes.decode)
def test_words_in_a_chunk_that_is_kept_go_with_it(kind: bytes, fitted: Fit) -> None:
    words = kind + CANARY.encode() * 20
    png = saved(small(), "PNG")
    made = fitted(png[:33] + (len(words) - 4).to_bytes(4) + words + zlib.crc32(words).to_bytes(4) + png[33:])[1]
    assert CANARY.encode() not in made
    assert opened(made).size == (300, 200)


@pytest.mark.parametrize("kind", [b"VP8 ", b"ALPH", b"VP8L"], ids=bytes.decode)
def test_a_second_picture_in_a_webp_goes(kind: bytes, fitted: Fit) -> None:
    words = CANARY.encode().ljust(16)
    body = saved(small(), "WEBP")[8:] + kind + len(words).to_bytes(4, "little") + words
    _, made = fitted(b"RIFF" + len(body).to_bytes(4, "little") + body)
    assert CANARY.encode() not in made
    assert opened(made).size == (300, 200)


def test_a_format_nobody_knows_how_to_cut_is_not_cut() -> None:
    assert strip("image/tiff", telling("tiff"), 1 << 20) is None
