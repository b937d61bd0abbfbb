"""The part of a message that shows why it was found."""

from collections.abc import Iterator, Sequence

from belino.domain.graphemes import cut_before, is_boundary

_LEAD = 6
"""The part of an excerpt, one in so many, that comes before the first word that was wanted."""
_HITS_AT_MOST = 200


def excerpt(line: str, wanted: Sequence[str], limit: int) -> str:
    """At most `limit` characters of a line, from where most of the wanted words (folded) stand together."""
    if len(line) <= limit:
        return line
    room = max(limit - 2, 1)
    start = _start(line, wanted, room)
    end = min(start + room, len(line))
    if end < len(line):
        end = cut_before(line, end, start=start)
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _start(line: str, wanted: Sequence[str], room: int) -> int:
    hits = sorted(_hits(line, wanted))[:_HITS_AT_MOST]
    if not hits:
        return 0
    shown = [len({word for at, word in hits if first <= at <= first + room - len(word)}) for first, _ in hits]
    first = hits[shown.index(max(shown))][0]
    start = min(max(first - room // _LEAD, 0), max(len(line) - room, 0))
    blank = line.find(" ", start, first)
    if start and blank >= 0:
        start = blank + 1
    while start and not is_boundary(line, start):
        start -= 1
    return start


def _hits(line: str, wanted: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where a wanted word begins; scripts without spaces have words anywhere."""
    lowered = line.lower()
    if len(lowered) != len(line):
        lowered = line
    for word in dict.fromkeys(wanted):
        at = lowered.find(word)
        while word and at >= 0:
            if not at or not word.isascii() or not lowered[at - 1].isalnum():
                yield at, word
            at = lowered.find(word, at + 1)
