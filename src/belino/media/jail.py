"""Jail: open files below a folder that is held open; no link is followed, and what was checked is what is read.

A path may lead elsewhere between a check and the next use. So a folder is opened once, everything is named relative to
that handle, and the kernel itself refuses whatever would leave it.
"""

import errno
import os
import secrets
import stat
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Self

from belino.domain.errors import MediaError, MediaNotFound, MediaRefused, MediaTooLarge, StoreError
from belino.storage.disk import on_disk, write_all

if TYPE_CHECKING:
    import ctypes

PIECE = 1 << 20
DEEP = 8
"""The maximum depth of folders."""
NUMBERS_AT_MOST = 100
"""Attempts to number a name that is taken; after these it gets a random suffix."""
NAME_BYTES = 255
EXTENSION_CHARS = 20
TAIL_BYTES = 48
LENT, LOAN_SECONDS = "belino-", 3600.0
"""Folders of lent files, and how old one may be."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe without a writer would block for ever.
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# linux/openat2.h; the number is the same on every architecture Python runs on but one, which then walks.
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_NOT_HERE = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
_LINKS = (errno.ELOOP, errno.EXDEV)


class Unfinished(MediaRefused):
    """The file is still being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file's name below the folder, and its identity when it was seen."""

    path: str
    inode: int
    mtime_ns: int
    atime_ns: int
    ctime_ns: int
    """When it was last written, created, moved or copied to: programs cannot set it."""
    size: int
    plain: bool
    """A regular file with this one name; no link, pipe or device."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def identity(self) -> tuple[int, int, int]:
        """Equal for one file as long as it is not written to."""
        return self.inode, self.mtime_ns, self.size


class PlainFile:
    """A regular file held open."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.seen = _seen(path, os.fstat(descriptor))

    def read(self, most: int) -> bytes:
        """All of its bytes; MediaTooLarge if there are more than `most`, whatever its size says."""
        if len(found := os.pread(self._descriptor, most + 1, 0)) > most:
            raise MediaTooLarge(f"it is larger than {most} bytes", limit=most)
        return found

    async def pieces(self) -> AsyncIterator[bytes]:
        """Its bytes, read in a thread. Unfinished if it is written to during the read."""
        at = 0
        # Growth is not followed: a file may grow as fast as it is read.
        while at <= self.seen.size and (piece := await on_disk(os.pread, self._descriptor, PIECE, at)):
            at += len(piece)
            yield piece
        if _seen(self.seen.path, os.fstat(self._descriptor)).identity != self.seen.identity or at != self.seen.size:
            raise Unfinished("it was changed while it was read")


class Jail:
    """A folder held open, independent of its name."""

    def __init__(self, folder: Path) -> None:
        try:
            self._handle = os.open(folder, _FOLDER)
        except OSError as error:
            raise StoreError("the conversation's folder is not a folder of its own") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    @contextmanager
    def open(self, path: str) -> Iterator[PlainFile]:
        """The regular file of this name; MediaError says why it is unavailable."""
        try:
            descriptor = _open_below(self._handle, path, _PLAIN)
        except (OSError, ValueError) as error:
            raise _as_media_error(error) from error
        try:
            _must_be_plain(os.fstat(descriptor))
            yield PlainFile(descriptor, path)
        finally:
            os.close(descriptor)

    def files(self, folder: str, *, deep: int = DEEP, most: int) -> Iterator[Seen]:
        """The files below a folder, by name; folders themselves are not listed."""
        waiting = [(folder, deep)]
        left = most
        while waiting and left > 0:
            path, levels = waiting.pop()
            for entry, status in self._entries(path):
                if stat.S_ISDIR(status.st_mode):
                    waiting += [(f"{path}/{entry}", levels - 1)] if levels else []
                    continue
                yield _seen(f"{path}/{entry}", status)
                left -= 1
                if not left:
                    return

    def move(self, path: str, folder: str, *, at: datetime) -> str:
        """Rename into another folder, dated `at`; a taken name gets a number. Returns the new name."""
        source, _, name = path.rpartition("/")
        with self._folder(source) as here, self._folder(folder) as there:
            free = _free_name(there, name)
            times = (at.timestamp(), at.timestamp())
            # If the process is killed right after the rename, one timestamp still says when it was moved.
            before = os.stat(name, dir_fd=here, follow_symlinks=False).st_mtime_ns
            os.utime(name, ns=(int(times[0] * 1e9), before), dir_fd=here, follow_symlinks=False)
            os.rename(name, free, src_dir_fd=here, dst_dir_fd=there)
            os.utime(free, times, dir_fd=there, follow_symlinks=False)
        return free

    def write(self, path: str, text: str) -> None:
        """Create a small file with owner-only access; an existing one stays as it is."""
        folder, _, name = path.rpartition("/")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder(folder) as handle:
            try:
                descriptor = os.open(name, flags, 0o600, dir_fd=handle)
            except FileExistsError:
                return
            try:
                write_all(descriptor, text.encode(errors="replace"))
            finally:
                os.close(descriptor)

    def make(self, folder: str) -> None:
        """Create a folder with owner-only access, if nothing has its name."""
        above, _, name = folder.rpartition("/")
        with self._folder(above) as handle, suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=handle)

    def names(self, folder: str, *, most: int) -> list[str]:
        """Up to `most` names in a folder, in no order; the rest of a larger folder is not read."""
        with suppress(FileNotFoundError), self._folder(folder) as handle, os.scandir(handle) as entries:
            return [entry.name for entry in islice(entries, most)]
        return []

    def read(self, path: str, *, most: int) -> bytes:
        """The bytes of a small regular file; MediaError if it is larger, or none."""
        with self.open(path) as file:
            return file.read(most)

    def replace(self, path: str, content: bytes) -> None:
        """Write a whole file at once, in the place of any other of its name; a reader sees one or the other."""
        folder, _, name = path.rpartition("/")
        own = f".{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder(folder) as handle:
            descriptor = os.open(own, flags, 0o600, dir_fd=handle)
            try:
                write_all(descriptor, content)
                os.rename(own, name, src_dir_fd=handle, dst_dir_fd=handle)
            except OSError:
                with suppress(OSError):
                    os.unlink(own, dir_fd=handle)
                raise
            finally:
                os.close(descriptor)

    def rename(self, path: str, name: str) -> None:
        """Give a file another name in its folder."""
        folder, _, before = path.rpartition("/")
        with self._folder(folder) as handle:
            os.rename(before, name, src_dir_fd=handle, dst_dir_fd=handle)

    def remove(self, path: str) -> None:
        """Delete a file, if it is there."""
        folder, _, name = path.rpartition("/")
        with self._folder(folder) as handle:
            try:
                os.unlink(name, dir_fd=handle)
            except FileNotFoundError:
                return

    def _entries(self, folder: str) -> list[tuple[str, os.stat_result]]:
        found = {}
        with suppress(FileNotFoundError), self._folder(folder) as handle, os.scandir(handle) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was moved or deleted in between
                    found[entry.name] = entry.stat(follow_symlinks=False)
        return sorted(found.items())

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        handle = _open_below(self._handle, path, _FOLDER)
        try:
            yield handle
        finally:
            os.close(handle)


def _seen(path: str, status: os.stat_result) -> Seen:
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return Seen(
        path=path,
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        atime_ns=status.st_atime_ns,
        ctime_ns=status.st_ctime_ns,
        size=status.st_size,
        plain=plain,
    )


@asynccontextmanager
async def open_below(folder: Path, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """The bytes of a regular file below a folder that is not ours; MediaError says why it is unavailable."""
    try:
        jail = Jail(folder)
    except StoreError:
        raise MediaError("the folder cannot be opened") from None
    with jail, jail.open(path) as file:
        yield file.pieces()


@asynccontextmanager
async def lend_below(folder: Path, name: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[Path]:
    """A copy of a file below a folder that is not ours, under its own name, for a program that reads it there.

    It is removed at the end of the block; what a killed process left is removed by the next loan after an hour.
    """
    place = folder / f"{LENT}{secrets.token_hex(8)}"
    lent = place / ending_in(name.replace("/", "_").lstrip(".") or "file", "")
    try:
        try:
            await _write_loan(folder, lent, chunks)
        except StoreError as error:
            raise MediaError(f"the shared folder cannot be written to: {error}") from None
        yield lent
    finally:
        await on_disk(_end_loan, place)


async def _write_loan(folder: Path, lent: Path, chunks: AsyncIterator[bytes]) -> None:
    await on_disk(_begin_loan, folder, lent.parent)
    descriptor = await on_disk(os.open, lent, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640)
    try:
        os.fchmod(descriptor, 0o640)  # whatever the umask is: the program reads it as another user of the group
        async for piece in chunks:
            await on_disk(write_all, descriptor, piece)
    finally:
        os.close(descriptor)


def _begin_loan(folder: Path, place: Path) -> None:
    for old in folder.glob(f"{LENT}*"):
        with suppress(OSError):
            if time() - old.stat(follow_symlinks=False).st_mtime > LOAN_SECONDS:
                _end_loan(old)
    place.mkdir()
    place.chmod(0o750)


def _end_loan(place: Path) -> None:
    with suppress(OSError):
        for file in place.iterdir():
            file.unlink()
        place.rmdir()


def _must_be_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise MediaRefused("it is not a regular file")
    if status.st_nlink != 1:
        # A hard link could give a file from elsewhere a name in here.
        raise MediaRefused("it is known under another name, too")


def _as_media_error(error: OSError | ValueError) -> MediaError:
    code = error.errno if isinstance(error, OSError) else errno.EINVAL
    if code in _LINKS:
        return MediaRefused("it is a link")
    if code in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ENAMETOOLONG):
        return MediaNotFound("there is no such file")
    return MediaRefused(f"it cannot be opened ({errno.errorcode.get(code or 0, 'error')})")


def ending_in(stem: str, ending: str) -> str:
    """A name with this suffix; if too long, the stem loses some of its middle."""
    whole, room = os.fsencode(stem), NAME_BYTES - len(os.fsencode(ending))
    if len(whole) > room:
        # Long names usually differ at the end, by a number or a suffix.
        head, tail = (part.decode(errors="ignore") for part in (whole[: room - TAIL_BYTES - 3], whole[-TAIL_BYTES:]))
        stem = f"{head}…{tail}"
    return f"{stem}{ending}"


def _free_name(folder: int, name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension) > EXTENSION_CHARS:
        stem, dot, extension = name, "", ""
    numbers = (f"-{count}" for count in range(2, NUMBERS_AT_MOST + 1))
    for number in ("", *numbers):
        candidate = ending_in(stem, f"{number}{dot}{extension}") if number else name
        try:
            os.stat(candidate, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return candidate
    return ending_in(stem, f"-{secrets.token_hex(8)}{dot}{extension}")


def _open_below(handle: int, path: str, flags: int) -> int:
    """A descriptor of the file with this name below the handle; OSError or ValueError if there is none."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise ValueError("not a name below a folder")
    try:
        return _openat2(handle, path, flags)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    return _walk(handle, parts, flags)


def _openat2(handle: int, path: str, flags: int) -> int:
    import ctypes

    # Python reports every file it opens to its audit hooks; it does not see this one.
    sys.audit("open", path, None, flags)
    how = struct.pack("=QQQ", flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    found = _system().syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(handle),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_char_p(how),
        ctypes.c_size_t(len(how)),
    )
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(found)


@cache
def _system() -> "ctypes.CDLL":
    """The C library, once: each CDLL makes classes that only the garbage collector frees."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _walk(handle: int, parts: list[str], flags: int) -> int:
    """The same, step by step, for a kernel without openat2 (before Linux 5.6) or a container that forbids it."""
    here = os.dup(handle)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1], flags, dir_fd=here)
    finally:
        os.close(here)
