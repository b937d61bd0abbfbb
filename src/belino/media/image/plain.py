"""Plain pixels of a picture, for programs that read text in it; decoded only in the sandbox."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.media.image import decode
from belino.media.image.images import write_all

if TYPE_CHECKING:
    from belino.media.image.images import Runs

PPM = "image/x-portable-pixmap"
WHITE, BLACK = 255, 0
LIGHT = 192
"""The mean lightness from which on print would not be seen on white."""
PIXELS_AT_MOST = 10_000_000
"""30 MB as a file; smaller print than this shows is not readable."""


class PlainPictures:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    @asynccontextmanager
    async def pixels(self, blob: Blob, *, max_pixels: int = PIXELS_AT_MOST, page: int = 1) -> AsyncIterator[Path]:
        """The upright picture as a portable pixmap, in a file that exists as long as the context."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"pixels-{os.urandom(8).hex()}"
        try:
            async with self._open_blob(blob.sha256) as path:
                options = {"max_pixels": max_pixels, "page": page}
                told = await self._sandbox.run("image.pixels", path, options, output=output)
            _check(told, output)
            yield output
        finally:
            output.unlink(missing_ok=True)


def _check(told: Mapping[str, Any], output: Path) -> None:
    """An attacker may control the child: everything in the file except the pixels is known in advance."""
    match told:
        case {"width": int(width), "height": int(height)} if 0 < width * height <= PIXELS_AT_MOST and width > 0:
            head = _head(width, height)
        case _:
            raise MediaRefused("decoding the picture gave no proper answer")
    with output.open("rb") as file:
        begins = file.read(len(head))
    if begins != head or output.stat().st_size != len(head) + 3 * width * height:
        raise MediaRefused("decoding the picture gave no picture")


def _head(width: int, height: int) -> bytes:
    return f"P6\n{width} {height}\n255\n".encode()


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the job needs; the child cannot import."""
    decode.prepare()


def pixels(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The upright picture in sRGB, shrunk to `max_pixels`; what is transparent is white, or black under light print."""
    header = decode.look(source, options.get("page", 1))
    width, height = header.upright
    scale = min(1.0, (options["max_pixels"] / (width * height)) ** 0.5)
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    picture = decode.decode(source, header, size).at(*size)
    if picture.has_alpha:
        picture = picture.opaque(BLACK if picture.lightness() > LIGHT else WHITE)
    image = picture.image
    rgb = image.colourspace("srgb")[0:3].cast("uchar")
    write_all(target, _head(rgb.width, rgb.height))
    write_all(target, bytes(rgb.write_to_memory()))
    return {"width": rgb.width, "height": rgb.height}
