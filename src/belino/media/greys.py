"""A picture as the few greys it is recognised by; runs in the sandbox's child, and imports no more than that needs."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from belino.media import image_open

SIDE = 64


def prepare() -> None:
    """Import what the job needs; in the child it would be too late."""
    image_open.prepare()


def greys(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The picture, upright, as so many greys each way, and how wide it is for its height; transparent is white."""
    header = image_open.look(source)
    image = image_open.decode(source, header, (SIDE, SIDE)).opaque().image
    grey = image.colourspace("b-w")[0].cast("uchar")
    width, height = header.upright
    return {"greys": b64encode(bytes(grey.write_to_memory())).decode(), "shape": width / height}
