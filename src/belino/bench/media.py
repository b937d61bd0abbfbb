"""Media: pictures fitted, types sniffed and bytes streamed, compared with the usual tools on the same files."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from belino.bench import Row
from belino.bench._gallery import gallery
from belino.bench.sniff import sniff_rows
from belino.bench.stream import stream_rows
from belino.media.sandbox.line import ENVIRONMENT

LIMITS = {"190 KB": 190 * 1024, "1 MB": 1024 * 1024}
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".heic", ".heif", ".avif"})
SECONDS = 120.0
ROUNDS = 3
"""One measurement of a tenth of a second has an error of a quarter."""
GOAL_SPEED = 1.5
BESIDE = "six steps of 75 %"
# Scores that differ in the fourth decimal look alike and differ by rounding.
SAME = 5e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPicture:
    """The result of one tool on one picture."""

    score: float
    cpu: float
    memory: float


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure the files of a folder; without one, generated pictures and files."""
    rows: list[Row] = []
    with _pictures(corpus) as pictures:
        for name, limit in LIMITS.items():
            rows += _rows(name, _pairs(pictures, limit))
    return [*rows, *sniff_rows(corpus), *stream_rows()]


def _rows(name: str, pairs: Sequence[tuple[FittedPicture | None, FittedPicture | None]]) -> list[Row]:
    both = [(ours, usual) for ours, usual in pairs if ours is not None and usual is not None]
    worse = sum(ours.score < usual.score - SAME for ours, usual in both)
    failed = sum(ours is None and usual is not None for ours, usual in pairs)
    spared = sum(ours is not None and usual is None for ours, usual in pairs)
    rows = [
        Row(metric=f"{name}: of {len(pairs)} pictures, not made to fit where beside did", ours=failed, goal="0",
            ok=failed == 0, beside_name=BESIDE, beside=spared),
        Row(metric=f"{name}: pictures that look worse (SSIM)", ours=worse, goal="0", ok=worse == 0),
    ]  # fmt: skip
    if not both:
        return rows
    score, score_beside = (median(pair[side].score for pair in both) for side in (0, 1))
    cpu, cpu_beside = (median(pair[side].cpu for pair in both) for side in (0, 1))
    memory, memory_beside = (median(pair[side].memory for pair in both) / 2**20 for side in (0, 1))
    speed = median(usual.cpu / max(ours.cpu, 1e-4) for ours, usual in both)
    leaner = median(ours.memory / max(usual.memory, 1) for ours, usual in both)
    return [
        *rows,
        Row(metric=f"{name}: likeness to the original (SSIM), median", ours=score, beside_name=BESIDE,
            beside=score_beside, ratio=score / score_beside),
        Row(metric=f"{name}: CPU seconds, median", ours=cpu, beside_name=BESIDE, beside=cpu_beside, ratio=speed,
            goal=f"≥ {GOAL_SPEED} × faster", ok=speed >= GOAL_SPEED),
        Row(metric=f"{name}: MB a picture takes, median", ours=memory, beside_name=BESIDE, beside=memory_beside,
            ratio=leaner, goal="lower", ok=leaner < 1),
    ]  # fmt: skip


def _pairs(pictures: Sequence[Path], limit: int) -> list[tuple[FittedPicture | None, FittedPicture | None]]:
    """Every picture that is too large, fitted by both tools.

    A picture that already fits does not count, and neither does one that neither tool can open.
    """
    large = [picture for picture in pictures if picture.stat().st_size > limit]
    pairs = [_pair(picture, limit) for picture in large]
    return [pair for pair in pairs if any(pair)]


def _pair(picture: Path, limit: int) -> tuple[FittedPicture | None, FittedPicture | None]:
    with tempfile.TemporaryDirectory() as folder:
        ours, usual = Path(folder) / "ours", Path(folder) / "usual"
        # Alternating, so that a machine that slows down slows both.
        rounds = [
            (_ask("ours", picture, str(limit), ours), _ask("usual", picture, str(limit), usual)) for _ in range(ROUNDS)
        ]
        spent, spent_beside = zip(*rounds, strict=True)
        return _fitted(picture, limit, ours, spent), _fitted(picture, limit, usual, spent_beside)


def _fitted(picture: Path, limit: int, out: Path, spent: Sequence[dict[str, float] | None]) -> FittedPicture | None:
    """The similarity of the result, and the median cost; None if it was not made in every round."""
    took = [each for each in spent if each is not None]
    if len(took) < len(spent) or not out.exists() or out.stat().st_size > limit:
        return None
    scored = _ask("score", picture, out)
    if scored is None:
        return None
    cpu, memory = (median(each[key] for each in took) for key in ("cpu", "memory"))
    return FittedPicture(score=scored["score"], cpu=cpu, memory=memory)


def _ask(how: str, *arguments: Path | str) -> dict[str, float] | None:
    command = [sys.executable, "-m", "belino.bench._picture", how, *map(str, arguments)]
    # Ours decodes in the sandbox's environment, which sets how memory is allocated.
    environment = {**os.environ, **ENVIRONMENT} if how == "ours" else None
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, capture_output=True, timeout=SECONDS, check=True, env=environment
        )
    except subprocess.SubprocessError:
        return None
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


@contextmanager
def _pictures(corpus: Path | None) -> Iterator[list[Path]]:
    if corpus is not None:
        yield sorted(path for path in corpus.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        return
    with tempfile.TemporaryDirectory() as folder:
        yield gallery(Path(folder))
