"""Show results: tables in colour on a terminal, plain columns elsewhere, JSON on request.

Tables are laid out here because rich cuts cells on a narrow terminal, and ids must stay copyable.
"""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from shutil import get_terminal_size
from textwrap import wrap

GAP = "  "
LEAST_ROOM = 20
"""On a narrow terminal, the minimum width of a last column that may wrap."""

_JOINERS = "\u200c\u200d"
"""Joiners of emoji sequences and Persian letters: harmless for a terminal."""

_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def show_json(value: object) -> None:
    """Indented JSON; escaped where the output encoding lacks a letter, or a file name is not text."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(text if _can_print(text) else json.dumps(value, indent=2))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Rows under their headings, never cut: ids must stay copyable. `empty` is printed if there are none."""
    cells = [[clean(_text(value)) for value in row] for row in rows]
    if not cells:
        print(empty)
        return
    widths = [max(_width(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
    if not sys.stdout.isatty():
        print(_line([column.upper() for column in columns], widths))
        print("\n".join(_line(row, widths) for row in cells))
        return
    room = get_terminal_size().columns - sum(widths[:-1]) - len(GAP) * (len(columns) - 1)
    if room < min(widths[-1], LEAST_ROOM):
        print("\n\n".join(_stacked(columns, row) for row in cells))
        return
    print(paint(_line(columns, widths), "bold"))
    for row in cells:
        first, *more = wrap(row[-1], room) or [""]
        print(_line([*row[:-1], first], widths))
        for words in more:
            print(_line([*([""] * (len(row) - 1)), words], widths))


def show_marks(marks: Sequence[tuple[bool, str, str]]) -> None:
    """Check results: mark, name, message."""
    width = max((len(name) for _, name, _ in marks), default=0)
    well, ill = ("✓", "✗") if _can_print("✓✗") else ("+", "-")
    for ok, name, says in marks:
        print(f"{paint(well, 'green') if ok else paint(ill, 'red')} {clean(name):<{width}}  {clean(says)}")


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on a terminal, fed with (bytes so far, total bytes if known); nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.fields[what]}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", what=clean(shorten(what, 40)), total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def paint(text: str, style: str) -> str:
    """The text in a style, if it is visible: on a terminal, without NO_COLOR."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def clean(text: str) -> str:
    """Untrusted text without terminal escapes, other controls and reversed direction."""
    return "".join(" " if c in "\n\t" else "�" if _obeyed(c) else c for c in text)


def clean_lines(text: str) -> str:
    """The same, keeping lines and tabs."""
    return "\n".join("\t".join(clean(cell) for cell in line.split("\t")) for line in text.split("\n"))


def shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """1 file, 2 files."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def local_time(stamp: str | None) -> str:
    """An ISO time in the local zone and format."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S") if stamp else ""


def local_clock(stamp: str) -> str:
    """An ISO time in the local zone, to the millisecond."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _obeyed(character: str) -> bool:
    return character not in _JOINERS and unicodedata.category(character) in ("Cc", "Cf", "Cs")


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _stacked(columns: Sequence[str], cells: Sequence[str]) -> str:
    """A row of a table that is too wide: a line for each non-empty cell."""
    width = max(map(len, columns))
    told = zip(columns, cells, strict=True)
    return "\n".join(f"{paint(f'{column:<{width}}', 'bold')}{GAP}{cell}" for column, cell in told if cell)


def _width(text: str) -> int:
    """Columns of a text: two for most letters of East Asia, none for a combining accent."""
    from rich.cells import cell_len

    return cell_len(text)
