"""Blobs in a folder, by sha256: hashed while written, visible only when complete, kept while used."""

import asyncio
import hashlib
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from belino.domain.errors import MediaNotFound, MediaTooLarge
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob
from belino.storage.database import TableRow
from belino.storage.disk import FileWriter, make_folder, on_disk, sync_folder

PIECE = 1 << 20
WRITES = 32

T = TypeVar("T")

_NAME = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A stray that was moved to `aside/`."""

    size: int
    since: float
    """Seconds since the epoch."""


class BlobFolder:
    """The folder `blobs/`: a fan-out by hash, and on the same file system `tmp/` and `aside/`.

    `aside/` holds strays, files that no row lists: kept for a while before they are deleted, in case the database was
    the wrong one. The time at which a file was put aside is its modification time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path / "tmp"
        self.aside = path / "aside"
        self._settling: Counter[str] = Counter()
        self._leaving: set[str] = set()
        """Files about to be deleted in another thread, unless the same bytes are stored again first."""
        self._door = threading.Lock()
        for folder in (self.path, self.temporary, self.aside):
            make_folder(folder)

    def place(self, sha256: str) -> Path:
        """The path of a blob, whether or not it exists."""
        if not _NAME.fullmatch(sha256):
            raise MediaNotFound("that is not the name of a blob")
        return self.path / sha256[:2] / sha256[2:4] / sha256

    async def receive(self, chunks: AsyncIterator[bytes], *, limit: int) -> "Partial":
        """Write all the bytes to a temporary file; the caller must adopt or discard it."""
        partial = Partial(self.temporary / f"keep-{secrets.token_hex(8)}")
        with ExitStack() as unfinished:
            unfinished.callback(partial.discard)
            await on_disk(partial.open)
            async for batch in batches(chunks, limit=limit):
                await on_disk(partial.write, batch)
            await on_disk(partial.close)
            unfinished.pop_all()
        return partial

    @contextmanager
    def settling(self, sha256: str) -> Iterator[None]:
        """Marks bytes that are being stored: their file may exist before their row."""
        with self._door:
            self._settling[sha256] += 1
            self._leaving.discard(sha256)
        try:
            yield
        finally:
            self._settling[sha256] -= 1
            self._settling += Counter()  # drops counts of zero

    def is_settling(self, sha256: str) -> bool:
        """Whether these bytes are being stored now."""
        return sha256 in self._settling

    def is_moving(self, sha256: str) -> bool:
        """Whether these bytes are being stored or deleted now, so that their file and their row may disagree."""
        return self.is_settling(sha256) or sha256 in self._leaving

    async def let_go(self, names: Iterable[str]) -> int:
        """Delete files that have no row, by the writer's latest answer. Returns how many bytes were freed.

        Await this directly after that answer, with no other await between. A task that stores the same bytes gets its
        own answer later: it is still settling now, or starts later and takes them off the list.
        """
        going = self._going(names)
        return await on_disk(self._unlink, going) if going else 0

    async def put_aside(self, names: Iterable[str], *, now: datetime) -> tuple[str, ...]:
        """Move strays to `aside/`, under the same condition as `let_go`. Returns those that were moved."""
        going = self._going(names)
        return await on_disk(self._move_aside, going, now.timestamp()) if going else ()

    def bring_back(self, sha256: str) -> bool:
        """Whether a blob is in its place; moves it there from `aside/` if necessary."""
        place, kept = self.place(sha256), self.aside / sha256
        with self._door:
            if place.is_file():
                kept.unlink(missing_ok=True)
                return True
            if not kept.is_file():
                return False
            self._move_in(kept, place)
        return True

    def lying_aside(self) -> dict[str, Aside]:
        """All files in `aside/`."""
        found: dict[str, Aside] = {}
        for entry in _entries(self.aside):
            if _NAME.fullmatch(entry.name):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    found[entry.name] = Aside(size=status.st_size, since=status.st_mtime)
        return found

    def drop_aside(self, names: Iterable[str]) -> None:
        """Delete files in `aside/`."""
        for name in names:
            (self.aside / name).unlink(missing_ok=True)

    def lying(self, prefix: str) -> dict[str, int]:
        """Every blob file whose name begins with these two digits, and its size."""
        return blob_files(self.path, prefix)

    def unfinished(self, older_than: float, *, keep: Container[str]) -> dict[str, int]:
        """Temporary files without a write since then, except those named, and their sizes."""
        found: dict[str, int] = {}
        for entry in _entries(self.temporary):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if status.st_mtime < older_than and entry.name not in keep and not entry.is_dir(follow_symlinks=False):
                    found[entry.name] = status.st_size
        return found

    def discard(self, names: Iterable[str]) -> None:
        """Delete temporary files."""
        for name in names:
            (self.temporary / name).unlink(missing_ok=True)

    def _unlink(self, names: Sequence[str]) -> int:
        count = 0
        for name in names:
            place = self.place(name)
            with self._door:
                if name in self._leaving:
                    self._leaving.discard(name)
                    with suppress(FileNotFoundError):
                        count += place.lstat().st_size
                        place.unlink()
                        failpoint("tidy.blob.after")
                    (self.aside / name).unlink(missing_ok=True)
        return count

    def _going(self, names: Iterable[str]) -> list[str]:
        going = [name for name in names if not self.is_settling(name)]
        self._leaving.update(going)
        return going

    def _move_aside(self, names: Sequence[str], at: float) -> tuple[str, ...]:
        moved = []
        for name in names:
            with self._door:
                if name in self._leaving:
                    self._leaving.discard(name)
                    with suppress(FileNotFoundError):
                        _stamp(self.place(name), at)  # before the move: with its own age it might be deleted at once
                        self.place(name).rename(self.aside / name)
                        moved.append(name)
        sync_folder(self.aside)
        return tuple(moved)

    def adopt(self, path: Path, sha256: str) -> None:
        """Move a finished temporary file to the path of its hash; deletes a copy in `aside/`."""
        self._move_in(path, self.place(sha256))
        (self.aside / sha256).unlink(missing_ok=True)

    def _move_in(self, path: Path, place: Path) -> None:
        make_folder(place.parent.parent)
        make_folder(place.parent)
        failpoint("blob.rename.before")
        path.rename(place)
        failpoint("blob.rename.after")
        sync_folder(place.parent)

    def sweep(self, *, keep: set[str]) -> int:
        """Remove abandoned temporary files, except those named."""
        stale = [path for path in self.temporary.iterdir() if path.name not in keep]
        for path in stale:
            path.unlink()
        return len(stale)


class Partial:
    """A file being written; it exists only under a temporary name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        self._descriptor: int | None = None
        self._sink: FileWriter | None = None

    def open(self) -> None:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        failpoint("blob.created")
        os.fchmod(self._descriptor, 0o600)
        self._sink = FileWriter(self._descriptor)

    def write(self, batch: Sequence[bytes]) -> None:
        assert self._sink is not None
        for piece in batch:
            self._sink.write(piece)
            self._hash.update(piece)
            self.size += len(piece)

    def close(self) -> None:
        """Flush the bytes to disk."""
        assert self._descriptor is not None and self._sink is not None
        self._sink.flush()
        failpoint("blob.sync.before")
        os.fsync(self._descriptor)
        self._drop_descriptor()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def discard(self) -> None:
        """Delete the temporary file; does nothing after `adopt`."""
        self._drop_descriptor()
        self.path.unlink(missing_ok=True)

    def _drop_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def count_blobs(folder: Path) -> int:
    """The number of blob files in a folder `blobs/`, those in `aside/` included."""
    places = (folder / "aside", *(Path(inner.path) for outer in _entries(folder) for inner in _entries(outer.path)))
    return sum(bool(_NAME.fullmatch(entry.name)) for place in places for entry in _entries(place))


def as_blob(row: TableRow, folder: BlobFolder) -> Blob | None:
    """The blob, if its file exists."""
    place = folder.place(row["sha256"])
    return Blob(sha256=row["sha256"], mime=row["mime"], size=row["size"], path=place) if place.is_file() else None


def _stamp(path: Path, at: float) -> None:
    """Set a file's modification time, and sync it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.utime(descriptor, (at, at))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def blob_files(blobs: Path, prefix: str) -> dict[str, int]:
    """Every blob file of a folder whose name begins with these two digits, and its size."""
    found: dict[str, int] = {}
    for folder in _entries(blobs / prefix):
        for entry in _entries(folder.path):
            if _NAME.fullmatch(entry.name):
                with suppress(FileNotFoundError):  # deleted during the scan
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
    return found


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


async def batches(chunks: AsyncIterator[bytes], *, limit: int) -> AsyncIterator[Sequence[bytes]]:
    """The same bytes in batches that are worth a thread switch; large chunks are not copied."""
    waiting: list[bytes] = []
    size = count = 0
    async for chunk in chunks:
        count += len(chunk)
        if count > limit:
            raise MediaTooLarge(f"the bytes are over the limit of {limit} bytes", limit=limit)
        waiting.append(chunk)
        size += len(chunk)
        if size >= PIECE:
            yield _worth_writing(waiting)
            waiting, size = [], 0
    if size:
        yield _worth_writing(waiting)


def _worth_writing(chunks: list[bytes]) -> Sequence[bytes]:
    """The chunks as they are, or joined if separate writes would cost more than the copy."""
    return chunks if len(chunks) <= WRITES else (b"".join(chunks),)


async def read_pieces(place: Path) -> AsyncIterator[bytes]:
    """A file's bytes, read in a thread."""
    try:
        file = await asyncio.to_thread(place.open, "rb")
    except FileNotFoundError as error:
        raise MediaNotFound("the bytes are not here any more") from error
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
