"""Models that `belino models get` fetches: their names, where they are, their checksums, and the resumable download.

Nothing else in belino downloads a model. The checksums are those of the publisher's files at these revisions.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from belino.domain.errors import AdapterError, ProviderError
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.units import format_size
from belino.net.client import error_for
from belino.net.stream import bounded

SOURCE = "https://huggingface.co"
ATTEMPTS = 5
WAIT_SECONDS = 2.0
DAY = 24 * 3600.0
SPARE_BYTES = 100 * 1024 * 1024
"""Disk space that a download leaves free."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model that can be fetched by its name."""

    name: str
    says: str
    provider: str
    repository: str
    revision: str
    files: tuple[ModelFile, ...]
    license: str = "MIT"

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def _whisper(name: str, says: str, revision: str, config: tuple[int, str], weights: tuple[int, str]) -> NamedModel:
    """Whisper as Systran converts it; the multilingual models share their tokenizer."""
    files = (
        ModelFile(name="config.json", size=config[0], sha256=config[1]),
        ModelFile(name="model.bin", size=weights[0], sha256=weights[1]),
        ModelFile(
            name="tokenizer.json",
            size=2_203_239,
            sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        ),
        ModelFile(
            name="vocabulary.txt",
            size=459_861,
            sha256="34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
        ),
    )
    repository = f"Systran/faster-{name}"
    return NamedModel(
        name=name, says=says, provider="local_whisper", repository=repository, revision=revision, files=files
    )


_ALL = (
    _whisper(
        "whisper-tiny",
        "99 languages, the quickest and least accurate",
        "d90ca5fe260221311c53c58e660288d3deb8d356",
        (2_249, "a73a28cdfe1c43ccc7202fa333d1f89c202477271407ae9a7f19afa52039cac8"),
        (75_538_270, "dcb76c6586fc06cbdac6dd21f14cfd129cc4cdd9dce19bf4ffa62e59cbe6e6d1"),
    ),
    _whisper(
        "whisper-base",
        "99 languages, twice the CPU of tiny",
        "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
        (2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
        (145_217_532, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"),
    ),
    _whisper(
        "whisper-small",
        "99 languages, the most accurate, six times the CPU of tiny; needs 1 GB of memory",
        "536b0662742c02347bc0e980a01041f333bce120",
        (2_370, "b55496ac7940a7ae47d2c01eab40edfd8701feec1229d9cce3b40014383fb828"),
        (483_546_902, "3e305921506d8872816023e4c273e75d2419fb89b24da97b4fe7bce14170d671"),
    ),
)
MODELS = MappingProxyType({model.name: model for model in _ALL})


def named(name: str) -> NamedModel:
    """The model of this name; ProviderError lists the names if there is none."""
    if name not in MODELS:
        raise ProviderError(f"there is no model {name!r}; belino fetches {', '.join(MODELS)}")
    return MODELS[name]


def is_fetched(model: NamedModel, folder: Path) -> bool:
    """Whether every file of the model is in the folder of models, in its size."""
    paths = ((folder / model.name / file.name, file.size) for file in model.files)
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


async def fetch_model(
    model: NamedModel,
    folder: Path,
    http: HttpClient,
    clock: Clock,
    *,
    source: str = SOURCE,
    progress: Progress | None = None,
) -> Path:
    """Fetch a model into the folder of models and return its folder. What an earlier call fetched is not fetched again.

    A model appears under its name only when every checksum is right.
    """
    if is_fetched(model, folder):
        return folder / model.name
    making = folder / f".{model.name}.part"
    making.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_room(model, making)
    done = 0
    for file in model.files:
        url = f"{source.rstrip('/')}/{model.repository}/resolve/{model.revision}/{file.name}"
        before = done
        await _fetch_file(
            file,
            making / file.name,
            url,
            http,
            clock,
            partial(_add, progress, before, model.size),
        )
        done += file.size
    shutil.rmtree(folder / model.name, ignore_errors=True)
    making.rename(folder / model.name)
    return folder / model.name


def _add(progress: Progress | None, before: int, size: int, count: int) -> None:
    if progress is not None:
        progress(before + count, size)


def _check_room(model: NamedModel, making: Path) -> None:
    held = sum(path.stat().st_size for path in making.iterdir())
    free = shutil.disk_usage(making).free
    if free < model.size - held + SPARE_BYTES:
        needs = format_size(model.size - held)
        raise ProviderError(f"{model.name} needs {needs} more on the disk, which has {format_size(free)} free")


async def _fetch_file(
    file: ModelFile, path: Path, url: str, http: HttpClient, clock: Clock, progress: Callable[[int], None]
) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await _continue(file, path, url, http, clock, progress)
            break
        except AdapterError as error:
            if attempt == ATTEMPTS:
                raise ProviderError(
                    f"{file.name} could not be fetched: {error}; the same command continues where it broke off"
                ) from error
        await clock.sleep(WAIT_SECONDS * attempt)
    if await asyncio.to_thread(_sha256, path) != file.sha256:
        path.unlink()
        raise ProviderError(f"{file.name} has a wrong checksum and was deleted; the source serves another file")


async def _continue(
    file: ModelFile, path: Path, url: str, http: HttpClient, clock: Clock, progress: Callable[[int], None]
) -> None:
    """Fetch the bytes that are missing of a file."""
    held = path.stat().st_size if path.exists() else 0
    if held == file.size:
        progress(held)
        return
    headers = {"Range": f"bytes={held}-"} if held else {}
    async with http.request("GET", url, headers=headers) as answer:
        refusal = error_for(answer.status, answer.headers)
        if refusal is not None:
            raise refusal
        if not held or not _continues(answer, held):
            held = 0
        with path.open("ab") as target:
            os.ftruncate(target.fileno(), held)
            async for chunk in bounded(
                answer.chunks(), limit=file.size - held, deadline_seconds=DAY, clock=clock
            ):  # fmt: skip
                target.write(chunk)
                held += len(chunk)
                progress(held)
    if held != file.size:
        raise AdapterError(f"it ended at {held} of {file.size} bytes")


def _continues(answer: HttpAnswer, held: int) -> bool:
    return answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {held}-")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
