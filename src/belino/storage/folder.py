"""Blobs in a folder, by sha256: hashed while written, visible only when complete, kept while used."""

import asyncio
import hashlib
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from belino.domain.errors import MediaNotFound, MediaTooLarge
from belino.domain.failpoints import failpoint
from belino.domain.outcome import CacheSize
from belino.domain.ports import Clock
from belino.storage.blobs import Aside, BlobState, StoredBytes
from belino.storage.disk import PIECE, Checksums, FileWriter, make_folder, on_disk, sync_folder

WRITES = 32
ASIDE = "aside"

_NAME = re.compile(r"[0-9a-f]{64}")


class BlobFolder:
    """The folder `blobs/`: a fan-out by hash, and on the same file system `tmp/` and `aside/`.

    `aside/` holds strays, files that no row lists: kept for a while before they are deleted, in case the database was
    the wrong one. The time at which a file was set aside is its modification time.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._scratch = path / "tmp"
        self._aside = path / ASIDE
        self._checksums = Checksums(clock)
        self._settling: Counter[str] = Counter()
        self._leaving: set[str] = set()
        """Files about to be deleted in another thread, unless the same bytes are stored again first."""
        self._door = threading.Lock()
        for folder in (path, self._scratch, self._aside):
            make_folder(folder)

    @property
    def scratch(self) -> Path:
        """The folder `tmp/`."""
        return self._scratch

    @asynccontextmanager
    async def put(
        self, chunks: AsyncIterator[bytes], *, limit: int, complete: Callable[[], object] | None = None
    ) -> AsyncIterator[StoredBytes]:
        """Write the bytes to a temporary file, sync it, and move it to the path of its hash."""
        partial = await self._receive(chunks, limit=limit)
        try:
            if complete is not None:
                complete()
            async with self.adopt(partial.path, partial.sha256):
                yield StoredBytes(sha256=partial.sha256, size=partial.size)
        finally:
            partial.discard()

    @asynccontextmanager
    async def adopt(self, path: Path, sha256: str) -> AsyncIterator[None]:
        """Move a complete file to the path of its hash; deletes a copy in `aside/`."""
        place = self._place(sha256)
        with self._settles(sha256):
            await on_disk(self._take, path, place)
            yield
        self._checksums.vouch(sha256, place)

    async def check(self, sha256: str) -> BlobState:
        """Whether the file exists and has its checksum; brings it back from `aside/` if necessary."""
        place = self._place(sha256)
        if not place.is_file() and not await on_disk(self._bring_back, sha256):
            return BlobState.MISSING
        return BlobState.HELD if await self._checksums.holds(sha256, place) else BlobState.DAMAGED

    @asynccontextmanager
    async def local(self, sha256: str) -> AsyncIterator[Path]:
        """The file itself."""
        yield self._place(sha256)

    async def stream(self, sha256: str) -> AsyncIterator[bytes]:
        """The file's bytes, read in a thread."""
        with await asyncio.to_thread(self._open, self._place(sha256)) as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece

    async def list(self, prefix: str) -> Mapping[str, int]:
        """Every file of the fan-out whose name begins with these two digits."""
        return await on_disk(blob_files, self._path, prefix)

    async def delete(self, names: Iterable[str]) -> int:
        """Unlink the files, except those that settle before it is their turn."""
        going = self._going(names)
        for name in going:
            self._checksums.forget(name)
        return await on_disk(self._unlink, going) if going else 0

    def is_settling(self, sha256: str) -> bool:
        """Whether these bytes are being stored now."""
        return sha256 in self._settling

    def is_moving(self, sha256: str) -> bool:
        """Whether these bytes are being stored or deleted now."""
        return self.is_settling(sha256) or sha256 in self._leaving

    async def set_aside(self, names: Iterable[str], *, now: datetime) -> tuple[str, ...]:
        """Move files to `aside/`, except those that settle before it is their turn."""
        going = self._going(names)
        return await on_disk(self._move_aside, going, now.timestamp()) if going else ()

    async def restore(self, names: Iterable[str]) -> None:
        """Move files back from `aside/`."""
        for name in names:
            await on_disk(self._bring_back, name)

    async def list_aside(self) -> Mapping[str, Aside]:
        """All blobs in `aside/`."""
        return await on_disk(files_aside, self._path)

    async def delete_aside(self, names: Iterable[str]) -> None:
        """Unlink files in `aside/`."""
        await on_disk(self._drop_aside, tuple(names))

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The verified checksums."""
        return {"checksums": self._checksums.size}

    def _place(self, sha256: str) -> Path:
        if not _NAME.fullmatch(sha256):
            raise MediaNotFound("that is not the name of a blob")
        return blob_path(self._path, sha256)

    async def _receive(self, chunks: AsyncIterator[bytes], *, limit: int) -> "Partial":
        """Write all the bytes to a temporary file; the caller must adopt or discard it."""
        partial = Partial(self._scratch / f"keep-{secrets.token_hex(8)}")
        with ExitStack() as unfinished:
            unfinished.callback(partial.discard)
            await on_disk(partial.open)
            async for batch in batches(chunks, limit=limit):
                await on_disk(partial.write, batch)
            await on_disk(partial.close)
            unfinished.pop_all()
        return partial

    @contextmanager
    def _settles(self, sha256: str) -> Iterator[None]:
        """Marks bytes that are being stored: their file may exist before their row."""
        with self._door:
            self._settling[sha256] += 1
            self._leaving.discard(sha256)
        try:
            yield
        finally:
            self._settling[sha256] -= 1
            self._settling += Counter()  # drops counts of zero

    def _bring_back(self, sha256: str) -> bool:
        with self._door:
            return bring_back(self._path, sha256)

    def _open(self, place: Path) -> BinaryIO:
        try:
            if place.is_file() or self._bring_back(place.name):
                return place.open("rb")
        except FileNotFoundError:
            pass  # deleted at this moment
        raise MediaNotFound("the bytes are not here any more")

    def _drop_aside(self, names: Iterable[str]) -> None:
        for name in names:
            (self._aside / name).unlink(missing_ok=True)

    def _unlink(self, names: Sequence[str]) -> int:
        count = 0
        for name in names:
            place = self._place(name)
            with self._door:
                if name in self._leaving:
                    self._leaving.discard(name)
                    with suppress(FileNotFoundError):
                        count += place.lstat().st_size
                        place.unlink()
                        failpoint("tidy.blob.after")
                    (self._aside / name).unlink(missing_ok=True)
        return count

    def _going(self, names: Iterable[str]) -> tuple[str, ...]:
        going = tuple(name for name in names if not self.is_settling(name))
        self._leaving.update(going)
        return going

    def _move_aside(self, names: Sequence[str], at: float) -> tuple[str, ...]:
        moved = []
        for name in names:
            with self._door:
                if name in self._leaving:
                    self._leaving.discard(name)
                    with suppress(FileNotFoundError):
                        _stamp(self._place(name), at)  # before the move: with its own age it might be deleted at once
                        self._place(name).rename(self._aside / name)
                        moved.append(name)
        sync_folder(self._aside)
        return tuple(moved)

    def _take(self, path: Path, place: Path) -> None:
        _move_in(path, place)
        (self._aside / place.name).unlink(missing_ok=True)


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
    places = (folder / ASIDE, *(Path(inner.path) for outer in _entries(folder) for inner in _entries(outer.path)))
    return sum(bool(_NAME.fullmatch(entry.name)) for place in places for entry in _entries(place))


def blob_path(blobs: Path, name: str) -> Path:
    """The path of a blob in a folder of blobs, whether or not it exists."""
    return blobs / name[:2] / name[2:4] / name


def bring_back(blobs: Path, name: str) -> bool:
    """Whether a blob is in its place; moves it there from `aside/` if necessary."""
    if not _NAME.fullmatch(name):
        return False
    place, kept = blob_path(blobs, name), blobs / ASIDE / name
    if place.is_file():
        kept.unlink(missing_ok=True)
        return True
    if not kept.is_file():
        return False
    _move_in(kept, place)
    return True


def _move_in(path: Path, place: Path) -> None:
    make_folder(place.parent.parent)
    make_folder(place.parent)
    failpoint("blob.rename.before")
    path.rename(place)
    failpoint("blob.rename.after")
    sync_folder(place.parent)


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


def files_aside(blobs: Path) -> dict[str, Aside]:
    """All blobs in a folder's `aside/`."""
    found: dict[str, Aside] = {}
    for entry in _entries(blobs / ASIDE):
        if _NAME.fullmatch(entry.name):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                found[entry.name] = Aside(size=status.st_size, since=status.st_mtime)
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
