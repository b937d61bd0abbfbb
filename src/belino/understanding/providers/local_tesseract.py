"""Local tesseract: reads printed text in pictures with the tesseract program, confined in the worker.

Its output is the table of `tesseract … tsv`: https://tesseract-ocr.github.io/tessdoc/Command-Line-Usage.html
"""

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.understanding.local.answers import written
from belino.understanding.local.orientation import certainty, falls, upright
from belino.understanding.local.pixmap import Pixmap
from belino.understanding.local.reading_order import CELL_GAP, FoundPage, PlacedLine, joined

ENGLISH = "eng"
TRAINED = ".traineddata"
LEAST_CONFIDENCE = 0.3
"""A line of lower confidence is a pattern that is no text."""
DOUBTFUL = 0.6
"""The mean confidence below which a page may lie on its side, or upside down."""
LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/opt", "/nix/store", "/etc/ld.so.cache")
"""Where programs have their libraries: all that it may read, besides itself and its models."""
DATA_BESIDE = ("share/tessdata", "share/tesseract-ocr/5/tessdata", "share/tesseract-ocr/4.00/tessdata")
COLUMNS = 12
LINE_LEVEL, WORD_LEVEL = "4", "5"

CODES = {
    "ar": "ara", "bg": "bul", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng",
    "es": "spa", "et": "est", "fa": "fas", "fi": "fin", "fr": "fra", "he": "heb", "hi": "hin", "hr": "hrv",
    "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor", "lt": "lit", "lv": "lav", "nl": "nld",
    "no": "nor", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sr": "srp",
    "sv": "swe", "th": "tha", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "chi_sim",
}  # fmt: skip
"""Language tags, and tesseract's names of their models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Keys of an entry."""

    model: str | None = None
    """Names of tesseract's models, such as `deu+eng`; by the language of the message if empty."""
    command: str = ""
    """The program; the one on PATH if empty."""
    data: str = ""
    """The folder of its models; found beside the program if empty."""
    memory_mb: int = 1_000
    """The address space of a job."""


def missing(config: Config) -> str:
    """How to install what is missing here; empty if nothing is."""
    if _program(config) is None:
        name = config.command or "tesseract"
        return f"{name} is not installed here; get it with `apt install tesseract-ocr` or `brew install tesseract`"
    if not _trained(config):
        return (
            "tesseract has no models here; get them with `apt install tesseract-ocr-eng`, or set `data` to their folder"
        )
    return ""


class Provider:
    """Reads text with tesseract."""

    skills = frozenset({Skill.READ_TEXT})
    local = True

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context
        names = frozenset(_trained(config))
        self.languages = frozenset(tag for tag, name in CODES.items() if name in names) or None

    def model(self, skill: Skill) -> str:
        return f"tesseract {self._config.model}" if self._config.model else "tesseract"

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if absent := missing(self._config):
            raise ProviderError(absent)
        (picture,) = material

        async def page(quarters: int) -> FoundPage:
            return await self._page(picture, options, quarters)

        first = await page(0)
        doubtful = first.lines and (certainty(first.lines) < DOUBTFUL or falls(first.lines))
        best = await upright(first, (1, 3, 2) if doubtful else (), page)
        return await asyncio.to_thread(written, best, model=self.model(skill), least=LEAST_CONFIDENCE)

    async def _page(self, picture: Material, options: ReadingOptions, quarters: int) -> FoundPage:
        """The lines of a picture that is turned to the left by so many quarters."""
        pixels = await asyncio.to_thread(lambda: Pixmap.of(picture.path).turned(quarters))
        path = self._context.scratch / f"turned-{os.urandom(8).hex()}"
        try:
            if quarters:
                await asyncio.to_thread(pixels.write, path)
            table = await self._table(replace(picture, path=path) if quarters else picture, options)
        finally:
            path.unlink(missing_ok=True)
        return await asyncio.to_thread(_found, table, pixels)

    async def _table(self, picture: Material, options: ReadingOptions) -> str:
        program, data = _program(self._config), _data(self._config)
        assert program is not None
        assert data is not None
        return await self._context.worker.run_program(
            [str(program), "stdin", "stdout", "-l", self._models(options.language), "tsv"],
            picture,
            readable=[program, data, *(Path(folder) for folder in LIBRARIES)],
            # With more threads it takes more CPU, and no less time.
            environment={"OMP_THREAD_LIMIT": "1", "TESSDATA_PREFIX": str(data), "LC_ALL": "C.UTF-8"},
            seconds=options.timeout,
            memory=self._config.memory_mb * 1024 * 1024,
        )

    def _models(self, language: str | None) -> str:
        if self._config.model:
            return self._config.model
        names = _trained(self._config)
        wanted = CODES.get((language or "en").partition("-")[0].lower(), ENGLISH)
        return wanted if wanted in names else ENGLISH if ENGLISH in names else names[0]


def _program(config: Config) -> Path | None:
    found = shutil.which(config.command or "tesseract")
    return None if found is None else Path(found).resolve()


def _data(config: Config) -> Path | None:
    """The folder of the models: configured, named by the environment, or beside the program."""
    program = _program(config)
    if config.data or program is None:
        return Path(config.data).expanduser().absolute() if config.data else None
    prefix = os.environ.get("TESSDATA_PREFIX", "")
    folders = [Path(prefix), Path(prefix) / "tessdata"] if prefix else []
    folders += [program.parent.parent / beside for beside in DATA_BESIDE]
    return next((folder for folder in folders if any(folder.glob(f"*{TRAINED}"))), None)


def _trained(config: Config) -> tuple[str, ...]:
    """The names of the installed models of languages."""
    folder = _data(config)
    names = () if folder is None else (path.name.removesuffix(TRAINED) for path in folder.glob(f"*{TRAINED}"))
    return tuple(sorted(name for name in names if name not in ("osd", "equ")))


def _found(table: str, pixels: Pixmap) -> FoundPage:
    """The rows of the table as lines with places; invisible ones are marked."""
    rows = [row.split("\t") for row in table.splitlines()[1:]]
    if any(len(row) != COLUMNS for row in rows):
        raise ProviderError("tesseract gave no proper table")
    try:
        lines = tuple(replace(line, hidden=not pixels.shows(line)) for line in _lines(rows))
    except ValueError as error:
        raise ProviderError("tesseract gave no proper table") from error
    return FoundPage(lines=lines, width=pixels.width, height=pixels.height)


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[PlacedLine]:
    """The words of each line, in one piece where they stand close together: columns may share a line."""
    piece: list[PlacedLine] = []
    for row in rows:
        word = _word(row) if row[0] == WORD_LEVEL and row[11].strip() else None
        if piece and (row[0] == LINE_LEVEL or (word is not None and _are_apart(piece, word))):
            yield joined(piece)
            piece = []
        piece += [word] if word is not None else []
    if piece:
        yield joined(piece)


def _word(row: Sequence[str]) -> PlacedLine:
    left, top, width, height = (int(value) for value in row[6:10])
    confidence = min(1.0, max(0.0, float(row[10]) / 100))
    return PlacedLine(
        text=row[11], left=left, top=top, right=left + width, bottom=top + height, confidence=confidence
    )  # fmt: skip


def _are_apart(piece: Sequence[PlacedLine], word: PlacedLine) -> bool:
    return word.left - piece[-1].right >= CELL_GAP * max(one.height for one in (*piece, word))
