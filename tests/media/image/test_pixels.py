"""Pixels in memory: what is cut out of them, and how they are turned, shrunk and written."""

import io
from collections.abc import Callable

import pytest
from PIL import Image, ImageChops

from belino.media.image import pixels as image_pixels
from belino.media.image.pixels import PillowPixels, Pixels, RawPixels, upright
from media.pictures import noise, quarters


def held(picture: Image.Image, orientation: int = 1) -> Pixels:
    return RawPixels(picture.tobytes(), *picture.size, len(picture.getbands()), orientation)


def seen(pixels: Pixels) -> Image.Image:
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[pixels.bands]
    return Image.frombytes(mode, pixels.upright, bytes(pixels.image.write_to_memory()))


@pytest.mark.parametrize(
    ("hold", "mode"),
    [(held, "L"), (held, "LA"), (held, "RGB"), (held, "RGBA"), (PillowPixels, "L"), (PillowPixels, "RGB")],
)
def test_parts_lie_below_each_other_as_they_were(hold: Callable[[Image.Image], Pixels], mode: str) -> None:
    picture = noise(50, 40).convert(mode)
    cut = seen(hold(picture).parts([(3, 4), (30, 20)], 16, 8))
    assert cut.size == (16, 16)
    assert cut.crop((0, 0, 16, 8)).tobytes() == picture.crop((3, 4, 19, 12)).tobytes()
    assert cut.crop((0, 8, 16, 16)).tobytes() == picture.crop((30, 20, 46, 28)).tobytes()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_smaller_copy_is_turned_like_the_whole(orientation: int) -> None:
    whole = held(quarters((64, 32)), orientation)
    small = whole.scaled(0.5)
    assert small.upright == tuple(side // 2 for side in whole.upright)
    large, little = seen(whole), seen(small)
    for across, down in ((0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)):
        colour, other = (each.getpixel((int(each.width * across), int(each.height * down))) for each in (large, little))
        assert colour == other


def test_alpha_is_dropped_only_where_it_hides_nothing() -> None:
    solid = noise(20, 20).convert("RGBA")
    pierced = solid.copy()
    pierced.putpixel((3, 3), (1, 2, 3, 254))
    assert held(solid).without_idle_alpha().bands == 3
    assert held(pierced).without_idle_alpha().bands == 4
    assert held(pierced).opaque().bands == 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pillow_turns_as_libvips_does(orientation: int) -> None:
    picture = noise(48, 32)
    assert seen(upright(picture.copy(), orientation)).tobytes() == seen(held(picture, orientation)).tobytes()


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("light", [0, image_pixels.LIGHT], ids=["libvips", "Pillow"])
@pytest.mark.parametrize("tight", [False, True], ids=["usual", "tight"])
def test_all_write_the_same_jpeg_of_a_picture(
    mode: str, light: int, tight: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_pixels, "LIGHT", light)
    picture = noise(64, 48).convert(mode)
    one, other = (
        Image.open(io.BytesIO(pixels.jpeg(80, tight=tight))) for pixels in (held(picture), PillowPixels(picture))
    )
    assert one.size == other.size == picture.size
    assert one.mode == other.mode == mode
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("size", [(400, 300), (5, 16_000)], ids=str)
@pytest.mark.parametrize("hold", [held, PillowPixels])
def test_a_jpeg_of_more_bytes_than_pixels_is_written_too(
    hold: Callable[[Image.Image], Pixels], size: tuple[int, int]
) -> None:
    static = noise(*size).point(lambda value: 255 * (value & 1))
    made = hold(static).jpeg(94, tight=True)
    assert len(made) > size[0] * size[1]
    assert Image.open(io.BytesIO(made)).size == size


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_both_see_the_same_grey(mode: str) -> None:
    picture = noise(64, 48).convert(mode)
    one, other = (pixels.grey(40, 30) for pixels in (held(picture), PillowPixels(picture)))
    assert one.size == other.size == (40, 30)
    least, most = ImageChops.difference(one, other).getextrema()
    assert (least, most) <= (0, 1)


def test_nothing_that_came_with_a_picture_is_written_with_it() -> None:
    picture = noise(16, 16)
    picture.info.update(comment=b"at home", icc_profile=b"profile", dpi=(72, 72), exif=b"Exif", xmp=b"xmp")
    written = upright(picture, 1).jpeg(80, tight=False)
    assert {"comment", "icc_profile", "exif", "xmp", "dpi"}.isdisjoint(Image.open(io.BytesIO(written)).info)
