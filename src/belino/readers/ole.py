"""OLE containers of legacy office files: their streams, and the type of document they contain."""

import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from belino.domain.media import Unread
from belino.readers.parts import CannotRead

if TYPE_CHECKING:
    from olefile import OleFileIO  # type: ignore[import-untyped]

STREAM_BYTES = 100 * 1024 * 1024
_SHIFTS_AT = 30
_SHIFTS = ((9, 6), (12, 6))
"""Sizes of sectors and small sectors, as powers of two: the only valid ones. The library would accept any."""
BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error, RecursionError)
"""What the library raises for malformed files."""

_LOCKED = frozenset({"encryptedpackage", "encryptioninfo"})
_TYPES = {
    "worddocument": "application/msword",
    "powerpoint document": "application/vnd.ms-powerpoint",
    "workbook": "application/vnd.ms-excel",
    "book": "application/vnd.ms-excel",
    "__properties_version1.0": "application/vnd.ms-outlook",
}
"""The stream that identifies each type of document, in the order of the checks."""


def number(content: bytes, at: int, size: int = 4) -> int:
    """The little-endian number at an offset; 0 beyond the end."""
    return int.from_bytes(content[at : at + size], "little")


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    import olefile  # noqa: F401


def opened(file: BinaryIO) -> "OleFileIO":
    """The container; closing it would close the file, which is still in use."""
    import olefile

    file.seek(_SHIFTS_AT)
    shifts = file.read(4)
    if (number(shifts, 0, 2), number(shifts, 2, 2)) not in _SHIFTS:
        raise CannotRead(Unread.UNREADABLE, "the file is broken")
    file.seek(0)
    try:
        container = olefile.OleFileIO(file)
        container.listdir()  # raises here, not later, if the directory is broken
    except BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
    return container


def type_of(file: BinaryIO) -> str:
    """The type of the document in a container; CannotRead if it is encrypted or unknown."""
    container = opened(file)
    require_open(container)
    found = names(container)
    for name, mime in _TYPES.items():
        if name in found:
            return mime
    raise CannotRead(Unread.UNSUPPORTED, "belino finds no text in this kind of office file")


def require_open(container: "OleFileIO") -> None:
    """CannotRead if the document in a container is encrypted."""
    if not _LOCKED.isdisjoint(names(container)):
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")


def names(container: "OleFileIO") -> dict[str, str]:
    """The top-level streams by their names in lower case: some writers use capitals."""
    return {path[0].lower(): path[0] for path in container.listdir()}


def stream(container: "OleFileIO", path: Sequence[str], most: int = STREAM_BYTES) -> bytes:
    """The content of a stream, up to a limit."""
    try:
        # The sector chain may be a loop: no stream is larger than the file.
        if container.get_size(path) > container.fp.seek(0, os.SEEK_END):
            raise CannotRead(Unread.UNREADABLE, "the file is broken")
        with container.openstream(path) as opened:
            content: bytes = opened.read(most)
    except BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
    return content


def top_stream(container: "OleFileIO", name: str) -> bytes:
    """A top-level stream by its name in any case; empty if there is none."""
    found = names(container).get(name.lower())
    return stream(container, [found]) if found else b""
