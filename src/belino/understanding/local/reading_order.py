"""Reading order: lines of text that were found on a page, in the order in which people read them.

Columns of running text are read one after the other, the rows of a table across: a region is cut at the widest white
column if there is running text on both sides of it, else at the widest white row, until neither is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

COLUMN_GAP, BLOCK_GAP, CELL_GAP = 1.0, 1.2, 1.5
"""The least white between columns, blocks and cells, in heights of a line."""
RUNNING_LINES = 3
RUNNING_FILL = 0.6
"""Running text fills its column: so many lines, and this share of the width in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLine:
    """A line of text, where it is (in pixels), and how certain it is (from 0 to 1)."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float = 1.0

    @property
    def height(self) -> float:
        return max(1.0, self.bottom - self.top)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedLine:
    """A line in reading order, its cells joined by tabs, and the number of its block."""

    line: PlacedLine
    block: int


def in_reading_order(lines: Iterable[PlacedLine]) -> list[OrderedLine]:
    """The lines of a page as rows, block by block."""
    blocks = _blocks(list(lines))
    return [
        OrderedLine(line=joined(row), block=number)
        for number, block in enumerate(blocks)
        for row in _rows(block)
    ]  # fmt: skip


def joined(row: Sequence[PlacedLine]) -> PlacedLine:
    """Pieces of one row as one line; a wide gap between them is a tab."""
    text, before = "", None
    for cell in row:
        if before is not None:
            text += "\t" if cell.left - before.right >= CELL_GAP * before.height else " "
        text, before = text + cell.text, cell
    letters = sum(len(cell.text) for cell in row) or 1
    return PlacedLine(
        text=text,
        left=min(cell.left for cell in row),
        top=min(cell.top for cell in row),
        right=max(cell.right for cell in row),
        bottom=max(cell.bottom for cell in row),
        confidence=sum(cell.confidence * len(cell.text) for cell in row) / letters,
    )


def _blocks(lines: list[PlacedLine]) -> list[list[PlacedLine]]:
    if len(lines) < 2:
        return [lines] if lines else []
    height = median(line.height for line in lines)
    columns = _cut([(line.left, line.right) for line in lines], lines, COLUMN_GAP * height)
    if columns is not None and all(_is_running_text(column) for column in columns):
        return [block for column in columns for block in _blocks(column)]
    parts = _cut([(line.top, line.bottom) for line in lines], lines, BLOCK_GAP * height)
    return [lines] if parts is None else [block for part in parts for block in _blocks(part)]


def _cut(
    spans: Sequence[tuple[float, float]], lines: Sequence[PlacedLine], least: float
) -> tuple[list[PlacedLine], list[PlacedLine]] | None:
    """The lines before and after the widest gap between the spans, if it is at least so wide."""
    widest, at, reach = least, None, float("-inf")
    for start, end in sorted(spans):
        if reach > float("-inf") and start - reach >= widest:
            widest, at = start - reach, start
        reach = max(reach, end)
    if at is None:
        return None
    placed = list(zip(spans, lines, strict=True))
    return [line for span, line in placed if span[0] < at], [line for span, line in placed if span[0] >= at]


def _is_running_text(column: Sequence[PlacedLine]) -> bool:
    width = max(line.right for line in column) - min(line.left for line in column)
    return len(column) >= RUNNING_LINES and median(line.right - line.left for line in column) >= RUNNING_FILL * width


def _rows(block: Iterable[PlacedLine]) -> list[list[PlacedLine]]:
    """Lines that overlap by half of their height are one row, from left to right."""
    rows: list[list[PlacedLine]] = []
    for line in sorted(block, key=lambda line: (line.top + line.bottom) / 2):
        if rows and _overlap(rows[-1], line) >= 0.5 * min(line.height, rows[-1][-1].height):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _overlap(row: Sequence[PlacedLine], line: PlacedLine) -> float:
    last = row[-1]
    return min(last.bottom, line.bottom) - max(last.top, line.top)


def as_answer(lines: Iterable[OrderedLine], width: int, height: int) -> dict[str, object]:
    """The lines as the worker's JSON value, with places from 0 to 1."""
    return {
        "lines": [
            {
                "text": one.line.text,
                "block": one.block,
                "confidence": _share(one.line.confidence, 1),
                "box": [
                    _share(one.line.left, width), _share(one.line.top, height),
                    _share(one.line.right, width), _share(one.line.bottom, height),
                ],
            }
            for one in lines
        ]
    }  # fmt: skip


def _share(value: float, whole: float) -> float:
    return round(min(1.0, max(0.0, value / whole)), 4)
