"""What a local provider needs of the gateway, with a real worker; and material for it."""

import random
import wave
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from belino.domain.ports import Clock, HttpClient
from belino.domain.reading import Material
from belino.net.clock import SystemClock
from belino.testing import espeak
from belino.understanding.worker import ModelWorker

PIXMAP = "image/x-portable-pixmap"
FAINT = (240, 240, 240)
RECEIPT = [("Coffee, large", "4.80"), ("Cake of the day", "5.20"), ("Oat milk", "0.60"), ("Total", "110.60")]
LEFT = ("The first column tells", "about the garden and", "its old apple trees.")
RIGHT = ("The second column is", "about the kitchen and", "its copper kettles.")
COLUMNS = [
    (left, 40 + 45 * row, text)
    for left, lines in ((30, LEFT), (560, RIGHT))
    for row, text in enumerate(lines)
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalContext:
    worker: ModelWorker
    scratch: Path
    models: Path
    clock: Clock

    @property
    def http(self) -> HttpClient:
        raise AssertionError("a local provider uses no network")


@asynccontextmanager
async def local_context(folder: Path) -> AsyncIterator[LocalContext]:
    worker = ModelWorker()
    try:
        yield LocalContext(worker=worker, scratch=folder, models=folder / "models", clock=SystemClock())
    finally:
        await worker.close()


def sound(folder: Path, text: str, *, voice: str = "en-us") -> Material:
    path = folder / f"{voice}.wav"
    seconds = espeak.speak(text, path, voice=voice)
    return Material(path=path, mime="audio/wav", size=path.stat().st_size, seconds=seconds)


def quieter(folder: Path, loud: Material, *, by: int) -> Material:
    """The same sound, at a part of its loudness."""
    with wave.open(str(loud.path)) as file:
        samples = array("h", file.readframes(file.getnframes()))
    path = folder / "faint.wav"
    espeak.write_wav(path, array("h", (round(sample / by) for sample in samples)).tobytes())
    return replace(loud, path=path)


def amounts(rows: Sequence[tuple[str, str]]) -> list[tuple[int, int, str]]:
    """The lines of a receipt: names on the left, amounts that end at the same place on the right."""
    font = ImageFont.load_default(30)
    lines = [(60, 60 + 50 * row, name) for row, (name, _) in enumerate(rows)]
    return lines + [(900 - int(font.getlength(sum_)), 60 + 50 * row, sum_) for row, (_, sum_) in enumerate(rows)]


def silence(folder: Path, *, seconds: int = 5, loudness: int = 0) -> Material:
    """Nothing, or white noise."""
    chance = random.Random(7)
    samples = b"".join(
        chance.randint(-loudness, loudness).to_bytes(2, "little", signed=True) for _ in range(seconds * espeak.RATE)
    )
    path = folder / f"quiet-{loudness}.wav"
    espeak.write_wav(path, samples)
    return Material(path=path, mime="audio/wav", size=path.stat().st_size, seconds=seconds)


def picture(
    folder: Path,
    lines: Sequence[tuple[int, int, str]],
    *,
    size: tuple[int, int] = (1000, 500),
    faint: Sequence[tuple[int, int, str]] = (),
    turned: float = 0,
) -> Material:
    """A picture of text: each line with its left and top; `faint` ones are hardly darker than the paper."""
    image = Image.new("RGB", size, "white")
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default(30)
    for left, top, text in lines:
        drawing.text((left, top), text, fill="black", font=font)
    for left, top, text in faint:
        drawing.text((left, top), text, fill=FAINT, font=font)
    image = image.rotate(turned, expand=True, fillcolor="white", resample=Image.Resampling.BICUBIC)
    path = folder / "picture.ppm"
    image.save(path)
    return Material(path=path, mime=PIXMAP, size=path.stat().st_size)
