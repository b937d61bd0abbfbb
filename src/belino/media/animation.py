"""Animation: frames of a GIF or WebP, decoded in one pass; runs in the sandbox's child."""

import io
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.media.image import decode

if TYPE_CHECKING:
    from PIL import Image

TYPES = frozenset({"image/gif", "image/webp"})
_LOADERS = {"image/gif": "gifload_source", "image/webp": "webpload_source"}
_PILLOW = {"image/gif": "GIF", "image/webp": "WEBP"}
HASTY, USUAL = 10, 100
"""Milliseconds: a delay up to the first value means the second, as in every browser."""


def look(source: int, mime: str) -> dict[str, Any]:
    """The animation's facts, in the form of a video's."""
    ends, header = _ends(source, mime)
    width, height = header.upright
    return {
        "seconds": ends[-1],
        "codec": mime.removeprefix("image/"),
        "width": width,
        "height": height,
        "rotation": 0,
        "fps": len(ends) / ends[-1],
        "audio_codec": "",
    }


def taken(
    source: int, mime: str, times: Callable[[float | None], list[float]], max_side: int
) -> Sequence[tuple[float, "Image.Image"]]:
    """The frames shown at those times, each once, in one pass: every frame needs the ones before it."""
    from PIL import Image

    ends, _ = _ends(source, mime)
    numbers = sorted({min(bisect_right(ends, at), len(ends) - 1) for at in times(ends[-1])})
    os.lseek(source, 0, os.SEEK_SET)
    found = []
    try:
        with Image.open(io.FileIO(source, closefd=False), formats=(_PILLOW[mime],)) as picture:
            for number in numbers:
                picture.seek(number)
                found.append((ends[number - 1] if number else 0.0, _opaque(picture, max_side)))
    except decode.PILLOW_ERRORS as error:
        if not found:
            raise MediaRefused(f"the {mime} is damaged or cut off") from error
    return found


def _ends(source: int, mime: str) -> tuple[list[float], decode.Header]:
    """The end of each frame, in seconds."""
    header = decode.look(source)
    if header.frames < 2:
        raise MediaRefused("it is a still picture; nothing moves in it")
    pyvips = decode.vips()
    image = getattr(pyvips.Image, _LOADERS[mime])(pyvips.Source.new_from_descriptor(source))
    told = image.get("delay") if "delay" in image.get_fields() else []
    delays = [*told, *[USUAL] * header.frames][: header.frames]
    ends = accumulate(delay if delay > HASTY else USUAL for delay in delays)
    return [end / 1_000 for end in ends], header


def _opaque(picture: "Image.Image", max_side: int) -> "Image.Image":
    from PIL import Image

    frame = picture.convert("RGBA")
    frame.thumbnail((max_side, max_side))
    white = Image.new("RGBA", frame.size, "white")
    white.alpha_composite(frame)
    return white.convert("RGB")
