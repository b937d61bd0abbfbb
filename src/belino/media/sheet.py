"""Contact sheets: many pictures on one, each with a number or a time in Pillow's built-in font.

The sandbox's child cannot open a font file: Pillow's own is in its code, and is loaded before the child is forked.
"""

import math
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaError, MediaRefused
from belino.domain.media import Blob
from belino.domain.units import clock_time
from belino.media.image import decode
from belino.media.image.decode import MAX_SIDE
from belino.media.image.fit import FitLimits, Search
from belino.media.image.images import FORMATS, MAX_BYTES, Fitted, Images, checked, write_all
from belino.media.image.pixels import PillowPixels

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

    from belino.media.image.images import Runs
    from belino.media.video import Videos

CELLS_AT_MOST = 30
SHEET_SIDE, SHEET_BYTES = 1_568, 1024 * 1024
CELL_BYTES = 256 * 1024
LABEL_AT_MOST = 12
GAP = 4
SMALLEST_CELL = 160
"""Smaller pictures are enlarged to this width, so that their labels fit."""
LETTERS = 12, 48
"""Minimum and maximum height."""
LETTER_SHARE = 12
"""A label's height, as a part of its cell's."""
_PAPER, _INK, _SHADE, _MISSING = (255, 255, 255), (255, 255, 255), (0, 0, 0), (160, 160, 160)


class Sheets:
    """Arranges the pictures of an album on one."""

    def __init__(self, images: Images, sandbox: "Runs", scratch: Path, videos: "Videos | None" = None) -> None:
        self._images = images
        self._videos = videos
        self._sandbox = sandbox
        self._scratch = scratch

    async def album(
        self, items: Sequence[tuple[str, Blob]], *, max_side: int = SHEET_SIDE, max_bytes: int = SHEET_BYTES
    ) -> Fitted:
        """The items in order, each with its label; a crossed field stands for one that cannot be shown."""
        if not 1 <= len(items) <= CELLS_AT_MOST:
            raise MediaRefused(f"a sheet holds between 1 and {CELLS_AT_MOST} pictures, not {len(items)}")
        max_side, max_bytes = min(max_side, MAX_SIDE), min(max_bytes, MAX_BYTES)
        cells = [await self._cell(blob, cell_side(max_side, len(items))) for _, blob in items]
        if not any(cells):
            raise MediaRefused("none of these can be shown as a picture")
        options = {
            "labels": [label[:LABEL_AT_MOST] for label, _ in items],
            "sizes": [len(cell) for cell in cells],
            "max_side": max_side,
            "max_bytes": max_bytes,
        }
        return checked(await self._made(b"".join(cells), options), max_bytes=max_bytes, max_side=max_side)

    async def _cell(self, blob: Blob, side: int) -> bytes:
        """The item as a small picture; None if it cannot be shown."""
        try:
            if self._videos is not None and blob.mime.startswith("video/"):
                return (await self._videos.poster(blob, max_side=side, max_bytes=CELL_BYTES)).data
            fitted = await self._images.fit(blob, max_bytes=CELL_BYTES, max_side=side, formats=("image/jpeg",))
            return fitted.data
        except MediaRefused:
            return b""

    async def _made(self, content: bytes, options: Mapping[str, Any]) -> bytes:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        source, output = (self._scratch / f"sheet-{os.urandom(8).hex()}" for _ in range(2))
        try:
            source.write_bytes(content)
            await self._sandbox.run("sheet.album", source, options, output=output)
            with output.open("rb") as file:
                return file.read(options["max_bytes"] + 1)
        except OSError as error:
            raise MediaError("there is no room for a sheet") from error
        finally:
            source.unlink(missing_ok=True)
            output.unlink(missing_ok=True)


def cell_side(max_side: int, count: int) -> int:
    """The longest side of a cell, unless its picture is four times longer than wide."""
    return min(max_side, math.ceil(2 * max_side / math.sqrt(count)))


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the jobs need, and the font; the child cannot import."""
    import PIL.ImageDraw  # noqa: F401 - used in functions

    decode.prepare()
    _font(LETTERS[0])


def album(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Pictures one after the other in `source`, `sizes` bytes each, on one picture."""
    cells: list[tuple[str, Image.Image | None]] = []
    begin = 0
    for label, size in zip(options["labels"], options["sizes"], strict=True):
        cells.append((label, _read(os.pread(source, size, begin)) if size else None))
        begin += size
    whole = laid_out(cells, max_side=options["max_side"])
    write_all(target, written(whole, max_bytes=options["max_bytes"], max_side=options["max_side"]))
    return {}


def laid_out(cells: "Sequence[tuple[str, Image.Image | None]]", *, max_side: int) -> "Image.Image":
    """The pictures row by row, each as large as a common cell allows."""
    from PIL import Image, ImageDraw

    pictures = [picture for _, picture in cells if picture is not None]
    shape = sorted(picture.width / picture.height for picture in pictures)[len(pictures) // 2]
    widest = max(SMALLEST_CELL, *(min(picture.width, int(picture.height * shape)) for picture in pictures))
    across, (width, height) = _grid(len(cells), shape, max_side, widest)
    down = math.ceil(len(cells) / across)
    sheet = Image.new("RGB", (across * (width + GAP) - GAP, down * (height + GAP) - GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (label, picture) in enumerate(cells):
        left, top = number % across * (width + GAP), number // across * (height + GAP)
        if picture is None:
            draw.rectangle((left, top, left + width - 1, top + height - 1), outline=_MISSING)
            draw.line((left, top, left + width - 1, top + height - 1), fill=_MISSING)
            draw.line((left, top + height - 1, left + width - 1, top), fill=_MISSING)
        else:
            scale = min(width / picture.width, height / picture.height)
            small = picture.resize((max(1, int(picture.width * scale)), max(1, int(picture.height * scale))))
            left, top = left + (width - small.width) // 2, top + (height - small.height) // 2
            sheet.paste(small, (left, top))
        _label(draw, label, (left, top), height)
    return sheet


def stamps(times: Sequence[float]) -> list[str]:
    """Times as a player shows them; with tenths where seconds are ambiguous."""
    whole = [clock_time(int(at)) for at in times]
    if len(set(whole)) == len(whole):
        return whole
    return [f"{clock_time(tenths // 10)}.{tenths % 10}" for tenths in (int(10 * at) for at in times)]


def written(picture: "Image.Image", *, max_bytes: int, max_side: int) -> bytes:
    """The best encoding of a picture in memory."""
    wish = FitLimits(max_bytes=max_bytes, max_side=max_side, formats=FORMATS)
    return Search(wish).of(PillowPixels(picture), lossy=True).content


def _grid(count: int, shape: float, max_side: int, widest: int) -> tuple[int, tuple[int, int]]:
    """The number of columns that makes cells largest, with a penalty for empty cells; and a cell's size."""
    best: tuple[float, int, tuple[int, int]] = (-1.0, 1, (1, 1))
    for across in range(1, count + 1):
        down = math.ceil(count / across)
        room = (max_side + GAP) / across - GAP, (max_side + GAP) / down - GAP
        width = min(room[0], room[1] * shape, widest)
        worth = width * count / (across * down)
        if worth > best[0]:
            best = (worth, across, (max(1, int(width)), max(1, int(width / shape))))
    return best[1], best[2]


def _label(draw: Any, label: str, corner: tuple[int, int], height: int) -> None:
    """White on a dark field, readable on any picture."""
    size = min(max(height // LETTER_SHARE, LETTERS[0]), LETTERS[1])
    font, pad = _font(size), size // 4
    _, _, right, bottom = draw.textbbox((corner[0] + pad, corner[1] + pad), label, font=font)
    draw.rectangle((corner[0], corner[1], right + pad, bottom + pad), fill=_SHADE)
    draw.text((corner[0] + pad, corner[1] + pad), label, fill=_INK, font=font)


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _read(content: bytes) -> "Image.Image":
    """A picture made by another child and checked by the gateway."""
    from PIL import Image

    image = decode.vips().Image.new_from_buffer(content, "")
    image = image.colourspace("srgb")
    image = image.flatten(background=255) if image.hasalpha() else image
    return Image.frombytes("RGB", (image.width, image.height), image.write_to_memory())
