"""Orientation of a page: whether its lines were recognised the right way up, and which attempt reads best."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence

from belino.understanding.local.reading_order import FoundPage, PlacedLine

ReadTurned = Callable[[int], Awaitable[FoundPage]]
"""Reads a page that is turned to the left by so many quarters."""

CERTAIN = 0.8
"""The mean confidence in lines that are the right way up."""
NO_BETTER_THAN_CHANCE = 0.5
BETTER, AS_GOOD = 1.2, 0.95

# Kana, Hangul and ideographs: what may be written downwards.
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


async def upright(page: FoundPage, quarters: Iterable[int], read: ReadTurned) -> FoundPage:
    """The page as it was read, or as it is read when it is turned, whichever reads better."""
    best = page
    for turned in quarters:
        found = await read(turned)
        if reads_better(found.lines, best.lines):
            best = found
        if not falls(best.lines) and certainty(best.lines) >= CERTAIN:
            break
    return best


def certainty(lines: Sequence[PlacedLine]) -> float:
    """The mean confidence in the letters of a page, from 0 to 1; 0 if there are none."""
    return sum(line.confidence * len(line.text) for line in lines) / max(1, sum(len(line.text) for line in lines))


def falls(lines: Sequence[PlacedLine]) -> bool:
    """Whether most lines run downwards: the page lies on its side, or is written so."""
    return sum(line.falls for line in lines) * 2 > len(lines)


def reads_better(turned: Sequence[PlacedLine], upright: Sequence[PlacedLine]) -> bool:
    """Whether lines of a page that was turned are to be preferred to those of the page as it is."""
    if falls(turned):
        return False
    sideways = falls(upright) and not _are_east_asian(upright)
    # Lines on their side are recognised one by one as well as on a turned page, but not in order.
    return _score(turned) > (AS_GOOD if sideways else BETTER) * _score(upright)


def _score(lines: Sequence[PlacedLine]) -> float:
    return sum(len(line.text) * max(0.0, line.confidence - NO_BETTER_THAN_CHANCE) for line in lines)


def _are_east_asian(lines: Sequence[PlacedLine]) -> bool:
    text = "".join(line.text for line in lines)
    return 2 * len(_EAST_ASIAN.findall(text)) > len(text)
