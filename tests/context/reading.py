"""Compact text read back into values, by nothing but what the header and the columns say."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

PLAIN = {"\\\\": "\\", "\\|": "|", "\\n": "\n"}


def columns(line: str) -> list[str]:
    """The fields of a line, unescaped."""
    fields = re.findall(r"((?:\\.|[^|\\])*)(?:\||\Z)", line)[: len(re.sub(r"\\.", "", line).split("|"))]
    return [re.sub(r"\\.", lambda found: PLAIN[found.group()], field) for field in fields]


def inside(text: str, kind: str, fence: str) -> list[str]:
    """The lines between the two markers, which must be where they belong and nowhere else."""
    lines = text.split("\n")
    assert lines[0] == f"<<<{kind} {fence}" and lines[-1] == f"{fence} {kind}>>>"
    assert text.lower().count(fence.lower()) == 2
    return lines[1:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The facts that a line tells."""

    id: str
    minute: datetime
    author: str
    text: str
    marks: list[str]
    carried: str


def rows(lines: list[str]) -> list[Row]:
    """Every line after the header."""
    start = next((at for at, line in enumerate(lines) if line.startswith("id|time|author|text (UTC; ")), None)
    if start is None:
        return []
    found = re.search(r"today is (\d{4}-\d{2}-\d{2})", lines[start])
    assert found is not None
    read: list[Row] = []
    day, minute = found.group(1), ""
    for line in lines[start + 1 :]:
        row_time = columns(line)[1]
        if row_time:
            date, _, minute = row_time.rpartition(" ")
            day = date if len(date) == 10 else f"{found.group(1)[:4]}-{date}" if date else day
        read.append(_row(line, f"{day} {minute}"))
    return read


def _row(line: str, moment: str) -> Row:
    message_id, _, author, text, *more = columns(line)
    assert len(more) <= 2 and all(mark.startswith("(") and mark.endswith(")") for mark in more[:1])
    marks = more[0][1:-1] if more else ""
    return Row(
        id=message_id,
        minute=datetime.strptime(moment, "%Y-%m-%d %H:%M").replace(tzinfo=UTC),
        author=author,
        text=text,
        marks=marks.split(", ") if marks else [],
        carried=more[1] if len(more) > 1 else "",
    )
