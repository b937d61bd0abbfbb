"""A picture's type and size from its header, and what each rendition costs."""

import struct
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.record import RefRecord
from belino.media.render import carries_metadata, image_size, price
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


def record(kind: MediaKind, mime: str, **changes: int) -> RefRecord:
    sent = datetime(2026, 1, 1, tzinfo=UTC)
    ref = MediaRef(
        platform="web", account="default", channel_id="main", message_id="1", item="0", kind=kind, mime=mime,
        created=sent, id="web_k3v9d0q2m7xa", size=changes.get("size"), width=changes.get("width"),
        height=changes.get("height"),
    )  # fmt: skip
    where = ConversationKey(platform="web", account="default", channel="main")
    author = Author(id="1", name="Ana")
    return RefRecord(
        ref=ref,
        conversation=where,
        author=author,
        sent=sent,
        outcome=MediaOutcome.HELD,
        reason="",
        public_name="x",
        seq=1,
    )


def test_a_picture_costs_by_its_pixels_and_a_file_nothing() -> None:
    assert price(record(MediaKind.IMAGE, "image/png", width=750, height=500)) == {"image": 500, "thumb": 58, "file": 0}


def test_a_picture_of_unknown_size_is_priced_at_the_most_one_can_cost() -> None:
    assert price(record(MediaKind.IMAGE, "image/png")) == {"image": 1600, "thumb": 87, "file": 0}


def test_text_costs_a_quarter_of_its_bytes() -> None:
    assert price(record(MediaKind.DOCUMENT, "text/csv; charset=utf-8", size=4001)) == {"text": 1001, "file": 0}


def test_any_other_file_is_only_a_file() -> None:
    assert price(record(MediaKind.DOCUMENT, "application/zip", size=4001)) == {"file": 0}


@pytest.mark.parametrize(
    ("mime", "kind", "priced"),
    [
        ("image/heic", MediaKind.IMAGE, True),
        ("image/webp", MediaKind.STICKER, True),
        ("application/x-tgsticker", MediaKind.STICKER, False),
        ("video/webm", MediaKind.STICKER, False),
        ("image/svg+xml", MediaKind.IMAGE, False),
        ("", MediaKind.IMAGE, True),
        ("image/png", MediaKind.DOCUMENT, True),
    ],
)
def test_only_what_can_be_drawn_has_the_price_of_a_picture(mime: str, kind: MediaKind, priced: bool) -> None:
    assert ("image" in price(record(kind, mime))) is priced


def test_a_picture_is_priced_as_it_will_be_shown() -> None:
    large = record(MediaKind.IMAGE, "image/jpeg", width=4000, height=1000)
    assert price(large, side=1568)["image"] == round(1568 * 392 / 750)
    assert price(large, side=400)["image"] == round(400 * 100 / 750)


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
