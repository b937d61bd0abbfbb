"""The words of OpenDocument files: paragraphs, lists and tables, whichever program wrote them."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import Unread
from belino.media.document.parts import HIDDEN_NOTE, Block, CannotRead, hidden, one_line, table
from belino.media.document.word_text import DELETED_NOTE, NO_LOOK, Look
from belino.media.document.xml import find, local, named, value
from belino.media.document.zips import Archive

REPEATS_AT_MOST = 1_000
SPACES_AT_MOST = 200
_WHITE = re.compile(r"#(?:f[5-9a-f]){3}", re.IGNORECASE)
_PAPER = re.compile(rf"none|transparent|{_WHITE.pattern}", re.IGNORECASE)
_TINY = re.compile(r"(?:0(?:\.\d+)?|1(?:\.\d+)?|2(?:\.0+)?)pt")
_ROWS = frozenset({"table-header-rows", "table-row-group", "table-rows"})
_SHAPES = frozenset({
    "frame", "text-box", "g", "custom-shape", "rect", "ellipse", "line", "connector", "path", "polygon", "caption",
    "object", "image",
})  # fmt: skip
_BLOCKS = frozenset({"section", "index-body", "table-of-content", "list-header", "note-body", "index-title",
                     "numbered-paragraph", "header", "footer", "text-box"})  # fmt: skip


def content_of(file: BinaryIO) -> tuple[Archive, bytes]:
    """The archive and its main part, unless a password is in the way."""
    archive = Archive(file)
    manifest = archive.find("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    return archive, archive.read("content.xml")


@dataclass(slots=True)
class Words:
    """Turns elements into text; learns first which styles hide."""

    note: Callable[[str], None]
    numbered: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    """Foot- and endnotes that were passed, in order."""
    _deleted: dict[str, str] = field(default_factory=dict)
    _looks: dict[str, Look] = field(default_factory=dict)
    _shaded: bool = False

    def learn(self, style: Element) -> None:
        """Take note of a style that hides text, or numbers a list."""
        name = value(style, "name")
        if local(style.tag) == "list-style":
            if find(style, "list-level-style-number") is not None:
                self.numbered.add(name)
            return
        about = find(style, "text-properties")
        shown, colour, size = (value(about, key) for key in ("display", "color", "font-size"))
        look = Look(
            vanished=shown == "none" if shown else None,
            white=_WHITE.fullmatch(colour) is not None if colour else None,
            tiny=_TINY.fullmatch(size) is not None if size else None,
            shaded=any(_shades(child) for child in style),
        )
        self._looks[name] = look.over(self._looks.get(value(style, "parent-style-name"), NO_LOOK))

    def hides(self, element: Element) -> bool:
        """Whether nobody would see the text of an element, by its style and the ground it stands on."""
        return self._look(element).hides(shaded=self._shaded)

    @contextmanager
    def _upon(self, *elements: Element) -> Iterator[None]:
        """The ground that these elements paint."""
        before = self._shaded
        self._shaded = before or any(self._look(element).shaded for element in elements)
        try:
            yield
        finally:
            self._shaded = before

    def _look(self, element: Element) -> Look:
        return self._looks.get(value(element, "style-name"), NO_LOOK)

    def blocks(self, element: Element, depth: int = 0) -> Iterator[Block]:
        """What an element says, block by block."""
        name = local(element.tag)
        if name == "h":
            level = value(element, "outline-level", "1")
            text = one_line(self.line(element))
            yield Block(
                text=f"{'#' * min(int(level), 6) if level.isdigit() else '#'} {text}" if text else "", heading=text
            )
        elif name == "p":
            yield Block(text=self.line(element))
        elif name == "list":
            yield from self._list(element, depth, numbered=value(element, "style-name") in self.numbered)
        elif name == "table":
            yield Block(text=self.table(element))
        elif name == "tracked-changes":
            self._learn_deleted(element)
        elif name in _BLOCKS or name in _SHAPES:
            yield from self._inside(element, depth)

    def line(self, element: Element) -> str:
        """The text of a paragraph."""
        hides = self.hides(element)
        with self._upon(element):
            text = self._joined(element).strip(" \t")
        return self._hide(text) if hides and text else text

    def table(self, element: Element) -> str:
        """A table of a text or a slide."""
        rows: list[list[str]] = []
        for row in rows_of(element):
            cells: list[str] = []
            for cell in row:
                if local(cell.tag) in ("table-cell", "covered-table-cell"):
                    with self._upon(element, row, cell):
                        text = "\n".join(block.text for child in cell for block in self.blocks(child))
                    cells += [text] * (repeats(cell, "number-columns-repeated") if text else 1)
            rows.append(cells)
        return table(rows)

    def _inside(self, element: Element, depth: int) -> Iterator[Block]:
        described = one_line(" ".join(child.text or "" for child in element if local(child.tag) in ("title", "desc")))
        if described:
            yield Block(text=f"(picture: {described})")
        unseen = value(element, "display") == "none"
        with self._upon(element):
            inside = [block for child in element for block in self.blocks(child, depth)]
        for block in inside:
            yield Block(text=self._hide(block.text)) if unseen and block.text else block

    def _list(self, element: Element, depth: int, *, numbered: bool) -> Iterator[Block]:
        count = 0
        for item in element:
            if local(item.tag) not in ("list-item", "list-header"):
                continue
            count += 1
            mark = f"{count}. " if numbered else "- "
            for child in item:
                if local(child.tag) == "list":
                    inner = numbered or value(child, "style-name") in self.numbered
                    yield from self._list(child, min(depth + 1, 8), numbered=inner)
                    continue
                for block in self.blocks(child, depth + 1):
                    if block.text:
                        yield Block(text=f"{'  ' * depth}{mark}{block.text}", heading=block.heading, item=True)
                        mark = "  "

    def _joined(self, element: Element) -> str:
        text = element.text or ""
        for child in element:
            text += self._inline(child, local(child.tag)) + (child.tail or "")
        return text

    def _inline(self, child: Element, name: str) -> str:
        match name:
            case "s":
                count = value(child, "c", "1")
                return " " * min(int(count) if count.isdigit() else 1, SPACES_AT_MOST)
            case "tab":
                return "\t"
            case "line-break":
                return "\n"
            case "span":
                text = self._joined(child)
                return self._hide(text) if self.hides(child) and text.strip() else text
            case "a":
                text, target = self._joined(child), one_line(value(child, "href"))[:2000]
                return f"[{text}]({target})" if text.strip() and "://" in target and target != text else text
            case "note":
                return self._footnote(child)
            case "change":
                deleted = self._deleted.get(value(child, "change-id"), "")
                return f"(deleted text: {deleted})" if deleted else ""
            case _:
                return self._rarer(child, name)

    def _rarer(self, child: Element, name: str) -> str:
        match name:
            case "annotation":
                author = find(child, "creator")
                words = one_line(" ".join(self.line(each) for each in child if local(each.tag) in ("p", "list")))
                by = f" by {one_line(author.text or '')}" if author is not None else ""
                return f"(comment{by}: {words})" if words else ""
            case "hidden-text" | "hidden-paragraph":
                words = value(child, "string-value") or self._joined(child)
                return self._hide(words) if words.strip() else ""
            case "ruby-text" | "annotation-end" | "forms":
                return ""
            case _ if name in _SHAPES:
                return "\n" + "\n".join(block.text for block in self.blocks(child) if block.text)
            case _:
                return self._joined(child)

    def _footnote(self, child: Element) -> str:
        words = "\n".join(block.text for each in named(child, "note-body") for block in self.blocks(each) if block.text)
        number = len(self.notes) + 1
        self.notes.append(f"[^{number}]: {words}")
        return f"[^{number}]"

    def _learn_deleted(self, element: Element) -> None:
        for region in element:
            for deletion in (child for child in region if local(child.tag) == "deletion"):
                self._deleted[value(region, "id")] = one_line(
                    " ".join(self.line(each) for each in named(deletion, "p", "h"))
                )
                self.note(DELETED_NOTE)

    def _hide(self, text: str) -> str:
        self.note(HIDDEN_NOTE)
        return hidden(text)


def _shades(about: Element) -> bool:
    """Whether properties of a style paint a ground that is not white."""
    if value(about, "fill", "none") not in ("none", "solid"):
        return True
    key = "fill-color" if value(about, "fill") == "solid" else "background-color"
    return not _PAPER.fullmatch(value(about, key, "none"))


def rows_of(element: Element) -> Iterator[Element]:
    """The rows of a table, in whichever groups they are."""
    for child in element:
        if local(child.tag) == "table-row":
            yield child
        elif local(child.tag) in _ROWS:
            yield from rows_of(child)


def repeats(element: Element, name: str, *, at_most: int = REPEATS_AT_MOST) -> int:
    """How often a cell, row or column stands there, within reason."""
    count = value(element, name, "1")
    return max(1, min(int(count), at_most)) if count.isdigit() and len(count) < 10 else 1
