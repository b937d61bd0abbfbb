"""Page text in reading order, from blocks with their places: columns one after the other, tables row by row; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from belino.domain.reading import ReadSegment

SAME_LINE = 0.5
"""Blocks whose heights overlap by this share of the lower one are on one line."""
GUTTER = 1.5
"""The width of the white space between columns, in line heights."""
COLUMN_LINES = 3
"""Fewer lines beside each other are a table or a heading."""
PARAGRAPH = 1.2
"""The white space between paragraphs, in line heights."""


@dataclass(frozen=True, slots=True)
class _Block:
    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def height(self) -> float:
        return self.bottom - self.top


def page_text(segments: Sequence[ReadSegment]) -> str:
    """The text of a page; without places, in the order in which the provider gives it."""
    blocks = [
        _Block(*segment.box, segment.text.strip())
        for segment in segments
        if segment.box is not None and segment.text.strip()
    ]
    if not blocks or len(blocks) < sum(bool(segment.text.strip()) for segment in segments):
        return "\n".join(segment.text.strip() for segment in segments if segment.text.strip())
    line = median(block.height for block in blocks) or 0.01
    return "\n\n".join(_written(part, line) for part in _cut(blocks, line))


def _cut(blocks: list[_Block], line: float) -> list[list[_Block]]:
    """The parts of a page in reading order: bands from top to bottom, and in a band columns from left to right."""
    if len(blocks) < 2:
        return [blocks] if blocks else []
    columns = _split(blocks, line * GUTTER, across=True)
    if len(columns) > 1 and all(_is_column(column, line) for column in columns):
        return [part for column in columns for part in _cut(column, line)]
    bands = _split(blocks, line * 0.1, across=False)
    # A heading above columns hides the gutter: it is looked for in what follows the heading.
    for number in range(1, len(bands)):
        rest = [block for band in bands[number:] for block in band]
        columns = _split(rest, line * GUTTER, across=True)
        if len(columns) > 1 and all(_is_column(column, line) for column in columns):
            head = [block for band in bands[:number] for block in band]
            return [*_cut(head, line), *(part for column in columns for part in _cut(column, line))]
        if number >= len(bands) - COLUMN_LINES:
            break
    return [blocks]


def _split(blocks: Sequence[_Block], gap: float, *, across: bool) -> list[list[_Block]]:
    """Groups with nothing but white space between them, from left to right or from top to bottom."""

    def ends(block: _Block) -> tuple[float, float]:
        return (block.left, block.right) if across else (block.top, block.bottom)

    groups: list[list[_Block]] = []
    reach = 0.0
    for block in sorted(blocks, key=ends):
        begin, end = ends(block)
        if groups and begin - reach < gap:
            groups[-1].append(block)
        else:
            groups.append([block])
            reach = end
        reach = max(reach, end)
    return groups


def _is_column(blocks: Sequence[_Block], line: float) -> bool:
    """Whether blocks are running text: several lines, mostly longer than the cells of a table."""
    lines = _lines(blocks)
    if len(lines) < COLUMN_LINES:
        return False
    return median(each[-1].right - each[0].left for each in lines) > 8 * line


def _lines(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """Blocks that stand beside each other, from top to bottom, each line from left to right."""
    lines: list[list[_Block]] = []
    for block in sorted(blocks, key=lambda block: (block.top + block.bottom) / 2):
        last = lines[-1] if lines else None
        if last is not None and _beside(last, block):
            last.append(block)
        else:
            lines.append([block])
    return [sorted(line, key=lambda block: block.left) for line in lines]


def _beside(line: Sequence[_Block], block: _Block) -> bool:
    top, bottom = max(each.top for each in line), min(each.bottom for each in line)
    lower = min(block.height, *(each.height for each in line)) or 1e-9
    return (min(bottom, block.bottom) - max(top, block.top)) / lower >= SAME_LINE


def _written(blocks: Sequence[_Block], line: float) -> str:
    """Lines of text; cells of a table are set apart by tabs, paragraphs by an empty line."""
    text, bottom = "", 0.0
    for each in _lines(blocks):
        joined = each[0].text
        for before, after in pairwise(each):
            joined += ("\t" if after.left - before.right > line * GUTTER else " ") + after.text
        top = min(block.top for block in each)
        if text:
            text += "\n\n" if top - bottom > line * PARAGRAPH else "\n"
        text += joined
        bottom = max(block.bottom for block in each)
    return text
