"""An office file of the OOXML kind: its parts, and the relations that lead from one to the other."""

import posixpath
from dataclasses import dataclass
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.media.document import xml
from belino.media.document.parts import CannotRead, Parts
from belino.media.document.zips import Archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a relation leads: to another part, or out of the file."""

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an office file, by name."""

    def __init__(self, file: BinaryIO) -> None:
        self.archive = Archive(file)

    def main(self, default: str) -> str:
        """The part everything hangs on."""
        links = self.links("").values()
        return next((link.target for link in links if link.kind == "officeDocument" and not link.external), default)

    def links(self, part: str) -> dict[str, Link]:
        """The relations of a part, by id; none if they are missing or broken."""
        folder, name = posixpath.split(part)
        relations = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Link] = {}
        for relation in relations if relations is not None else ():
            target, external = xml.value(relation, "Target"), xml.value(relation, "TargetMode") == "External"
            kind = xml.value(relation, "Type").rpartition("/")[2]
            inside = target if external else posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[xml.value(relation, "Id")] = Link(kind=kind, target=inside, external=external)
        return found

    def tree(self, part: str) -> Element | None:
        """A part that only adds to the text: without it, or if it is broken, there is still the rest."""
        try:
            content = self.archive.find(part)
            return xml.tree(content) if content else None
        except CannotRead:
            return None

    def tell(self, parts: Parts) -> None:
        """Note what is in the file and not in its text."""
        names = [name.lower() for name in self.archive.names]
        if any(name.endswith("vbaproject.bin") for name in names):
            parts.note("macros were left out")
        embedded = sum("/embeddings/" in name for name in names)
        if embedded:
            parts.note(f"{embedded} embedded file{'s were' if embedded > 1 else ' was'} left out")
