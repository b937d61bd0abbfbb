"""Packages: zip archives opened safely, and the parts and relationships of an office file."""

import posixpath
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import Unread
from belino.readers.parts import CannotRead, Parts
from belino.readers.xml import tree, value

ENTRIES_AT_MOST = 2_000
BYTES_AT_MOST = 100 * 1024 * 1024
RATIO_AT_MOST = 100
SMALL_BYTES = 8 * 1024 * 1024
"""An entry below this size may have any compression ratio: repetitive tables do."""

_ENCRYPTED = 0x1


class ZipArchive:
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
        # Office programs look up names ignoring case, and some writers rely on it.
        self._folded = {name.lower(): name for name in reversed(self._entries)}
        self._left = BYTES_AT_MOST

    @property
    def names(self) -> tuple[str, ...]:
        """Every entry, in the order of the archive."""
        return tuple(self._entries)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._folded

    def read(self, name: str) -> bytes:
        """An entry's content, limited by its packed size and by the archive's limit."""
        entry = self._entries.get(name) or self._entries.get(self._folded.get(name.lower(), ""))
        if entry is None:
            raise CannotRead(Unread.UNREADABLE, "a part of the document is missing")
        if entry.flag_bits & _ENCRYPTED:
            raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
        limit = min(self._left, max(SMALL_BYTES, RATIO_AT_MOST * entry.compress_size))
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
        """An entry's content; None if there is no such entry."""
        return self.read(name) if name in self else None


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/")


def _bomb() -> CannotRead:
    return CannotRead(Unread.TOO_LARGE, "unpacked, it would be larger than belino reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """The target of a relationship: another part, or an external one."""

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an office file, by name."""

    def __init__(self, file: BinaryIO) -> None:
        self.archive = ZipArchive(file)

    def main(self, default: str) -> str:
        """The main part."""
        links = self.links("").values()
        return next((link.target for link in links if link.kind == "officeDocument" and not link.external), default)

    def links(self, part: str) -> dict[str, Relationship]:
        """The relationships of a part, by id; empty if they are missing or broken."""
        folder, name = posixpath.split(part)
        relations = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Relationship] = {}
        for relation in relations if relations is not None else ():
            target, external = value(relation, "Target"), value(relation, "TargetMode") == "External"
            kind = value(relation, "Type").rpartition("/")[2]
            inside = target if external else posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[value(relation, "Id")] = Relationship(kind=kind, target=inside, external=external)
        return found

    def tree(self, part: str) -> Element | None:
        """An optional part; None if it is missing or broken."""
        try:
            content = self.archive.find(part)
            return tree(content) if content else None
        except CannotRead:
            return None

    def tell(self, parts: Parts) -> None:
        """Add notes about what is in the file and not in its text."""
        names = [name.lower() for name in self.archive.names]
        if any(name.endswith("vbaproject.bin") for name in names):
            parts.note("macros were left out")
        embedded = sum("/embeddings/" in name for name in names)
        if embedded:
            parts.note(f"{embedded} embedded file{'s were' if embedded > 1 else ' was'} left out")
