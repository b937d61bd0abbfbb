"""Links where a platform shows none: the address is written after the label."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from urllib.parse import unquote

from belino.delivery.styled import Span, Style, Styled

_NONE = re.compile(r"(?!)")


def spelled_out(styled: Styled, takes: re.Pattern[str] = _NONE) -> Styled:
    """Replace links that the platform would drop: the address follows the label, unless the label is the address."""
    dropped = [span for span in styled.spans if span.style is Style.LINK and not takes.match(span.detail)]
    if not dropped:
        return styled
    pieces, at, grown = list[str](), 0, _Grown()
    for link in sorted(dropped, key=lambda span: span.end):
        if not _is_address(styled.text[link.start : link.end], link.detail):
            told = f" ({link.detail})"
            pieces += [styled.text[at : link.end], told]
            at = link.end
            grown.note(at, len(told))
    kept = (span for span in styled.spans if span.style is not Style.LINK or takes.match(span.detail))
    return Styled(text="".join([*pieces, styled.text[at:]]), spans=tuple(grown.moved(span) for span in kept))


class _Grown:
    """Insertions into a text, and how far they shift its spans; read once, however many links there are."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._by = [0]

    def note(self, place: int, by: int) -> None:
        """Record an insertion of this many characters; positions come in ascending order."""
        self._places.append(place)
        self._by.append(self._by[-1] + by)

    def moved(self, span: Span) -> Span:
        """The span in the new text; an insertion at its end belongs to it only if it is a block."""
        block = span.style in (Style.QUOTE, Style.HEADING)
        before = bisect_right(self._places, span.start)
        within = (bisect_right if block else bisect_left)(self._places, span.end)
        return replace(span, start=span.start + self._by[before], end=span.end + self._by[within])


def _is_address(label: str, address: str) -> bool:
    shown = label.strip().rstrip("/")
    return any(shown in (each, each.partition(":")[2]) for each in (address.rstrip("/"), unquote(address).rstrip("/")))
