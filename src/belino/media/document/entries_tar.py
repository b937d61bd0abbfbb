"""The headers of a tar, read one after the other, also through gzip, bzip2 and xz: what lies between is passed over."""

import bz2
import lzma
import tarfile
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import RawIOBase
from typing import IO, BinaryIO

from belino.domain.document import Unread
from belino.media.document.entries import Entry
from belino.media.document.parts import CannotRead

UNPACKED_AT_MOST = 1024 * 1024 * 1024
SECONDS_AT_MOST = 10
"""Of the child's own time for unpacking what is passed over: of gzip all of it, of bzip2 a third."""
DICTIONARY_BYTES = 128 * 1024 * 1024
_CHUNK = 256 * 1024
_PACKINGS = {"application/gzip": ".gz", "application/x-bzip2": ".bz2", "application/x-xz": ".xz"}
_EARLY = "the archive is broken: the listing ends early"
_ENDLESS = "the packed file is broken: its end is missing"
_BROKEN = (
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    tarfile.TarError,
    OverflowError,
    IndexError,
    RecursionError,
)


class _Enough(Exception):
    """As much was unpacked as is looked through."""


class _Unpacked(RawIOBase):
    """A packed file as it would be unpacked, forwards only and not without end."""

    def __init__(self, file: BinaryIO, mime: str) -> None:
        self._file = file
        self._mime = mime
        self._unpacker = _unpacker(mime)
        self._rest = b""
        self._begun = time.process_time()
        self.given = 0
        self.cut = False
        """It ended before its end."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        """Into a tar reader's hands, piece by piece."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        piece = self._piece(len(view))
        view[: len(piece)] = piece
        self.given += len(piece)
        if self.given > UNPACKED_AT_MOST or time.process_time() - self._begun > SECONDS_AT_MOST:
            raise _Enough(f"{self.given // 2**20} MB")
        return len(piece)

    def _piece(self, size: int) -> bytes:
        while True:
            if self._unpacker.eof:
                # Packed files may stand one after the other and count as one.
                self._rest = self._unpacker.unused_data or self._file.read(_CHUNK)
                if not self._rest.strip(b"\0"):
                    return b""
                self._unpacker = _unpacker(self._mime)
            needs = getattr(self._unpacker, "needs_input", True)
            if needs and not self._rest:
                self._rest = self._file.read(_CHUNK)
                if not self._rest:
                    self.cut = True
                    return b""
            piece = self._unpacker.decompress(self._rest, size)
            self._rest = getattr(self._unpacker, "unconsumed_tail", b"")
            if piece:
                return bytes(piece)


def entries(file: BinaryIO, mime: str, name: str) -> Iterator[Entry]:
    """Every entry; for a packed file that is no archive, the one file it is."""
    if mime not in _PACKINGS:
        cut = file.seek(0, 2) % tarfile.BLOCKSIZE > 0
        file.seek(0)
        yield from _headers(file)
        if cut:
            yield Entry(note=_EARLY)
        return
    stream = _Unpacked(file, mime)
    head = _head(stream)
    if tar_begins(head):
        file.seek(0)
        stream = _Unpacked(file, mime)
        yield from _headers(stream)
        if stream.cut:
            yield Entry(note=_EARLY)
        return
    yield from _single(stream, len(head), name or "file", _PACKINGS[mime])


def tar_begins(head: bytes) -> bool:
    """Whether unpacked bytes are a tar: its mark, or a header whose sum is right."""
    if head[257:262] == b"ustar":
        return True
    written = head[148:156].strip(b" \0")
    if len(head) < 512 or not written.isdigit() or not head[0] or set(written) - set(b"01234567"):
        return False
    return int(written, 8) == sum(head[:148]) + 8 * 32 + sum(head[156:512])


def _headers(stream: IO[bytes] | RawIOBase) -> Iterator[Entry]:
    before = -1
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:
            for member in archive:
                if member.offset <= before or member.size < 0:
                    raise ValueError("a header that leads back")
                before = member.offset
                # The reader keeps all it has seen; a list of a million names is not wanted.
                archive.members.clear()  # type: ignore[attr-defined]
                yield _entry(member)
    except _Enough as so_far:
        yield Entry(note=f"the listing ends after {so_far} of unpacked content")
    except _BROKEN as error:
        if before < 0:
            raise CannotRead(Unread.UNREADABLE, "the archive is broken") from error
        yield Entry(note=_EARLY)


def _entry(member: tarfile.TarInfo) -> Entry:
    return Entry(
        name=member.name,
        size=None if member.isdir() else member.size,
        modified=_date(member.mtime),
        folder=member.isdir(),
        link=member.linkname if member.issym() or member.islnk() else "",
    )


def _head(stream: _Unpacked) -> bytes:
    head = b""
    try:
        while len(head) < 512 and (piece := stream.read(512 - len(head))):
            head += piece
    except _BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the packed file is broken") from error
    return head


def _single(stream: _Unpacked, size: int, name: str, suffix: str) -> Iterator[Entry]:
    note = ""
    try:
        while piece := stream.read(_CHUNK):
            size += len(piece)
    except _Enough as so_far:
        note = f"unpacked, it is larger than {so_far}"
    except _BROKEN:
        note = _ENDLESS
    if stream.cut:
        note = _ENDLESS
    last = name.replace("\\", "/").rpartition("/")[2]
    yield Entry(name=last.removesuffix(suffix) or last, size=size)
    if note:
        yield Entry(note=note)


def _unpacker(mime: str) -> "zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor":
    if mime == "application/gzip":
        return zlib.decompressobj(31)
    if mime == "application/x-bzip2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor(memlimit=DICTIONARY_BYTES)


def _date(stamp: float) -> str:
    try:
        return f"{datetime.fromtimestamp(stamp, UTC):%Y-%m-%d}" if stamp > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""
