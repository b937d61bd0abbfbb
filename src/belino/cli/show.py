"""What a person sees: tables in colour on a terminal, plain aligned columns elsewhere, JSON on request."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime


def show_json(value: object) -> None:
    """As it is read most easily; escaped where the output cannot hold every letter, or a file's name is no text."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(text if _can_print(text) else json.dumps(value, indent=2))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Rows under their headings; `empty` says why there are none."""
    cells = [[clean(_text(value)) for value in row] for row in rows]
    if not cells:
        print(empty)
    elif sys.stdout.isatty():
        _show_rich(columns, cells)
    else:
        widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
        for row in [[column.upper() for column in columns], *cells]:
            print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


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
    if not sys.stdout.isatty():
        return text
    from rich.console import Console

    console = Console()
    with console.capture() as captured:
        console.print(text, style=style, end="", markup=False, highlight=False)
    return captured.get()


def clean(text: str) -> str:
    """Text of strangers without what a terminal would obey: escapes, other controls, reversed direction."""
    return "".join(" " if c in "\n\t" else "�" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)


def clean_lines(text: str) -> str:
    """The same of a text that keeps its lines and tabs."""
    return "\n".join("\t".join(clean(cell) for cell in line.split("\t")) for line in text.split("\n"))


def shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def local_time(stamp: str | None) -> str:
    """An ISO time as a person here reads it."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S") if stamp else ""


def local_clock(stamp: str) -> str:
    """An ISO time as the clock here showed it, to the millisecond."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _show_rich(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in cells:
        # Text, not str: rich would read somebody's [red] as an instruction.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
