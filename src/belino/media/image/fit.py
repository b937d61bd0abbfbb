"""Fit a picture under a byte and a pixel limit, in few encodes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from belino.domain.errors import MediaRefused
from belino.media.image.decode import MAX_SIDE, Header, decode, max_pixels
from belino.media.image.pixels import Pixels
from belino.media.image.sample import Sample, detail, pieces, strips

# All weights are fitted on photographs, screenshots and drawings by SSIM at the original size (`belino bench media`).
BEST_QUALITY = 95
"""Higher qualities look the same."""
FINE, ENOUGH_FINE = 85, 0.82
"""From this quality on, a result that uses this part of the limit ends the search."""
ALMOST = 80
"""From this quality on, the quality FINE is tried first: a guess is often off by that much."""
AIM, ENOUGH = 0.95, 0.9
"""The part of the limit that a guess aims at, because a miss costs an encode; and what is enough below that quality."""
AIM_SHRUNK, ENOUGH_SHRUNK = 0.98, 0.96
"""The same where pixels were already lost, so that every byte counts."""
GROWTH = 1.7
"""Bytes grow with a side to this power, not to 2: a smaller picture has more detail per pixel."""
STEEPNESS = 0.65
"""Bytes grow with the fineness of quantisation to this power, until measured."""
STEP = 1.1
"""Another size is worth trying when it differs by this factor."""
NEAR = 0.5
"""A JPEG is decoded whole above this scale: its decoder saves work only by halves."""
SPARE = 1.14
"""A photograph is decoded this much wider than its likely result, whole only if that fits."""
LIKELY = 0.13
"""The likely result of a photograph, in bytes per pixel."""
WHOLE = 0.09
"""With so many bytes per pixel, most photographs keep all pixels."""
WEBP_SIDE = 16_383
WEBP_PIXELS = 12_000_000
"""More pixels take more memory, or time, to write than a child of the sandbox has."""
ALPHA_QUALITY = 70
"""Shadows take most of the bytes when every step of them is kept."""
DRAWN, WRITTEN = 0.27, 0.47
"""Of the detail lost by halving, the part that is hard edges: photographs ≤ .2, screens ≥ .35, pages of text ≥ .5."""
ROUGH = 0.1
"""With more detail than this, a photograph is better quantised than shrunk."""
SMOOTH = 0.001
"""With less detail than this, a picture that was never lossy compresses well without loss."""
CLOSE, CLOSE_QUICK = 1.1, 1.25
"""A lossless estimate of up to so many limits is tried, as samples often overestimate; a PNG without filters is
quick."""
LETTERS = 4.5
"""For a page of text lossless WebP is a quarter of a PNG; it is not tried if the PNG exceeds so many limits."""
FAITHFUL, FAITHFUL_CLEAR = 0.7, 1.5
"""Maximum mean error of a palette, of 255: more shows as bands. WebP with alpha takes three times the memory, so
there a larger error is allowed."""
BUSY, SMALL = 0.05, 2_000_000
"""Optimised Huffman tables cost a JPEG three times the time and save 4 % of a busy picture, 10 % and more below .05
bytes a pixel. A small picture has the time."""
TINY = 3_000
"""Below so many bytes the tables of a JPEG are too large a part of it."""
ROUNDS = 6
PATIENCE = 2
"""So many rounds search for a better size; later rounds accept what fits."""
REFINEMENTS = 5
_NEVER_DRAWN = frozenset({"image/jpeg", "image/heic", "image/avif"})
"""Types that are always lossy: their pixels are quantised again, at less cost."""
_KEEP_ALPHA = frozenset({"image/webp", "image/png"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FitLimits:
    """The limits of the result."""

    max_bytes: int
    max_side: int | None = None
    max_pixels: int | None = None
    formats: tuple[str, ...] = ("image/jpeg", "image/png", "image/webp")

    def box(self, width: int, height: int) -> tuple[int, int]:
        """The largest size of the same shape within the pixel limits."""
        side = min(self.max_side or max(width, height), WEBP_SIDE if "image/webp" in self.formats else MAX_SIDE)
        scale = min(1.0, side / max(width, height))
        most = min(self.max_pixels or max_pixels(), max_pixels())
        scale = min(scale, math.sqrt(most / (width * height)))
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
    """100 is lossless, 99 a palette."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """A lossy encoder and its best range."""

    mime: str
    write: Callable[[Pixels, int, bool], bytes]
    start: int
    """From this quality on more pixels look better than finer ones, as long as there are more."""
    floor: int
    """Below this quality fewer pixels look better than coarser ones."""
    has_tables: bool
    """Whether optimised tables make a picture smaller, and slower to write."""
    header: int
    """Bytes that do not grow with the picture."""
    more: float
    """The ratio of the whole's size to its samples' estimate."""


class Search:
    """Encodes and counts."""

    def __init__(self, wish: FitLimits) -> None:
        self.wish = wish
        self.encodes = 0
        self.partial = False
        """Whether the rest of the picture could not be decoded."""

    def best(self, source: int, header: Header) -> Encoded:
        """The picture from `source`, as good as the options allow."""
        box = self.wish.box(*header.upright)
        size = _first_size(header, box, self.wish.max_bytes)
        whole = self.wish.max_bytes >= WHOLE * box[0] * box[1]
        while True:
            pixels = decode(source, header, size, to_write=whole)
            self.partial = pixels.partial
            found = self._encoded(pixels, header, finer=size != box)
            if isinstance(found, Encoded):
                return found
            if found is None:
                raise MediaRefused(f"the picture cannot be made to fit into {self.wish.max_bytes:,} bytes")
            size = _within(box, found * size[0] / box[0])

    def of(self, pixels: Pixels, *, lossy: bool) -> Encoded:
        """A decoded picture, and whether its source was lossy."""
        width, height = self.wish.box(*pixels.upright)
        header = Header(
            mime="image/jpeg" if lossy else "image/png",
            width=width,
            height=height,
            frames=1,
            has_alpha=pixels.has_alpha,
            orientation=1,
            plain=True,
            lossy=lossy,
            size=0,
        )
        found = self._encoded(pixels.at(width, height), header, finer=False)
        if not isinstance(found, Encoded):
            raise MediaRefused(f"the picture cannot be made to fit into {self.wish.max_bytes:,} bytes")
        return found

    def _encoded(self, whole: Pixels, header: Header, *, finer: bool) -> Encoded | float | None:
        """The result; or the factor by which it should be decoded larger, if possible; or None."""
        whole = whole.without_idle_alpha()
        if not _KEEP_ALPHA & set(self.wish.formats):
            whole = whole.opaque()
        sample = Sample(whole, pieces)
        edges, texture = detail(sample.pixels)
        if not header.lossy and (found := self._faithful(whole, edges, texture)):
            return found
        drawn = edges > DRAWN and header.mime not in _NEVER_DRAWN
        webp = header.mime == "image/webp" or self.wish.max_bytes < TINY
        codec = self._codec(whole, drawn=drawn, webp=webp, texture=texture)
        if codec is None:
            return self._shrinking_png(whole)
        if codec.mime == "image/webp" and _area(whole) > WEBP_PIXELS:
            whole = whole.scaled(math.sqrt(WEBP_PIXELS / _area(whole)))
            sample, finer = Sample(whole, pieces), False
        return self._lossy(whole, codec, sample, finer=finer)

    def _faithful(self, whole: Pixels, edges: float, texture: float) -> Encoded | None:
        """A picture that was never lossy, with all pixels and no blur, if that fits."""
        sample, formats = Sample(whole, strips), self.wish.formats
        found = None
        if "image/png" in formats:
            found = self._lossless(whole, sample) or self._few_colours(whole, sample)
        if not found and (edges > WRITTEN or texture < SMOOTH) and "image/webp" in formats:
            found = self._written(whole, sample)
        return found

    def _lossless(self, whole: Pixels, sample: Sample) -> Encoded | None:
        """As a PNG, if a sample suggests that it fits."""
        for write, close in ((_flat_png, CLOSE_QUICK), (_small_png, CLOSE)):
            likely = sample.weigh(write) <= close * self.wish.max_bytes
            if likely and (found := self._tried(write, whole, sample, "image/png")):
                return found
        return None

    def _few_colours(self, whole: Pixels, sample: Sample) -> Encoded | None:
        """As a PNG with a nearly exact palette: letters stay sharp, unlike in lossy encoders."""
        most = FAITHFUL_CLEAR if whole.has_alpha else FAITHFUL
        for write in (_palette_png, _small_palette_png):
            likely = sample.weigh(write) <= self.wish.max_bytes and sample.differs(write) <= most
            if likely and (found := self._tried(write, whole, sample, "image/png", quality=99)):
                return found
        return None

    def _written(self, whole: Pixels, sample: Sample) -> Encoded | None:
        """Pages of text and gradients as lossless WebP: slow, but it finds repetition."""
        likely = _area(whole) <= WEBP_PIXELS and sample.weigh(_flat_png) <= LETTERS * self.wish.max_bytes
        likely = likely and sample.weigh(_lossless_webp) <= CLOSE_QUICK * self.wish.max_bytes
        return self._tried(_lossless_webp, whole, sample, "image/webp") if likely else None

    def _tried(
        self, write: Callable[[Any], bytes], whole: Pixels, sample: Sample, mime: str, quality: int = 100
    ) -> Encoded | None:
        content = self._write(sample.whole, write, whole)
        return _encoded(content, mime, whole, quality) if len(content) <= self.wish.max_bytes else None

    def _codec(self, whole: Pixels, *, drawn: bool, webp: bool, texture: float) -> Codec | None:
        """JPEG for photographs: almost as good and many times faster. WebP for edges, alpha and WebP sources."""
        if whole.has_alpha:
            return (_WEBP_DRAWN if drawn else _WEBP_ALPHA) if "image/webp" in self.wish.formats else None
        photo = _JPEG if texture > ROUGH else _JPEG_SMOOTH
        preferred = (_WEBP_DRAWN, _JPEG_DRAWN) if drawn else (_WEBP, photo) if webp else (photo, _WEBP)
        return next((codec for codec in preferred if codec.mime in self.wish.formats), None)

    def _lossy(self, whole: Pixels, codec: Codec, sample: Sample, *, finer: bool) -> Encoded | float | None:
        """First the size at which the starting quality fits, then the quality that fills the limit."""
        wanted, pixels, scale, bias = AIM * self.wish.max_bytes, whole, 1.0, codec.more
        for tried in range(ROUNDS):
            shrunk = finer or scale < 1
            guess = _Guess(pixels, codec, sample, bias, tight=shrunk or _is_small(pixels, self.wish.max_bytes))
            room = math.pow(wanted / guess.size(codec.start), 1 / GROWTH)
            if scale == 1 and finer and room > STEP:
                return room
            good = scale == 1 or room < STEP or tried >= PATIENCE
            if good and guess.quality(wanted) >= codec.floor:
                if found := self._refined(guess, shrunk=shrunk):
                    return found
                scale, bias = scale / STEP, guess.bias
            else:
                scale = min(1.0, scale * room)
            pixels = whole.scaled(scale)
            sample = Sample(pixels, pieces)
        return self._coarse(whole, scale)

    def _refined(self, guess: "_Guess", *, shrunk: bool) -> Encoded | None:
        """The highest quality that fits; None if even the lowest is too large."""
        limit, low, high = self.wish.max_bytes, guess.codec.floor, BEST_QUALITY
        aim, enough = (AIM_SHRUNK, ENOUGH_SHRUNK) if shrunk else (AIM, ENOUGH)
        aimed = aim * limit
        best: Encoded | None = None
        points: list[tuple[float, float]] = []
        guess.weigh(min(max(guess.quality(aimed), low), high))
        for tried in range(REFINEMENTS):
            wanted = guess.quality(aimed) if tried < 2 else _quality_for(_nearest(points, limit), math.log(aimed))
            if not tried and not shrunk and ALMOST <= wanted < FINE:
                wanted = FINE
            quality = min(max(wanted, low), high)
            content = self._write(guess.write, quality)
            points.append((_fineness(quality), math.log(len(content))))
            if len(content) <= limit:
                best, low = _encoded(content, guess.codec.mime, guess.pixels, quality), quality + 1
            else:
                high = quality - 1
            least = ENOUGH_FINE if quality >= FINE else enough
            if low > high or least * limit <= len(content) <= limit:
                break
        return best

    def _coarse(self, whole: Pixels, scale: float) -> Encoded | None:
        """The last resort: halve until it fits."""
        whole = whole.opaque()
        mime = next(mime for mime in ("image/webp", "image/jpeg") if mime in self.wish.formats)
        scale = max(scale, 1 / max(whole.upright))
        while scale * max(whole.upright) >= 1:
            small = whole.scaled(scale)
            content = self._write(_jpeg if mime == "image/jpeg" else _webp, small, 50, True)
            if len(content) <= self.wish.max_bytes:
                return _encoded(content, mime, small, 50)
            scale /= 2
        return None

    def _shrinking_png(self, whole: Pixels) -> Encoded | None:
        """The only way left where only PNG is allowed."""
        pixels, scale = whole, 1.0
        while scale * max(whole.upright) >= 1:
            content = self._write(_small_png, pixels.image)
            if len(content) <= self.wish.max_bytes:
                return _encoded(content, "image/png", pixels, 100)
            scale *= min(0.9, (AIM * self.wish.max_bytes / len(content)) ** (1 / GROWTH))
            pixels = whole.scaled(scale)
        return None

    def _write(self, write: Callable[..., bytes], *arguments: object) -> bytes:
        self.encodes += 1
        return write(*arguments)


class _Guess:
    """Estimates the size of a result from a sample, corrected after each encode."""

    def __init__(self, pixels: Pixels, codec: Codec, sample: Sample, bias: float, *, tight: bool) -> None:
        self.pixels, self.codec, self.bias = pixels, codec, bias
        self._sample = sample
        self._exact = sample.pixels is pixels
        self._tight = codec.has_tables and tight
        self._known: dict[int, bytes] = {}

    def size(self, quality: int) -> float:
        """Bytes at a quality."""
        header = self.codec.header
        return header + self.bias * self._spared * max(1, len(self._quick(quality)) - header) * self._sample.share

    def quality(self, wanted: float) -> int:
        """The quality for so many bytes."""
        self._quick(self.codec.start)
        if len(self._known) == 1:
            self._quick(min(_quality_for(self._points(), math.log(wanted)), BEST_QUALITY))
        return _quality_for(self._points(), math.log(wanted))

    def weigh(self, quality: int) -> None:
        """Calibrate with the whole picture, where that is faster than writing it twice."""
        if self._tight and not self._exact:
            self._learn(quality, self._spared * len(self.codec.write(self.pixels, quality, False)))

    def write(self, quality: int) -> bytes:
        """Encode the picture itself and correct the estimate."""
        if self._exact and not self._tight:
            return self._quick(quality)
        content = self.codec.write(self.pixels, quality, self._tight)
        self._learn(quality, len(content))
        return content

    def _quick(self, quality: int) -> bytes:
        if quality not in self._known:
            self._known[quality] = self.codec.write(self._sample.pixels, quality, False)
        return self._known[quality]

    @cached_property
    def _spared(self) -> float:
        """The part of the bytes that is left with optimised tables."""
        if not self._tight:
            return 1.0
        tight = self.codec.write(self._sample.pixels, self.codec.start, True)
        return len(tight) / len(self._quick(self.codec.start))

    def _learn(self, quality: int, weighed: float) -> None:
        known = quality in self._known
        self.bias *= weighed / (self.size(quality) if known else math.exp(_height(self._points(), _fineness(quality))))

    def _points(self) -> list[tuple[float, float]]:
        return [(_fineness(quality), math.log(self.size(quality))) for quality in self._known]


def _first_size(header: Header, box: tuple[int, int], max_bytes: int) -> tuple[int, int]:
    """The size to decode at: a JPEG near its likely result, anything else whole."""
    if header.mime != "image/jpeg":
        return box
    return _within(box, math.sqrt(max_bytes / LIKELY / (box[0] * box[1])))


def _within(box: tuple[int, int], scale: float) -> tuple[int, int]:
    """Somewhat more than the scale asks for, so that a low guess needs no second decoding."""
    scale *= SPARE
    return box if scale > NEAR else (max(1, round(box[0] * scale)), max(1, round(box[1] * scale)))


def _encoded(content: bytes, mime: str, pixels: Pixels, quality: int) -> Encoded:
    width, height = pixels.upright
    return Encoded(content=content, mime=mime, width=width, height=height, quality=quality)


def _fineness(quality: int) -> float:
    """The fineness of a quality, on a scale where the logarithm of the bytes is almost linear (JPEG's own)."""
    return -math.log(5000 / quality if quality < 50 else max(1, 200 - 2 * quality))


def _quality_for(points: Sequence[tuple[float, float]], wanted: float) -> int:
    """Where the line through the last two points reaches the wanted value."""
    (x, y), slope = points[-1], _slope(points)
    step = math.exp(min(max(-(x + (wanted - y) / slope), 0.0), 8.0))
    return max(1, int(5000 / step) if step > 100 else int((200 - step) / 2))


def _nearest(points: Sequence[tuple[float, float]], limit: int) -> list[tuple[float, float]]:
    """The last point, and before it the nearest on the other side of the limit, if any: the result is between them."""
    last, top = points[-1], math.log(limit)
    others = [point for point in points if (point[1] > top) != (last[1] > top)]
    return [min(others, key=lambda point: abs(point[1] - top)) if others else points[-2], last]


def _height(points: Sequence[tuple[float, float]], x: float) -> float:
    return points[-1][1] + (x - points[-1][0]) * _slope(points)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through the last two points; through one, the default."""
    (x, y) = points[-1]
    if len(points) > 1 and points[-2][0] != x:
        return min(max((y - points[-2][1]) / (x - points[-2][0]), 0.4), 2.0)
    return STEEPNESS


def _area(pixels: Pixels) -> int:
    return pixels.width * pixels.height


def _is_small(pixels: Pixels, limit: int) -> bool:
    """Whether a JPEG is worth optimised Huffman tables."""
    return _area(pixels) < SMALL or limit / _area(pixels) < BUSY


def _jpeg(pixels: Pixels, quality: int, tight: bool) -> bytes:
    return pixels.jpeg(quality, tight=tight)


def _webp(pixels: Pixels, quality: int, _tight: bool) -> bytes:
    content: bytes = pixels.image.webpsave_buffer(Q=quality, effort=4, keep="none")
    return content


def _quick_webp(pixels: Pixels, quality: int, _tight: bool) -> bytes:
    content: bytes = pixels.image.webpsave_buffer(Q=quality, alpha_q=ALPHA_QUALITY, effort=2, keep="none")
    return content


def _lossless_webp(image: Any) -> bytes:
    content: bytes = image.webpsave_buffer(lossless=True, effort=1, keep="none")
    return content


def _flat_png(image: Any) -> bytes:
    content: bytes = image.pngsave_buffer(compression=6, filter="none", keep="none")
    return content


def _small_png(image: Any) -> bytes:
    content: bytes = image.pngsave_buffer(compression=6, filter="all", keep="none")
    return content


def _palette_png(image: Any, bits: int = 8) -> bytes:
    content: bytes = image.pngsave_buffer(
        compression=6, filter="none", keep="none", palette=True, bitdepth=bits, effort=1, dither=0
    )
    return content


def _small_palette_png(image: Any) -> bytes:
    return _palette_png(image, bits=4)


_JPEG = Codec(mime="image/jpeg", write=_jpeg, has_tables=True, start=70, floor=40, header=600, more=0.99)
_JPEG_SMOOTH = Codec(mime="image/jpeg", write=_jpeg, has_tables=True, start=82, floor=55, header=600, more=0.99)
_JPEG_DRAWN = Codec(mime="image/jpeg", write=_jpeg, has_tables=True, start=60, floor=15, header=600, more=0.99)
_WEBP = Codec(mime="image/webp", write=_webp, has_tables=False, start=70, floor=50, header=40, more=0.85)
_WEBP_ALPHA = Codec(mime="image/webp", write=_quick_webp, has_tables=False, start=80, floor=60, header=40, more=0.85)
_WEBP_DRAWN = Codec(mime="image/webp", write=_quick_webp, has_tables=False, start=60, floor=5, header=40, more=0.85)
