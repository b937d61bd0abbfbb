"""Styled text: spans over plain text, between Markdown and a platform's markup."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Style(StrEnum):
    """How a piece of text is shown."""

    QUOTE = "quote"
    PRE = "pre"
    HEADING = "heading"
    LINK = "link"
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"


NESTING = tuple(Style)
"""What stands outside and what inside, where spans cover the same text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A style from one place in the text to another."""

    start: int
    end: int
    style: Style
    detail: str = ""
    """A link's address, a code block's language, a heading's level, a backtick for code that holds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stretch of text that has the same spans over it, outermost first."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Styled:
    """A text, and the spans over it."""

    text: str
    spans: tuple[Span, ...] = ()

    def piece(self, start: int, end: int) -> "Styled":
        """A part of it that stands on its own, with the spans that reach into it."""
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
        """The text, cut wherever a span begins or ends."""
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
    """One span of each style; in a code block nothing else is styled, a quote around it apart."""
    by_style: dict[Style, Span] = {}
    for span in spans:
        by_style.setdefault(span.style, span)
    styles = (Style.QUOTE, Style.PRE) if Style.PRE in by_style else NESTING
    return tuple(by_style[style] for style in styles if style in by_style)
