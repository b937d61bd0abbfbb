"""A picture is read in tiles that fit the recogniser: long ones are cut between lines, others shrunk."""

import numpy as np
import pytest
from numpy import uint8
from numpy.typing import NDArray

from belino.understanding.local.tiles import PIXELS, STRIP, tiles_of


def paper(height: int, width: int) -> NDArray[uint8]:
    return np.full((height, width, 3), 255, uint8)


@pytest.mark.parametrize("size", [(300, 200), (2000, 1400), (700, 1900)])
def test_a_picture_of_a_usual_size_stays_as_it_is(size: tuple[int, int]) -> None:
    (tile,) = tiles_of(paper(*size))
    assert (tile.pixels.shape[:2], tile.above, tile.scale) == (size, 0, 1.0)


def test_a_large_page_is_shrunk() -> None:
    (tile,) = tiles_of(paper(3500, 2500))
    height, width, _ = tile.pixels.shape
    assert height * width <= 1.01 * PIXELS
    assert height / tile.scale == pytest.approx(3500, rel=0.01)


def test_a_long_screenshot_is_cut_between_its_lines() -> None:
    pixels = paper(9000, 700)
    for top in range(10, 9000, 50):
        pixels[top : top + 30, 20:600:2] = 0
    tiles = list(tiles_of(pixels))
    assert len(tiles) == 3
    assert [tile.scale for tile in tiles] == [1.0, 1.0, 1.0]
    assert [tile.above for tile in tiles[1:]] == [tiles[0].pixels.shape[0], sum(t.pixels.shape[0] for t in tiles[:2])]
    assert sum(tile.pixels.shape[0] for tile in tiles) == 9000
    for tile in tiles[1:]:
        assert pixels[tile.above - 1].min() == 255, "cut in white"


def test_a_strip_is_padded_because_the_recogniser_enlarges_what_is_narrow() -> None:
    (wide,), (high,) = tiles_of(paper(40, 1600)), tiles_of(paper(1600, 40))
    assert wide.pixels.shape[:2] == (1600 // STRIP, 1600)
    assert high.pixels.shape[:2] == (1600, 1600 // STRIP)
