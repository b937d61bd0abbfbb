"""Agreement of two pictures up close: whether one is a copy of the other, or of a part of it, in every place.

Receipts of one shop, slides of one talk and screens of one program differ in a few words only. As greys of a print they
are equal; at the size at which their words can be read, each other word is a place where the pictures disagree.
"""

import io
import os
from collections.abc import Mapping, Sequence
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaError
from belino.domain.media import Blob, OpenBlob
from belino.media.image import decode
from belino.media.image.plain import PlainPictures

if TYPE_CHECKING:
    from PIL import Image

    from belino.media.image.images import Runs

PIXELS = 600_000
"""Of each picture: a page of print has letters of six pixels then."""

# Measured on receipts, forms, whiteboards, slides, chats and scenes, each in nine other forms, and on all pairs of a
# kind, also such that differ in one digit.
WINDOW = 8
"""Pixels each way of a place: as large as a letter of small print."""
STRONG = 0.5
"""The contrast of a place that is compared, as a part of the strongest: in weaker ones, compression is most of it."""
LIKE = 0.75
"""The lowest correlation of a place: another digit has at most 0.7 in the smallest print, a copy hardly less than 0.8
unless compression left little of it."""
FAINT, FAINTLY_LIKE = 12.0, 0.2
"""The deviation of greys from which on both pictures show something in a place, as faded print, and the lowest
correlation of such a place; copies have at least 0.25, and other words less than 0."""
SEATED = 256
"""Pixels of the longer side while the exact frame is searched."""
STEPS = (3.0, 1.5, 0.75, 0.4, 0.2, 0.1)
PixelBox = tuple[float, float, float, float]
"""Left, top, right and bottom."""
_NOISE = 4.0
"""The deviation below which a place shows nothing."""


class CloseComparison:
    """Compares two held pictures in the sandbox."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._plain = PlainPictures(sandbox, scratch, open_blob)

    async def agree(self, part: Blob, whole: Blob, frame: Sequence[float]) -> bool:
        """Whether the part is what the whole shows in a frame, given by its sides as shares of width and height."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        both = self._scratch / f"both-{os.urandom(8).hex()}"
        try:
            places: list[tuple[int, int]] = []
            with both.open("xb") as file:
                for blob in (part, whole):
                    async with self._plain.pixels(blob, max_pixels=PIXELS) as path:
                        content = path.read_bytes()
                    places.append((file.tell(), len(content)))
                    file.write(content)
            told = await self._sandbox.run("image.agree", both, {"places": places, "frame": list(frame)})
        finally:
            both.unlink(missing_ok=True)
        match told:
            case {"strong": float(strong), "faint": float(faint)}:
                return strong >= LIKE and faint >= FAINTLY_LIKE
        raise MediaError("comparing two pictures gave no proper answer")


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the job needs; the child cannot import."""
    import PIL.ImageChops
    import PIL.ImageStat  # noqa: F401 - used in functions

    decode.prepare()


def agree(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The lowest correlations between part and whole, two pictures at `places` (start and length) in `source`."""
    part, whole = (_greys(os.pread(source, size, start)) for start, size in options["places"])
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in options["frame"])
    box: PixelBox = (left * whole.width, top * whole.height, right * whole.width, bottom * whole.height)
    size = _common(part, box)
    seat = _seated(part, whole, box)
    strong, faint = _least(part.resize(size, _filter()), whole.resize(size, _filter(), box=seat))
    return {"strong": strong, "faint": faint}


def _greys(content: bytes) -> "Image.Image":
    from PIL import Image

    return Image.open(io.BytesIO(content)).convert("L")


def _filter() -> "Image.Resampling":
    from PIL import Image

    return Image.Resampling.LANCZOS


def _common(part: "Image.Image", box: PixelBox, longest: float = inf) -> tuple[int, int]:
    """A size of the part's shape at which neither picture is enlarged."""
    left, top, right, bottom = box
    scale = min(1.0, (right - left) / part.width, (bottom - top) / part.height, longest / max(part.size))
    return max(WINDOW, round(part.width * scale)), max(WINDOW, round(part.height * scale))


def _seated(part: "Image.Image", whole: "Image.Image", box: PixelBox) -> PixelBox:
    """The frame that fits best, near this one: each side is moved while that helps."""
    size = _common(part, box, SEATED)
    wanted = part.resize(size, _filter())
    scale = (box[2] - box[0]) / size[0]
    best, score = box, _correlation(wanted, whole.resize(size, _filter(), box=box))
    for step in STEPS:
        better = True
        while better:
            better = False
            for side, by in product(range(4), (-step, step)):
                moved = _moved(best, side, by * scale, whole)
                found = _correlation(wanted, whole.resize(size, _filter(), box=moved))
                if found > score:
                    best, score, better = moved, found, True
    return best


def _moved(box: PixelBox, side: int, by: float, whole: "Image.Image") -> PixelBox:
    left, top, right, bottom = (edge + by * (at == side) for at, edge in enumerate(box))
    left, top = max(0.0, left), max(0.0, top)
    right, bottom = min(float(whole.width), right), min(float(whole.height), bottom)
    return (left, top, right, bottom) if min(right - left, bottom - top) >= WINDOW else box


def _correlation(one: "Image.Image", other: "Image.Image") -> float:
    from PIL import ImageChops, ImageStat

    first, second = ImageStat.Stat(one), ImageStat.Stat(other)
    apart = ImageStat.Stat(ImageChops.difference(one, other))
    means = (first.mean[0] - second.mean[0]) ** 2
    both = (first.var[0] + second.var[0] + means - apart.sum2[0] / apart.count[0]) / 2
    spread = first.var[0] * second.var[0]
    return both / sqrt(spread) if spread > 0 else 0.0


def _least(one: "Image.Image", other: "Image.Image") -> tuple[float, float]:
    """The lowest correlation of places with strong contrast in one picture, and of those where both show something."""
    vips = decode.vips()
    a, b = (
        vips.Image.new_from_memory(plane.tobytes(), plane.width, plane.height, 1, "uchar").cast("float")
        for plane in (one, other)
    )
    mask = vips.Image.new_from_array([[1] * WINDOW], scale=WINDOW)

    def mean(plane: Any) -> Any:
        inner = plane.convsep(mask, precision="float")
        edge = WINDOW // 2
        return inner.crop(edge, edge, max(1, plane.width - WINDOW), max(1, plane.height - WINDOW)).copy_memory()

    mean_a, mean_b = mean(a), mean(b)
    spread_a, spread_b = mean(a * a) - mean_a * mean_a, mean(b * b) - mean_b * mean_b
    # A negative value is a rounding error.
    spread_a, spread_b = (spread_a > 0).ifthenelse(spread_a, 0), (spread_b > 0).ifthenelse(spread_b, 0)
    like = (mean(a * b) - mean_a * mean_b) / ((spread_a * spread_b) ** 0.5 + _NOISE * _NOISE)
    like = like.copy_memory()
    contrast = ((spread_a > spread_b).ifthenelse(spread_a, spread_b) ** 0.5).copy_memory()
    strong = contrast >= STRONG * float(contrast.max())
    faint = (spread_a > spread_b).ifthenelse(spread_b, spread_a) >= FAINT * FAINT
    return float(strong.ifthenelse(like, 1.0).min()), float(faint.ifthenelse(like, 1.0).min())
