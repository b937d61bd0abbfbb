"""Trial of every decoder: each kind of job runs once inside the sandbox, on small files of our own.

A library that imports something only with the first file of a kind fails there and nowhere else.
"""

import asyncio
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaError
from belino.media import audio, stream_open
from belino.media.sandbox.sandbox import JOBS
from belino.media.sniff import sniff

if TYPE_CHECKING:
    from belino.media.image.images import Runs

SAMPLES = Path(__file__).with_name("samples.zip")
_FIT = {"max_bytes": 65_536, "max_side": 64}
_FRAMES = {"count": 2, "start": None, "end": None, "max_side": 64, "max_bytes": 65_536}
_WRITES = frozenset({"image.fit", "image.pixels", "document.read", "document.page", "audio.voice", "audio.mono",
                     "audio.samples", "video.frames", "video.sheet", "video.subtitles", "video.remux",
                     "sheet.album"})  # fmt: skip
_OPTIONAL = "need the extra"
"""In the refusal of a type whose library is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderTrial:
    """How many jobs ran, and those that failed."""

    jobs: int
    failures: tuple[str, ...] = field(default=())


async def try_decoders(sandbox: "Runs") -> DecoderTrial:
    """Run every job on every kind of sample."""
    with tempfile.TemporaryDirectory(prefix="belino-") as scratch:
        samples = await asyncio.to_thread(_unpacked, Path(scratch))
        jobs = [(path, job, options) for path in samples for job, options in _jobs_of(path)]
        ends = await asyncio.gather(*(_tried(sandbox, *job) for job in jobs))
    return DecoderTrial(jobs=len(jobs), failures=tuple(end for end in ends if end))


def _unpacked(folder: Path) -> list[Path]:
    with zipfile.ZipFile(SAMPLES) as archive:
        archive.extractall(folder)
    return sorted(path for path in folder.iterdir())


def _jobs_of(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The jobs that a sample can take; the first of a kind takes all of them."""
    mime = sniff(path.read_bytes(), name=path.name, whole=True).mime
    if mime.startswith("image/"):
        yield "image.fit", _FIT
        if mime == "image/jpeg":
            yield "image.probe", {}
            yield "image.pixels", {"max_pixels": 1_000_000}
            yield "image.greys", {}
            yield "image.agree", {"places": [(0, path.stat().st_size)] * 2, "frame": [0, 0, 1, 1]}
            yield "sheet.album", {"labels": ["1"], "sizes": [path.stat().st_size], "max_side": 64, "max_bytes": 65_536}
        if mime == "image/gif":
            yield "video.frames", {"mime": mime, **_FRAMES}
    elif mime.startswith(("audio/", "video/")):
        yield from _streams(mime) if stream_open.installed() else ()
    else:
        yield "document.read", {"mime": mime, "name": path.name}
        if mime == "application/pdf":
            yield "document.page", {"number": 1, "max_side": 64}


def _streams(mime: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if mime.startswith("audio/"):
        yield "audio.probe", {"mime": mime}
    if mime == "audio/ogg":
        yield "audio.waveform", {"mime": mime, "points": 10}
        for target in audio.VOICES:
            yield "audio.voice", {"mime": mime, "max_bytes": 1_000_000, "target": target}
        yield "audio.mono", {"mime": mime, "max_bytes": 1_000_000}
        for flac in (False, True):
            yield "audio.samples", {"mime": mime, "start": 0.0, "end": 1.0, "flac": flac}
    if mime.startswith("video/"):
        yield "video.frames", {"mime": mime, **_FRAMES}
    if mime in ("video/x-matroska", "video/mp4"):
        yield "video.probe", {"mime": mime}
        yield "video.sheet", {"mime": mime, **_FRAMES}
        yield "video.subtitles", {"mime": mime}
        yield "video.remux", {"mime": mime, "max_bytes": 1_000_000}


async def _tried(sandbox: "Runs", path: Path, job: str, options: Mapping[str, Any]) -> str:
    """What failed; empty if nothing did."""
    output = path.with_name(f"made-{os.urandom(8).hex()}") if job in _WRITES else None
    try:
        await sandbox.run(job, path, options, output=output)
        if output is not None and not output.stat().st_size:
            return f"{job} of {path.name}: it gave nothing"
    except MediaError as error:
        return "" if _OPTIONAL in str(error) else f"{job} of {path.name}: {error}"
    return _unread(output, job, path)


def _unread(output: Path | None, job: str, path: Path) -> str:
    """A document that could not be read says so in what was written."""
    if output is None or job not in ("document.read", "video.subtitles"):
        return ""
    head = output.read_bytes().partition(b"\n")[0]
    return "" if b'"unread": null' in head else f"{job} of {path.name}: {head[:200].decode(errors='replace')}"


def untried_jobs() -> frozenset[str]:
    """The jobs that no sample takes; a test keeps this empty."""
    with tempfile.TemporaryDirectory(prefix="belino-") as scratch:
        return frozenset(JOBS) - {job for path in _unpacked(Path(scratch)) for job, _ in _jobs_of(path)}
