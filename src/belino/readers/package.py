"""Packages: zip archives opened safely, the parts and relationships of an office file, and its XML without entities."""

import io
import posixpath
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from belino.domain.media import Unread
from belino.readers.parts import CannotRead, Parts

ENTRIES_AT_MOST = 2_000
BYTES_AT_MOST = 100 * 1024 * 1024
RATIO_AT_MOST = 100
SMALL_BYTES = 8 * 1024 * 1024
"""An entry below this size may have any compression ratio: repetitive tables do."""

_ENCRYPTED = 0x1

DEPTH_AT_MOST = 200
"""Deeper than any document that people write; text boxes in tables in text boxes reach sixty."""


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


class _Root(Exception):
    """The prolog has been passed."""


def children(
    content: bytes, parents: Container[str], opened: Callable[[Element], None] | None = None
) -> Iterator[Element]:
    """Every complete element inside those with these names, as it ends; yielded elements are freed.

    What is inside such an element belongs to it. An element with one of these names is never yielded itself; `opened`
    is called when it begins, with its attributes and nothing else.
    """
    _refuse_entities(content)
    above: list[Element] = []
    whole = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):  # noqa: S314
            if event == "start":
                inside = not whole and bool(above) and local(above[-1].tag) in parents
                above.append(element)
                if inside and local(element.tag) not in parents:
                    whole = len(above)
                elif opened is not None and not whole and local(element.tag) in parents:
                    opened(element)
                if len(above) > DEPTH_AT_MOST:
                    raise CannotRead(Unread.UNREADABLE, "its elements are nested too deeply")
                continue
            if len(above) == whole:
                yield element
                whole = 0
                above[-2].clear()
            above.pop()
    except ElementTree.ParseError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error


def tree(content: bytes) -> Element:
    """A small file as one tree."""
    _refuse_entities(content)
    root: Element | None = None
    depth = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):  # noqa: S314
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            if depth > DEPTH_AT_MOST:
                raise CannotRead(Unread.UNREADABLE, "its elements are nested too deeply")
    except ElementTree.ParseError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error
    if root is None:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken")
    return root


@lru_cache(maxsize=2048)
def local(tag: str) -> str:
    """A name without its namespace: strict and transitional office files differ in nothing else."""
    return tag[tag.rfind("}") + 1 :]


def find(element: Element | None, *path: str) -> Element | None:
    """The first child with that name, and of that the first, and so on."""
    for name in path:
        if element is None:
            return None
        element = next((child for child in element if local(child.tag) == name), None)
    return element


def inside(element: Element | None, *path: str) -> list[Element]:
    """The children of what `find` finds; empty if it finds nothing."""
    found = find(element, *path)
    return list(found) if found is not None else []


def named(element: Element, *names: str) -> Iterator[Element]:
    """Every element inside, at any depth, that has one of these names."""
    return (inner for inner in element.iter() if local(inner.tag) in names)


def value(element: Element | None, name: str, default: str = "") -> str:
    """An attribute, in any namespace."""
    if element is None:
        return default
    for key, found in element.attrib.items():
        if local(key) == name:
            return found
    return default


def _refuse_entities(content: bytes) -> None:
    """Declared entities allow bombs and access to other files; no office program writes any."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = _at_root
    parser.EntityDeclHandler = _at_entity
    try:
        parser.Parse(content, True)
    except _Root:
        return
    except expat.ExpatError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error


def _at_root(*_: object) -> None:
    raise _Root


def _at_entity(*_: object) -> None:
    raise CannotRead(Unread.UNREADABLE, "its XML declares entities, which are not followed")
