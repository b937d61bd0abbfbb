"""Sheets of Excel workbooks as tables: values as displayed, comments and text boxes; hidden ones are marked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import drawing
from belino.readers.number_format import GENERAL, NumberFormat, format_of, seen
from belino.readers.package import Package, Relationship, children, find, inside, local, named, value
from belino.readers.parts import HIDDEN_NOTE, CannotRead, Parts, ReadOptions, hidden, one_line, table

HIDDEN_SHEET = "(hidden sheet)"
HIDDEN_ROW = "(hidden row)"
HIDDEN_COLUMN = "(hidden column)"
MARKED_NOTE = "hidden sheets, rows and columns are marked"

SHEETS_AT_MOST = 2_000
COLUMNS_AT_MOST = 16_384
COMMENTS_AT_MOST = 2_000
NO_VALUE = "(formula without a value)"
"""For a shared formula, which is stored only with its first cell."""
_WHITE = re.compile(r"(?:[0-9A-F]{2})?(?:F[5-9A-F]){3}", re.IGNORECASE)


@dataclass(slots=True)
class Grid:
    """Rows from top to bottom; empty cells are not stored."""

    parts: Parts
    title: str
    hidden_sheet: bool = False
    hidden_columns: set[int] = field(default_factory=set)
    extra: list[str] = field(default_factory=list)
    """Content beside the cells: comments, text boxes."""
    _rows: list[tuple[int, dict[int, str]]] = field(default_factory=list)
    _columns: set[int] = field(default_factory=set)
    _chars: int = 0

    def row(self, number: int, cells: dict[int, str], *, hides: bool = False) -> bool:
        """Add a row; False when the limit is reached."""
        if not cells:
            return True
        if hides:
            first = min(cells)
            cells[first] = f"{HIDDEN_ROW} {cells[first]}"
            self.parts.note(MARKED_NOTE)
        self._rows.append((number, cells))
        self._columns.update(cells)
        self._chars += sum(map(len, cells.values())) + 3 * len(cells)
        return self._chars <= self.parts.room

    def conceal(self, text: str) -> str:
        """Mark a value that its format or colour hides."""
        self.parts.note(HIDDEN_NOTE)
        return hidden(text)

    def add_to(self, number: int) -> None:
        """Write the sheet as a part."""
        blocks = [self._table(), *self.extra]
        if self.hidden_sheet:
            blocks.insert(0, HIDDEN_SHEET)
            self.parts.note(MARKED_NOTE)
        self.parts.add(number, "\n\n".join(filter(None, blocks)), self.title)

    def _table(self) -> str:
        # Empty columns would only cost tokens, and a sheet may be sixteen thousand columns wide.
        columns = sorted(self._columns)
        self._mark_columns()
        rows: list[list[str]] = []
        last = self._rows[0][0] if self._rows else 0
        for number, cells in self._rows:
            if number > last + 1:
                rows.append([])  # one empty row for any number of them
            rows.append([cells.get(column, "") for column in columns])
            last = number
        return table(rows)

    def _mark_columns(self) -> None:
        waiting = self.hidden_columns & self._columns
        for _, cells in self._rows:
            if not waiting:
                return
            for column in waiting & cells.keys():
                cells[column] = f"{HIDDEN_COLUMN} {cells[column]}"
                waiting = waiting - {column}
                self.parts.note(MARKED_NOTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellStyle:
    form: NumberFormat = GENERAL
    unseen: bool = False


_PLAIN = _CellStyle()


@dataclass(slots=True)
class _Workbook:
    """Data shared by all sheets."""

    package: Package
    strings: list[str] = field(default_factory=list)
    styles: list[_CellStyle] = field(default_factory=list)
    since_1904: bool = False


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The requested sheets, in the order of their tabs."""
    package = Package(file)
    parts = Parts(options, DocumentUnit.SHEET)
    package.tell(parts)
    main = package.main("xl/workbook.xml")
    tree, links = package.tree(main), package.links(main)
    listed = inside(tree, "sheets")[:SHEETS_AT_MOST]
    if not listed:
        raise CannotRead(Unread.UNREADABLE, "a part of the document is missing")
    book = _workbook(package, links, tree)
    for number, sheet in enumerate(listed, 1):
        if parts.wants(number):
            grid = Grid(parts, value(sheet, "name"), hidden_sheet=value(sheet, "state", "visible") != "visible")
            link = links.get(next((text for key, text in sheet.attrib.items() if key.endswith("}id")), ""))
            _fill(grid, book, link, number)
            grid.add_to(number)
    return parts.document(len(listed))


def _fill(grid: Grid, book: _Workbook, link: Relationship | None, number: int) -> None:
    """Read all readable content of a sheet."""
    if link is None or link.kind not in ("worksheet", "dialogsheet"):
        return
    try:
        _cells(grid, book, book.package.archive.read(link.target))
        grid.extra += _beside(book.package, link.target)
    except CannotRead as error:
        if error.unread is Unread.TOO_LARGE:
            raise
        grid.parts.note(f"not all of sheet {number} could be read: {error.reason}")


def _workbook(package: Package, links: dict[str, Relationship], tree: Element | None) -> _Workbook:
    book = _Workbook(package, since_1904=value(find(tree, "workbookPr"), "date1904") in ("1", "true"))
    for link in links.values():
        if link.kind == "sharedStrings" and (content := package.archive.find(link.target)):
            book.strings = [_words(each) for each in children(content, {"sst"})]
        elif link.kind == "styles":
            book.styles = _styles(package.tree(link.target))
    return book


def _cells(grid: Grid, book: _Workbook, content: bytes) -> None:
    at = 0
    for element in children(content, {"worksheet", "sheetData"}):
        match local(element.tag):
            case "cols":
                grid.hidden_columns.update(_hidden(element))
            case "row":
                at = _whole(element.get("r", "")) or at + 1
                cells = dict(_row(grid, book, element))
                if not grid.row(at, cells, hides=element.get("hidden") in ("1", "true")):
                    return


def _hidden(columns: Element) -> Iterator[int]:
    last = 0
    for each in columns:
        first = max(_whole(each.get("min", "")), last + 1)  # they are in order, or ignored
        last = max(last, min(_whole(each.get("max", "")), COLUMNS_AT_MOST))
        if value(each, "hidden") in ("1", "true"):
            yield from range(first, last + 1)


def _row(grid: Grid, book: _Workbook, row: Element) -> Iterator[tuple[int, str]]:
    column = 0
    for cell in row:
        place = cell.get("r")
        column = _column(place.rstrip("0123456789")) if place else column + 1
        number = _whole(cell.get("s", ""))
        style = book.styles[number] if number < len(book.styles) else _PLAIN
        text, hides = _cell(book, cell, style)
        if text and 0 < column <= COLUMNS_AT_MOST:
            yield column, grid.conceal(text) if style.unseen or hides else text


def _cell(book: _Workbook, cell: Element, style: _CellStyle) -> tuple[str, bool]:
    """The text of a cell, and whether its format hides it."""
    kind = cell.get("t", "n")
    if kind == "n" and (kept := find(cell, "v")) is not None and kept.text:
        return _number(book, kept.text, style)
    return _written(book, cell, kind), style.form.hides


def _written(book: _Workbook, cell: Element, kind: str) -> str:
    if kind == "inlineStr":
        return _words(cell)
    kept = find(cell, "v")
    text = (kept.text or "") if kept is not None else ""
    if not text:
        formula = find(cell, "f")
        return "" if formula is None else f"={formula.text}" if formula.text else NO_VALUE
    match kind:
        case "s":
            at = _whole(text)
            return book.strings[at] if at < len(book.strings) else ""
        case "b":
            return "TRUE" if text == "1" else "FALSE"
        case "d":
            return text.removesuffix("T00:00:00").replace("T", " ")
        case _:
            return text


def _number(book: _Workbook, text: str, style: _CellStyle) -> tuple[str, bool]:
    try:
        return seen(float(text), style.form, since_1904=book.since_1904)
    except (ValueError, OverflowError):
        return text, style.form.hides


def _words(element: Element) -> str:
    """The text of a string, without phonetic hints."""
    if len(element) == 1 and not len(element[0]):
        return element[0].text or ""
    aids = {id(inner) for aid in named(element, "rPh") for inner in aid.iter()}
    return "".join(each.text or "" for each in named(element, "t") if id(each) not in aids)


def _styles(tree: Element | None) -> list[_CellStyle]:
    """Each cell style: its number format, and whether its text is white without a fill."""
    codes = {_whole(value(each, "numFmtId")): value(each, "formatCode") for each in inside(tree, "numFmts")}
    fonts = [_white(find(font, "color")) for font in inside(tree, "fonts")]
    empty = [_is_paper(find(fill, "patternFill")) for fill in inside(tree, "fills")]
    found = []
    for each in inside(tree, "cellXfs"):
        number, font, fill = (_whole(value(each, name)) for name in ("numFmtId", "fontId", "fillId"))
        unseen = font < len(fonts) and fonts[font] and fill < len(empty) and empty[fill]
        found.append(_CellStyle(form=format_of(number, codes.get(number)), unseen=unseen))
    return found


def _white(colour: Element | None) -> bool:
    """Whether a colour is white, by its value or as the background colour of the theme."""
    if value(colour, "theme") == "0":
        return not value(colour, "tint").startswith("-")
    return _WHITE.fullmatch(value(colour, "rgb")) is not None


def _is_paper(fill: Element | None) -> bool:
    kind = value(fill, "patternType", "none")
    return kind == "none" or (kind == "solid" and _white(find(fill, "fgColor")))


def _beside(package: Package, sheet: str) -> Iterator[str]:
    """Comments on cells, and the text of text boxes."""
    for link in package.links(sheet).values():
        if link.external or link.kind not in ("comments", "drawing", "threadedComment"):
            continue
        tree = package.tree(link.target)
        if link.kind == "drawing":
            for body in named(tree, "txBody") if tree is not None else ():
                yield "\n".join(seen for seen, _ in drawing.paragraphs(body, {}) if seen)
            continue
        name = "comment" if link.kind == "comments" else "threadedComment"
        for comment in list(named(tree, name))[:COMMENTS_AT_MOST] if tree is not None else ():
            words = one_line(" ".join(each.text or "" for each in named(comment, "t", "text") if each.text))
            if words:
                yield f"(comment on {one_line(value(comment, 'ref'))[:20]}: {words})"


@lru_cache(maxsize=COLUMNS_AT_MOST)
def _column(letters: str) -> int:
    number = 0
    for letter in letters[:4].upper():
        if not "A" <= letter <= "Z":
            return 0
        number = number * 26 + ord(letter) - 64
    return number


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
