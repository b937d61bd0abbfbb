"""Local files as belino sees them: types, and pictures made to fit."""

import asyncio
import hashlib
import os
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from belino.cli import OK
from belino.cli.show import clean, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.media import Blob, MediaKind
from belino.media.image.header import DRAWN_MIMES
from belino.media.session_files import safe_name
from belino.media.sniff import HEAD_BYTES, Sniffed, sniff

CHUNK = 256 * 1024
_NAMELESS = {"file_name": None, "mime": "", "kind": MediaKind.IMAGE}


class Target:
    """A file being written: visible only when complete. A name we chose never replaces an existing file."""

    def __init__(self, output: Path | None, media: Mapping[str, Any]) -> None:
        name = safe_name(media["file_name"], mime=str(media["mime"]), kind=MediaKind(media["kind"]))
        self.path = output if output is not None else Path(name)
        self._replaces = output is not None

    def __enter__(self) -> Self:
        if self.path.is_dir() or (not self._replaces and os.path.lexists(self.path)):
            raise BelinoError(f"{self.path} is already there; name another file with -o")
        try:
            handle, name = tempfile.mkstemp(prefix=".belino-", dir=self.path.parent)
        except OSError as error:
            raise BelinoError(f"{self.path} cannot be written: {error.strerror}") from None
        self._file = os.fdopen(handle, "wb")
        self._beside = Path(name)
        return self

    def write(self, content: bytes) -> None:
        """Write the next bytes."""
        with self._said():
            self._file.write(content)

    def keep(self) -> None:
        """Complete: move it to its place."""
        with self._said():
            self._file.close()
            self._beside.replace(self.path)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """A full disk is a local error, whatever the source of the bytes."""
        try:
            yield
        except OSError as error:
            raise BelinoError(f"{self.path} cannot be written: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            self._beside.unlink()


def written(source: Path, target: Target) -> Path:
    """A copy of a held blob at the target."""
    with target, source.open("rb") as reader:
        while chunk := reader.read(CHUNK):
            target.write(chunk)
        target.keep()
    return target.path


def sniff_files(args: Namespace) -> int:
    """belino media sniff FILE…"""
    found: list[tuple[Path, Sniffed]] = []
    missed: list[str] = []
    for path in args.files:
        try:
            found.append((path, sniffed_file(path)))
        except BelinoError as error:
            missed.append(str(error))
    if args.json:
        rows = [
            {"file": str(path), "mime": s.mime, "kind": s.kind, "group": s.group, "exact": s.exact, "lies": s.lies}
            for path, s in found
        ]
        show_json({"files": rows})
    elif found:
        cells = [(path.name, s.mime, s.group, "the bytes" if s.exact else "a hint", s.lies) for path, s in found]
        show_table(("file", "type", "is a", "told by", "lie"), cells, empty="no file")
    if missed:
        raise BelinoError("; ".join(missed))
    return OK


def fit_file(args: Namespace) -> int:
    """belino media fit FILE --max-bytes N [--max-side N] -o OUT"""
    sniffed = sniffed_file(args.file)
    if sniffed.mime not in DRAWN_MIMES:
        raise BelinoError(f"{args.file} is {sniffed.mime}, not a picture that belino can fit")
    answer = asyncio.run(_fitted(as_blob(args.file, sniffed), args))
    if args.json:
        show_json(answer)
    else:
        size = f"{answer['width']}×{answer['height']}"
        print(clean(f"{answer['path']}: {answer['mime']}, {size}, {answer['bytes']} bytes"))
    return OK


def _formats(output: Path) -> tuple[str, ...]:
    """The format that the output's name implies; any, if none."""
    from belino.media.image.images import FORMATS

    wanted = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
    suffix = output.suffix.lower()
    return (wanted[suffix],) if suffix in wanted else FORMATS


async def _fitted(blob: Blob, args: Namespace) -> dict[str, Any]:
    from belino.media.image.images import Images
    from belino.media.sandbox.sandbox import Sandbox

    with tempfile.TemporaryDirectory(prefix="belino-") as scratch, Target(args.output, _NAMELESS) as target:
        async with Sandbox() as sandbox:
            fitted = await Images(sandbox, Path(scratch)).fit(
                blob, max_bytes=args.max_bytes, max_side=args.max_side, formats=_formats(args.output)
            )
        target.write(fitted.data)
        target.keep()
    answer = {"mime": fitted.mime, "width": fitted.width, "height": fitted.height, "bytes": len(fitted.data)}
    return {"path": str(target.path), **answer}


def sniffed_file(path: Path) -> Sniffed:
    """The type of a local file, by its bytes."""
    head = head_of(path, HEAD_BYTES + 1)
    return sniff(head[:HEAD_BYTES], name=path.name, whole=len(head) <= HEAD_BYTES)


def head_of(path: Path, size: int) -> bytes:
    """Its first bytes."""
    if not path.is_file():
        raise BelinoError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise BelinoError(f"{path} cannot be read: {error.strerror}") from None


def as_blob(path: Path, sniffed: Sniffed) -> Blob:
    """A local file as if it were a held blob; links are followed, as only their owner names them."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Blob(sha256=sha256, mime=sniffed.mime, size=path.stat().st_size, path=path.resolve())
