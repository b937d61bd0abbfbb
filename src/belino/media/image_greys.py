"""Image greys: the few grey values a picture is hashed by; runs in the sandbox's child."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from belino.media.image import decode

SIDE = 64


def prepare() -> None:
    """Import what the job needs; in the child it would be too late."""
    decode.prepare()


def greys(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The picture, upright, as so many greys each way, and how wide it is for its height; transparent is white."""
    header = decode.look(source)
    image = decode.decode(source, header, (SIDE, SIDE)).opaque().image
    grey = image.colourspace("b-w")[0].cast("uchar")
    width, height = header.upright
    return {"greys": b64encode(bytes(grey.write_to_memory())).decode(), "shape": width / height}
