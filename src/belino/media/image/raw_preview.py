"""Raw photographs of cameras: the preview inside, a JPEG that the camera made itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Literal

PREVIEWS_AT_MOST = 400
LEAST_SIDE = 64
"""Smaller ones are icons for the camera's own screen."""
IFDS_AT_MOST, TAGS_AT_MOST = 32, 512
SEGMENTS_AT_MOST = 64
SETTINGS_REACH = 256 * 1024

_START = re.compile(rb"\xff\xd8\xff[\xc0-\xfe]")
_PLAIN_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
"""Frames that every decoder knows; the raw pixels themselves may be in a lossless one."""
_ORIENTATION, _SUB_IFDS, _PHOTOMETRIC, _COMPRESSION, _DNG = 0x0112, 0x014A, 0x0106, 0x0103, 0xC612
_SENSOR_COLOURS = frozenset({32_803, 34_892})
_SENSOR_PACKINGS = frozenset({34_713, 32_767, 65_535})
_ORDERS: dict[bytes, Literal["little", "big"]] = {b"II": "little", b"MM": "big"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPreview:
    """A JPEG inside a file."""

    begin: int
    width: int
    height: int


def find_preview(file: mmap) -> RawPreview | None:
    """The largest preview; the last bytes of a truncated file may be missing from it."""
    found = [preview for start in _starts(file) if (preview := _preview(file, start)) is not None]
    return max(found, key=lambda preview: preview.width * preview.height, default=None)


def orientation_of(file: mmap) -> int | None:
    """The orientation that the camera recorded outside its preview."""
    if file[4:12] == b"ftypcrx ":
        at = file.find(b"CMT1", 0, SETTINGS_REACH)
        tags = _Tags(file, at + 4).first if at > 0 else {}
    else:
        tags = _Tags(file, 0).first
    told = tags.get(_ORIENTATION)
    return told if told is not None and 1 <= told <= 8 else None


def is_raw_tiff(file: mmap) -> bool:
    """Whether a TIFF holds what a sensor measured; only a camera's maker knows what that looks like."""
    if file[8:10] == b"CR":
        return True
    tags = _Tags(file, 0)
    if _DNG in tags.first:
        return True
    return any(
        each.get(_PHOTOMETRIC) in _SENSOR_COLOURS or each.get(_COMPRESSION) in _SENSOR_PACKINGS for each in tags.all
    )


def _starts(file: mmap) -> Iterator[int]:
    for count, found in enumerate(_START.finditer(file)):
        if count >= PREVIEWS_AT_MOST:
            return
        yield found.start()


def _preview(file: mmap, begin: int) -> RawPreview | None:
    at = begin + 2
    for _ in range(SEGMENTS_AT_MOST):
        head = file[at : at + 10]
        if len(head) < 10 or head[0] != 0xFF:
            return None
        length = int.from_bytes(head[2:4])
        if head[1] in _PLAIN_FRAMES and head[4] == 8:
            height, width = int.from_bytes(head[5:7]), int.from_bytes(head[7:9])
            usable = head[9] in (1, 3) and min(width, height) >= LEAST_SIDE
            return RawPreview(begin=begin, width=width, height=height) if usable else None
        if length < 2 or not 0xC4 <= head[1] <= 0xFE or head[1] in (0xD8, 0xD9, 0xDA, 0xC5, 0xC6, 0xC7):
            return None
        at += 2 + length
    return None


class _Tags:
    """The numbers in the directories of a TIFF, or of a raw format that is built like one."""

    def __init__(self, file: mmap, base: int) -> None:
        self._file, self._base = file, base
        self._order = _ORDERS.get(file[base : base + 2])
        self.all: list[dict[int, int]] = []
        if self._order is not None:
            self._walk(self._number(4, 4))
        self.first = self.all[0] if self.all else {}

    def _walk(self, first: int) -> None:
        waiting, seen = [first], set[int]()
        while waiting and len(self.all) < IFDS_AT_MOST:
            at = waiting.pop(0)
            if at in seen or not 0 < at < len(self._file) - self._base - 2:
                continue
            seen.add(at)
            count = min(self._number(at, 2), TAGS_AT_MOST)
            tags: dict[int, int] = {}
            for entry in range(at + 2, at + 2 + 12 * count, 12):
                tag, kind, many = self._number(entry, 2), self._number(entry + 2, 2), self._number(entry + 4, 4)
                tags[tag] = self._number(entry + 8, 2 if kind == 3 else 4)
                if tag == _SUB_IFDS:
                    waiting += self._listed(tags[tag], many)
            self.all.append(tags)
            waiting.append(self._number(at + 2 + 12 * count, 4))

    def _listed(self, value: int, many: int) -> list[int]:
        return [value] if many == 1 else [self._number(value + 4 * each, 4) for each in range(min(many, IFDS_AT_MOST))]

    def _number(self, at: int, size: int) -> int:
        assert self._order is not None
        return int.from_bytes(self._file[self._base + at : self._base + at + size], self._order)
