"""Image greys: the grey values that a picture is hashed by; runs in the sandbox's child."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from belino.media.image import decode

SIDE = 64


def prepare() -> None:
    """Import what the job needs; the child cannot import."""
    decode.prepare()


def greys(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The upright picture as a square of greys, and its aspect ratio; transparent is white."""
    header = decode.look(source)
    image = decode.decode(source, header, (SIDE, SIDE)).opaque().image
    grey = image.colourspace("b-w")[0].cast("uchar")
    width, height = header.upright
    return {"greys": b64encode(bytes(grey.write_to_memory())).decode(), "shape": width / height}
