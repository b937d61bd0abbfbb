"""Vector drawings (SVG) as pixels: drawn in the sandbox, without scripts, other files or fonts."""

import os
import re
from functools import cache
from typing import Any

from belino.domain.errors import MediaRefused

BYTES_AT_MOST = 20 * 1024 * 1024
USUAL_SIZE = (300, 150)
"""Of a drawing that has none, as in browsers."""
LEAST_SIDE, MOST_SIDE = 768, 4_096
"""The longer side of what is drawn: a small icon is enlarged, because nothing is lost by it."""
HEAD_BYTES = 64 * 1024

_ROOT = re.compile(r"<(?:\w{1,20}:)?svg(?=[\s>])((?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+)>")
_LENGTH = re.compile(r"\s*([0-9.]{1,20}(?:e[+-]?\d{1,2})?)\s*(px|pt|pc|mm|cm|in|)\s*", re.IGNORECASE)
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
# The walls keep other files out; where they are weaker, their names are gone as well.
_OUTSIDE = re.compile(r"\b(href)\s*=\s*(?:\"(?!#|data:)[^\"]*+\"|'(?!#|data:)[^']*+')")
_WORDS = re.compile(rb"<(?:\w{1,20}:)?(?:text|foreignObject)[\s>]")


@cache
def _renderer() -> Any:
    import resvg_py

    return resvg_py


def prepare() -> None:
    """Import the renderer; the child cannot."""
    _renderer()


def drawing_size(source: int) -> tuple[int, int]:
    """The size at which a drawing is shown at most."""
    root = _ROOT.search(os.pread(source, HEAD_BYTES, 0).decode("utf-8", "replace"))
    if root is None:
        raise MediaRefused("the drawing has no beginning")
    width, height = _size(root[1])
    longer = max(width, height)
    scale = min(max(longer, LEAST_SIDE), MOST_SIDE) / longer
    return max(1, round(width * scale)), max(1, round(height * scale))


def has_words(source: int) -> bool:
    """Whether a drawing has text, which is not drawn: no font can be opened in the sandbox."""
    return _WORDS.search(_content(source)) is not None


def drawn(source: int, size: tuple[int, int]) -> bytes:
    """The drawing as a PNG that fits into this size."""
    content = _content(source)
    try:
        png: bytes = _renderer().svg_to_bytes(
            svg_string=_OUTSIDE.sub(r"\1=''", content.decode("utf-8", "replace")),
            skip_system_fonts=True,
            width=size[0],
            height=size[1],
        )
    except ValueError as error:
        raise MediaRefused("the drawing is damaged: it cannot be drawn") from error
    return png


def _content(source: int) -> bytes:
    if os.fstat(source).st_size > BYTES_AT_MOST:
        raise MediaRefused(f"drawings over {BYTES_AT_MOST // 2**20} MB are not drawn")
    content = os.pread(source, BYTES_AT_MOST, 0)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace").encode()
    return content.removeprefix(b"\xef\xbb\xbf")


def _size(attributes: str) -> tuple[float, float]:
    box = re.search(r"\bviewBox\s*=\s*[\"']([^\"']{1,200})", attributes)
    numbers = [float(each) for each in re.findall(r"-?[0-9.]{1,20}", box[1]) if each.count(".") < 2] if box else []
    shape = (numbers[2], numbers[3]) if len(numbers) == 4 and min(numbers[2:]) > 0 else None
    width, height = (_length(attributes, name) for name in ("width", "height"))
    if width and height:
        return width, height
    if shape and (width or height):
        return (width, width * shape[1] / shape[0]) if width else ((height or 1) * shape[0] / shape[1], height or 1)
    return shape or USUAL_SIZE


def _length(attributes: str, name: str) -> float | None:
    told = re.search(rf"(?:^|\s){name}\s*=\s*[\"']([^\"']{{1,50}})[\"']", attributes)
    found = _LENGTH.fullmatch(told[1]) if told else None
    if found is None or found[1].count(".") > 1 or not found[1].strip("."):
        return None
    length = float(found[1]) * _PIXELS[found[2].lower()]
    return length if 0 < length < 1e6 else None
