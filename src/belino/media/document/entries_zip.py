"""The list at the end of a zip: walked entry by entry, so that a lie in it costs nothing."""

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from belino.domain.document import Unread
from belino.media.document import charset
from belino.media.document.entries import UNTOLD, Entry
from belino.media.document.parts import CannotRead

LIST_BYTES = 64 * 1024 * 1024
_TAIL_BYTES = 65_557 + 20 + 56
_END, _END_64, _LOCATOR_64, _CENTRAL = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02"
_NAMES_SAMPLED = 2_000
_ENCRYPTED, _UTF8 = 0x1, 0x800
_WIDE_EXTRA, _AES = 0x0001, 99
_UNKNOWN = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Raw:
    name: bytes
    size: int
    flags: int
    method: int
    date: int
    mode: int


def entries(file: BinaryIO) -> Iterator[Entry]:
    """Every entry of the list."""
    listed = _central(file)
    sampled = (raw.name for raw in itertools.islice(_walk(listed), _NAMES_SAMPLED) if not raw.flags & _UTF8)
    unmarked = b"\n".join(name for name in sampled if not name.isascii())
    # Names without a mark are in the set of whoever packed them; pure luck if that is the one the format names.
    codec = charset.detect(unmarked)[0] if unmarked else "cp437"
    for raw in _walk(listed):
        name = raw.name.decode("utf-8" if raw.flags & _UTF8 else codec, "replace")
        yield Entry(
            name=name,
            size=raw.size,
            modified=_date(raw.date),
            folder=name.endswith("/"),
            encrypted=bool(raw.flags & _ENCRYPTED) or raw.method == _AES,
            link=UNTOLD if raw.mode >> 12 == 0xA else "",
        )


def _central(file: BinaryIO) -> bytes:
    """The list; what stands before the archive (a program that unpacks it, a picture) is passed over."""
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
    # Right before its end; only if something odd lies between, where the end says.
    for place in (end - length, offset):
        file.seek(max(0, min(place, size)))
        content = file.read(min(length, LIST_BYTES))
        if content.startswith(_CENTRAL):
            break
    return content


def _walk(content: bytes) -> Iterator[_Raw]:
    at = 0
    while content[at : at + 4] == _CENTRAL and at + 46 <= len(content):
        flags, method, _, date = struct.unpack_from("<HHHH", content, at + 8)
        size, name, extra, comment = struct.unpack_from("<IHHH", content, at + 24)
        (mode,) = struct.unpack_from("<I", content, at + 38)
        begin = at + 46
        size = _wide(content[begin + name : begin + name + extra], size)
        yield _Raw(content[begin : begin + name], size, flags, method, date, mode >> 16)
        at = begin + name + extra + comment
    if content and at == 0:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken: the list of its entries cannot be read")


def _wide(extra: bytes, size: int) -> int:
    """The size, where four bytes were too few for it."""
    at = 0
    while size == _UNKNOWN and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == _WIDE_EXTRA and length >= 8 and at + 12 <= len(extra):
            return int(struct.unpack_from("<Q", extra, at + 4)[0])
        at += 4 + length
    return size


def _date(packed: int) -> str:
    year, month, day = 1980 + (packed >> 9), packed >> 5 & 0xF, packed & 0x1F
    return f"{year}-{month:02}-{day:02}" if 1 <= month <= 12 and day and packed > 0x21 else ""
