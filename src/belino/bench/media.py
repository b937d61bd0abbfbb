"""Media: pictures fitted, types sniffed and bytes streamed, compared with the usual tools on the same files."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

from belino.bench import Row
from belino.bench.sniff import sniff_rows
from belino.bench.stream import stream_rows
from belino.media.sandbox.sandbox import ENVIRONMENT

if TYPE_CHECKING:
    from PIL import Image

LIMITS = {"190 KB": 190 * 1024, "1 MB": 1024 * 1024}
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".heic", ".heif", ".avif"})
SECONDS = 120.0
ROUNDS = 3
"""One measurement of a tenth of a second has an error of a quarter."""
GOAL_SPEED = 1.5
BESIDE = "six steps of 75 %"
# Scores that differ in the fourth decimal look alike and differ by rounding.
SAME = 5e-5

# Sides of the overlaid noise, coarse to fine, and the weight of each: about as in nature.
_OCTAVES = ((6, 1.0), (24, 0.5), (96, 0.4), (384, 0.25), (1536, 0.12))
_GRAIN, _ORIENTATION = 0.04, 0x0112
_INK, _PAPER, _PANEL, _LINK = "#202124", "#ffffff", "#f1f3f4", "#1a73e8"


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


def gallery(folder: Path) -> list[Path]:
    """Write the pictures and return their paths."""
    rng = Random(1)  # noqa: S311 - the same pictures every time
    camera = photo(4000, 3000)
    turned = camera.getexif()
    turned[_ORIENTATION] = 6
    camera.save(folder / "camera.jpg", quality=94)
    photo(4032, 3024).save(folder / "turned.jpg", quality=90, exif=turned)
    photo(1600, 1200).save(folder / "shared.jpg", quality=93)
    page(2880, 1800, rng).save(folder / "page.png")
    screen(3840, 2160, rng, camera).save(folder / "screen.png")
    screen(1080, 2340, rng, None).save(folder / "phone.png")
    drawing(2400, 1600, rng).save(folder / "drawing.png")
    diagram(2000, 1400, rng).save(folder / "diagram.png")
    return sorted(folder.iterdir())


def photo(width: int, height: int) -> "Image.Image":
    """Shapes of every size, soft colours, some grain."""
    from PIL import Image

    light = _clouds(width, height)
    light = Image.blend(light, Image.effect_noise((width, height), 64), _GRAIN)
    warm, cold = (_layer(width, height, 5) for _ in range(2))
    return Image.merge("RGB", (Image.blend(light, warm, 0.3), light, Image.blend(light, cold, 0.3)))


def _clouds(width: int, height: int) -> "Image.Image":
    from PIL import Image

    light = _layer(width, height, _OCTAVES[0][0])
    for side, share in _OCTAVES[1:]:
        light = Image.blend(light, _layer(width, height, side), share)
    return light


def _layer(width: int, height: int, side: int) -> "Image.Image":
    from PIL import Image

    noise = Image.effect_noise((side, max(2, side * height // width)), 90)
    return noise.resize((width, height), Image.Resampling.BICUBIC)


def page(width: int, height: int, rng: Random) -> "Image.Image":
    """Only text."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (width, height), "#fafafa")
    pen = ImageDraw.Draw(picture)
    for y in range(20, height - 20, 22):
        pen.text((20, y), _words(rng, width // 48), fill=_INK, font_size=16)
    return picture


def screen(width: int, height: int, rng: Random, picture: "Image.Image | None") -> "Image.Image":
    """Bars, panels, buttons and text, and a picture if one is given."""
    from PIL import Image, ImageDraw

    shown = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(shown)
    pen.rectangle((0, 0, width, 56), fill=_LINK)
    pen.rectangle((0, 56, width // 4, height), fill=_PANEL)
    for y in range(80, height - 60, 44):
        pen.rounded_rectangle((16, y, 44, y + 28), 8, fill=tuple(rng.randbytes(3)))
        pen.text((56, y), _words(rng, 4)[: width // 48], fill=_INK, font_size=20)
        pen.text((width // 4 + 24, y), _words(rng, width // 90), fill=rng.choice((_INK, _INK, _LINK)), font_size=20)
    if picture is not None:
        shown.paste(picture.resize((width // 3, height // 3)), (width // 2, height // 2))
    return shown


def drawing(width: int, height: int, rng: Random) -> "Image.Image":
    """Coloured shapes with outlines on a soft ground."""
    from PIL import Image, ImageDraw

    ground = Image.radial_gradient("L").resize((width, height)).convert("RGB")
    pen = ImageDraw.Draw(ground)
    for _ in range(400):
        x, y, size = rng.randrange(width), rng.randrange(height), rng.randint(10, 200)
        pen.ellipse((x, y, x + size, y + size), fill=tuple(rng.randbytes(3)), outline="black", width=3)
    return ground


def diagram(width: int, height: int, rng: Random) -> "Image.Image":
    """Labelled boxes and lines between them, each with a shadow, on a transparent ground."""
    from PIL import Image, ImageDraw, ImageFilter

    places = [(rng.randrange(40, width - 260), rng.randrange(40, height - 120)) for _ in range(60)]
    shadow = Image.new("RGBA", (width, height))
    pen = ImageDraw.Draw(shadow)
    for x, y in places:
        pen.rounded_rectangle((x + 6, y + 8, x + 226, y + 88), 12, fill=(0, 0, 0, 110))
    picture = shadow.filter(ImageFilter.GaussianBlur(8))
    pen = ImageDraw.Draw(picture)
    for (x, y), (other_x, other_y) in pairwise(places):
        pen.line((x + 110, y + 40, other_x + 110, other_y + 40), fill="#5f6368", width=3)
    for x, y in places:
        colour = tuple(200 + byte % 56 for byte in rng.randbytes(3))
        pen.rounded_rectangle((x, y, x + 220, y + 80), 12, fill=colour, outline=_INK, width=2)
        pen.text((x + 16, y + 26), _words(rng, 3)[:20], fill=_INK, font_size=20)
    return picture


def _words(rng: Random, count: int) -> str:
    return " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(count))
