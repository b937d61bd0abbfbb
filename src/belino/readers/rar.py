"""RAR archives: a listing of their entries from the headers, without unpacking any of them."""

from collections.abc import Iterator
from typing import BinaryIO

from belino.domain.media import Unread
from belino.readers.archive import UNKNOWN_TARGET, ArchiveEntry
from belino.readers.parts import CannotRead

BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What the library raises for malformed files, besides its own errors."""


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    import rarfile  # type: ignore[import-untyped]  # noqa: F401


def entries(file: BinaryIO) -> Iterator[ArchiveEntry]:
    """The entries of a RAR, or of one volume of it; nothing is decompressed, so no other program is needed."""
    import rarfile

    try:
        archive = rarfile.RarFile(file, part_only=True)
        listed, locked = archive.infolist(), archive.needs_password()
    except rarfile.Error as error:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken: its headers cannot be read") from error
    except BROKEN as error:
        raise CannotRead(Unread.UNREADABLE, "the archive is broken") from error
    if locked and not listed:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password: even the names in it are encrypted")
    for info in listed:
        yield ArchiveEntry(
            name=info.filename or "",
            size=info.file_size,
            modified=f"{info.mtime:%Y-%m-%d %H:%M}" if info.mtime else "",
            folder=info.is_dir(),
            encrypted=info.needs_password(),
            link=_target(info.file_redir),
        )


def _target(redirection: tuple[int, int, str] | None) -> str:
    return (redirection[2] or UNKNOWN_TARGET) if redirection else ""
