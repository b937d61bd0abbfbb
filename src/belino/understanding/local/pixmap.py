"""Pixmap: plain pixels, turned by quarters, and whether a person sees what a recogniser found in them."""

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from belino.domain.errors import ProviderError
from belino.understanding.local.reading_order import PlacedLine

HEADER_BYTES = 64
CONTRAST = 16
"""Of 255, in any colour: below it print and paper look alike."""
INK = 0.02
"""The least share of a letter's place that is print."""
SHOWN = 0.25
"""The least share of a line in which print stands out; the rest may be white."""
PLACES, SAMPLES = 16, 16
"""Places of a line, and samples of a place in each direction, that are looked at."""
TINY = 1 / 600
"""A line of less than this share of the shorter side is too small to be seen: on A4, one point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixmap:
    """Rows of pixels, each of red, green and blue."""

    data: bytes | memoryview
    width: int
    height: int

    @classmethod
    def of(cls, path: Path) -> "Pixmap":
        """The pixels of a portable pixmap."""
        with path.open("rb") as file:
            width, height, start = header_of(file.read(HEADER_BYTES))
            end = start + 3 * width * height
            if file.seek(0, os.SEEK_END) < end:
                raise ProviderError("the material is a pixmap that ends too early")
            # Mapped, because the gateway should not hold a picture in memory.
            mapped = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ)
        return cls(data=memoryview(mapped)[start:end], width=width, height=height)

    def write(self, path: Path) -> None:
        """Write it as a portable pixmap, readable by its owner only."""
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(b"P6\n%d %d\n255\n" % (self.width, self.height) + bytes(self.data))

    def turned(self, quarters: int) -> "Pixmap":
        """The same, turned to the left so many times by a quarter."""
        if not quarters % 4:
            return self
        if quarters % 4 == 2:
            made = bytearray(len(self.data))
            for colour in range(3):
                made[colour::3] = bytes(self.data[colour::3])[::-1]
            return Pixmap(data=bytes(made), width=self.width, height=self.height)
        # The columns become rows, the last one first: a quarter to the left.
        made, row = bytearray(len(self.data)), 3 * self.height
        for column in range(self.width):
            start = row * (self.width - 1 - column)
            for colour in range(3):
                made[start + colour : start + row : 3] = bytes(self.data[3 * column + colour :: 3 * self.width])
        left = Pixmap(data=bytes(made), width=self.height, height=self.width)
        return left if quarters % 4 == 1 else left.turned(2)

    def shows(self, line: PlacedLine) -> bool:
        """Whether a person sees a line: large enough, and different from what it stands on."""
        if min(line.height, line.width) < TINY * min(self.width, self.height):
            return False
        seen = [self._contrast(*place) >= CONTRAST for place in self._places(line)]
        return not seen or sum(seen) >= SHOWN * len(seen)

    def _places(self, line: PlacedLine) -> Iterator[tuple[int, int, int, int]]:
        """Some squares of a line, from one end to the other: left, top, right and bottom."""
        left, right = max(0, int(line.left)), min(self.width, round(line.right))
        top, bottom = max(0, int(line.top)), min(self.height, round(line.bottom))
        side = max(1, min(right - left, bottom - top))
        along, down = range(left, right - side + 1, side), range(top, bottom - side + 1, side)
        every = max(1, len(along) * len(down) // PLACES)
        for x, y in [(x, y) for y in down for x in along][::every]:
            yield x, y, x + side, y + side

    def _contrast(self, left: int, top: int, right: int, bottom: int) -> int:
        """How much the print of a place differs from its ground, in the colour in which it differs most."""
        step = max(1, (right - left) // SAMPLES)
        starts = [3 * (self.width * row) for row in range(top, bottom, max(1, (bottom - top) // SAMPLES))]
        most = 0
        for colour in range(3):
            values = sorted(
                b"".join(bytes(self.data[start + 3 * left + colour : start + 3 * right : 3 * step]) for start in starts)
            )
            ground, ink = values[len(values) // 2], int(INK * len(values))
            most = max(most, ground - values[ink], values[-1 - ink] - ground)
        return most


def header_of(head: bytes) -> tuple[int, int, int]:
    """Width, height, and where the pixels begin."""
    fields = head.split(maxsplit=4)
    if len(fields) < 4 or fields[0] != b"P6" or fields[3] != b"255" or not (fields[1] + fields[2]).isdigit():
        raise ProviderError("the material is no portable pixmap of 24 bits")
    # One white space ends the header; whatever follows is a pixel.
    start = 0
    for field in fields[:4]:
        start = head.index(field, start) + len(field)
    return int(fields[1]), int(fields[2]), start + 1
