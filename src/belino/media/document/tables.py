"""CSV and TSV: the separator found, the rows shown as a table, a huge file cut into parts by rows."""

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from belino.domain.document import DocumentText, Unit
from belino.media.document import charset
from belino.media.document.parts import PART_CHARS, Parts, Wish, table
from belino.media.document.plain import open_text

SAMPLE_CHARS = 64 * 1024
SAMPLE_ROWS = 200
CELL_CHARS = 1024 * 1024
"""A quote that is never closed must not swallow a hundred megabytes."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", ":": "colons"}
_TOLD = re.compile(r"sep=([^\w\s\"]|\t)\s*\n", re.IGNORECASE)
"""A line before the table that Excel understands, and does not show."""


@dataclass(slots=True)
class _Rows:
    """Rows of one part and how much they hold."""

    first: int
    rows: list[list[str]]
    chars: int = 0


def prepare() -> None:
    """Load the codecs; in the child it would be too late."""
    charset.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """Tables of some hundred rows, each under the first row again, and how many there are in all."""
    _, texts = open_text(file)
    sample = next(texts, "")
    told = _TOLD.match(sample)
    sample = sample[told.end() :] if told else sample
    separator = (
        told.group(1)
        if told
        else "\t"
        if wish.mime.endswith("tab-separated-values")
        else separator_of(sample[:SAMPLE_CHARS])
    )
    parts = Parts(wish, Unit.PART)
    head: list[str] = []
    rows = total = 0
    for part in _parts(_reader(itertools.chain([sample], texts), separator)):
        total += 1
        rows += len(part.rows)
        head = head or part.rows[0]
        if parts.wants(total):
            shown = part.rows if total == 1 else [head, *part.rows]
            parts.add(total, table(shown), _title(part) if total > 1 else "")
    if total:
        width = f", {len(head):,} columns, separated by {_SEPARATORS.get(separator, separator)}"
        parts.note(f"{rows:,} row{'' if rows == 1 else 's'}{width if len(head) > 1 else ', one column'}")
    return parts.document(total)


def separator_of(sample: str) -> str:
    """The separator that gives the most rows the same number of cells, two or more."""
    whole = sample[: sample.rfind("\n") + 1] or sample
    scores = {mark: _evenness(whole, mark) for mark in _SEPARATORS}
    return max(scores, key=lambda mark: scores[mark])


def _evenness(sample: str, separator: str) -> float:
    widths = Counter(
        len(row) for row in itertools.islice(_reader([sample], separator), SAMPLE_ROWS) if len(row) > 1 or any(row)
    )
    if not widths:
        return 0.0
    width, count = max(widths.items(), key=lambda item: (item[1] if item[0] > 1 else 0, item[0]))
    if width < 2:
        return 0.0
    # Equally even: more cells speak for a separator, and a colon mostly belongs to a time of day.
    return count / widths.total() + min(width, 50) / 1000 - (0.5 if separator == ":" else 0)


def _reader(texts: "Iterator[str] | list[str] | itertools.chain[str]", separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(CELL_CHARS)
    rows = csv.reader(_lines(texts), delimiter=separator, skipinitialspace=separator != "\t")
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            # A cell beyond all measure: what stands before and after it is still a table.
            continue
        if row is None:
            return
        if row:
            yield row


def _lines(texts: "Iterator[str] | list[str] | itertools.chain[str]") -> Iterator[str]:
    """Lines as they are written: a cell may hold line breaks, so they stay."""
    rest = ""
    for text in texts:
        lines = (rest + text.replace("\0", "")).split("\n")
        rest = lines.pop()
        if len(rest) > CELL_CHARS:
            lines, rest = [*lines, rest], ""
        yield from (f"{line}\n" for line in lines)
    if rest:
        yield rest


def _parts(rows: Iterator[list[str]]) -> Iterator[_Rows]:
    part = _Rows(1, [])
    for number, row in enumerate(rows, 1):
        size = sum(map(len, row)) + 3 * len(row)
        if part.rows and part.chars + size > PART_CHARS:
            yield part
            part = _Rows(number, [])
        part.rows.append(row)
        part.chars += size
    if part.rows:
        yield part


def _title(part: _Rows) -> str:
    return f"rows {part.first:,}–{part.first + len(part.rows) - 1:,}"
