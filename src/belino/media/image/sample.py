"""Sample of a picture: what a small part says about the size and content of the whole."""

from collections.abc import Callable
from typing import Any

from belino.media.image.decode import vips
from belino.media.image.pixels import Pixels

BAND, SHARE = 16, 8
"""A sample is a number of bands, together an eighth, on the grid of JPEG's blocks: a former JPEG compresses well
only there."""
MOST = 180_000
"""More pixels do not improve the estimate."""
PIECES, STRIPS = 64, 16
"""At most so many: short pieces cover the picture, long strips let a lossless encoder find repetition."""
ELSEWHERE = 0.618
"""The horizontal step between pieces, which leaves no gaps for any number of them."""
SEEN = 160
"""Edges are counted on so many columns of all pieces."""
EDGE, TEXTURE, NO_DETAIL = 32, 8, 0.01


class Sample:
    """Parts of a picture as one small picture, for estimates about the whole."""

    def __init__(self, whole: Pixels, cut: Callable[[Pixels], Pixels]) -> None:
        self.pixels = cut(whole)
        self.share = whole.width * whole.height / (self.pixels.width * self.pixels.height)
        self._known: dict[Callable[[Any], bytes], bytes] = {}

    def weigh(self, write: Callable[[Any], bytes]) -> float:
        """Estimated bytes of the whole in this encoding."""
        if write not in self._known:
            self._known[write] = write(self.pixels.image)
        return len(self._known[write]) * self.share

    def whole(self, write: Callable[[Any], bytes], pixels: Pixels) -> bytes:
        """The picture itself, in this encoding."""
        known = self._known.get(write) if pixels is self.pixels else None
        return known or write(pixels.image)

    def differs(self, write: Callable[[Any], bytes]) -> float:
        """The mean error of a pixel, of 255, in this encoding."""
        self.weigh(write)
        written = vips().Image.new_from_buffer(self._known[write], "")
        return float((_opaque(self.pixels.image) - _opaque(written)).abs().avg())


def strips(whole: Pixels) -> Pixels:
    """Whole rows."""
    count = min(STRIPS, whole.height // (SHARE * BAND))
    if count < 4:
        return whole
    step = (whole.height - BAND) / (count - 1)
    return whole.parts([(0, int(row * step) // BAND * BAND) for row in range(count)], whole.width, BAND)


def pieces(whole: Pixels) -> Pixels:
    """Parts of more rows."""
    count = min(PIECES, whole.height // BAND)
    area = min(whole.width * whole.height // SHARE, MOST)
    across = min(whole.width, area // (BAND * BAND * max(1, count)) * BAND)
    if count < 4 or across < 4 * BAND:
        return whole
    step, spare = (whole.height - BAND) / (count - 1), whole.width - across
    places = [(row * ELSEWHERE % 1 * spare, row * step) for row in range(count)]
    return whole.parts([(int(x) // BAND * BAND, int(y) // BAND * BAND) for x, y in places], across, BAND)


def detail(cut: Pixels) -> tuple[float, float]:
    """Of the detail that halving would lose, the part that is hard edges (letters and lines, not leaves), and how
    much of the picture has any; estimated from pieces."""
    from PIL import Image, ImageChops

    width, height = cut.upright
    if min(width, height) < 2:
        return 0.0, 1.0
    grey = cut.grey(min(SEEN, width) // 2 * 2, height // 2 * 2)
    lost = ImageChops.difference(grey, grey.reduce(2).resize(grey.size, Image.Resampling.NEAREST)).histogram()
    edges, texture = (sum(lost[least + 1 :]) / (grey.width * grey.height) for least in (EDGE, TEXTURE))
    return edges / (texture + NO_DETAIL), texture


def _opaque(image: Any) -> Any:
    return image.flatten(background=255) if image.hasalpha() else image
