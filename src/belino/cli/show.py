"""Show results: tables in colour on a terminal, plain columns elsewhere, JSON on request.

Tables are laid out here because rich cuts cells where a terminal is narrow, and ids are there to be copied.
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
"""In a table on a narrow terminal, for what stands in its last column and may take several lines."""

_JOINERS = "\u200c\u200d"
"""What holds an emoji of several people together, and letters apart in Persian: nothing a terminal obeys."""

_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def show_json(value: object) -> None:
    """As it is read most easily; escaped where the output cannot hold every letter, or a file's name is no text."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(text if _can_print(text) else json.dumps(value, indent=2))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Rows under their headings, never cut: ids are there to be copied. `empty` says why there are none."""
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
    """Lines that are fine or not: mark, name, what is said about it."""
    width = max((len(name) for _, name, _ in marks), default=0)
    well, ill = ("✓", "✗") if _can_print("✓✗") else ("+", "-")
    for ok, name, says in marks:
        print(f"{paint(well, 'green') if ok else paint(ill, 'red')} {clean(name):<{width}}  {clean(says)}")


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on a terminal, fed with (bytes so far, bytes in all if known); nothing elsewhere."""
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
    """The text in a style, if anybody can see it: a terminal, and no NO_COLOR."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def clean(text: str) -> str:
    """Text of strangers without what a terminal would obey: escapes, other controls, reversed direction."""
    return "".join(" " if c in "\n\t" else "�" if _obeyed(c) else c for c in text)


def clean_lines(text: str) -> str:
    """The same of a text that keeps its lines and tabs."""
    return "\n".join("\t".join(clean(cell) for cell in line.split("\t")) for line in text.split("\n"))


def shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """1 file, 2 files."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def local_time(stamp: str | None) -> str:
    """An ISO time as a person here reads it."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S") if stamp else ""


def local_clock(stamp: str) -> str:
    """An ISO time as the clock here showed it, to the millisecond."""
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
    """A row of a table that is too wide: a line for each of its cells that says something."""
    width = max(map(len, columns))
    told = zip(columns, cells, strict=True)
    return "\n".join(f"{paint(f'{column:<{width}}', 'bold')}{GAP}{cell}" for column, cell in told if cell)


def _width(text: str) -> int:
    """How many places of a line it takes: two for most letters of East Asia, none for an accent on its own."""
    from rich.cells import cell_len

    return cell_len(text)
