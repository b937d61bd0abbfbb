"""Strip the metadata of a picture without decoding it: places, cameras, comments, previews.

An allow-list names what a decoder needs; everything else is dropped. None means that the bytes do not follow their
format closely enough to be cut, so that the picture has to be re-encoded.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from mmap import mmap
from typing import TypeAlias

Piece: TypeAlias = bytes | memoryview

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = {b"IHDR": 13, b"PLTE": 768, b"tRNS": 256, b"sRGB": 1, b"gAMA": 4, b"cHRM": 32, b"sBIT": 4, b"IEND": 0}
"""The maximum size of each chunk; image data is unlimited."""
_PNG_PIXELS = b"IDAT"
_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"ALPH"})
_WEBP_PICTURES = ([b"VP8 "], [b"VP8L"], [b"ALPH", b"VP8 "])
_WEBP_ALPHA = 0x10

# JPEG: the tables, and the frame types that all decoders support; few support others or arithmetic coding.
_JPEG_KEPT = frozenset({0xDB, 0xC4, 0xDD, 0xC0, 0xC1, 0xC2})
_JPEG_RARE = frozenset(range(0xC3, 0xD0)) - _JPEG_KEPT
# Two segments define the colours in their first bytes; one ends with the size of a thumbnail, here none.
_JPEG_COLOURS = {(0xE0, b"JFIF\0"): b"\0\0", (0xEE, b"Adobe"): b""}
_JPEG_COLOURS_TOLD = 12
_JPEG_SCAN = 0xDA
_JPEG_END = 0xD9
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7]", re.DOTALL)

_GIF_CONTROL = b"\x21\xf9\x04"


def strip(mime: str, content: bytes | mmap, limit: int) -> bytes | None:
    """The same picture without metadata; None also if it exceeds the limit."""
    cut = _CUTS.get(mime)
    try:
        pieces = list(cut(memoryview(content))) if cut else []
    except (IndexError, ValueError):
        return None
    return b"".join(pieces) if 0 < sum(map(len, pieces)) <= limit else None


def _jpeg(content: memoryview) -> Iterator[Piece]:
    yield content[:2]
    at = 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("no marker where one must be")
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker == _JPEG_END:
            yield content[at : at + 2]
            return
        end = at + 2 + int.from_bytes(content[at + 2 : at + 4])
        if end > len(content) or end < at + 4:
            raise ValueError("a segment runs out of the file")
        if marker == _JPEG_SCAN:
            end = _after_scan(content, end)
        if marker in _JPEG_RARE:
            raise ValueError("not every decoder knows how this is packed")
        if marker == _JPEG_SCAN or marker in _JPEG_KEPT:
            yield content[at:end]
        else:
            yield _jpeg_colours(marker, bytes(content[at + 4 : end]))
        at = end


def _jpeg_colours(marker: int, body: bytes) -> bytes:
    """The segment without trailing data; empty for any other segment."""
    end = _JPEG_COLOURS.get((marker, body[:5]))
    if end is None:
        return b""
    body = body[:_JPEG_COLOURS_TOLD] + end
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2) + body


def _after_scan(content: memoryview, at: int) -> int:
    """The end of the compressed pixels: at a marker that is neither a stuffed byte nor a restart."""
    found = _MARKER.search(content, at)
    if found is None:
        raise ValueError("the pixels do not end")
    return found.start()


def _png(content: memoryview) -> Iterator[Piece]:
    yield _PNG
    at = len(_PNG)
    while True:
        size, kind = int.from_bytes(content[at : at + 4]), bytes(content[at + 4 : at + 8])
        end = at + 12 + size
        if len(kind) < 4 or end > len(content):
            raise ValueError("a chunk runs out of the file")
        if size > _PNG_KEPT.get(kind, size):
            raise ValueError("a chunk holds more than it may")
        if kind in _PNG_KEPT or kind == _PNG_PIXELS:
            yield content[at:end]
        if kind == b"IEND":
            return
        at = end


def _webp(content: memoryview) -> Iterator[Piece]:
    """Only drawing chunks; the extended header is rewritten, because its flags name what was removed."""
    chunks = list(_webp_chunks(content))
    if [kind for kind, _ in chunks if kind in _WEBP_KEPT] not in _WEBP_PICTURES:
        raise ValueError("not one picture inside")
    body = b"".join(piece for kind, piece in chunks if kind in _WEBP_KEPT)
    for kind, piece in chunks:
        if kind == b"VP8X" and any(other == b"ALPH" for other, _ in chunks):
            body = piece[:8] + bytes([_WEBP_ALPHA, 0, 0, 0]) + piece[12:18] + body
    yield b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


def _webp_chunks(content: memoryview) -> Iterator[tuple[bytes, bytes]]:
    at, end = 12, min(len(content), 8 + int.from_bytes(content[4:8], "little"))
    while at + 8 <= end:
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        after = at + 8 + size + size % 2
        if at + 8 + size > len(content):
            raise ValueError("a chunk runs out of the file")
        yield bytes(content[at : at + 4]), bytes(content[at:after]).ljust(after - at, b"\0")
        at = after


def _gif(content: memoryview) -> Iterator[Piece]:
    at = 13 + _colour_table(content[10])
    yield content[:at]
    while content[at] != 0x3B:
        if content[at] == 0x21:
            end = _after_blocks(content, at + 2)
            if content[at : at + 3] == _GIF_CONTROL:
                yield content[at:end]
        elif content[at] == 0x2C:
            end = _after_blocks(content, at + 11 + _colour_table(content[at + 9]))
            yield content[at:end]
        else:
            raise ValueError("no block where one must be")
        at = end
    yield b"\x3b"


def _colour_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(content: memoryview, at: int) -> int:
    while content[at]:
        at += content[at] + 1
    return at + 1


_CUTS: Mapping[str, Callable[[memoryview], Iterator[Piece]]] = {
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
    "image/gif": _gif,
}
