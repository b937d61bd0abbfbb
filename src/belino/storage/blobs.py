"""Bytes by sha256: hashed while they are written, visible only when whole, kept while anything uses them."""

import asyncio
import errno
import hashlib
import os
import re
import secrets
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from belino.domain.errors import MediaNotFound, MediaTooLarge, StoreError, StoreFull
from belino.domain.media import Blob
from belino.domain.reply import OutgoingFile

PIECE = 1 << 20
WRITES = 32

T = TypeVar("T")

_NAME = re.compile(r"[0-9a-f]{64}")


class BlobFolder:
    """The folder `blobs/`: a fan-out by hash, and `tmp/` on the same filesystem."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path / "tmp"
        self._settling: Counter[str] = Counter()
        for folder in (self.path, self.temporary):
            make_folder(folder)

    def place(self, sha256: str) -> Path:
        """Where these bytes lie, if they are here."""
        if not _NAME.fullmatch(sha256):
            raise MediaNotFound("that is not the name of a blob")
        return self.path / sha256[:2] / sha256[2:4] / sha256

    async def receive(self, chunks: AsyncIterator[bytes], *, limit: int) -> "Partial":
        """All the bytes, on disk under a temporary name; whoever asked must adopt or discard them."""
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
        """While inside, these bytes move in: their file may be there before their row is."""
        self._settling[sha256] += 1
        try:
            yield
        finally:
            self._settling[sha256] -= 1
            self._settling += Counter()  # drops what is down to nothing

    def remove(self, sha256: str) -> None:
        """Delete bytes, unless the same ones are moving in again."""
        if sha256 not in self._settling:
            self.place(sha256).unlink(missing_ok=True)

    def strays(self, older_than: float) -> tuple[str, ...]:
        """Files that have lain in their place since before then: candidates for having no row."""
        found = (path for path in self.path.glob("??/??/*") if _NAME.fullmatch(path.name))
        return tuple(path.name for path in found if path.stat().st_mtime < older_than)

    def remove_stray(self, sha256: str, older_than: float) -> None:
        """Delete a stray, unless the same bytes have moved in since it was found."""
        if self.place(sha256).stat().st_mtime < older_than:
            self.remove(sha256)

    def adopt(self, path: Path, sha256: str) -> None:
        """Move a finished temporary file to the place of its hash."""
        place = self.place(sha256)
        make_folder(place.parent.parent)
        make_folder(place.parent)
        path.rename(place)
        sync_folder(place.parent)

    def sweep(self, *, keep: set[str]) -> int:
        """Remove temporary files nobody writes any more, all but those named."""
        stale = [path for path in self.temporary.iterdir() if path.name not in keep]
        for path in stale:
            path.unlink()
        return len(stale)

    def outgoing(self, sha256: str, *, name: str, mime: str, size: int) -> OutgoingFile:
        """A held blob as a file to send."""
        place = self.place(sha256)
        return OutgoingFile(name=name, mime=mime, size=size, sha256=sha256, chunks=lambda: read_pieces(place))


class Partial:
    """A file being written; it exists only under a temporary name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        self._descriptor: int | None = None

    def open(self) -> None:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.fchmod(self._descriptor, 0o600)

    def write(self, batch: Sequence[bytes]) -> None:
        assert self._descriptor is not None
        for piece in batch:
            write_all(self._descriptor, piece)
            self._hash.update(piece)
            self.size += len(piece)

    def close(self) -> None:
        """The bytes are on disk."""
        assert self._descriptor is not None
        os.fsync(self._descriptor)
        self._drop_descriptor()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def discard(self) -> None:
        """Leave nothing behind; what was adopted is not here any more."""
        self._drop_descriptor()
        self.path.unlink(missing_ok=True)

    def _drop_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def insert_blob(
    connection: sqlite3.Connection, sha256: str, mime: str, size: int, now: int, *, declared: bool = False
) -> None:
    """Know a blob that is in its place. A type that was only declared does not replace one that is known."""
    connection.execute(
        "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET kept = excluded.kept, "
        "mime = iif(?, mime, excluded.mime)",
        (sha256, mime, size, now, declared),
    )


def find_blob(connection: sqlite3.Connection, sha256: str) -> sqlite3.Row | None:
    """A blob's row."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    return row


def unused_blobs(connection: sqlite3.Connection, kept_before: int) -> tuple[str, ...]:
    """Forget blobs that nothing uses; those kept just now may be waiting for their first use."""
    rows = connection.execute(
        "DELETE FROM blobs WHERE kept < ? AND NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = blobs.sha256) "
        "RETURNING sha256",
        (kept_before,),
    ).fetchall()
    return tuple(row["sha256"] for row in rows)


def without_row(connection: sqlite3.Connection, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these files that no row knows: a process died between moving them in and noting it."""
    return tuple(name for name in names if find_blob(connection, name) is None)


def as_blob(row: sqlite3.Row, folder: BlobFolder) -> Blob | None:
    """The blob, if its bytes are really here."""
    place = folder.place(row["sha256"])
    return Blob(sha256=row["sha256"], mime=row["mime"], size=row["size"], path=place) if place.is_file() else None


async def batches(chunks: AsyncIterator[bytes], *, limit: int) -> AsyncIterator[Sequence[bytes]]:
    """The same bytes in batches worth a hop to a thread; large chunks are not copied for it."""
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
    """Each as it is, or all as one where a write for each would cost more than the copy."""
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


def write_all(descriptor: int, piece: bytes) -> None:
    """All of it: a disk that fills up takes a part first."""
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


async def on_disk(work: Callable[..., T], *arguments: object) -> T:
    """Run work on files in a thread. A full disk is told in our words; a cancelled caller waits for the thread.

    Otherwise the caller would close the file under it, and the number of a closed file may soon belong to another.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull("the disk is full; the bytes were not kept") from error
        raise StoreError(f"the bytes could not be kept: {error.strerror}") from error


def make_folder(folder: Path) -> None:
    """Only for us, whatever the umask."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """A rename is on disk once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
