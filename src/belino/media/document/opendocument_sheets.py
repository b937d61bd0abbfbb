"""OpenDocument spreadsheets: each cell as the program that wrote it showed it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import DocumentText, Unit
from belino.media.document.grid import Grid
from belino.media.document.numerals import numeral
from belino.media.document.opendocument_text import Words, content_of, repeats
from belino.media.document.parts import CannotRead, Parts, Wish
from belino.media.document.xml import children, find, local, value

COLUMNS_AT_MOST = 16_384
FAR = 10**7
"""Programs fill up a sheet to its last cell with one that is empty and repeated."""
_PARENTS = frozenset({
    "automatic-styles", "body", "spreadsheet", "table", "table-columns", "table-column-group", "table-header-columns",
    "table-rows", "table-row-group", "table-header-rows",
})  # fmt: skip
_UNSEEN = ("collapse", "filter")
_DURATION = re.compile(r"PT(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,6})(?:\.[0-9]+)?S)?")


@dataclass(slots=True)
class _Sheets:
    parts: Parts
    words: Words
    total: int = 0
    hiding: set[str] = field(default_factory=set)
    grid: Grid | None = None
    full: bool = False
    row: int = 0
    column: int = 0

    def opened(self, element: Element) -> None:
        """A sheet begins; the one before it is whole."""
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
        """A style, a column or a row."""
        match local(element.tag):
            case "style":
                self.words.learn(element)
                if value(find(element, "table-properties"), "display") == "false":
                    self.hiding.add(value(element, "name"))
            case "table-column" if self.grid is not None:
                count = repeats(element, "number-columns-repeated", at_most=max(1, COLUMNS_AT_MOST - self.column))
                if value(element, "visibility") in _UNSEEN:
                    self.grid.hidden_columns.update(range(self.column + 1, self.column + count + 1))
                self.column += count
            case "table-row" if self.grid is not None and not self.full:
                self._row(self.grid, element)

    def _row(self, grid: Grid, row: Element) -> None:
        cells = dict(self._cells(row))
        hides = value(row, "visibility") in _UNSEEN
        if not cells:
            self.row += repeats(row, "number-rows-repeated", at_most=FAR)
            return
        for _ in range(repeats(row, "number-rows-repeated")):
            self.row += 1
            self.full = self.full or not grid.row(self.row, dict(cells), hides=hides)

    def _cells(self, row: Element) -> Iterator[tuple[int, str]]:
        column = 0
        for cell in row:
            if local(cell.tag) not in ("table-cell", "covered-table-cell"):
                continue
            text = self._text(cell)
            if not text:
                column += repeats(cell, "number-columns-repeated", at_most=FAR)
                continue
            for _ in range(repeats(cell, "number-columns-repeated")):
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


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The sheets that are asked for."""
    _, content = content_of(file)
    parts = Parts(wish, Unit.SHEET)
    sheets = _Sheets(parts, Words(parts.note))
    try:
        for element in children(content, _PARENTS, sheets.opened):
            sheets.take(element)
    except CannotRead as error:
        parts.broke(error)
    sheets.close()
    return parts.document(sheets.total)


def _untold(cell: Element) -> str:
    """The value of a cell that is not written out: programs that make a sheet without showing it leave that away."""
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
    """Remarks on a cell, each in an element of its own, as they stand in a paragraph."""
    for child in cell:
        if local(child.tag) == "annotation":
            around = Element("p")
            around.append(child)
            yield around
