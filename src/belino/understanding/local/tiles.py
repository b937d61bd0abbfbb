"""Tiles of a picture: pieces of a size that a recogniser can read well and within its memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray

PIXELS = 2_800_000
"""Of a tile: a page of 170 dots per inch, at which small print is readable."""
LONG = 2.5
"""A picture that is so many times as high as wide, such as a receipt or a screenshot, is cut; others are shrunk."""
STRIP = 4
"""A picture that is longer by more than this is padded: recognisers enlarge what is narrow."""
CUT = 0.25
"""The part of a tile, at its end, in which the best place for a cut is looked for."""
PAPER = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Pixels, how many rows of the picture are above them, and how much smaller they are than there."""

    pixels: "NDArray[uint8]"
    above: int = 0
    scale: float = 1.0


def tiles_of(pixels: "NDArray[uint8]") -> Iterator[Tile]:
    """A picture as one tile, or from top to bottom as several."""
    height, width, _ = pixels.shape
    if height <= LONG * width or height * width <= PIXELS:
        yield _fitted(pixels, 0)
        return
    at, most = 0, max(1, PIXELS // width)
    while at < height:
        end = _quiet_row(pixels, at, at + most) if at + most < height else height
        yield _fitted(pixels[at:end], at)
        at = end


def _quiet_row(pixels: "NDArray[uint8]", first: int, last: int) -> int:
    """The last row before `last` in which there is least to see: a cut there goes through no letter."""
    import numpy as np

    begin = last - max(1, int(CUT * (last - first)))
    rows = pixels[begin:last, :, 1]
    unrest = rows.max(axis=1).astype(np.int16) - rows.min(axis=1)
    return int(begin + len(unrest) - np.argmin(unrest[::-1]))


def _fitted(pixels: "NDArray[uint8]", above: int) -> Tile:
    import cv2
    import numpy as np

    height, width, _ = pixels.shape
    scale = min(1.0, (PIXELS / (height * width)) ** 0.5)
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        height, width, _ = pixels.shape
    down, across = max(0, width // STRIP - height), max(0, height // STRIP - width)
    if down or across:
        pixels = np.pad(pixels, ((0, down), (0, across), (0, 0)), mode="edge")
    return Tile(pixels=pixels, above=above, scale=scale)
