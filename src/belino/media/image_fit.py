"""The best picture under a byte and a pixel limit, in few encodes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.media.image_open import MAX_SIDE, Header, decode, resized, vips

if TYPE_CHECKING:
    import pyvips

# All weights, found on photographs, screenshots and drawings by SSIM at the original size (`belino bench media`).
BEST_QUALITY = 95
BEST_QUALITY_LOSSLESS = 100
"""For pictures that were never lossy."""
ENOUGH = 0.9
"""A result that uses this part of the limit is not searched further."""
AIM = 0.96
"""The part of the limit a guess aims at, because a miss costs an encode."""
GROWTH = 1.7
"""Bytes grow with a side to this power, not to 2: a smaller picture has more detail in each pixel."""
STEEPNESS = 0.65
"""Bytes grow with the fineness of quantisation to this power, as long as nothing better is known."""
STEP = 1.1
"""A better size is worth the work when it differs by this factor."""
NEAR = 0.75
"""A size guessed before decoding counts only when it is smaller than this part of the whole."""
SPARE = 1.14
"""A photograph is decoded this much wider than it is likely to end, all of it only if that fits."""
LIKELY = 0.14
"""Bytes a pixel of a photograph is likely to end with."""
WEBP_SIDE = 16_383
EDGE, TEXTURE, NO_DETAIL = 32, 8, 2.55
DRAWN, WRITTEN = 0.27, 0.47
"""Of the detail lost by halving, the part that is hard edges: photographs ≤ .2, screens ≥ .35, pages of text ≥ .5."""
HOPE, HOPE_WRITTEN = 1.6, 3.7
"""Lossless WebP is tried up to this many times the limit as a quick PNG: it makes .5 to .7 of one, .25 of text."""
STRIP, STRIPS, SHARE = 16, 16, 8
"""A sample is at most 16 strips, together an eighth, on the grid of JPEG's blocks: what was a JPEG before compresses
well only there."""
MORE = 1.02
"""What strips weigh too little, for they meet fewer surprises than the whole."""
TILES, TILE = 4, 80
"""Edges are counted on 4 × 4 tiles."""
BUSY, SMALL = 0.09, 2_000_000
"""Huffman tables of its own cost a JPEG thrice the time and spare 2 % above .09 bytes a pixel, 10 % and more below."""
ROUNDS = 6
PATIENCE = 2
"""So many rounds look for a better size; the others take what fits."""
REFINEMENTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the picture must fit into."""

    max_bytes: int
    max_side: int | None = None
    max_pixels: int | None = None
    formats: tuple[str, ...] = ("image/jpeg", "image/png", "image/webp")

    def box(self, width: int, height: int) -> tuple[int, int]:
        """The largest size with the same shape inside the pixel limits."""
        side = min(self.max_side or max(width, height), WEBP_SIDE if "image/webp" in self.formats else MAX_SIDE)
        scale = min(1.0, side / max(width, height))
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
    """A lossy way to write a picture, and where it is at its best."""

    mime: str
    write: Callable[["pyvips.Image", int, int], bytes]
    start: int
    """The quality from which on more pixels look better than finer ones, as long as there are more."""
    floor: int
    """Below this quality fewer pixels look better than coarser ones."""
    header: int
    """Bytes that do not grow with the picture."""


class Search:
    """Encodes and counts."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.encodes = 0

    def best(self, source: int, header: Header) -> Encoded:
        """The picture read from `source`, as good as the wish allows."""
        box = self.wish.box(*header.upright)
        size = _first_size(header, box, self.wish.max_bytes)
        while True:
            image = _without_idle_alpha(decode(source, header, size))
            found = self._encoded(image, header, finer=size != box)
            if isinstance(found, Encoded):
                return found
            if found is None:
                raise MediaRefused(f"the picture cannot be made to fit into {self.wish.max_bytes:,} bytes")
            size = _within(box, found * size[0] / box[0])

    def _encoded(self, image: Any, header: Header, *, finer: bool) -> Encoded | float | None:
        """The picture; or how many times larger it should be decoded, if it can; or None."""
        if image.hasalpha() and not {"image/webp", "image/png"} & set(self.wish.formats):
            image = image.flatten(background=255).copy_memory()
        edges = hard_edges(image)
        drawn, lossy = edges > DRAWN, header.mime in _LOSSY
        if drawn and finer:
            return math.inf
        if not lossy and (lossless := self._lossless(image, edges)):
            return lossless
        if drawn and lossy and (found := self._still_fine(image)):
            return found
        codec = self._codec(image, header, drawn=drawn)
        most = BEST_QUALITY if lossy else BEST_QUALITY_LOSSLESS
        return self._lossy(image, codec, most, finer=finer) if codec else self._shrinking_png(image)

    def _lossless(self, image: Any, edges: float) -> Encoded | None:
        """A quick PNG says what to hope for, and often is good enough."""
        limit, formats = self.wish.max_bytes, self.wish.formats
        if not {"image/webp", "image/png"} & set(formats):
            return None
        content = self._write(_quick_png, image)
        if "image/png" in formats and len(content) <= limit:
            return _encoded(content, "image/png", image, 100)
        if len(content) > (HOPE_WRITTEN if edges > WRITTEN else HOPE) * limit:
            return None
        mime, write = ("image/webp", _lossless_webp) if "image/webp" in formats else ("image/png", _small_png)
        content = self._write(write, image)
        return _encoded(content, mime, image, 100) if len(content) <= limit else None

    def _still_fine(self, image: Any) -> Encoded | None:
        """A drawing that was a JPEG already loses little as one, if all its pixels fit."""
        if "image/jpeg" not in self.wish.formats:
            return None
        guess = _Guess(image, _JPEG_FINE, self.wish.max_bytes)
        return self._refined(guess, BEST_QUALITY) if guess.size(_JPEG_FINE.floor) <= self.wish.max_bytes else None

    def _codec(self, image: Any, header: Header, *, drawn: bool) -> Codec | None:
        """JPEG for photographs: almost as good and many times faster. WebP keeps edges and alpha."""
        preferred = (_WEBP_DRAWN, _JPEG_DRAWN) if drawn else (_JPEG, _WEBP)
        if header.mime == "image/webp" and not drawn:
            preferred = (_WEBP, _JPEG)
        allowed = [codec for codec in preferred if codec.mime in self.wish.formats]
        if image.hasalpha():
            allowed = [_WEBP_DRAWN if drawn else _WEBP_ALPHA] if "image/webp" in self.wish.formats else []
        return allowed[0] if allowed else None

    def _lossy(self, whole: Any, codec: Codec, most: int, *, finer: bool) -> Encoded | float | None:
        """First the size at which the starting quality fits, then the quality that fills the limit."""
        wanted, image, scale, bias = AIM * self.wish.max_bytes, whole, 1.0, MORE
        for tried in range(ROUNDS):
            guess = _Guess(image, codec, self.wish.max_bytes, bias)
            room = math.pow(wanted / guess.size(codec.start), 1 / GROWTH)
            if scale == 1 and finer and room > STEP:
                return room
            good = scale == 1 or room < STEP or tried >= PATIENCE
            if good and guess.quality(wanted) >= codec.floor:
                if found := self._refined(guess, most):
                    return found
                scale, bias = scale / STEP, guess.bias
            else:
                scale = min(1.0, scale * room)
            image = whole if scale == 1 else _scaled(whole, scale)
        return self._coarse(whole, scale)

    def _refined(self, guess: "_Guess", most: int) -> Encoded | None:
        """The finest quality that fits; None if even the floor is too much."""
        limit, low, high = self.wish.max_bytes, guess.codec.floor, most
        best: Encoded | None = None
        points: list[tuple[float, float]] = []
        for tried in range(REFINEMENTS):
            wanted = guess.quality(AIM * limit) if tried < 2 else _quality_for(points, math.log(AIM * limit))
            quality = min(max(wanted, low), high)
            content = self._write(guess.write, quality)
            points.append((_fineness(quality), math.log(len(content))))
            if len(content) <= limit:
                best, low = _encoded(content, guess.codec.mime, guess.image, quality), quality + 1
            else:
                high = quality - 1
            if low > high or ENOUGH * limit <= len(content) <= limit:
                break
        return best

    def _coarse(self, whole: Any, scale: float) -> Encoded | None:
        """The last resort for a limit that is hard to meet: halve until it fits."""
        image = whole.flatten(background=255) if whole.hasalpha() else whole
        mime = next(mime for mime in ("image/jpeg", "image/webp") if mime in self.wish.formats)
        while scale * max(whole.width, whole.height) >= 1:
            small = _scaled(image, scale)
            content = self._write(_jpeg if mime == "image/jpeg" else _webp, small, 50, self.wish.max_bytes)
            if len(content) <= self.wish.max_bytes:
                return _encoded(content, mime, small, 50)
            scale /= 2
        return None

    def _shrinking_png(self, whole: Any) -> Encoded | None:
        """The only way left where PNG alone may be written."""
        image, scale = whole, 1.0
        while scale * max(whole.width, whole.height) >= 1:
            content = self._write(_small_png, image)
            if len(content) <= self.wish.max_bytes:
                return _encoded(content, "image/png", image, 100)
            scale *= min(0.9, (AIM * self.wish.max_bytes / len(content)) ** (1 / GROWTH))
            image = _scaled(whole, scale)
        return None

    def _write(self, write: Callable[..., bytes], *arguments: object) -> bytes:
        self.encodes += 1
        return write(*arguments)


class _Guess:
    """What a picture will weigh, guessed from a sample of it, and better after each time it was weighed."""

    def __init__(self, image: Any, codec: Codec, limit: int, bias: float = MORE) -> None:
        self.image, self.codec, self.bias = image, codec, bias
        self._limit = limit
        self._sample = strips(image)
        self._share: float = image.width * image.height / (self._sample.width * self._sample.height)
        self._known: dict[int, bytes] = {}

    def size(self, quality: int) -> float:
        """Bytes at a quality."""
        if quality not in self._known:
            self._known[quality] = self.codec.write(self._sample, quality, self._limit)
        header = self.codec.header
        return header + self.bias * max(1, len(self._known[quality]) - header) * self._share

    def quality(self, wanted: float) -> int:
        """The quality that gives so many bytes."""
        self.size(self.codec.start)
        points = [(_fineness(quality), math.log(self.size(quality))) for quality in self._known]
        return _quality_for(points, math.log(wanted))

    def write(self, quality: int) -> bytes:
        """The picture itself, from which the guess learns."""
        expected = self.size(quality)
        whole = self._sample is self.image
        content = self._known[quality] if whole else self.codec.write(self.image, quality, self._limit)
        self.bias *= len(content) / expected
        return content


def hard_edges(image: Any) -> float:
    """How much of the detail that halving would lose is hard edges: letters and lines, not leaves."""
    grey = _tiles(image)
    grey = (grey.flatten(background=255) if grey.hasalpha() else grey).bandmean()
    if min(grey.width, grey.height) < 2:
        return 0.0
    grey = grey.crop(0, 0, grey.width // 2 * 2, grey.height // 2 * 2)
    lost = (grey - grey.shrink(2, 2).zoom(2, 2)).abs().copy_memory()
    return float((lost > EDGE).avg() / ((lost > TEXTURE).avg() + NO_DETAIL))


def strips(image: Any) -> Any:
    """A small picture made of parts of the picture, for guesses about the whole."""
    count = min(STRIPS, image.height // (SHARE * STRIP))
    if count < 4:
        return image
    step = (image.height - STRIP) / (count - 1)
    parts = [image.crop(0, int(row * step) // STRIP * STRIP, image.width, STRIP) for row in range(count)]
    return vips().Image.arrayjoin(parts, across=1).copy_memory()


def _tiles(image: Any) -> Any:
    """Small squares from all over the picture."""
    if min(image.width, image.height) <= TILES * TILE:
        return image
    across, down = (image.width - TILE) // (TILES - 1), (image.height - TILE) // (TILES - 1)
    places = [(column * across, row * down) for row in range(TILES) for column in range(TILES)]
    parts = [image.crop(left, top, TILE, TILE) for left, top in places]
    return vips().Image.arrayjoin(parts, across=TILES).copy_memory()


def _first_size(header: Header, box: tuple[int, int], max_bytes: int) -> tuple[int, int]:
    """The size to decode at: a JPEG as a photograph is likely to end, anything else whole."""
    if header.mime != "image/jpeg":
        return box
    return _within(box, math.sqrt(max_bytes / LIKELY / (box[0] * box[1])))


def _within(box: tuple[int, int], scale: float) -> tuple[int, int]:
    """Somewhat more than the scale asks for, so that a guess that was too low costs no second decoding."""
    scale *= SPARE
    return box if scale > NEAR else (max(1, round(box[0] * scale)), max(1, round(box[1] * scale)))


def _scaled(image: Any, scale: float) -> Any:
    width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return resized(image, width, height).copy_memory()


def _without_idle_alpha(image: Any) -> Any:
    """Alpha that hides nothing is dropped: it would forbid JPEG."""
    if image.hasalpha() and image[image.bands - 1].min() == 255:
        return image[: image.bands - 1].copy_memory()
    return image


def _encoded(content: bytes, mime: str, image: Any, quality: int) -> Encoded:
    return Encoded(content=content, mime=mime, width=image.width, height=image.height, quality=quality)


def _fineness(quality: int) -> float:
    """How finely a quality quantises, on a scale where the logarithm of the bytes is almost a line (JPEG's own)."""
    return -math.log(5000 / quality if quality < 50 else max(1, 200 - 2 * quality))


def _quality_for(points: Sequence[tuple[float, float]], wanted: float) -> int:
    """Where the line through the last two points (through one: as steep as usual) meets the wanted height."""
    (x, y), slope = points[-1], STEEPNESS
    if len(points) > 1 and points[-2][0] != x:
        slope = min(max((y - points[-2][1]) / (x - points[-2][0]), 0.2), 2.0)
    step = math.exp(min(max(-(x + (wanted - y) / slope), 0.0), 8.0))
    return max(1, int(5000 / step) if step > 100 else int((200 - step) / 2))


def _jpeg(image: Any, quality: int, limit: int) -> bytes:
    pixels = image.width * image.height
    own_tables = pixels < SMALL or limit / pixels < BUSY
    content: bytes = image.jpegsave_buffer(Q=quality, optimize_coding=own_tables, subsample_mode="on", keep="none")
    return content


def _webp(image: Any, quality: int, _limit: int) -> bytes:
    content: bytes = image.webpsave_buffer(Q=quality, effort=4, keep="none")
    return content


def _quick_webp(image: Any, quality: int, _limit: int) -> bytes:
    content: bytes = image.webpsave_buffer(Q=quality, effort=2, keep="none")
    return content


def _lossless_webp(image: Any) -> bytes:
    content: bytes = image.webpsave_buffer(lossless=True, effort=1, keep="none")
    return content


def _quick_png(image: Any) -> bytes:
    content: bytes = image.pngsave_buffer(compression=6, filter="none", keep="none")
    return content


def _small_png(image: Any) -> bytes:
    content: bytes = image.pngsave_buffer(compression=9, filter="all", keep="none")
    return content


_JPEG = Codec(mime="image/jpeg", write=_jpeg, start=82, floor=78, header=600)
_JPEG_FINE = Codec(mime="image/jpeg", write=_jpeg, start=86, floor=86, header=600)
_JPEG_DRAWN = Codec(mime="image/jpeg", write=_jpeg, start=60, floor=15, header=600)
_WEBP = Codec(mime="image/webp", write=_webp, start=85, floor=80, header=40)
_WEBP_ALPHA = Codec(mime="image/webp", write=_quick_webp, start=80, floor=60, header=40)
_WEBP_DRAWN = Codec(mime="image/webp", write=_quick_webp, start=60, floor=5, header=40)
_LOSSY = frozenset({"image/jpeg", "image/heic", "image/avif"})
