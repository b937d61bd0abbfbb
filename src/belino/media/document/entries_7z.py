"""The header of a 7z archive, which is itself packed as a rule; nothing else is unpacked."""

import lzma
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from belino.domain.document import Unread
from belino.media.document.entries import UNTOLD, Entry
from belino.media.document.parts import CannotRead

HEADER_BYTES = 32 * 1024 * 1024
DICTIONARY_BYTES = 64 * 1024 * 1024
FILES_AT_MOST = 500_000
FOLDERS_AT_MOST = 100_000
PACKED_AT_MOST = 20
"""A packed header may be packed again; nobody does it often."""

_MAGIC = b"7z\xbc\xaf\x27\x1c"
_END, _HEADER, _ARCHIVE, _ADDITIONAL, _STREAMS, _FILES = range(6)
_PACK, _UNPACK, _SUBSTREAMS, _SIZE, _CRC, _FOLDER, _CODERS_SIZE, _NUM_STREAMS = range(6, 14)
_EMPTY_STREAM, _EMPTY_FILE, _NAMES, _MTIME, _ATTRIBUTES, _ENCODED = 14, 15, 17, 20, 21, 23
_COPY, _LZMA, _LZMA2, _AES = b"\0", b"\x03\x01\x01", b"\x21", b"\x06\xf1\x07\x01"
_DIRECTORY, _UNIX, _LINK = 0x10, 0x8000, 0xA
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Coders:
    """How one stream is packed: methods with their settings, and the sizes of what comes out."""

    methods: list[tuple[bytes, bytes]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    outputs: int = 0
    bound: set[int] = field(default_factory=set)
    """Outputs that are the input of the next method."""
    packed: int = 1
    files: int = 1
    summed: bool = False

    @property
    def size(self) -> int:
        """Of what comes out at the very end."""
        free = [size for at, size in enumerate(self.sizes) if at not in self.bound]
        return free[0] if free else 0

    @property
    def encrypted(self) -> bool:
        return any(method == _AES for method, _ in self.methods)


@dataclass(slots=True)
class _Layout:
    """Where the packed streams lie, and what is in each."""

    at: int = 0
    packed: list[int] = field(default_factory=list)
    coders: list[_Coders] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Of the files with content, in order."""


class _Bytes:
    """A header, read from its beginning; whatever is beyond its end is an error."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._content) - self._at:
            raise _broken()
        self._at += size
        return self._content[self._at - size : self._at]

    def rest(self) -> bytes:
        return self.take(len(self._content) - self._at)

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, most: int = 1 << 62) -> int:
        """One to nine bytes: the first says how many by its leading ones."""
        first = self.byte()
        more = next((count for count in range(8) if not first & 0x80 >> count), 8)
        low = int.from_bytes(self.take(more), "little")
        value = low | (first & (0x7F >> more)) << 8 * more if more < 8 else low
        if value > most:
            raise _broken()
        return value

    def bits(self, count: int) -> list[bool]:
        packed = self.take((count + 7) // 8)
        return [bool(packed[at >> 3] & 0x80 >> (at & 7)) for at in range(count)]

    def known(self, count: int) -> list[bool]:
        """Which of them have a value: all, or those of a bit each."""
        return [True] * count if self.byte() else self.bits(count)


def entries(file: BinaryIO) -> Iterator[Entry]:
    """Every entry of the header."""
    header = _Bytes(_header(file))
    kind = header.byte()
    for _ in range(PACKED_AT_MOST):
        if kind != _ENCODED:
            break
        layout = _streams(header)
        header = _Bytes(_unpacked(file, layout))
        kind = header.byte()
    if kind != _HEADER:
        raise _broken()
    return _listed(header)


def _header(file: BinaryIO) -> bytes:
    file.seek(0)
    start = file.read(32)
    if len(start) < 32 or not start.startswith(_MAGIC):
        raise _broken()
    offset, size = struct.unpack_from("<QQ", start, 12)
    if size > HEADER_BYTES:
        raise CannotRead(Unread.TOO_LARGE, "the list of its entries is larger than belino reads")
    if not size:
        return bytes([_HEADER, _END])
    end = file.seek(0, 2)
    if 32 + offset + size > end:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken: its end is missing")
    file.seek(32 + offset)
    return file.read(size)


def _unpacked(file: BinaryIO, layout: _Layout) -> bytes:
    if not layout.coders or not layout.packed:
        raise _broken()
    coders = layout.coders[0]
    if coders.encrypted:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password, the names in it too")
    if coders.size > HEADER_BYTES or layout.packed[0] > HEADER_BYTES or len(coders.methods) != 1:
        raise CannotRead(Unread.TOO_LARGE, "the list of its entries is packed in a way belino does not unpack")
    end = file.seek(0, 2)
    file.seek(min(32 + layout.at, end))
    packed = file.read(layout.packed[0])
    method, settings = coders.methods[0]
    if method == _COPY:
        return packed
    try:
        content = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_filter(method, settings)]).decompress(
            packed, coders.size
        )
    except (lzma.LZMAError, ValueError, EOFError) as error:
        raise _broken() from error
    return content


def _filter(method: bytes, settings: bytes) -> dict[str, int]:
    if method == _LZMA and len(settings) >= 5 and settings[0] < 225:
        rest, lc = divmod(settings[0], 9)
        pb, lp = divmod(rest, 5)
        size = int.from_bytes(settings[1:5], "little")
        return {"id": lzma.FILTER_LZMA1, "lc": lc, "lp": lp, "pb": pb, "dict_size": _dictionary(size)}
    if method == _LZMA2 and settings and settings[0] <= 40:
        size = (2 | settings[0] & 1) << settings[0] // 2 + 11
        return {"id": lzma.FILTER_LZMA2, "dict_size": _dictionary(size)}
    raise CannotRead(Unread.UNSUPPORTED, "the list of its entries is packed in a way belino does not unpack")


def _dictionary(size: int) -> int:
    """Never more than the header can fill; whoever asks for more gets what was promised all the same."""
    return max(4096, min(size, DICTIONARY_BYTES))


def _streams(header: _Bytes) -> _Layout:
    layout = _Layout()
    while (kind := header.byte()) != _END:
        if kind == _PACK:
            _pack(header, layout)
        elif kind == _UNPACK:
            _unpack(header, layout)
        elif kind == _SUBSTREAMS:
            _substreams(header, layout)
        else:
            raise _broken()
    layout.sizes = layout.sizes or [coders.size for coders in layout.coders]
    return layout


def _pack(header: _Bytes, layout: _Layout) -> None:
    layout.at = header.number()
    count = header.number(FOLDERS_AT_MOST)
    while (kind := header.byte()) != _END:
        if kind == _SIZE:
            layout.packed = [header.number() for _ in range(count)]
        elif kind == _CRC:
            header.take(4 * sum(header.known(count)))
        else:
            raise _broken()


def _unpack(header: _Bytes, layout: _Layout) -> None:
    if header.byte() != _FOLDER:
        raise _broken()
    count = header.number(FOLDERS_AT_MOST)
    if header.byte():
        raise CannotRead(Unread.UNSUPPORTED, "the list of its entries is kept in a way belino does not know")
    layout.coders = [_coders(header) for _ in range(count)]
    if header.byte() != _CODERS_SIZE:
        raise _broken()
    for coders in layout.coders:
        coders.sizes = [header.number() for _ in range(coders.outputs)]
    while (kind := header.byte()) != _END:
        if kind != _CRC:
            raise _broken()
        known = header.known(count)
        header.take(4 * sum(known))
        for coders, summed in zip(layout.coders, known, strict=True):
            coders.summed = summed


def _coders(header: _Bytes) -> _Coders:
    coders, inputs = _Coders(), 0
    for _ in range(header.number(32)):
        flags = header.byte()
        method = header.take(flags & 0xF)
        taken, given = (header.number(32), header.number(32)) if flags & 0x10 else (1, 1)
        settings = header.take(header.number(4096)) if flags & 0x20 else b""
        coders.methods.append((method, settings))
        inputs, coders.outputs = inputs + taken, coders.outputs + given
    for _ in range(max(0, coders.outputs - 1)):
        header.number()
        coders.bound.add(header.number())
    coders.packed = inputs - max(0, coders.outputs - 1)
    if coders.packed > 1:
        for _ in range(coders.packed):
            header.number()
    return coders


def _substreams(header: _Bytes, layout: _Layout) -> None:
    kind = header.byte()
    if kind == _NUM_STREAMS:
        for coders in layout.coders:
            coders.files = header.number(FILES_AT_MOST)
        kind = header.byte()
    if sum(coders.files for coders in layout.coders) > FILES_AT_MOST:
        raise CannotRead(Unread.TOO_LARGE, f"there are more than {FILES_AT_MOST:,} entries in it")
    for coders in layout.coders:
        # The last size is what is left of the whole.
        known = [header.number() for _ in range(coders.files - 1)] if kind == _SIZE else []
        layout.sizes += [*known, max(0, coders.size - sum(known))] if coders.files else []
    kind = header.byte() if kind == _SIZE else kind
    unsummed = sum(coders.files for coders in layout.coders if not (coders.files == 1 and coders.summed))
    while kind != _END:
        if kind != _CRC:
            raise _broken()
        header.take(4 * sum(header.known(unsummed)))
        kind = header.byte()


@dataclass(slots=True)
class _Files:
    count: int
    names: list[str] = field(default_factory=list)
    empty: list[bool] = field(default_factory=list)
    files_among_empty: list[bool] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    attributes: list[int] = field(default_factory=list)


def _listed(header: _Bytes) -> Iterator[Entry]:
    layout = _Layout()
    files = _Files(0)
    while (kind := header.byte()) != _END:
        if kind == _ARCHIVE:
            _skip(header)
        elif kind == _ADDITIONAL:
            _streams(header)
        elif kind == _STREAMS:
            layout = _streams(header)
        elif kind == _FILES:
            files = _files(header)
        else:
            raise _broken()
    yield from _entries(files, layout)


def _entries(files: _Files, layout: _Layout) -> Iterator[Entry]:
    sizes = iter(layout.sizes)
    locked = iter([coders.encrypted for coders in layout.coders for _ in range(coders.files)])
    among = iter(files.files_among_empty)
    for at in range(files.count):
        empty = files.empty[at] if at < len(files.empty) else False
        attributes = files.attributes[at] if at < len(files.attributes) else 0
        folder = (empty and not next(among, False)) or bool(attributes & _DIRECTORY)
        yield Entry(
            name=files.names[at] if at < len(files.names) else "",
            size=None if folder else 0 if empty else next(sizes, None),
            modified=files.dates[at] if at < len(files.dates) else "",
            folder=folder,
            encrypted=not empty and next(locked, False),
            link=UNTOLD if attributes & _UNIX and attributes >> 28 == _LINK else "",
        )


def _skip(header: _Bytes) -> None:
    while header.byte() != _END:
        header.take(header.number())


def _files(header: _Bytes) -> _Files:
    files = _Files(header.number(FILES_AT_MOST))
    while (kind := header.byte()) != _END:
        content = _Bytes(header.take(header.number(HEADER_BYTES)))
        if kind == _NAMES:
            files.names = _names(content, files.count)
        elif kind == _EMPTY_STREAM:
            files.empty = content.bits(files.count)
        elif kind == _EMPTY_FILE:
            files.files_among_empty = content.bits(sum(files.empty))
        elif kind == _MTIME:
            files.dates = [_date(int.from_bytes(value, "little")) for value in _values(content, files.count, 8)]
        elif kind == _ATTRIBUTES:
            files.attributes = [int.from_bytes(value, "little") for value in _values(content, files.count, 4)]
    return files


def _values(content: _Bytes, count: int, size: int) -> list[bytes]:
    known = content.known(count)
    if content.byte():
        return []
    return [content.take(size) if each else b"" for each in known]


def _names(content: _Bytes, count: int) -> list[str]:
    if content.byte():
        return []
    return content.rest().decode("utf-16-le", "replace").split("\0")[:count]


def _date(stamp: int) -> str:
    try:
        return f"{_EPOCH + timedelta(microseconds=stamp // 10):%Y-%m-%d}" if stamp else ""
    except (OverflowError, ValueError):
        return ""


def _broken() -> CannotRead:
    return CannotRead(Unread.UNREADABLE, "the archive is broken")
