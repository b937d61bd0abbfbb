"""Local rapidocr: reads printed text in pictures on this machine, Chinese, Japanese and Latin script, in the worker.

The models come with the package: PP-OCR, Apache-2.0, https://github.com/RapidAI/RapidOCR.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.understanding.local import samples
from belino.understanding.local.answers import found_page, page_answer, written
from belino.understanding.local.orientation import CERTAIN, certainty, falls, upright
from belino.understanding.local.packages import missing_packages, package_folder
from belino.understanding.local.pixmap import Pixmap
from belino.understanding.local.reading_order import FoundPage, PlacedLine
from belino.understanding.local.tiles import PIXELS, tiles_of

if TYPE_CHECKING:
    from numpy import float32, uint8
    from numpy.typing import NDArray
    from rapidocr import RapidOCR

EXTRA = "ocr"
MODEL = "PP-OCRv6 small"
MODEL_FILES = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")
BATCH = 2
LEAST_CONFIDENCE = 0.5
"""A line of lower confidence is a pattern that is no text, or of a script that it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Keys of an entry."""

    model: str | None = None
    """Left empty: the models come with the package."""
    memory_mb: int = 2_500
    """The address space of a job; about three times the memory that it needs."""


def missing(config: Config) -> str:
    """How to install what is missing here; empty if nothing is. Imports nothing."""
    if absent := missing_packages(("rapidocr", "onnxruntime"), EXTRA):
        return absent
    folder = package_folder("rapidocr")
    # Without them the library would fetch models by itself.
    if folder is None or not all((folder / "models" / name).is_file() for name in MODEL_FILES):
        return f"rapidocr is installed without its models; install it again with `pip install 'belino[{EXTRA}]'`"
    return ""


class Provider:
    """Reads text with rapidocr."""

    skills = frozenset({Skill.READ_TEXT})
    local = True
    languages = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context

    def model(self, skill: Skill) -> str:
        return MODEL

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if absent := missing(self._config):
            raise ProviderError(absent)
        (picture,) = material

        async def page(quarters: int) -> FoundPage:
            answer = await self._context.worker.run(
                f"{__name__}:read_text",
                [picture],
                {"quarters": quarters},
                seconds=options.timeout,
                memory=self._config.memory_mb * 1024 * 1024,
            )
            return found_page(answer)

        first = await page(0)
        best = await upright(first, _other_turns(first.lines), page)
        return await asyncio.to_thread(written, best, model=MODEL, least=LEAST_CONFIDENCE)


def _other_turns(lines: Sequence[PlacedLine]) -> tuple[int, ...]:
    """By how many quarters to the left a page is to be turned, and read again."""
    if falls(lines):
        return (1, 3)
    return (2,) if lines and certainty(lines) < CERTAIN else ()


# The rest runs in the worker.

_engine: "RapidOCR | None" = None


def prepare() -> None:
    """Import the library in the parent: it starts no threads before a model is loaded."""
    samples.prepare()
    import rapidocr  # noqa: F401


def load(options: Mapping[str, Any]) -> None:
    """Load the models, which takes files and starts threads."""
    import cv2
    import numpy as np
    from rapidocr import RapidOCR

    global _engine
    cv2.setNumThreads(1)
    _engine = RapidOCR(
        params={
            "Global.log_level": "critical",
            # Pictures come in tiles of the right size, and doubtful lines tell how certain the rest is.
            "Global.max_side_len": PIXELS,
            "Global.text_score": 0.0,
            # Lines of very different length in one batch take the memory of the longest.
            "Rec.rec_batch_num": BATCH,
            # More threads wait for each other with their CPU busy: twice the CPU for little less time.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    # The library loads each model when it first needs it, which would be behind the walls.
    blank = np.full((48, 96, 3), 255, np.uint8)
    _engine(blank, use_det=True, use_cls=False, use_rec=False)
    _engine(blank, use_det=False, use_cls=False, use_rec=True)


def read_text(source: int, options: Mapping[str, Any]) -> dict[str, object]:
    """The lines of a pixmap that is turned to the left by so many quarters, with their places."""
    import numpy as np

    pixels = np.ascontiguousarray(np.rot90(samples.pixels_of(source), options["quarters"]))
    height, width, _ = pixels.shape
    plain = Pixmap(data=pixels.data.cast("B"), width=width, height=height)
    lines = tuple(replace(line, hidden=not plain.shows(line)) for line in _lines(pixels))
    return page_answer(FoundPage(lines=lines, width=width, height=height))


def _lines(pixels: "NDArray[uint8]") -> list[PlacedLine]:
    lines: list[PlacedLine] = []
    for tile in tiles_of(pixels):
        # The library expects blue first. Its classifier of turned lines also turns some that are upright.
        found = None if _engine is None else _engine(tile.pixels[:, :, ::-1], use_det=True, use_cls=False, use_rec=True)
        if found is not None and found.boxes is not None and found.txts:
            lines += [
                _placed(box / tile.scale, tile.above, text, float(score))
                for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
            ]
    return lines


def _placed(box: "NDArray[float32]", above: int, text: str, confidence: float) -> PlacedLine:
    """A line by the corners of its box, which begin at the upper left and go to the right."""
    (left, upper), (right, other) = box[0], box[1]
    return PlacedLine(
        text=text,
        left=float(box[:, 0].min()),
        top=float(box[:, 1].min()) + above,
        right=float(box[:, 0].max()),
        bottom=float(box[:, 1].max()) + above,
        confidence=confidence,
        slant=max(-1.0, min(1.0, float((other - upper) / max(1.0, right - left)))),
    )
