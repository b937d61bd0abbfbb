"""Excerpt of a text around the words that were searched for."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from belino.domain.graphemes import cut_before, is_boundary

_LEAD = 6
"""An excerpt has one part in this many before the first wanted word."""
_HITS_AT_MOST = 200


def excerpt(line: str, wanted: Sequence[str], limit: int) -> str:
    """At most `limit` characters of a line, where most of the wanted words (folded) are close together."""
    return Excerpts(line, wanted).of(limit)


class Excerpts:
    """Excerpts of one line in several lengths; the wanted words are located once."""

    def __init__(self, line: str, wanted: Sequence[str]) -> None:
        self._line = line
        self._wanted = wanted

    def of(self, limit: int) -> str:
        """At most `limit` characters."""
        line = self._line
        if len(line) <= limit:
            return line
        room = max(limit - 2, 1)
        start = self._start(room)
        end = min(start + room, len(line))
        if end < len(line):
            end = cut_before(line, end, start=start)
        return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"

    @cached_property
    def _hits(self) -> list[tuple[int, str]]:
        return sorted(_hits(self._line, self._wanted))[:_HITS_AT_MOST]

    def _start(self, room: int) -> int:
        line, hits = self._line, self._hits
        if not hits:
            return 0
        shown = [len(set(_within(hits[place:], room))) for place in range(len(hits))]
        first = hits[shown.index(max(shown))][0]
        start = min(max(first - room // _LEAD, 0), max(len(line) - room, 0))
        blank = line.find(" ", start, first)
        if start and blank >= 0:
            start = blank + 1
        while start and not is_boundary(line, start):
            start -= 1
        return start


def _within(hits: Sequence[tuple[int, str]], room: int) -> Iterator[str]:
    """The words that fit into `room` characters from the first on."""
    end = hits[0][0] + room
    for at, word in hits:
        if at > end:
            return
        if at <= end - len(word):
            yield word


def _hits(line: str, wanted: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where wanted words begin: at the start of a word, or anywhere in scripts without spaces."""
    lowered = line.lower()
    if len(lowered) != len(line):
        lowered = line
    for word in dict.fromkeys(wanted):
        at = lowered.find(word)
        while word and at >= 0:
            if not at or not word.isascii() or not lowered[at - 1].isalnum():
                yield at, word
            at = lowered.find(word, at + 1)
