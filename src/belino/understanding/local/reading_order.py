"""Reading order: lines of text that were found on a page, in the order in which people read them.

The page is set straight first. Columns of running text are read one after the other, however many lines cross the white
between them: a heading across columns is read where it stands. The rows of a table are read across.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

COLUMN_GAP, BLOCK_GAP, CELL_GAP = 0.2, 1.2, 1.5
"""The least white between columns, blocks and cells, in heights of a line."""
RUNNING_LINES, RUNNING_WIDTH, ALIKE = 3, 7.0, 0.75
"""Running text: so many lines, most of them so many heights wide, and about as wide as the line above."""
SAME_ROW = 0.5
"""How far the middles of two cells of a row may be apart, in heights of a line."""
UPRIGHT = 1.5
"""A line that is so many times as high as wide is written downwards."""
SLANT_WIDTH = 2.5
"""A narrower line tells nothing about the slant of a page, in heights."""
SLANT_ERROR, SLANT_AT_MOST, SLANT_STEPS = 0.2, 0.03, 12
"""The error of the slant of a line that is as wide as high, and of any line; steps in the search for a better one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLine:
    """A line of text, where it is (in pixels), and how certain it is (from 0 to 1)."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float = 1.0
    slant: float = 0.0
    """How much it falls on its way to the right, in pixels for each pixel."""
    hidden: bool = False
    """Whether a person who looks at the page does not see it."""

    @property
    def width(self) -> float:
        return max(1.0, self.right - self.left)

    @property
    def height(self) -> float:
        return max(1.0, self.bottom - self.top)

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def falls(self) -> bool:
        """Whether it is written downwards."""
        return len(self.text) > 1 and self.height >= UPRIGHT * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """The lines that were found on a page, in no order, and its size in pixels."""

    lines: tuple[PlacedLine, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedLine:
    """A line in reading order, its cells joined by tabs, and the number of its block."""

    line: PlacedLine
    block: int


def in_reading_order(lines: Iterable[PlacedLine]) -> list[OrderedLine]:
    """The lines of a page as rows, block by block."""
    found = list(lines)
    falling = [line for line in found if line.falls]
    if len(falling) * 2 > len(found):
        # Written downwards, from right to left, as Chinese and Japanese may be.
        ordered = sorted(found, key=lambda line: (-line.right, line.top))
        return [OrderedLine(line=line, block=0) for line in ordered]
    blocks = _blocks(_straight([line for line in found if not line.falls]))
    blocks += [[line] for line in falling]
    return [
        OrderedLine(line=joined(row), block=number)
        for number, block in enumerate(blocks)
        for row in _rows(block)
    ]  # fmt: skip


def joined(row: Sequence[PlacedLine]) -> PlacedLine:
    """Pieces of one row as one line; a wide gap between them is a tab."""
    text = row[0].text
    for before, cell in pairwise(row):
        text += "\t" if cell.left - before.right >= CELL_GAP * before.height else " "
        text += cell.text
    letters = sum(len(cell.text) for cell in row) or 1
    first, last = row[0], row[-1]
    apart = (last.left + last.right - first.left - first.right) / 2
    return PlacedLine(
        text=text,
        left=min(cell.left for cell in row),
        top=min(cell.top for cell in row),
        right=max(cell.right for cell in row),
        bottom=max(cell.bottom for cell in row),
        confidence=sum(cell.confidence * len(cell.text) for cell in row) / letters,
        slant=(last.middle - first.middle) / apart if apart >= 1 else first.slant,
        hidden=all(cell.hidden for cell in row),
    )


def _straight(lines: list[PlacedLine]) -> list[PlacedLine]:
    """The lines as they stand on a page that is set straight."""
    slant = _slant(lines)
    return [_set_straight(line, slant) for line in lines] if slant else lines


def _slant(lines: Sequence[PlacedLine]) -> float:
    """The slant of a page: that of its lines; if they are too short to tell, the one near it that aligns rows best."""
    told = [line.slant for line in lines if line.width >= SLANT_WIDTH * line.height]
    known = [slant for slant in told if slant]
    about = median(known) if len(known) * 3 > len(told) else 0.0
    shapes = sorted(line.width / line.height for line in lines)
    if not shapes or shapes[len(shapes) // 2] >= RUNNING_WIDTH:
        return about
    height, far = median(line.height for line in lines), min(SLANT_AT_MOST, SLANT_ERROR / shapes[-1])
    tries = [about + far * step / SLANT_STEPS for step in range(-SLANT_STEPS, SLANT_STEPS + 1)]
    # In quarters of a line: rows are found whatever is less than that.
    return min(tries, key=lambda slant: (round(4 * _unevenness(lines, slant, height) / height), abs(slant - about)))


def _unevenness(lines: Iterable[PlacedLine], slant: float, height: float) -> float:
    """How far apart lines are that may stand in one row, if the page has this slant."""
    places = sorted(line.middle - slant * (line.left + line.right) / 2 for line in lines)
    return sum(min(below - above, height / 2) for above, below in pairwise(places))


def _set_straight(line: PlacedLine, slant: float) -> PlacedLine:
    across, down = (line.left + line.right) / 2, line.middle
    half = max(1.0, line.height - abs(slant) * line.width) / 2
    across, down = across + slant * down, down - slant * across
    return replace(
        line, left=across - line.width / 2, right=across + line.width / 2, top=down - half, bottom=down + half
    )


def _blocks(lines: list[PlacedLine]) -> list[list[PlacedLine]]:
    if len(lines) < 2:
        return [lines] if lines else []
    height = median(line.height for line in lines)
    parts = _columns(lines, height)
    if len(parts) > 1:
        return [block for part in parts for block in _blocks(part)]
    rows = _rows(lines)
    blocks = [list(rows[0])]
    for above, below in pairwise(rows):
        if min(line.top for line in below) - max(line.bottom for line in above) >= BLOCK_GAP * height:
            blocks.append([])
        blocks[-1] += below
    return blocks


def _columns(lines: list[PlacedLine], height: float) -> list[list[PlacedLine]]:
    """The parts of a page in order, cut where most lines stand in columns; one part if there are no columns."""
    best, most = [_Band(crossing=lines)], 0
    for edge in _left_edges(lines, height):
        bands = _bands(lines, edge, COLUMN_GAP * height)
        left = [line for band in bands for line in band.left]
        right = [line for band in bands for line in band.right]
        if len(left) + len(right) > most and _is_running_text(left) and _is_running_text(right):
            best, most = bands, len(left) + len(right)
    return [part for band in best for part in (band.crossing, band.left, band.right, band.inset) if part]


def _left_edges(lines: Sequence[PlacedLine], height: float) -> list[float]:
    """Where lines begin; of edges that are less than half a line apart, the first."""
    edges: list[float] = []
    for left in sorted(line.left for line in lines):
        if not edges or left - edges[-1] > height / 2:
            edges.append(left)
    return edges


@dataclass(slots=True, kw_only=True)
class _Band:
    """A band of a page: lines that cross it, below them two columns, and what is set between the columns."""

    crossing: list[PlacedLine] = field(default_factory=list)
    left: list[PlacedLine] = field(default_factory=list)
    right: list[PlacedLine] = field(default_factory=list)
    inset: list[PlacedLine] = field(default_factory=list)

    @property
    def lines(self) -> list[PlacedLine]:
        return [*self.crossing, *self.left, *self.right, *self.inset]

    @property
    def has_columns(self) -> bool:
        return bool(self.left and self.right) and max(len(self.left), len(self.right)) >= RUNNING_LINES


def _bands(lines: Iterable[PlacedLine], edge: float, gap: float) -> list[_Band]:
    """The bands of a page, from top to bottom, if its right column begins at an edge."""
    ordered = sorted(lines, key=lambda line: line.middle)
    left = [line for line in ordered if line.right <= edge - gap]
    right = [line for line in ordered if line.left >= edge]
    bands = [_Band()]
    for line in ordered:
        if line.right <= edge - gap:
            bands[-1].left.append(line)
        elif line.left >= edge:
            bands[-1].right.append(line)
        elif any(_are_beside(line, one) for one in left) and any(_are_beside(line, one) for one in right):
            bands[-1].inset.append(line)
        elif bands[-1].has_columns:
            bands.append(_Band(crossing=[line]))
        else:
            # What stands between two lines that cross is too little for columns: cells of a table, or a short line.
            bands[-1] = _Band(crossing=[*bands[-1].lines, line])
    if not bands[-1].has_columns:
        bands[-1] = _Band(crossing=bands[-1].lines)
    return bands


def _is_running_text(column: Sequence[PlacedLine]) -> bool:
    """Whether lines, from top to bottom, are running text rather than cells: wide, and about as wide as each other."""
    if len(column) < RUNNING_LINES:
        return False
    alike = sum(min(one.width, next_.width) >= ALIKE * max(one.width, next_.width) for one, next_ in pairwise(column))
    wide = median(line.width for line in column) >= RUNNING_WIDTH * median(line.height for line in column)
    return wide and 2 * alike >= len(column) - 1


def _rows(block: Iterable[PlacedLine]) -> list[list[PlacedLine]]:
    """Lines that stand beside each other are one row, from left to right."""
    rows: list[list[PlacedLine]] = []
    for line in sorted(block, key=lambda line: line.middle):
        if rows and all(_are_beside(line, cell) for cell in rows[-1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _are_beside(line: PlacedLine, cell: PlacedLine) -> bool:
    lower = min(line.height, cell.height)
    overlap = min(line.right, cell.right) - max(line.left, cell.left)
    level = abs(line.middle - cell.middle) <= SAME_ROW * lower
    return level and overlap <= 0.5 * lower and line.hidden == cell.hidden
