"""Presentations: each slide's title, text, tables, charts, picture descriptions, notes and comments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import drawing
from belino.readers.package import Package, Relationship, find, local, named, tree, value
from belino.readers.parts import HIDDEN_NOTE, CannotRead, Parts, ReadOptions, hidden, one_line

SLIDES_AT_MOST = 2_000
HIDDEN_SLIDE = "(hidden slide)"
HIDDEN_SLIDES_NOTE = "hidden slides are marked"

_NUMBER = re.compile(r"(?:^|/)slide(\d{1,6})\.xml$")
_REPEATED = frozenset({"sldNum"})
_TITLES = frozenset({"title", "ctrTitle"})
_FRAMES = frozenset({"spTree", "grpSp", "AlternateContent", "Choice"})


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The text of each slide."""
    package = Package(file)
    parts = Parts(options, DocumentUnit.SLIDE)
    package.tell(parts)
    names, size = _order(package)
    for number, name in enumerate(names, 1):
        if not parts.wants(number):
            continue
        try:
            slide = _Slide(package, name, package.links(name), parts, size)
            title, text = slide.read()
            parts.add(number, text, title)
        except CannotRead as error:
            if error.unread is Unread.TOO_LARGE:
                raise
            parts.note(f"slide {number} could not be read: {error.reason}")
            parts.add(number, "")
    return parts.document(len(names))


def _order(package: Package) -> tuple[list[str], tuple[int, int]]:
    """The slides in presentation order, and their size; without a list of them, by their numbers."""
    main = package.main("ppt/presentation.xml")
    presentation, links = package.tree(main), package.links(main)
    listed = find(presentation, "sldIdLst")
    found = [
        link.target
        for each in (listed if listed is not None else ())
        if (link := links.get(_relation(each))) and link.target in package.archive
    ]
    if not found:
        numbered = [(int(hit.group(1)), name) for name in package.archive.names if (hit := _NUMBER.search(name))]
        found = [name for _, name in sorted(numbered)]
    if not found and presentation is None:
        raise CannotRead(Unread.UNREADABLE, "a part of the document is missing")
    size = find(presentation, "sldSz")
    return found[:SLIDES_AT_MOST], (_whole(value(size, "cx")), _whole(value(size, "cy")))


def _relation(element: Element) -> str:
    """The relationship id of a slide, which also has an id of its own."""
    return next((text for key, text in element.attrib.items() if key.endswith("}id")), "")


@dataclass(slots=True)
class _Slide:
    package: Package
    name: str
    links: dict[str, Relationship]
    parts: Parts
    size: tuple[int, int]
    title: str = ""

    def read(self) -> tuple[str, str]:
        """Title and text, the title first."""
        slide = tree(self.package.archive.read(self.name))
        blocks = [block for block in self._shapes(find(slide, "cSld", "spTree"), top=True) if block.strip()]
        if value(slide, "show", "1") in ("0", "false"):
            self.parts.note(HIDDEN_SLIDES_NOTE)
            blocks.insert(0, HIDDEN_SLIDE)
        if self.title:
            blocks.insert(0, f"# {self.title}")
        return self.title, "\n\n".join([*blocks, *self._asides()])

    def _shapes(self, inside: Element | None, *, top: bool) -> Iterator[str]:
        for shape in inside if inside is not None else ():
            name = local(shape.tag)
            if name in _FRAMES:
                yield from self._marked(shape, self._shapes(shape, top=top and name != "grpSp"), top=top)
            elif name in ("sp", "pic", "graphicFrame", "cxnSp"):
                yield from self._marked(shape, self._shape(shape, name), top=top)

    def _marked(self, shape: Element, texts: Iterator[str], *, top: bool) -> Iterator[str]:
        unseen = value(_named_part(shape), "hidden") in ("1", "true") or (top and self._outside(shape))
        for text in texts:
            if unseen and text.strip():
                self.parts.note(HIDDEN_NOTE)
            yield hidden(text) if unseen else text

    def _outside(self, shape: Element) -> bool:
        place = find(shape, "spPr", "xfrm")
        place = place if place is not None else find(shape, "xfrm")
        if place is None or not all(self.size):
            return False
        left, top = (_whole(value(find(place, "off"), side)) for side in "xy")
        width, height = (_whole(value(find(place, "ext"), side)) for side in ("cx", "cy"))
        return left + width < 0 or top + height < 0 or left > self.size[0] or top > self.size[1]

    def _shape(self, shape: Element, name: str) -> Iterator[str]:
        about = _named_part(shape)
        kind = next((value(each, "type", "body") for each in named(shape, "ph")), "") if name == "sp" else ""
        if name == "graphicFrame":
            yield from self._frame(shape)
        elif kind not in _REPEATED:
            text = self._text(find(shape, "txBody"))
            if kind in _TITLES and text and not self.title:
                self.title = one_line(text)
            else:
                yield text
        if described := one_line(value(about, "descr")):
            yield f"(picture: {described})"

    def _frame(self, frame: Element) -> Iterator[str]:
        for each in named(frame, "tbl", "chart", "relIds"):
            match local(each.tag):
                case "tbl":
                    yield drawing.grid(each, self.links)
                case "chart":
                    yield drawing.chart(self._linked(value(each, "id")))
                case "relIds":
                    yield drawing.diagram(self._linked(value(each, "dm")))

    def _linked(self, relation: str) -> Element | None:
        link = self.links.get(relation)
        return self.package.tree(link.target) if link is not None and not link.external else None

    def _text(self, body: Element | None) -> str:
        lines = []
        for seen, tiny in drawing.paragraphs(body, self.links):
            if tiny.strip():
                self.parts.note(HIDDEN_NOTE)
            lines.append(seen + hidden(tiny))
        return "\n".join(lines).strip("\n")

    def _asides(self) -> Iterator[str]:
        for link in self.links.values():
            if link.kind == "notesSlide":
                notes = self.package.tree(link.target)
                bodies = [shape for shape in named(notes, "sp") if _is_body(shape)] if notes is not None else []
                if text := "\n".join(filter(None, (self._text(find(shape, "txBody")) for shape in bodies))):
                    yield f"Notes: {text}"
            elif link.kind in ("comments", "comment"):
                remarks = self.package.tree(link.target)
                for remark in named(remarks, "cm") if remarks is not None else ():
                    if words := one_line(" ".join(each.text or "" for each in named(remark, "text", "t"))):
                        yield f"(comment: {words})"


def _named_part(shape: Element) -> Element | None:
    """The element with a shape's name, description and visibility."""
    return next((inner for child in shape for inner in child if local(inner.tag) == "cNvPr"), None)


def _is_body(shape: Element) -> bool:
    return any(value(each, "type", "body") == "body" for each in named(shape, "ph"))


def _whole(text: str) -> int:
    try:
        return int(text[:20])
    except ValueError:
        return 0
