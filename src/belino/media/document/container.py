"""Old office files (OLE): the streams in them, by name."""

import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from belino.domain.document import Unread
from belino.media.document.parts import CannotRead

if TYPE_CHECKING:
    from olefile import OleFileIO  # type: ignore[import-untyped]

STREAM_BYTES = 100 * 1024 * 1024
_SHIFTS_AT = 30
_SHIFTS = ((9, 6), (12, 6))
"""Of sectors and small sectors, as powers of two: all there are. The library would read as much as any other says."""
BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error, RecursionError)
"""What the library raises for files that are not as they should be."""


def number(content: bytes, at: int, size: int = 4) -> int:
    """A number that stands there; nothing is zero."""
    return int.from_bytes(content[at : at + size], "little")


def prepare() -> None:
    """Import the parser; in the child it would be too late."""
    import olefile  # noqa: F401


def opened(file: BinaryIO) -> "OleFileIO":
    """The container; closing it would close the file, which others still read."""
    import olefile

    file.seek(_SHIFTS_AT)
    shifts = file.read(4)
    if (number(shifts, 0, 2), number(shifts, 2, 2)) not in _SHIFTS:
        raise CannotRead(Unread.UNREADABLE, "the file is broken")
    file.seek(0)
    try:
        container = olefile.OleFileIO(file)
        container.listdir()  # whoever walks through it later knows that this can be done
    except BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
    return container


def names(container: "OleFileIO") -> dict[str, str]:
    """The streams at the top by their names in small letters: some writers shout."""
    return {path[0].lower(): path[0] for path in container.listdir()}


def stream(container: "OleFileIO", path: Sequence[str], most: int = STREAM_BYTES) -> bytes:
    """The beginning of a stream, all of it unless it is longer than anybody wants."""
    try:
        # The list of its sectors may run in circles: nothing in a file is larger than the file.
        if container.get_size(path) > container.fp.seek(0, os.SEEK_END):
            raise CannotRead(Unread.UNREADABLE, "the file is broken")
        with container.openstream(path) as opened:
            content: bytes = opened.read(most)
    except BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
    return content


def top_stream(container: "OleFileIO", name: str) -> bytes:
    """A stream at the top, whatever the case of its name; nothing, if there is none."""
    found = names(container).get(name.lower())
    return stream(container, [found]) if found else b""
