"""Archives (ZIP, RAR, TAR, gzip, bzip2, xz): a listing of their entries, without unpacking any of them."""

import bz2
import itertools
import lzma
import re
import struct
import tarfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import RawIOBase
from typing import IO, BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.domain.safe_text import clean_name
from belino.domain.units import format_size
from belino.readers import charset
from belino.readers.parts import CannotRead, Parts, ReadOptions

UNKNOWN_TARGET = "?"
_DRIVE = re.compile(r"[A-Za-z]:")

ENTRIES_A_PART = 200
ENTRIES_AT_MOST = 500_000
"""Further entries are not counted."""
NAME_CHARS = 300
RATIO_NOTED = 100

LIST_BYTES = 64 * 1024 * 1024
_TAIL_BYTES = 65_557 + 20 + 56
_END, _END_64, _LOCATOR_64, _CENTRAL = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02"
_NAMES_SAMPLED = 2_000
_ENCRYPTED, _UTF8 = 0x1, 0x800
_WIDE_EXTRA, _AES = 0x0001, 99
_UNKNOWN = 0xFFFFFFFF

UNPACKED_AT_MOST = 1024 * 1024 * 1024
SECONDS_AT_MOST = 10
"""CPU seconds of the child for decompressing what is skipped: enough for all of a gzip, a third of a bzip2."""
DICTIONARY_BYTES = 128 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """A file or folder in an archive; or, with a `note`, a remark about the list itself."""

    name: str = ""
    size: int | None = None
    """Unpacked, as declared by the archive."""
    modified: str = ""
    folder: bool = False
    encrypted: bool = False
    link: str = ""
    """Its target; UNKNOWN_TARGET if the list does not contain it."""
    note: str = ""

    @property
    def outside(self) -> bool:
        """Whether unpacking it by its name, or following its link, would leave the folder."""
        return _leaves(self.name) or bool(self.link and _leaves(self.link, depth=self.name.count("/")))


def _leaves(path: str, *, depth: int = 0) -> bool:
    plain = path.replace("\\", "/")
    if plain.startswith("/") or _DRIVE.match(plain) or "\0" in plain:
        return True
    for step in plain.split("/"):
        depth += -1 if step == ".." else 0 if step in ("", ".") else 1
        if depth < 0:
            return True
    return False


@dataclass(slots=True)
class _Tally:
    """Counts over all entries."""

    entries: int = 0
    folders: int = 0
    unpacked: int = 0
    encrypted: int = 0
    outside: int = 0
    names: Counter[int] = field(default_factory=Counter)

    def count(self, entry: ArchiveEntry) -> None:
        self.entries += 1
        self.folders += entry.folder
        self.unpacked += entry.size or 0
        self.encrypted += entry.encrypted
        self.outside += entry.outside
        self.names[hash(entry.name)] += 1

    def notes(self, packed: int) -> Iterator[str]:
        files = self.entries - self.folders
        yield (
            f"{_counted(files, 'file')}, {_counted(self.folders, 'folder')}, {format_size(self.unpacked)} if unpacked; "
            "nothing was"
        )
        if self.encrypted:
            yield f"encrypted: {self.encrypted:,}"
        if self.outside:
            yield f"names that lead out of the folder they would be unpacked in: {self.outside:,}"
        if twice := sum(count > 1 for count in self.names.values()):
            yield f"names that occur more than once: {twice:,}"
        if packed and self.unpacked / packed > RATIO_NOTED:
            yield f"it unpacks to {round(self.unpacked / packed):,} times its size: a bomb, most likely"


def prepare() -> None:
    """Load the codecs and the parser of RAR before the sandbox forks: its child cannot."""
    charset.prepare()
    from belino.readers import rar

    rar.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The listing, some hundred entries per part."""
    size = file.seek(0, 2)
    file.seek(0)
    parts = Parts(options, DocumentUnit.LIST)
    tally = _Tally()
    total = 0
    listed = itertools.islice(_entries(file, options), ENTRIES_AT_MOST + 1)
    for group in _groups(listed, tally, parts):
        total += 1
        if parts.wants(total):
            begin = (total - 1) * ENTRIES_A_PART + 1
            parts.add(
                total, "\n".join(_line(entry) for entry in group), f"entries {begin:,}–{begin + len(group) - 1:,}"
            )
    if tally.entries > ENTRIES_AT_MOST:
        parts.note(f"there are more than {ENTRIES_AT_MOST:,} entries; the rest was not counted")
    if not tally.entries:
        raise CannotRead(Unread.NO_TEXT, "the archive is empty")
    parts.note(*tally.notes(size))
    return parts.document(total)


def _entries(file: BinaryIO, options: ReadOptions) -> Iterable[ArchiveEntry]:
    match options.mime:
        case "application/x-tar" | "application/gzip" | "application/x-bzip2" | "application/x-xz":
            return _tar_entries(file, options.mime, options.name)
        case "application/vnd.rar":
            from belino.readers import rar

            return rar.entries(file)
        case _:
            return _zip_entries(file)


def _groups(entries: Iterable[ArchiveEntry], tally: _Tally, parts: Parts) -> Iterator[list[ArchiveEntry]]:
    group: list[ArchiveEntry] = []
    for entry in entries:
        if entry.note:
            parts.note(entry.note)
            continue
        tally.count(entry)
        group.append(entry)
        if len(group) == ENTRIES_A_PART:
            yield group
            group = []
    if group:
        yield group


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _link(target: str) -> str:
    if target in ("", UNKNOWN_TARGET):
        return "link" if target else ""
    return f"link to {clean_name(target, limit=NAME_CHARS)}"


def _line(entry: ArchiveEntry) -> str:
    """`name, size, date, remarks`."""
    about = [
        clean_name(entry.name, limit=NAME_CHARS) or "unnamed",
        "folder" if entry.folder else format_size(entry.size) if entry.size is not None else "",
        entry.modified,
        _link(entry.link),
        "encrypted" if entry.encrypted else "",
        "leads out of its folder" if entry.outside else "",
    ]
    return f"- {', '.join(part for part in about if part)}"


@dataclass(frozen=True, slots=True)
class _CentralEntry:
    name: bytes
    size: int
    flags: int
    method: int
    date: int
    mode: int


def _zip_entries(file: BinaryIO) -> Iterator[ArchiveEntry]:
    """The entries of a zip by its central directory, read one by one, so that false counts in it cost nothing."""
    listed = _central_directory(file)
    sampled = (raw.name for raw in itertools.islice(_central_entries(listed), _NAMES_SAMPLED) if not raw.flags & _UTF8)
    unmarked = b"\n".join(name for name in sampled if not name.isascii())
    # Names without the UTF-8 flag are in the character set of the packing system, rarely in the one the format names.
    codec = charset.detect(unmarked)[0] if unmarked else "cp437"
    for raw in _central_entries(listed):
        name = raw.name.decode("utf-8" if raw.flags & _UTF8 else codec, "replace")
        yield ArchiveEntry(
            name=name,
            size=raw.size,
            modified=_zip_date(raw.date),
            folder=name.endswith("/"),
            encrypted=bool(raw.flags & _ENCRYPTED) or raw.method == _AES,
            link=UNKNOWN_TARGET if raw.mode >> 12 == 0xA else "",
        )


def _central_directory(file: BinaryIO) -> bytes:
    """The central directory; data before the archive (a self-extractor, a picture) is skipped."""
    size = file.seek(0, 2)
    begin = max(0, size - _TAIL_BYTES)
    file.seek(begin)
    tail = file.read(_TAIL_BYTES)
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken: the list of its entries is missing")
    length, offset = struct.unpack_from("<II", tail, at + 12)
    end = begin + at
    if _UNKNOWN in (length, offset) or tail[at - 20 : at - 16] == _LOCATOR_64:
        wide = tail.rfind(_END_64, 0, at)
        if wide >= 0 and len(tail) >= wide + 56:
            length, offset = struct.unpack_from("<QQ", tail, wide + 40)
            end = begin + wide
    content = b""
    # Directly before the end record; if something lies between, at the offset in that record.
    for place in (end - length, offset):
        file.seek(max(0, min(place, size)))
        content = file.read(min(length, LIST_BYTES))
        if content.startswith(_CENTRAL):
            break
    return content


def _central_entries(content: bytes) -> Iterator[_CentralEntry]:
    at = 0
    while content[at : at + 4] == _CENTRAL and at + 46 <= len(content):
        flags, method, _, date = struct.unpack_from("<HHHH", content, at + 8)
        size, name, extra, comment = struct.unpack_from("<IHHH", content, at + 24)
        (mode,) = struct.unpack_from("<I", content, at + 38)
        begin = at + 46
        size = _zip64_size(content[begin + name : begin + name + extra], size)
        yield _CentralEntry(content[begin : begin + name], size, flags, method, date, mode >> 16)
        at = begin + name + extra + comment
    if content and at == 0:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken: the list of its entries cannot be read")


def _zip64_size(extra: bytes, size: int) -> int:
    """The size from the ZIP64 field, if four bytes are too few for it."""
    at = 0
    while size == _UNKNOWN and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == _WIDE_EXTRA and length >= 8 and at + 12 <= len(extra):
            return int(struct.unpack_from("<Q", extra, at + 4)[0])
        at += 4 + length
    return size


def _zip_date(packed: int) -> str:
    year, month, day = 1980 + (packed >> 9), packed >> 5 & 0xF, packed & 0x1F
    return f"{year}-{month:02}-{day:02}" if 1 <= month <= 12 and day and packed > 0x21 else ""


class _LimitReached(Exception):
    """The decompression limit is reached."""


class _Unpacked(RawIOBase):
    """The decompressed stream of a file, forward only and limited."""

    def __init__(self, file: BinaryIO, mime: str) -> None:
        self._file = file
        self._mime = mime
        self._unpacker = _unpacker(mime)
        self._rest = b""
        self._begun = time.process_time()
        self.given = 0
        self.cut = False
        """The input ended too early."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        """Read the next piece for the tar reader."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        piece = self._piece(len(view))
        view[: len(piece)] = piece
        self.given += len(piece)
        if self.given > UNPACKED_AT_MOST or time.process_time() - self._begun > SECONDS_AT_MOST:
            raise _LimitReached(f"{self.given // 2**20} MB")
        return len(piece)

    def _piece(self, size: int) -> bytes:
        while True:
            if self._unpacker.eof:
                # Concatenated compressed files count as one.
                self._rest = self._unpacker.unused_data or self._file.read(_CHUNK_BYTES)
                if not self._rest.strip(b"\0"):
                    return b""
                self._unpacker = _unpacker(self._mime)
            needs = getattr(self._unpacker, "needs_input", True)
            if needs and not self._rest:
                self._rest = self._file.read(_CHUNK_BYTES)
                if not self._rest:
                    self.cut = True
                    return b""
            piece = self._unpacker.decompress(self._rest, size)
            self._rest = getattr(self._unpacker, "unconsumed_tail", b"")
            if piece:
                return bytes(piece)


def _tar_entries(file: BinaryIO, mime: str, name: str) -> Iterator[ArchiveEntry]:
    """The entries of a tar, header by header; for a compressed file that is not an archive, that one file."""
    if mime not in _PACKINGS:
        cut = file.seek(0, 2) % tarfile.BLOCKSIZE > 0
        file.seek(0)
        yield from _tar_headers(file)
        if cut:
            yield ArchiveEntry(note=_EARLY)
        return
    stream = _Unpacked(file, mime)
    head = _tar_head(stream)
    if _tar_begins(head):
        file.seek(0)
        stream = _Unpacked(file, mime)
        yield from _tar_headers(stream)
        if stream.cut:
            yield ArchiveEntry(note=_EARLY)
        return
    yield from _single(stream, len(head), name or "file", _PACKINGS[mime])


def _tar_begins(head: bytes) -> bool:
    """Whether unpacked bytes are a tar: its magic, or a header with a valid checksum."""
    if head[257:262] == b"ustar":
        return True
    written = head[148:156].strip(b" \0")
    if len(head) < 512 or not written.isdigit() or not head[0] or set(written) - set(b"01234567"):
        return False
    return int(written, 8) == sum(head[:148]) + 8 * 32 + sum(head[156:512])


def _tar_headers(stream: IO[bytes] | RawIOBase) -> Iterator[ArchiveEntry]:
    before = -1
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK_BYTES) as archive:
            for member in archive:
                if member.offset <= before or member.size < 0:
                    raise ValueError("a header that leads back")
                before = member.offset
                # The reader keeps every member; a list of a million of them would fill the memory.
                archive.members.clear()  # type: ignore[attr-defined]
                yield _tar_entry(member)
    except _LimitReached as so_far:
        yield ArchiveEntry(note=f"the listing ends after {so_far} of unpacked content")
    except _BROKEN as error:
        if before < 0:
            raise CannotRead(Unread.UNREADABLE, "the archive is broken") from error
        yield ArchiveEntry(note=_EARLY)


def _tar_entry(member: tarfile.TarInfo) -> ArchiveEntry:
    return ArchiveEntry(
        name=member.name,
        size=None if member.isdir() else member.size,
        modified=_tar_date(member.mtime),
        folder=member.isdir(),
        link=member.linkname if member.issym() or member.islnk() else "",
    )


def _tar_head(stream: _Unpacked) -> bytes:
    head = b""
    try:
        while len(head) < 512 and (piece := stream.read(512 - len(head))):
            head += piece
    except _BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the packed file is broken") from error
    return head


def _single(stream: _Unpacked, size: int, name: str, suffix: str) -> Iterator[ArchiveEntry]:
    note = ""
    try:
        while piece := stream.read(_CHUNK_BYTES):
            size += len(piece)
    except _LimitReached as so_far:
        note = f"unpacked, it is larger than {so_far}"
    except _BROKEN:
        note = _ENDLESS
    if stream.cut:
        note = _ENDLESS
    last = name.replace("\\", "/").rpartition("/")[2]
    yield ArchiveEntry(name=last.removesuffix(suffix) or last, size=size)
    if note:
        yield ArchiveEntry(note=note)


def _unpacker(mime: str) -> "zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor":
    if mime == "application/gzip":
        return zlib.decompressobj(31)
    if mime == "application/x-bzip2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor(memlimit=DICTIONARY_BYTES)


def _tar_date(stamp: float) -> str:
    try:
        return f"{datetime.fromtimestamp(stamp, UTC):%Y-%m-%d}" if stamp > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""
