"""Benchmarks of this machine, each compared with the simplest alternative in the same run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

_HEAD = ("metric", "ours", "beside", "", "ratio", "goal", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure, its baseline, and whether the goal is met."""

    metric: str
    ours: float
    beside_name: str = ""
    beside: float | None = None
    ratio: float | None = None
    goal: str = ""
    ok: bool | None = None
    """None where there is no goal."""


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows as JSON."""
    return [asdict(row) for row in rows]


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.metric,
        _figure(row.ours),
        "" if row.beside is None else _figure(row.beside),
        row.beside_name,
        "" if row.ratio is None else _ratio(row.ratio),
        row.goal,
        {None: "", True: "met", False: "MISSED"}[row.ok],
    )


def _ratio(value: float) -> str:
    return f"{value:.1f}×" if value >= 0.1 or not value else f"1/{1 / value:.0f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
