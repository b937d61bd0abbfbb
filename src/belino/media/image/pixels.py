"""Pixels of a picture in memory: crops at no cost, and the whole smaller or upright."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

TURNED = frozenset({5, 6, 7, 8})
"""The orientations that swap width and height."""
LIGHT = 4_000_000
"""So many pixels are copied for Pillow; more only where it is more than twice as fast as libvips."""


class Pixels(ABC):
    """A picture in memory, eight bits, grey or sRGB; as stored, with the orientation that makes it upright."""

    def __init__(self, width: int, height: int, bands: int, orientation: int = 1) -> None:
        self.width, self.height, self.bands = width, height, bands
        self.orientation = orientation
        self.partial = False
        """Whether the rest of it could not be decoded."""

    @property
    @abstractmethod
    def _lying(self) -> Any:
        """For libvips, before rotation."""

    @abstractmethod
    def parts(self, places: Iterable[tuple[int, int]], across: int, down: int) -> "Pixels":
        """Crops of this size, stacked vertically."""

    @abstractmethod
    def jpeg(self, quality: int, *, tight: bool) -> bytes:
        """Upright as a JPEG with half the colour resolution each way; `tight` optimises the Huffman tables."""

    @abstractmethod
    def grey(self, width: int, height: int) -> "Image.Image":
        """The corner of this size in grey, the mean of its colours; on white."""

    @cached_property
    def image(self) -> Any:
        """For libvips, upright: computed on demand, since a rotated copy costs more than the rotation."""
        return _turned(self._lying, self.orientation)

    @property
    def upright(self) -> tuple[int, int]:
        return (self.height, self.width) if self.orientation in TURNED else (self.width, self.height)

    @property
    def has_alpha(self) -> bool:
        return self.bands in (2, 4)

    def varies(self) -> bool:
        """Whether it is more than one colour."""
        return bool(self._lying.deviate() > 0)

    def at(self, width: int, height: int) -> "Pixels":
        """The picture at this upright size."""
        lying = (height, width) if self.orientation in TURNED else (width, height)
        return self if lying == (self.width, self.height) else held(resized(self._lying, *lying), self.orientation)

    def scaled(self, scale: float) -> "Pixels":
        """The picture scaled by this factor."""
        width, height = self.upright
        return self.at(max(1, round(width * scale)), max(1, round(height * scale)))

    def opaque(self, background: int = 255) -> "Pixels":
        """The picture on white, or on another grey."""
        return held(self._lying.flatten(background=background), self.orientation) if self.has_alpha else self

    def lightness(self) -> float:
        """The mean of all that is not transparent, from 0 for black to 255 for white."""
        if not self.has_alpha:
            return float(self._lying.avg())
        colours, alpha = self._lying[: self.bands - 1], self._lying[self.bands - 1]
        return float((colours * alpha).avg() / max(1e-9, alpha.avg()))

    def without_idle_alpha(self) -> "Pixels":
        """Opaque alpha is dropped: it would rule out JPEG."""
        colours = self.bands - 1
        if not self.has_alpha or self._lying[colours].min() < 255:
            return self
        return held(self._lying[:colours], self.orientation)


class RawPixels(Pixels):
    """Pixels as one block of bytes, as libvips takes them."""

    def __init__(self, memory: Any, width: int, height: int, bands: int, orientation: int = 1) -> None:
        super().__init__(width, height, bands, orientation)
        self._memory = memory

    @cached_property
    def _lying(self) -> Any:
        return _seen(self._memory, self)

    def parts(self, places: Iterable[tuple[int, int]], across: int, down: int) -> Pixels:
        view, row = memoryview(self._memory), self.width * self.bands
        begins = [y * row + x * self.bands for x, top in places for y in range(top, top + down)]
        memory = b"".join(view[begin : begin + across * self.bands] for begin in begins)
        return RawPixels(memory, across, len(begins), self.bands)

    def jpeg(self, quality: int, *, tight: bool) -> bytes:
        if tight or self.width * self.height <= LIGHT:
            return self._copy.jpeg(quality, tight=tight)
        return _jpeg(self.image, quality, tight=tight)

    @cached_property
    def _copy(self) -> "PillowPixels":
        from PIL import Image

        mode = "L" if self.bands == 1 else "RGB"
        return upright(
            Image.frombuffer(mode, (self.width, self.height), self._memory, "raw", mode, 0, 1), self.orientation
        )

    def grey(self, width: int, height: int) -> "Image.Image":
        from PIL import Image

        corner = self.image.crop(0, 0, width, height)
        corner = (corner.flatten(background=255) if self.has_alpha else corner).bandmean().cast("uchar")
        return Image.frombuffer("L", (width, height), corner.write_to_memory(), "raw", "L", 0, 1)


class PillowPixels(Pixels):
    """What Pillow decoded, grey or RGB: its JPEG library takes two thirds of the time of libvips."""

    def __init__(self, picture: "Image.Image") -> None:
        super().__init__(*picture.size, len(picture.getbands()))
        self._picture = picture

    @cached_property
    def _lying(self) -> Any:
        return _seen(self._picture.tobytes(), self)

    def parts(self, places: Iterable[tuple[int, int]], across: int, down: int) -> Pixels:
        from PIL import Image

        cuts = [self._picture.crop((x, y, x + across, y + down)) for x, y in places]
        together = Image.new(self._picture.mode, (across, down * len(cuts)))
        for row, cut in enumerate(cuts):
            together.paste(cut, (0, row * down))
        return PillowPixels(together)

    def jpeg(self, quality: int, *, tight: bool) -> bytes:
        written = io.BytesIO()
        try:
            self._picture.save(written, "JPEG", quality=quality, optimize=tight, subsampling="4:2:0")
        except OSError:
            # For optimised tables Pillow reserves a byte a pixel, which noise and narrow pictures exceed.
            return _jpeg(self.image, quality, tight=tight)
        return written.getvalue()

    def grey(self, width: int, height: int) -> "Image.Image":
        corner = self._picture.crop((0, 0, width, height))
        return corner if self.bands == 1 else corner.convert("L", (1 / 3, 1 / 3, 1 / 3, 0))


def upright(picture: "Image.Image", orientation: int) -> PillowPixels:
    """What Pillow decoded, rotated once, as it is faster at that than libvips."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    # Pillow would write the metadata with the picture.
    made = picture.transpose(turns[orientation]) if orientation in turns else picture
    made.info.clear()
    return PillowPixels(made)


def held(image: Any, orientation: int = 1) -> RawPixels:
    """All pixels of a libvips image: eight bits, grey or sRGB."""
    return RawPixels(image.write_to_memory(), image.width, image.height, image.bands, orientation)


def resized(image: Any, width: int, height: int, *, stored: tuple[int, int] | None = None) -> Any:
    """The picture at another size; hidden colours of transparent pixels do not bleed.

    A shrinking decoder drops the last column if the division has a remainder: `stored` keeps the scale exact.
    """
    whole = stored or (image.width, image.height)
    over = (_shrunk_by(whole[0], image.width), _shrunk_by(whole[1], image.height))
    across, down = width * over[0] / whole[0], height * over[1] / whole[1]
    if image.hasalpha():
        format_ = image.format
        image = image.premultiply().resize(across, vscale=down).unpremultiply().cast(format_)
    else:
        image = image.resize(across, vscale=down)
    return image if (image.width, image.height) == (width, height) else image.embed(0, 0, width, height, extend="copy")


def _jpeg(image: Any, quality: int, *, tight: bool) -> bytes:
    written: bytes = image.jpegsave_buffer(Q=quality, subsample_mode="on", optimize_coding=tight, keep="none")
    return written


def _seen(memory: Any, pixels: Pixels) -> Any:
    import pyvips

    made = pyvips.Image.new_from_memory(memory, pixels.width, pixels.height, pixels.bands, "uchar")
    return made.copy(interpretation="b-w" if pixels.bands < 3 else "srgb")


def _shrunk_by(whole: int, part: int) -> float:
    """1, 2, 4 or 8: the decoder's shrink factor; another value if the header's size was wrong."""
    return next((by for by in (1, 2, 4, 8) if whole // by == part or -(-whole // by) == part), whole / part)


def _turned(image: Any, orientation: int) -> Any:
    match orientation:
        case 2:
            image = image.fliphor()
        case 3:
            image = image.rot180()
        case 4:
            image = image.flipver()
        case 5:
            image = image.rot90().fliphor()
        case 6:
            image = image.rot90()
        case 7:
            image = image.rot270().fliphor()
        case 8:
            image = image.rot270()
    return image
