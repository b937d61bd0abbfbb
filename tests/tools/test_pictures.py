"""Real pictures through the real sandbox, as an agent is shown them."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from belino.domain.media import Block, FileBlock, ImageBlock, TextBlock
from belino.media.image.header import image_size
from belino.media.image.images import Images
from belino.media.sandbox.sandbox import Sandbox
from belino.testing.files import make_png
from tools.town import File, Town

pytestmark = pytest.mark.slow

SIDEWAYS, GPS = 0x0112, 0x8825


@pytest.fixture
async def gallery(town: Town, tmp_path: Path) -> AsyncIterator[Town]:
    """The town with a real decoder."""
    async with Sandbox() as sandbox:
        town.images = Images(sandbox, tmp_path / "scratch", town.store.local)
        yield town
    assert not (tmp_path / "scratch").exists() or list((tmp_path / "scratch").iterdir()) == []


def saved(picture: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.effect_noise((width, height), 60).convert("RGB")


async def fetched(town: Town, content: bytes, *, name: str = "p", rendition: str = "auto") -> tuple[Block, ...]:
    _, (ref,) = await town.say("", File(content=content, name=name, mime="application/octet-stream"))
    return await town.toolbox().call("fetch_media", {"ref": ref, "as": rendition})


@pytest.mark.parametrize("form", ["TIFF", "BMP", "AVIF"])
async def test_a_format_models_do_not_take_is_shown_in_one_they_do(gallery: Town, form: str) -> None:
    content = saved(noise(400, 300), form)
    text, picture, original = await fetched(gallery, content)
    assert isinstance(text, TextBlock) and isinstance(picture, ImageBlock) and isinstance(original, FileBlock)
    assert picture.mime in ("image/jpeg", "image/png", "image/webp")
    assert f"image/{form.lower()}, 400×300" in text.text and "You see it converted" in text.text
    assert image_size(picture.data) == (picture.mime, 400, 300)
    assert original.path.read_bytes() == content


async def test_a_photo_from_a_phone_is_upright_small_and_does_not_tell_where_it_was_taken(gallery: Town) -> None:
    exif = Image.Exif()
    exif[SIDEWAYS] = 6
    exif.get_ifd(GPS)[2] = (48.0, 51.0, 29.0)
    content = saved(noise(2400, 1800), "JPEG", quality=95, exif=exif)
    assert len(content) > 1024 * 1024
    text, picture, original = await fetched(gallery, content, name="photo.jpg")
    assert isinstance(text, TextBlock) and isinstance(picture, ImageBlock) and isinstance(original, FileBlock)
    size = image_size(picture.data)
    assert size is not None and size[1] < size[2] <= 1568 and len(picture.data) <= 1024 * 1024
    assert b"Exif" not in picture.data and "photo.jpg: image/jpeg, 1800×2400" in text.text


async def test_a_small_photo_with_a_place_in_it_loses_the_place(gallery: Town) -> None:
    exif = Image.Exif()
    exif.get_ifd(GPS)[2] = (48.0, 51.0, 29.0)
    content = saved(noise(64, 48), "JPEG", exif=exif)
    text, picture, _ = await fetched(gallery, content)
    assert isinstance(text, TextBlock) and isinstance(picture, ImageBlock)
    assert b"Exif" in content and b"Exif" not in picture.data
    assert "You see it upright and without its metadata" in text.text


async def test_a_thumb_is_at_most_256_pixels(gallery: Town) -> None:
    _, picture = await fetched(gallery, saved(noise(1200, 600), "PNG"), rendition="thumb")
    assert isinstance(picture, ImageBlock)
    size = image_size(picture.data)
    assert size is not None and size[1:] == (256, 128)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (make_png(2000, 2000)[:600], "2000×2000"),
        (make_png(1, 1).replace(b"\0\0\0\x01\0\0\0\x01", b"\0\0\x32\xc8\0\0\x32\xc8", 1), "13000×13000"),
        (b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + b"\0" * 64, "image/heic"),
    ],
    ids=["cut off", "a pixel flood", "no HEIC inside"],
)
async def test_what_cannot_be_decoded_is_told_with_the_path(gallery: Town, content: bytes, told: str) -> None:
    text, file = await fetched(gallery, content)
    assert isinstance(text, TextBlock) and isinstance(file, FileBlock) and file.path.read_bytes() == content
    assert told in text.text and "It cannot be shown: " in text.text
    assert gallery.shown == []
