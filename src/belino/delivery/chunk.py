"""Chunk long text for a platform: between paragraphs, else lines, sentences or words.

The bodies of the parts, joined, are the text. A code fence that is open at a cut is closed there and opened again.
"""

import re
from dataclasses import dataclass

from belino.domain.graphemes import cut_before, is_boundary

# A line of three or more backticks or tildes opens a code fence; the same character, as often and alone, closes it.
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# Each pattern matches at the start of a run, so that a text of a million dots is read once and not once per dot.
_BREAKS = (
    re.compile(r"\n[ \t]*\n+"),
    re.compile(r"\n"),
    re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』）]*+"),
    re.compile(r"\s+"),
)
# A better cut is used only if the part is at least this full: one line followed by a full message reads badly.
_LEAST_FULL = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A part of the text, and the fence lines that complete it."""

    body: str
    opening: str = ""
    closing: str = ""

    def __str__(self) -> str:
        return f"{self.opening}{self.body}{self.closing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    mark: str
    line: str


def chunk(text: str, limit: int, *, lines: int | None = None) -> tuple[TextPart, ...]:
    """The text in parts of at most `limit` characters (and `lines` lines); none for an empty text."""
    parts: list[TextPart] = []
    start, fence = 0, None
    while start < len(text):
        opening = f"{fence.line}\n" if fence else ""
        end = best_cut(text, start, farthest(text, start, limit - len(opening), lines))
        open_at_end = _fence_at(text, start, end, fence, limit)
        closing = _closing(open_at_end, text[end - 1]) if end < len(text) else ""
        while len(opening) + end - start + len(closing) > limit:
            # The closing line needs space too; an earlier end may be before the fence.
            end = best_cut(text, start, start + limit - len(opening) - len(closing))
            open_at_end = _fence_at(text, start, end, fence, limit)
            closing = _closing(open_at_end, text[end - 1])
        parts.append(TextPart(opening=opening, body=text[start:end], closing=closing))
        start, fence = end, open_at_end
    return tuple(parts)


def farthest(text: str, start: int, room: int, lines: int | None) -> int:
    """The farthest end of a part that begins here, by characters and by lines."""
    most = min(start + room, len(text))
    if lines is None:
        return most
    end = start
    for _ in range(max(1, lines - 2)):  # two are reserved for fence lines
        end = text.find("\n", end, most) + 1
        if end == 0:
            return most
    return end


def best_cut(text: str, start: int, most: int) -> int:
    """The best cut at or before `most`; the text's end if it is within `most`."""
    if most >= len(text):
        return len(text)
    least = start + max(1, int((most - start) * _LEAST_FULL))
    for pattern in _BREAKS:
        places = [match.end() for match in pattern.finditer(text, start, most)]
        best = next((place for place in reversed(places) if is_boundary(text, place)), 0)
        if best >= least:
            return best
    return cut_before(text, most, start=start)


def _fence_at(text: str, start: int, end: int, fence: _Fence | None, limit: int) -> _Fence | None:
    """The fence that is open at `end`, when `fence` was open at `start`."""
    for match in _FENCE.finditer(text, start, end):
        mark, rest = match.groups()
        if fence is None:
            if "`" not in rest and len(mark) <= limit // 8:
                line = match.group()
                fence = _Fence(mark=mark, line=line if len(line) <= limit // 4 else mark)
        elif mark.startswith(fence.mark) and not rest.strip():
            fence = None
    return fence


def _closing(fence: _Fence | None, last: str) -> str:
    if fence is None:
        return ""
    return fence.mark if last == "\n" else f"\n{fence.mark}"
