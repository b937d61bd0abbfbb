"""Local rapidocr: reads printed text in pictures on this machine, Chinese, Japanese and Latin script, in the worker.

The models come with the package: PP-OCR, Apache-2.0, https://github.com/RapidAI/RapidOCR.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.domain.errors import ProviderError
from belino.domain.ports import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.understanding.local import samples
from belino.understanding.local.answers import written
from belino.understanding.local.packages import missing_packages, package_folder
from belino.understanding.local.reading_order import PlacedLine, as_answer, in_reading_order

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray
    from rapidocr import RapidOCR

EXTRA = "ocr"
MODEL = "PP-OCRv6 small"
MODEL_FILES = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx", "ch_ppocr_mobile_v2.0_cls_mobile.onnx")
DOUBTFUL = 0.8
"""A mean confidence below which the text may stand upside down."""
LONGEST_SIDE = 2_000
"""Pixels; a larger picture is made smaller first."""


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
        answer = await self._context.worker.run(
            f"{__name__}:read_text",
            [picture],
            {},
            seconds=options.timeout,
            memory=self._config.memory_mb * 1024 * 1024,
        )
        return written(answer, model=MODEL)


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
            "Global.max_side_len": LONGEST_SIDE,
            # More threads wait for each other with their CPU busy: twice the CPU for little less time.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    # The library loads each model when it first needs it, which would be behind the walls.
    blank = np.full((48, 96, 3), 255, np.uint8)
    _engine(blank, use_det=True, use_cls=False, use_rec=False)
    _engine(blank, use_det=False, use_cls=True, use_rec=True)


def read_text(source: int, options: Mapping[str, Any]) -> dict[str, object]:
    """The lines of a pixmap, in reading order, with their places."""
    pixels = samples.pixels_of(source)
    height, width, _ = pixels.shape
    # The library expects blue first. Its classifier of turned lines also turns some that are upright.
    lines = _lines(pixels[:, :, ::-1], may_be_turned=False)
    if lines and _confidence(lines) < DOUBTFUL:
        lines = max(lines, _lines(pixels[:, :, ::-1], may_be_turned=True), key=_confidence)
    return as_answer(in_reading_order(lines), width, height)


def _lines(pixels: "NDArray[uint8]", *, may_be_turned: bool) -> list[PlacedLine]:
    found = None if _engine is None else _engine(pixels, use_det=True, use_cls=may_be_turned, use_rec=True)
    if found is None or found.boxes is None or not found.txts:
        return []
    return [
        PlacedLine(
            text=text,
            left=float(box[:, 0].min()),
            top=float(box[:, 1].min()),
            right=float(box[:, 0].max()),
            bottom=float(box[:, 1].max()),
            confidence=float(score),
        )
        for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
    ]


def _confidence(lines: Sequence[PlacedLine]) -> float:
    return sum(line.confidence for line in lines) / max(1, len(lines))
