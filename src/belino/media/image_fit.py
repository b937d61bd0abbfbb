"""The best picture under a byte and a pixel limit, in few encodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.media.image_open import Header, decode, shrunk, vips

if TYPE_CHECKING:
    import pyvips

# All weights, found on photographs, screenshots and drawings by SSIM at the original size (`belino bench media`).
BEST_QUALITY = 95
"""Above, bytes grow and nobody sees it."""
ENOUGH = 0.94
"""A result that uses this part of the limit is not searched further."""
AIM = 0.97
"""The part of the limit a guess aims at, because a miss costs an encode."""
BYTES_PER_PIXEL_PHOTO = 0.07
"""A JPEG is decoded at least at this many pixels for the limit; more are decoded only when they would fit."""
BYTES_PER_PIXEL_LEAST = 0.02
"""Below, no picture is worth its pixels, not even a drawing."""
GROWTH = 0.85
"""Bytes grow with pixels to this power: a smaller picture has more detail in each pixel."""
STEEPNESS = 0.65
"""Bytes grow with the fineness of quantisation to this power, as long as nothing better is known."""
EDGE, TEXTURE = 32, 8
HARD_EDGES = 0.25
"""Of all detail lost by halving a picture, the part that is hard edges: in photographs ≤ .2, in screens ≥ .26."""
LOSSLESS_HOPE = 1.4
"""Lossless is tried when a sample promises at most this times the limit: a sample compresses worse than the whole."""
TILES = 4
TILE_SHARE = 16
"""A sample is 4 × 4 tiles, each a sixteenth of the picture's sides, never smaller than 64 pixels."""
TILE_LEAST = 64
TILE_MOST = 192
ROUNDS = 8
ENCODES_PER_ROUND = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the picture must fit into."""

    max_bytes: int
    max_side: int | None = None
    max_pixels: int | None = None
    formats: tuple[str, ...] = ("image/jpeg", "image/png", "image/webp")

    def box(self, width: int, height: int) -> tuple[int, int]:
        """The largest size with the same shape inside the pixel limits."""
        scale = 1.0
        if self.max_side:
            scale = min(scale, self.max_side / max(width, height))
        if self.max_pixels:
            scale = min(scale, math.sqrt(self.max_pixels / (width * height)))
        if scale >= 1:
            return width, height
        return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """One encoded picture."""

    content: bytes
    mime: str
    width: int
    height: int
    quality: int
    """100 is lossless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """A lossy way to write a picture, and the qualities at which it is at its best."""

    mime: str
    write: Callable[["pyvips.Image", int], bytes]
    start: int
    floor: int
    """Below this quality fewer pixels look better than coarser ones."""


class Search:
    """Encodes and counts."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.encodes = 0

    def best(self, source: int, header: Header) -> Encoded:
        """The picture read from `source`, as good as the wish allows."""
        box = self.wish.box(*header.upright)
        for shrink in _shrinks(header, box, self.wish.max_bytes):
            image = decode(source, header, shrink=shrink, box=_decoded_box(box, self.wish.max_bytes))
            found = self._encoded(image, header, last=shrink == 1 or (image.width, image.height) == box)
            if found:
                return found
        raise MediaRefused(f"the picture cannot be made to fit into {self.wish.max_bytes:,} bytes")

    def _encoded(self, image: Any, header: Header, *, last: bool) -> Encoded | None:
        """None when there is room for more pixels than were decoded."""
        image = _without_idle_alpha(image)
        if image.hasalpha() and not {"image/webp", "image/png"} & set(self.wish.formats):
            image = image.flatten(background=255).copy_memory()
        edges = hard_edges(image)
        drawn = edges > HARD_EDGES
        if (drawn or header.mime not in _LOSSY) and (lossless := self._lossless(image)):
            return lossless
        codec = self._codec(image, drawn=drawn)
        if codec is None:
            return self._shrinking_png(image)
        return self._lossy(image, codec, last=last)

    def _lossless(self, image: Any) -> Encoded | None:
        mime = next((mime for mime in ("image/webp", "image/png") if mime in self.wish.formats), None)
        if mime is None:
            return None
        sample = tiles(image)
        share = (image.width * image.height) / (sample.width * sample.height)
        if share > 1 and len(self._write(_LOSSLESS[mime], sample)) * share > LOSSLESS_HOPE * self.wish.max_bytes:
            return None
        content = self._write(_LOSSLESS[mime], image)
        return _encoded(content, mime, image, 100) if len(content) <= self.wish.max_bytes else None

    def _codec(self, image: Any, *, drawn: bool) -> Codec | None:
        """JPEG for photographs: as good and five times faster. WebP keeps edges and alpha."""
        preferred = (_WEBP_DRAWN, _JPEG_DRAWN) if drawn else (_JPEG, _WEBP)
        allowed = [codec for codec in preferred if codec.mime in self.wish.formats]
        if image.hasalpha():
            allowed = [codec for codec in allowed if codec.mime == "image/webp"]
        return allowed[0] if allowed else None

    def _lossy(self, image: Any, codec: Codec, *, last: bool) -> Encoded | None:
        limit, whole, scale = self.wish.max_bytes, image, 1.0
        for _ in range(ROUNDS):
            found, over = self._quality(image, codec)
            if found:
                roomy = scale == 1 and found.quality > codec.start
                return None if roomy and not last else found
            scale *= min(0.95, (AIM * limit / over) ** (0.5 / GROWTH))
            image = shrunk(whole, scale).copy_memory()
        return None

    def _quality(self, image: Any, codec: Codec) -> tuple[Encoded | None, int]:
        """The finest quality that fits, or None and the bytes at the coarsest."""
        limit, quality = self.wish.max_bytes, codec.start
        low, high = codec.floor, BEST_QUALITY
        best: Encoded | None = None
        points: list[tuple[float, float]] = []
        size = 0
        for _ in range(ENCODES_PER_ROUND):
            content = self._write(codec.write, image, quality)
            size = len(content)
            points.append((_fineness(quality), math.log(size)))
            if size <= limit:
                best, low = _encoded(content, codec.mime, image, quality), quality + 1
            else:
                high = quality - 1
            if low > high or ENOUGH * limit <= size <= limit:
                break
            quality = min(max(_quality_for(points, math.log(AIM * limit)), low), high)
        return best, size

    def _shrinking_png(self, image: Any) -> Encoded | None:
        """The only way left for a transparent picture where WebP is not taken."""
        whole, scale = image, 1.0
        for _ in range(ROUNDS):
            content = self._write(_LOSSLESS["image/png"], image)
            if len(content) <= self.wish.max_bytes:
                return _encoded(content, "image/png", image, 100)
            scale *= min(0.9, (AIM * self.wish.max_bytes / len(content)) ** (0.5 / GROWTH))
            image = shrunk(whole, scale).copy_memory()
        return None

    def _write(self, write: Callable[..., bytes], *arguments: object) -> bytes:
        self.encodes += 1
        return write(*arguments)


def hard_edges(image: Any) -> float:
    """How much of the detail that halving would lose is hard edges: letters and lines, not leaves."""
    grey = tiles(image)
    grey = (grey.flatten(background=255) if grey.hasalpha() else grey).colourspace("b-w")
    if min(grey.width, grey.height) < 2:
        return 1.0
    grey = grey.crop(0, 0, grey.width // 2 * 2, grey.height // 2 * 2)
    lost = (grey - grey.shrink(2, 2).resize(2, kernel="linear")).abs()
    return float((lost > EDGE).avg() / ((lost > TEXTURE).avg() + 0.01))


def tiles(image: Any) -> Any:
    """A small picture made of parts of the picture, for guesses about the whole."""
    across, down = (_tile(side) for side in (image.width, image.height))
    if across * down * TILES * TILES >= image.width * image.height or TILES * max(across, down) > min(
        image.width, image.height
    ):
        return image
    places = [(column, row) for row in range(TILES) for column in range(TILES)]
    step_x, step_y = (image.width - across) // (TILES - 1), (image.height - down) // (TILES - 1)
    parts = [image.crop(column * step_x, row * step_y, across, down) for column, row in places]
    return vips().Image.arrayjoin(parts, across=TILES).copy_memory()


def _tile(side: int) -> int:
    return min(max(side // TILE_SHARE, TILE_LEAST), TILE_MOST)


def _shrinks(header: Header, box: tuple[int, int], max_bytes: int) -> list[int]:
    """How coarsely to decode: first no finer than the limit can need, then finer if that left room."""
    if header.mime != "image/jpeg":
        return [1]
    width, height = header.upright
    wanted = min(max_bytes / BYTES_PER_PIXEL_PHOTO, box[0] * box[1])
    usable = [by for by in (8, 4, 2, 1) if (width // by) * (height // by) >= wanted or by == 1]
    return usable[:1] if usable[0] == 1 else [usable[0], *(by for by in (4, 2, 1) if by < usable[0])]


def _decoded_box(box: tuple[int, int], max_bytes: int) -> tuple[int, int]:
    most = max(1.0, max_bytes / BYTES_PER_PIXEL_LEAST)
    scale = math.sqrt(most / (box[0] * box[1]))
    return box if scale >= 1 else (max(1, math.floor(box[0] * scale)), max(1, math.floor(box[1] * scale)))


def _without_idle_alpha(image: Any) -> Any:
    """Alpha that hides nothing is dropped: it would forbid JPEG."""
    if image.hasalpha() and image[image.bands - 1].min() == 255:
        return image[: image.bands - 1].copy_memory()
    return image


def _encoded(content: bytes, mime: str, image: Any, quality: int) -> Encoded:
    return Encoded(content=content, mime=mime, width=image.width, height=image.height, quality=quality)


def _fineness(quality: int) -> float:
    """How finely a quality quantises, on a scale where the logarithm of the bytes is almost a line (JPEG's own)."""
    return -math.log(5000 / quality if quality < 50 else 200 - 2 * quality)


def _quality_for(points: list[tuple[float, float]], wanted: float) -> int:
    """The quality at which the line through the last points meets the wanted logarithm of bytes."""
    (x, y), slope = points[-1], STEEPNESS
    if len(points) > 1 and points[-2][0] != x:
        slope = min(max((y - points[-2][1]) / (x - points[-2][0]), 0.2), 2.0)
    step = math.exp(-(x + (wanted - y) / slope))
    return int(5000 / step) if step > 100 else int((200 - step) / 2)


def _jpeg(image: Any, quality: int) -> bytes:
    content: bytes = image.jpegsave_buffer(Q=quality, optimize_coding=True, subsample_mode="on", keep="none")
    return content


def _webp(image: Any, quality: int) -> bytes:
    content: bytes = image.webpsave_buffer(Q=quality, effort=2, keep="none")
    return content


def _webp_lossless(image: Any) -> bytes:
    content: bytes = image.webpsave_buffer(lossless=True, effort=1, keep="none")
    return content


def _png(image: Any) -> bytes:
    content: bytes = image.pngsave_buffer(compression=9, keep="none")
    return content


_JPEG = Codec(mime="image/jpeg", write=_jpeg, start=66, floor=60)
_WEBP = Codec(mime="image/webp", write=_webp, start=80, floor=76)
_WEBP_DRAWN = Codec(mime="image/webp", write=_webp, start=60, floor=12)
_JPEG_DRAWN = Codec(mime="image/jpeg", write=_jpeg, start=60, floor=15)
_LOSSLESS = {"image/webp": _webp_lossless, "image/png": _png}
_LOSSY = frozenset({"image/jpeg", "image/heic", "image/avif"})
