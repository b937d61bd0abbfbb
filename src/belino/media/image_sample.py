"""What a small part of a picture tells about the whole: how much it will weigh, and what it is made of."""

from collections.abc import Callable
from typing import Any

from belino.media.image_open import vips

BAND, SHARE = 16, 8
"""A sample is a number of bands, together an eighth, on the grid of JPEG's blocks: what was a JPEG before compresses
well only there."""
PIECES, STRIPS = 48, 16
"""At most so many: short pieces come from all over, long strips let a lossless encoder find what comes again."""
ELSEWHERE = 0.618
"""So far across from one piece to the next, which leaves no gaps however many there are."""
TILES, TILE = 4, 80
"""Edges are counted on 4 × 4 tiles."""
EDGE, TEXTURE, NO_DETAIL = 32, 8, 0.01


class Sample:
    """Parts of a picture in one small picture, for guesses about the whole."""

    def __init__(self, image: Any, cut: Callable[[Any], Any]) -> None:
        self.image = cut(image)
        self.share: float = image.width * image.height / (self.image.width * self.image.height)
        self._known: dict[Callable[[Any], bytes], bytes] = {}

    def weigh(self, write: Callable[[Any], bytes]) -> float:
        """Bytes the whole will take, written in this way."""
        if write not in self._known:
            self._known[write] = write(self.image)
        return len(self._known[write]) * self.share

    def whole(self, write: Callable[[Any], bytes], image: Any) -> bytes:
        """The picture itself, written in this way."""
        known = self._known.get(write) if image is self.image else None
        return known or write(image)

    def differs(self, write: Callable[[Any], bytes]) -> float:
        """How far, of 255, a pixel written in this way is off on average."""
        self.weigh(write)
        written = vips().Image.new_from_buffer(self._known[write], "")
        return float((_opaque(self.image) - _opaque(written)).abs().avg())


def strips(image: Any) -> Any:
    """Whole rows of it."""
    count = min(STRIPS, image.height // (SHARE * BAND))
    if count < 4:
        return image
    step = (image.height - BAND) / (count - 1)
    parts = [image.crop(0, int(row * step) // BAND * BAND, image.width, BAND) for row in range(count)]
    return vips().Image.arrayjoin(parts, across=1).copy_memory()


def pieces(image: Any) -> Any:
    """Parts of more rows."""
    count = min(PIECES, image.height // BAND)
    across = image.width * image.height // (SHARE * BAND * BAND * max(1, count)) * BAND
    if count < 4 or across < 4 * BAND or across >= image.width:
        return image
    step, spare = (image.height - BAND) / (count - 1), image.width - across
    places = [(row * ELSEWHERE % 1 * spare, row * step) for row in range(count)]
    parts = [image.crop(int(x) // BAND * BAND, int(y) // BAND * BAND, across, BAND) for x, y in places]
    return vips().Image.arrayjoin(parts, across=1).copy_memory()


def detail(image: Any) -> tuple[float, float]:
    """How much of the detail that halving would lose is hard edges (letters and lines, not leaves), and how much of the
    picture has any."""
    from PIL import Image, ImageChops

    tiles = _opaque(_tiles(image)).bandmean().cast("uchar")
    grey = Image.frombuffer("L", (tiles.width, tiles.height), tiles.write_to_memory(), "raw", "L", 0, 1)
    grey = grey.crop((0, 0, grey.width // 2 * 2, grey.height // 2 * 2))
    if not grey.width or not grey.height:
        return 0.0, 1.0
    lost = ImageChops.difference(grey, grey.reduce(2).resize(grey.size, Image.Resampling.NEAREST)).histogram()
    pixels = grey.width * grey.height
    edges, texture = (sum(lost[least + 1 :]) / pixels for least in (EDGE, TEXTURE))
    return edges / (texture + NO_DETAIL), texture


def _opaque(image: Any) -> Any:
    return image.flatten(background=255) if image.hasalpha() else image


def _tiles(image: Any) -> Any:
    """Small squares from all over the picture."""
    if min(image.width, image.height) <= TILES * TILE:
        return image
    across, down = (image.width - TILE) // (TILES - 1), (image.height - TILE) // (TILES - 1)
    places = [(column * across, row * down) for row in range(TILES) for column in range(TILES)]
    parts = [image.crop(left, top, TILE, TILE) for left, top in places]
    return vips().Image.arrayjoin(parts, across=TILES)
