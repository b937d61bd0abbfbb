"""Readings by one local provider in a worker of its own: errors, CPU, memory and the length of what was read."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belino import registry
from belino.bench._error_rates import NO_ERRORS, ReadErrors
from belino.domain.ports import Clock, HttpClient
from belino.domain.provider import Provider
from belino.domain.reading import Material, ReadingOptions, Skill
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import HEAD_BYTES, sniff
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.understanding.worker import JobUsage, ModelWorker

SECONDS = 600.0
SOUND_BYTES = 200 * 1024 * 1024
PIXMAP = "image/x-portable-pixmap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """Material whose text is known."""

    material: Material
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingCosts:
    """What a provider did with all specimens."""

    errors: ReadErrors
    cpu_seconds: float
    audio_seconds: float
    peak_bytes: int
    words: int
    uncertain: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchContext:
    """What a local provider needs of the gateway."""

    worker: ModelWorker
    scratch: Path
    models: Path
    clock: Clock = field(default_factory=SystemClock)
    http: HttpClient = field(default_factory=Client)


def make_provider(name: str, worker: ModelWorker, folder: Path, **options: object) -> Provider:
    """A local provider by its name, with these settings."""
    plugin = registry.find("providers", name)
    made: Provider = plugin.make(
        plugin.config_type(**options), BenchContext(worker=worker, scratch=folder, models=folder)
    )
    return made


def missing(name: str, **options: object) -> str:
    """Why a provider cannot be used here; empty if it can."""
    plugin = registry.find("providers", name)
    module: Any = plugin.module
    return str(module.missing(plugin.config_type(**options)))


def measure(
    name: str,
    specimens: Sequence[Specimen],
    errors: Callable[[str, str], ReadErrors],
    **options: object,
) -> ReadingCosts:
    """Read every specimen, one after the other."""
    return asyncio.run(_measure(name, specimens, errors, options))


async def _measure(
    name: str, specimens: Sequence[Specimen], errors: Callable[[str, str], ReadErrors], options: dict[str, object]
) -> ReadingCosts:
    used: list[JobUsage] = []
    total, words, uncertain = NO_ERRORS, 0, 0
    worker = ModelWorker(used=used.append)
    with tempfile.TemporaryDirectory() as folder:
        try:
            provider = make_provider(name, worker, Path(folder), **options)
            (skill,) = provider.skills
            for specimen in specimens:
                read = await provider.read(skill, [specimen.material], ReadingOptions(timeout=SECONDS))
                total += errors(specimen.text, read.text)
                words += len(read.text.split())
                uncertain += read.uncertain
        finally:
            await worker.close()
    return ReadingCosts(
        errors=total,
        cpu_seconds=sum(usage.cpu_seconds for usage in used),
        audio_seconds=sum(specimen.material.seconds or 0.0 for specimen in specimens),
        peak_bytes=max((usage.peak_bytes for usage in used), default=0),
        words=words,
        uncertain=uncertain,
    )


def corpus_specimens(corpus: Path, skill: Skill, folder: Path) -> list[Specimen]:
    """The recordings or pictures of a folder that have a text beside them, decoded by the sandbox."""
    return asyncio.run(_decoded(corpus, skill, folder))


async def _decoded(corpus: Path, skill: Skill, folder: Path) -> list[Specimen]:
    wanted = "audio" if skill is Skill.TRANSCRIBE else "image"
    specimens: list[Specimen] = []
    async with _sandbox() as sandbox:
        for text in sorted(corpus.rglob("*.txt")):
            for path in sorted(text.parent.glob(f"{_glob_safe(text.stem)}.*")):
                mime = _mime_of(path)
                if mime.partition("/")[0] == wanted and path.suffix != ".txt":
                    output = folder / f"{skill}-{len(specimens)}"
                    material = await _material(sandbox, path, mime, output)
                    specimens.append(Specimen(material=material, text=text.read_text(encoding="utf-8")))
    return specimens


@asynccontextmanager
async def _sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as sandbox:
        yield sandbox


def _glob_safe(stem: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in stem)


def _mime_of(path: Path) -> str:
    with path.open("rb") as file:
        return sniff(file.read(HEAD_BYTES), name=path.name).mime


async def _material(sandbox: Sandbox, path: Path, mime: str, output: Path) -> Material:
    if mime.startswith("audio/"):
        await sandbox.run("audio.mono", path, {"mime": mime, "max_bytes": SOUND_BYTES}, output=output, seconds=60)
        size = output.stat().st_size
        return Material(path=output, mime="audio/wav", size=size, seconds=(size - 44) / 32_000)
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        ImageOps.exif_transpose(opened).convert("RGB").save(output, "PPM")
    return Material(path=output, mime=PIXMAP, size=output.stat().st_size)
