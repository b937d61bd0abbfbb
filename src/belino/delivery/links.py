"""Links where there can be none: their words alone lead nowhere, so the addresses are written behind them."""

import re
from dataclasses import replace
from urllib.parse import unquote

from belino.delivery.styled import Span, Style, Styled

_NONE = re.compile(r"(?!)")


def spelled_out(styled: Styled, takes: re.Pattern[str] = _NONE) -> Styled:
    """Without links that the platform would drop: the address stands behind the words, unless they are the address."""
    text, spans = styled.text, styled.spans
    dropped = [span for span in spans if span.style is Style.LINK and not takes.match(span.detail)]
    for link in sorted(dropped, key=lambda span: -span.end):
        if not _is_address(styled.text[link.start : link.end], link.detail):
            told = f" ({link.detail})"
            text = f"{text[: link.end]}{told}{text[link.end :]}"
            spans = tuple(_moved(span, link.end, len(told)) for span in spans)
    kept = tuple(span for span in spans if span.style is not Style.LINK or takes.match(span.detail))
    return Styled(text=text, spans=kept) if dropped else styled


def _moved(span: Span, at: int, by: int) -> Span:
    """The span, after so many characters were put in: within a block, behind anything else that ends there."""
    block = span.style in (Style.QUOTE, Style.HEADING)
    within = span.end > at or (span.end == at and block)
    return replace(span, start=span.start + (by if span.start >= at else 0), end=span.end + (by if within else 0))


def _is_address(label: str, address: str) -> bool:
    shown = label.strip().rstrip("/")
    return any(shown in (each, each.partition(":")[2]) for each in (address.rstrip("/"), unquote(address).rstrip("/")))
