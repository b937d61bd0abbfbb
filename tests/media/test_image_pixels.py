"""Pixels in memory: what is cut out of them, and how they are turned and shrunk."""

import pytest
from PIL import Image

from belino.media.image_pixels import Pixels
from media.pictures import noise, quarters


def held(picture: Image.Image, orientation: int = 1) -> Pixels:
    return Pixels(picture.tobytes(), *picture.size, len(picture.getbands()), orientation)


def seen(pixels: Pixels) -> Image.Image:
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[pixels.bands]
    return Image.frombytes(mode, pixels.upright, bytes(pixels.image.write_to_memory()))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_parts_lie_below_each_other_as_they_were(mode: str) -> None:
    picture = noise(50, 40).convert(mode)
    cut = seen(held(picture).parts([(3, 4), (30, 20)], 16, 8))
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
