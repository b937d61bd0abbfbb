"""OpenDocument texts, presentations, drawings and spreadsheets: their visible text, with hidden text marked."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers.number_format import numeral
from belino.readers.package import ZipArchive, children, find, local, named, tree, value
from belino.readers.parts import (
    DELETED_NOTE,
    HIDDEN_NOTE,
    PLAIN_STYLE,
    BlockCutter,
    CannotRead,
    ParagraphBlock,
    Parts,
    ReadOptions,
    TextStyle,
    hidden,
    one_line,
    table,
)
from belino.readers.sheets import Grid
from belino.readers.slides import HIDDEN_SLIDE

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

_STYLES = frozenset({"automatic-styles", "styles"})

COLUMNS_AT_MOST = 16_384
FAR = 10**7
"""Programs fill a sheet to its last cell with one repeated empty cell."""
_SHEET_PARENTS = frozenset({
    "automatic-styles", "body", "spreadsheet", "table", "table-columns", "table-column-group", "table-header-columns",
    "table-rows", "table-row-group", "table-header-rows",
})  # fmt: skip
_HIDDEN = ("collapse", "filter")
_DURATION = re.compile(r"PT(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,6})(?:\.[0-9]+)?S)?")


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """A text split at its headings, the slides of a presentation, or the sheets of a spreadsheet."""
    archive, content = _content_of(file)
    if "spreadsheet" in options.mime:
        return _sheets(content, options)
    if "presentation" in options.mime or "impress" in options.mime or "graphics" in options.mime:
        return _slides(content, options)
    return _text(archive, content, options)


def _content_of(file: BinaryIO) -> tuple[ZipArchive, bytes]:
    """The archive and its main part; CannotRead if it is protected by a password."""
    archive = ZipArchive(file)
    manifest = archive.find("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    return archive, archive.read("content.xml")


@dataclass(slots=True)
class _TextReader:
    """Converts elements to text; needs the styles first, to know which hide text."""

    note: Callable[[str], None]
    numbered: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    """Footnotes and endnotes found so far, in order."""
    _deleted: dict[str, str] = field(default_factory=dict)
    _text_styles: dict[str, TextStyle] = field(default_factory=dict)
    _shaded: bool = False

    def learn(self, style: Element) -> None:
        """Record a style that hides text, or numbers a list."""
        name = value(style, "name")
        if local(style.tag) == "list-style":
            if find(style, "list-level-style-number") is not None:
                self.numbered.add(name)
            return
        about = find(style, "text-properties")
        shown, colour, size = (value(about, key) for key in ("display", "color", "font-size"))
        text_style = TextStyle(
            vanished=shown == "none" if shown else None,
            white=_WHITE.fullmatch(colour) is not None if colour else None,
            tiny=_TINY.fullmatch(size) is not None if size else None,
            shaded=any(_shades(child) for child in style),
        )
        self._text_styles[name] = text_style.over(self._text_styles.get(value(style, "parent-style-name"), PLAIN_STYLE))

    def hides(self, element: Element) -> bool:
        """Whether the text of an element is hidden, by its style and its background."""
        return self._text_style(element).hides(shaded=self._shaded)

    @contextmanager
    def _upon(self, *elements: Element) -> Iterator[None]:
        """Apply the background of these elements."""
        before = self._shaded
        self._shaded = before or any(self._text_style(element).shaded for element in elements)
        try:
            yield
        finally:
            self._shaded = before

    def _text_style(self, element: Element) -> TextStyle:
        return self._text_styles.get(value(element, "style-name"), PLAIN_STYLE)

    def blocks(self, element: Element, depth: int = 0) -> Iterator[ParagraphBlock]:
        """The text of an element, block by block."""
        name = local(element.tag)
        if name == "h":
            level = value(element, "outline-level", "1")
            text = one_line(self.line(element))
            yield ParagraphBlock(
                text=f"{'#' * min(int(level), 6) if level.isdigit() else '#'} {text}" if text else "", heading=text
            )
        elif name == "p":
            yield ParagraphBlock(text=self.line(element))
        elif name == "list":
            yield from self._list(element, depth, numbered=value(element, "style-name") in self.numbered)
        elif name == "table":
            yield ParagraphBlock(text=self.table(element))
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
        for row in _table_rows(element):
            cells: list[str] = []
            for cell in row:
                if local(cell.tag) in ("table-cell", "covered-table-cell"):
                    with self._upon(element, row, cell):
                        text = "\n".join(block.text for child in cell for block in self.blocks(child))
                    cells += [text] * (_repeats(cell, "number-columns-repeated") if text else 1)
            rows.append(cells)
        return table(rows)

    def _inside(self, element: Element, depth: int) -> Iterator[ParagraphBlock]:
        described = one_line(" ".join(child.text or "" for child in element if local(child.tag) in ("title", "desc")))
        if described:
            yield ParagraphBlock(text=f"(picture: {described})")
        unseen = value(element, "display") == "none"
        with self._upon(element):
            inside = [block for child in element for block in self.blocks(child, depth)]
        for block in inside:
            yield ParagraphBlock(text=self._hide(block.text)) if unseen and block.text else block

    def _list(self, element: Element, depth: int, *, numbered: bool) -> Iterator[ParagraphBlock]:
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
                        yield ParagraphBlock(text=f"{'  ' * depth}{mark}{block.text}", heading=block.heading, item=True)
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
    """Whether properties of a style set a background that is not white."""
    if value(about, "fill", "none") not in ("none", "solid"):
        return True
    key = "fill-color" if value(about, "fill") == "solid" else "background-color"
    return not _PAPER.fullmatch(value(about, key, "none"))


def _table_rows(element: Element) -> Iterator[Element]:
    """The rows of a table, in any groups."""
    for child in element:
        if local(child.tag) == "table-row":
            yield child
        elif local(child.tag) in _ROWS:
            yield from _table_rows(child)


def _repeats(element: Element, name: str, *, at_most: int = REPEATS_AT_MOST) -> int:
    """How often a cell, row or column is repeated, up to a limit."""
    count = value(element, name, "1")
    return max(1, min(int(count), at_most)) if count.isdigit() and len(count) < 10 else 1


def _text(archive: ZipArchive, content: bytes, options: ReadOptions) -> DocumentText:
    parts = Parts(options, DocumentUnit.PART)
    cutter, words = BlockCutter(parts), _TextReader(parts.note)
    header, footer = _margins(archive, words)
    cutter.add(f"Header: {header}" if header else "")
    try:
        cutter.take(_blocks(content, words))
    except CannotRead as error:
        parts.broke(error)
    for note in words.notes:
        cutter.add(note)
    cutter.add(f"Footer: {footer}" if footer else "")
    return cutter.document()


def _blocks(content: bytes, words: _TextReader) -> Iterator[ParagraphBlock]:
    for element in children(content, _STYLES | {"body", "text"}):
        if local(element.tag) in ("style", "list-style"):
            words.learn(element)
        else:
            yield from words.blocks(element)


def _margins(archive: ZipArchive, words: _TextReader) -> tuple[str, str]:
    """The headers and footers of the pages, each text once."""
    try:
        content = archive.find("styles.xml")
        styles = tree(content) if content else None
    except CannotRead:
        return "", ""
    if styles is None:
        return "", ""
    for style in named(styles, "style", "list-style"):
        words.learn(style)
    found = []
    for name in ("header", "footer"):
        texts = ("\n".join(b.text for b in words.blocks(each) if b.text) for each in named(styles, name))
        found.append("\n".join(dict.fromkeys(filter(None, texts))))
    return found[0], found[1]


def _slides(content: bytes, options: ReadOptions) -> DocumentText:
    parts = Parts(options, DocumentUnit.SLIDE if "graphics" not in options.mime else DocumentUnit.PAGE)
    words = _TextReader(parts.note)
    hiding: set[str] = set()
    number = 0
    try:
        for element in children(content, _STYLES | {"body", "presentation", "drawing"}):
            if local(element.tag) in ("style", "list-style"):
                words.learn(element)
                if value(find(element, "drawing-page-properties"), "visibility") == "hidden":
                    hiding.add(value(element, "name"))
            elif local(element.tag) == "page":
                number += 1
                if parts.wants(number):
                    _slide(element, number, parts, words, hides=value(element, "style-name") in hiding)
    except CannotRead as error:
        parts.broke(error)
    return parts.document(number)


def _slide(page: Element, number: int, parts: Parts, words: _TextReader, *, hides: bool) -> None:
    title, blocks, notes = "", [], []
    for shape in page:
        if local(shape.tag) == "notes":
            notes += [block.text for each in shape for block in words.blocks(each) if block.text]
            continue
        text = "\n".join(block.text for block in words.blocks(shape) if block.text)
        if value(shape, "class") == "title" and text and not title:
            title = one_line(text)
        else:
            blocks.append(text)
    if hides:
        parts.note("hidden slides are marked")
    head = [f"# {title}" if title else "", HIDDEN_SLIDE if hides else ""]
    foot = ["Notes: " + "\n".join(notes)] if notes else []
    parts.add(number, "\n\n".join(filter(None, [*head, *blocks, *foot])), title)


@dataclass(slots=True)
class _SheetReader:
    parts: Parts
    words: _TextReader
    total: int = 0
    hiding: set[str] = field(default_factory=set)
    grid: Grid | None = None
    full: bool = False
    row: int = 0
    column: int = 0

    def opened(self, element: Element) -> None:
        """Begin a sheet, and finish the one before it."""
        if local(element.tag) != "table":
            return
        self.close()
        self.total += 1
        self.row, self.column, self.full = 0, 0, False
        if self.parts.wants(self.total):
            hides = value(element, "style-name") in self.hiding
            self.grid = Grid(self.parts, value(element, "name"), hidden_sheet=hides)

    def close(self) -> None:
        """Write the sheet that was being read."""
        if self.grid is not None:
            self.grid.add_to(self.total)
            self.grid = None

    def take(self, element: Element) -> None:
        """Process a style, a column or a row."""
        match local(element.tag):
            case "style":
                self.words.learn(element)
                if value(find(element, "table-properties"), "display") == "false":
                    self.hiding.add(value(element, "name"))
            case "table-column" if self.grid is not None:
                count = _repeats(element, "number-columns-repeated", at_most=max(1, COLUMNS_AT_MOST - self.column))
                if value(element, "visibility") in _HIDDEN:
                    self.grid.hidden_columns.update(range(self.column + 1, self.column + count + 1))
                self.column += count
            case "table-row" if self.grid is not None and not self.full:
                self._row(self.grid, element)

    def _row(self, grid: Grid, row: Element) -> None:
        cells = dict(self._cells(row))
        hides = value(row, "visibility") in _HIDDEN
        if not cells:
            self.row += _repeats(row, "number-rows-repeated", at_most=FAR)
            return
        for _ in range(_repeats(row, "number-rows-repeated")):
            self.row += 1
            self.full = self.full or not grid.row(self.row, dict(cells), hides=hides)

    def _cells(self, row: Element) -> Iterator[tuple[int, str]]:
        column = 0
        for cell in row:
            if local(cell.tag) not in ("table-cell", "covered-table-cell"):
                continue
            text = self._text(cell)
            if not text:
                column += _repeats(cell, "number-columns-repeated", at_most=FAR)
                continue
            for _ in range(_repeats(cell, "number-columns-repeated")):
                column += 1
                if column <= COLUMNS_AT_MOST:
                    yield column, text

    def _text(self, cell: Element) -> str:
        lines = [block.text for child in cell for block in self.words.blocks(child) if block.text]
        if not lines:
            lines = [_untold(cell)]
        remarks = [self.words.line(wrapped) for wrapped in _annotations(cell)]
        text = "\n".join(lines)
        if self.words.hides(cell) and text and self.grid is not None:
            text = self.grid.conceal(text)
        return " ".join(filter(None, [text, *remarks]))


def _sheets(content: bytes, options: ReadOptions) -> DocumentText:
    """The sheets of a spreadsheet."""
    parts = Parts(options, DocumentUnit.SHEET)
    sheets = _SheetReader(parts, _TextReader(parts.note))
    try:
        for element in children(content, _SHEET_PARENTS, sheets.opened):
            sheets.take(element)
    except CannotRead as error:
        parts.broke(error)
    sheets.close()
    return parts.document(sheets.total)


def _untold(cell: Element) -> str:
    """The value of a cell without display text, which programs that never display the sheet leave out."""
    if (kept := value(cell, "value")) and value(cell, "value-type") == "percentage":
        try:
            return numeral(float(kept), "0.##########%")
        except ValueError:
            return kept
    if found := _DURATION.fullmatch(value(cell, "time-value")):
        return ":".join(f"{int(each or 0):02}" for each in found.groups())
    told = kept or value(cell, "date-value").replace("T", " ") or value(cell, "string-value")
    return told or value(cell, "boolean-value").upper() or value(cell, "formula").partition(":")[2]


def _annotations(cell: Element) -> Iterator[Element]:
    """Comments on a cell, each wrapped in a paragraph element."""
    for child in cell:
        if local(child.tag) == "annotation":
            around = Element("p")
            around.append(child)
            yield around
