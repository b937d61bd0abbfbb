"""Word documents: headings, lists, tables, notes, comments, headers and footers, in the order of reading."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import DocumentText, Unit
from belino.media.document import eml, markup
from belino.media.document.package import Link, Package
from belino.media.document.parts import HIDDEN_NOTE, Block, CannotRead, Cutting, Parts, Wish, one_line, table
from belino.media.document.word_lists import Lists
from belino.media.document.word_text import Look, Writer, look_of, shades
from belino.media.document.xml import children, find, local, value

_CONTAINERS = frozenset({
    "sdt", "sdtContent", "smartTag", "customXml", "ins", "moveTo", "txbxContent", "AlternateContent", "Choice", "tc",
    "footnote", "endnote", "comment", "hdr", "ftr",
})  # fmt: skip
_ASIDES = {"footnotes": ("footnote", ""), "endnotes": ("endnote", "e"), "comments": ("comment", "c")}
_PAGES, _MAILS = frozenset({"html", "htm", "xhtml"}), frozenset({"mht", "mhtml"})
BOXES_AT_MOST = 1_000
COLUMNS_AT_MOST = 1_000
STYLES_DEEP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    heading: int = 0
    list_number: str = ""
    list_depth: int = 0


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The document's text, cut at its headings."""
    package = Package(file)
    parts = Parts(wish, Unit.PART)
    package.tell(parts)
    main = package.main("word/document.xml")
    content, links = package.archive.read(main), package.links(main)
    reader = _Reader(package, parts, links)
    cutting = Cutting(parts)
    for header in reader.margins("header"):
        cutting.add(f"Header: {header}")
    try:
        # What stands in a control that spans the whole document is read as if it stood in the body.
        cutting.take(reader.blocks(children(content, {"body", "sdt", "sdtContent"})))
    except CannotRead as error:
        parts.broke(error)
    for aside in reader.asides():
        cutting.add(aside)
    for footer in reader.margins("footer"):
        cutting.add(f"Footer: {footer}")
    return cutting.document()


@dataclass(slots=True)
class _Reader:
    package: Package
    parts: Parts
    links: Mapping[str, Link]
    _styles: dict[str, _Style] = field(default_factory=dict)
    _looks: Mapping[str, Look] = field(default_factory=dict)
    _lists: Lists = field(default_factory=Lists)
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self._styles, self._looks = _styles(self._only("styles"))
        self._lists.learn(self._only("numbering"))
        self._writer = self._writer_of(self.links)

    def blocks(self, elements: Iterable[Element]) -> Iterator[Block]:
        """Paragraphs and tables as they come."""
        for element in elements:
            if self.parts.late:
                return
            yield from self._block(element, self._writer)

    def margins(self, kind: str) -> Iterator[str]:
        """Headers or footers, each text once."""
        told: set[str] = set()
        for link in self._of(kind):
            text = self._whole(self.package.tree(link.target), self.package.links(link.target))
            if text and text not in told:
                told.add(text)
                yield text

    def asides(self) -> Iterator[str]:
        """The notes and comments that the text refers to, in the order in which it does."""
        wanted = dict.fromkeys(self._writer.marks)
        found: dict[str, str] = {}
        for part, (name, sign) in _ASIDES.items():
            for link in self._of(part):
                tree, links = self.package.tree(link.target), self.package.links(link.target)
                for each in tree if tree is not None else ():
                    key = f"{sign}{value(each, 'id')}"
                    if local(each.tag) == name and key in wanted:
                        author = f"comment by {one_line(value(each, 'author'))}: " if name == "comment" else ""
                        found[key] = author + self._whole(each, links)
        yield from (f"[^{key}]: {found[key]}" for key in wanted if found.get(key))

    def _only(self, kind: str) -> Element | None:
        return next((self.package.tree(link.target) for link in self._of(kind)), None)

    def _of(self, kind: str) -> Iterator[Link]:
        return (link for link in self.links.values() if link.kind == kind and not link.external)

    def _whole(self, element: Element | None, links: Mapping[str, Link]) -> str:
        if element is None:
            return ""
        return "\n".join(block.text for block in self._block(element, self._writer_of(links)) if block.text)

    def _writer_of(self, links: Mapping[str, Link]) -> Writer:
        return Writer(links, self.parts.note, self._looks)

    def _block(self, element: Element, writer: Writer, *, shaded: bool = False) -> Iterator[Block]:
        name = local(element.tag)
        if name == "p":
            yield self._paragraph(element, writer, shaded=shaded)
            yield from self._boxes(writer)
        elif name == "tbl":
            yield Block(text=self._table(element, writer))
        elif name == "altChunk":
            yield Block(text=self._chunk(writer.links.get(value(element, "id"))))
        elif name in _CONTAINERS:
            for child in element:
                yield from self._block(child, writer, shaded=shaded)

    def _chunk(self, link: Link | None) -> str:
        """What a program put in as it was, for Word to take over when it opens the document."""
        content = self.package.archive.find(link.target) if link is not None and not link.external else None
        kind = link.target.lower().rpartition(".")[2] if link is not None else ""
        if content and kind in _PAGES:
            shown = markup.show(markup.decoded(content))
            self.parts.note(*[HIDDEN_NOTE] if shown.hides else [])
            return shown.text
        if content and kind in _MAILS:
            letters = list(eml.letters(content))
            self.parts.note(*[HIDDEN_NOTE] if any(letter.hides for letter in letters) else [])
            return "\n\n".join(letter.body.strip() for letter in letters)
        if content and kind == "txt":
            return markup.decoded(content)
        self.parts.note("text in another format, which was put in as it is, was left out")
        return ""

    def _boxes(self, writer: Writer) -> Iterator[Block]:
        boxes, writer.boxes = writer.boxes[:BOXES_AT_MOST], []
        for box in boxes:
            yield from self._block(box, writer, shaded=True)

    def _paragraph(self, element: Element, writer: Writer, *, shaded: bool) -> Block:
        text = writer.paragraph(element, shaded=shaded)
        if not text:
            return Block(text="")
        about = find(element, "pPr")
        style = self._styles.get(value(find(about, "pStyle"), "val"), _Style())
        level = _level(about) or style.heading
        number = value(find(about, "numPr", "numId"), "val") or style.list_number
        depth = value(find(about, "numPr", "ilvl"), "val") or str(style.list_depth)
        mark = self._lists.mark(number, int(depth) if depth.isdigit() else 0)
        if level:
            return Block(text=f"{'#' * min(level, 6)} {mark.lstrip()}{one_line(text)}", heading=one_line(text))
        return Block(text=mark + text, item=bool(mark))

    def _table(self, element: Element, writer: Writer) -> str:
        # A style may shade what it likes: white letters in such a table are most likely seen.
        shaded = find(element, "tblPr", "tblStyle") is not None
        rows: list[list[str]] = []
        room = self.parts.room
        for row in _rows(element):
            if room < 0 or self.parts.late:
                break
            cells: list[str] = []
            for cell in _cells(row):
                about = find(cell, "tcPr")
                merged = find(about, "vMerge")
                text = "" if merged is not None and value(merged, "val") != "restart" else "\n".join(
                    block.text
                    for block in self._block(cell, writer, shaded=shaded or shades(about))
                )  # fmt: skip
                wide = value(find(about, "gridSpan"), "val", "1")
                cells += [text, *[""] * (min(int(wide), COLUMNS_AT_MOST) - 1 if wide.isdigit() else 0)]
            rows.append(cells)
            room -= sum(map(len, cells))
        return table(rows)


def _rows(element: Element) -> Iterator[Element]:
    for child in element:
        if local(child.tag) == "tr":
            yield child
        elif local(child.tag) in _CONTAINERS:
            yield from _rows(child)


def _cells(row: Element) -> Iterator[Element]:
    for child in row:
        if local(child.tag) == "tc":
            yield child
        elif local(child.tag) in _CONTAINERS:
            yield from _cells(child)


def _level(about: Element | None) -> int:
    """The outline level that a paragraph or a style states: 1 to 9, or 0 for body text."""
    level = value(find(about, "outlineLvl"), "val", "9")
    return int(level) + 1 if level in "012345678" and level else 0


def _styles(tree: Element | None) -> tuple[dict[str, _Style], dict[str, Look]]:
    """What each style says, or takes from the one it is based on: of headings and lists, and of how text looks."""
    styles = (
        {value(style, "styleId"): style for style in tree if local(style.tag) == "style"} if tree is not None else {}
    )
    found: dict[str, _Style] = {}
    # Without a style a paragraph has the one that is the default.
    looks = {"": look_of(find(tree, "docDefaults", "rPrDefault", "rPr"))}
    for key in styles:
        heading, number, depth, look = 0, "", "0", Look()
        for style in _based(styles, key):
            about = find(style, "pPr")
            heading = heading or _level(about) or _named_heading(value(find(style, "name"), "val"))
            if not number:
                number = value(find(about, "numPr", "numId"), "val")
                depth = value(find(about, "numPr", "ilvl"), "val", "0")
            look = look.over(look_of(find(style, "rPr"))).over(Look(shaded=shades(about)))
        found[key] = _Style(heading=heading, list_number=number, list_depth=int(depth) if depth.isdigit() else 0)
        looks[key] = look
        if value(styles[key], "type") == "paragraph" and value(styles[key], "default") in ("1", "true"):
            looks[""] = look.over(looks[""])
    return found, looks


def _based(styles: Mapping[str, Element], key: str) -> Iterator[Element]:
    """A style and those it is based on, one after the other; they may run in a ring."""
    seen: set[str] = set()
    while key in styles and key not in seen and len(seen) < STYLES_DEEP:
        seen.add(key)
        yield styles[key]
        key = value(find(styles[key], "basedOn"), "val")


def _named_heading(name: str) -> int:
    name = name.lower()
    if name == "title":
        return 1
    level = name.removeprefix("heading ")
    return int(level) if level != name and level in "123456789" and level else 0
