"""Styled text: spans over plain text, between Markdown and a platform's markup."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Style(StrEnum):
    """A style of text."""

    QUOTE = "quote"
    PRE = "pre"
    HEADING = "heading"
    LINK = "link"
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"


NESTING = tuple(Style)
"""The nesting order of spans over the same text, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A style over a range of the text."""

    start: int
    end: int
    style: Style
    detail: str = ""
    """A link's address, a code block's language, a heading's level, or a backtick for code that contains one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stretch of text with the same spans over it, outermost first."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Styled:
    """A text, and the spans over it."""

    text: str
    spans: tuple[Span, ...] = ()

    def piece(self, start: int, end: int) -> "Styled":
        """A part of the text, with the spans that overlap it."""
        spans = tuple(
            Span(
                start=max(span.start, start) - start,
                end=min(span.end, end) - start,
                style=span.style,
                detail=span.detail,
            )
            for span in self.spans
            if span.start < end and span.end > start
        )
        return Styled(text=self.text[start:end], spans=spans)

    def runs(self) -> tuple[Run, ...]:
        """The text, split wherever a span begins or ends."""
        edges = sorted({0, len(self.text)} | {at for span in self.spans for at in (span.start, span.end)})
        starts = sorted(self.spans, key=lambda span: span.start)
        found, over, next_span = [], list[Span](), 0
        for start, end in pairwise(edges):
            while next_span < len(starts) and starts[next_span].start <= start:
                over.append(starts[next_span])
                next_span += 1
            over = [span for span in over if span.end > start]
            found.append(Run(text=self.text[start:end], spans=_outermost_first(over)))
        return tuple(found)


def _outermost_first(spans: list[Span]) -> tuple[Span, ...]:
    """One span of each style; code blocks have no other style except a quote around them."""
    by_style: dict[Style, Span] = {}
    for span in spans:
        by_style.setdefault(span.style, span)
    styles = (Style.QUOTE, Style.PRE) if Style.PRE in by_style else NESTING
    return tuple(by_style[style] for style in styles if style in by_style)
