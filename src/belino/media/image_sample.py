"""What a small part of a picture tells about the whole: how much it will weigh, and what it is made of."""

from collections.abc import Callable
from typing import Any

from belino.media.image_open import vips

BAND, SHARE = 16, 8
"""A sample is a number of bands, together an eighth, on the grid of JPEG's blocks: what was a JPEG before compresses
well only there."""
PIECES, STRIPS = 32, 16
"""At most so many: short pieces come from all over, long strips let a lossless encoder find what comes again."""
ELSEWHERE = 0.618
"""So far across from one piece to the next, which leaves no gaps however many there are."""
SEEN = 320
"""Edges are counted on so many columns of all pieces."""
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
    across = min(image.width, image.width * image.height // (SHARE * BAND * BAND * max(1, count)) * BAND)
    if count < 4 or across < 4 * BAND:
        return image
    step, spare = (image.height - BAND) / (count - 1), image.width - across
    places = [(row * ELSEWHERE % 1 * spare, row * step) for row in range(count)]
    parts = [image.crop(int(x) // BAND * BAND, int(y) // BAND * BAND, across, BAND) for x, y in places]
    return vips().Image.arrayjoin(parts, across=1).copy_memory()


def detail(cut: Any) -> tuple[float, float]:
    """Of the detail that halving would lose, the part that is hard edges (letters and lines, not leaves), and how much
    of the picture has any; told from pieces of it."""
    from PIL import Image, ImageChops

    if min(cut.width, cut.height) < 2:
        return 0.0, 1.0
    seen = cut.crop(0, 0, min(SEEN, cut.width) // 2 * 2, cut.height // 2 * 2)
    seen = _opaque(seen).bandmean().cast("uchar")
    grey = Image.frombuffer("L", (seen.width, seen.height), seen.write_to_memory(), "raw", "L", 0, 1)
    lost = ImageChops.difference(grey, grey.reduce(2).resize(grey.size, Image.Resampling.NEAREST)).histogram()
    edges, texture = (sum(lost[least + 1 :]) / (grey.width * grey.height) for least in (EDGE, TEXTURE))
    return edges / (texture + NO_DETAIL), texture


def _opaque(image: Any) -> Any:
    return image.flatten(background=255) if image.hasalpha() else image
