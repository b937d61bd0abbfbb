"""An archive opened safely: few entries, little inside, nothing encrypted; names are looked up, never written."""

import zipfile
import zlib
from typing import BinaryIO

from belino.domain.document import Unread
from belino.media.document.parts import CannotRead

ENTRIES_AT_MOST = 2_000
BYTES_AT_MOST = 100 * 1024 * 1024
RATIO_AT_MOST = 100
SMALL = 8 * 1024 * 1024
"""An entry below this size may be packed as tightly as it likes: tables of the same few words are."""

_ENCRYPTED = 0x1


class Archive:
    """The entries of a zip, unpacked in memory one at a time and all of them within one limit."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise CannotRead(Unread.UNREADABLE, "the archive is broken") from error
        entries = self._zip.infolist()
        if len(entries) > ENTRIES_AT_MOST:
            raise CannotRead(Unread.TOO_LARGE, f"there are more than {ENTRIES_AT_MOST:,} entries in it")
        self._entries = {_plain(entry.filename): entry for entry in entries}
        # Office programs look names up whatever their case, and some writers rely on it.
        self._folded = {name.lower(): name for name in reversed(self._entries)}
        self._left = BYTES_AT_MOST

    @property
    def names(self) -> tuple[str, ...]:
        """Every entry, in the order of the archive."""
        return tuple(self._entries)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._folded

    def read(self, name: str) -> bytes:
        """An entry's content, which may be no larger than its packed size and the archive's limit allow."""
        entry = self._entries.get(name) or self._entries.get(self._folded.get(name.lower(), ""))
        if entry is None:
            raise CannotRead(Unread.UNREADABLE, "a part of the document is missing")
        if entry.flag_bits & _ENCRYPTED:
            raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
        limit = min(self._left, max(SMALL, RATIO_AT_MOST * entry.compress_size))
        if entry.file_size > limit:
            raise _bomb()
        try:
            with self._zip.open(entry) as unpacked:
                content = unpacked.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
            raise CannotRead(Unread.UNREADABLE, "a part of the document is broken") from error
        if len(content) > limit:
            raise _bomb()
        self._left -= len(content)
        return content

    def find(self, name: str) -> bytes | None:
        """An entry's content, or None if there is none of that name."""
        return self.read(name) if name in self else None


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/")


def _bomb() -> CannotRead:
    return CannotRead(Unread.TOO_LARGE, "unpacked, it would be larger than belino reads")
