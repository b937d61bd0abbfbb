"""The pixels of a picture in memory: parts of them at no cost, and the whole smaller or upright."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

TURNED = frozenset({5, 6, 7, 8})
"""The orientations in which width and height change places."""


class Pixels:
    """A picture in memory, eight bits, grey or sRGB; as it lay in its file, with the turn that makes it upright."""

    def __init__(self, memory: Any, width: int, height: int, bands: int, orientation: int = 1) -> None:
        self.memory, self.width, self.height, self.bands = memory, width, height, bands
        self.orientation = orientation

    @cached_property
    def image(self) -> Any:
        """For libvips, upright: worked out where it is asked for, since a turned copy costs more than the turning."""
        return _turned(self._lying, self.orientation)

    @cached_property
    def _lying(self) -> Any:
        import pyvips

        made = pyvips.Image.new_from_memory(self.memory, self.width, self.height, self.bands, "uchar")
        return made.copy(interpretation="b-w" if self.bands < 3 else "srgb")

    @property
    def upright(self) -> tuple[int, int]:
        return (self.height, self.width) if self.orientation in TURNED else (self.width, self.height)

    @property
    def has_alpha(self) -> bool:
        return self.bands in (2, 4)

    def parts(self, places: Iterable[tuple[int, int]], across: int, down: int) -> "Pixels":
        """Parts of this size, below each other."""
        view, row = memoryview(self.memory), self.width * self.bands
        begins = [y * row + x * self.bands for x, top in places for y in range(top, top + down)]
        memory = b"".join(view[begin : begin + across * self.bands] for begin in begins)
        return Pixels(memory, across, len(begins), self.bands)

    def at(self, width: int, height: int) -> "Pixels":
        """The picture at this upright size."""
        lying = (height, width) if self.orientation in TURNED else (width, height)
        return self if lying == (self.width, self.height) else held(resized(self._lying, *lying), self.orientation)

    def scaled(self, scale: float) -> "Pixels":
        """The picture so many times as wide and high."""
        width, height = self.upright
        return self.at(max(1, round(width * scale)), max(1, round(height * scale)))

    def opaque(self) -> "Pixels":
        """The picture on white paper."""
        return held(self._lying.flatten(background=255), self.orientation) if self.has_alpha else self

    def without_idle_alpha(self) -> "Pixels":
        """Alpha that hides nothing is dropped: it would forbid JPEG."""
        colours = self.bands - 1
        if not self.has_alpha or self._lying[colours].min() < 255:
            return self
        return held(self._lying[:colours], self.orientation)


def held(image: Any, orientation: int = 1) -> Pixels:
    """All pixels of what libvips made: eight bits, grey or sRGB."""
    return Pixels(image.write_to_memory(), image.width, image.height, image.bands, orientation)


def resized(image: Any, width: int, height: int, *, stored: tuple[int, int] | None = None) -> Any:
    """The picture at another size; what is transparent does not bleed its hidden colour.

    A decoder that shrinks drops the last column where the division leaves a rest: `stored` keeps the scale exact.
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


def _shrunk_by(whole: int, part: int) -> float:
    """1, 2, 4 or 8: what a decoder has shrunk by; anything else where the size was never as the header said."""
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
