"""Text of a reply as messages: in the platform's markup, each well formed and within the limits."""

from dataclasses import dataclass
from math import inf

from belino.delivery.chunk import best_cut, chunk, farthest
from belino.delivery.dialects import render
from belino.delivery.markup import parse
from belino.delivery.styled import Style, Styled
from belino.domain.limits import Limits, Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text of one message."""

    text: str
    plain: str = ""
    """The same without markup; empty if it has none."""


def texts(source: str, limits: Limits) -> tuple[Text, ...]:
    """The messages for this Markdown, in order; none if nothing is visible."""
    if limits.markup is Markup.MARKDOWN:
        return _as_it_is(source, limits)
    styled = _parsed(source, limits)
    found, start = list[Text](), 0
    while start < len(styled.text):
        end = _end(styled, start, limits)
        piece = _trimmed(styled, start, end)
        if piece is not None:
            found.append(_written(piece, limits))
        start = end
    return tuple(found)


def caption(source: str, limits: Limits) -> Text | None:
    """A caption in the platform's markup; None if it is longer than captions may be."""
    if limits.markup is Markup.MARKDOWN:
        text = Text(text=source.strip())
    else:
        styled = _parsed(source, limits)
        piece = _trimmed(styled, 0, len(styled.text))
        text = _written(piece, limits) if piece is not None else Text(text="")
    return text if length(text, limits) <= limits.caption_chars else None


def length(text: Text, limits: Limits) -> int:
    """A message's length as the platform counts it; without markup where markup does not count."""
    return limits.unit.length(text.text if limits.counts_markup or not text.plain else text.plain)


def _parsed(source: str, limits: Limits) -> Styled:
    # A link must leave space for its label, or each letter of it would become a separate message.
    return parse(source, link_chars=limits.text_chars // 2)


def _as_it_is(source: str, limits: Limits) -> tuple[Text, ...]:
    """Markdown for a platform that reads it unchanged."""
    room = limits.text_chars
    while True:
        parts = tuple(str(part) for part in chunk(source, room, lines=limits.text_lines))
        longest = max((limits.unit.length(part) for part in parts), default=0)
        if longest <= limits.text_chars or room == 1:
            return tuple(Text(text=part.strip("\r\n")) for part in parts if part.strip())
        room = max(1, room * limits.text_chars // (longest + 1))


def _end(styled: Styled, start: int, limits: Limits) -> int:
    """The end of the message that begins here: as late as the limits allow, at the best place to cut."""
    most = farthest(styled.text, start, limits.text_chars, limits.text_lines)
    while True:
        end = best_cut(styled.text, start, most)
        piece = _trimmed(styled, start, end)
        if piece is None or end - start <= 1:
            return end
        over = _over(piece, limits)
        if over <= 1:
            return end
        # Markup takes space from the text; how much is known only after rendering again.
        most = start + max(1, min(end - start - 1, int((end - start) / over)))


def _over(piece: Styled, limits: Limits) -> float:
    """The factor by which a message exceeds the limits."""
    counted = render(piece, limits.markup if limits.counts_markup else Markup.PLAIN)
    return max(
        limits.unit.length(counted) / limits.text_chars,
        (counted.count("\n") + 1) / (limits.text_lines or inf),
        _styled(piece) / (limits.styles or inf),
    )


def _styled(piece: Styled) -> int:
    """How many styles begin before the last link ends: losing styles beyond the limit matters only for links."""
    end = max((span.end for span in piece.spans if span.style is Style.LINK), default=0)
    return sum(span.start < end for span in piece.spans)


def _trimmed(styled: Styled, start: int, end: int) -> Styled | None:
    """A piece without surrounding blank lines, which platforms trim too; None if nothing else is left."""
    body = styled.text[start:end]
    if not body.strip():
        return None
    left = len(body) - len(body.lstrip("\r\n"))
    return styled.piece(start + left, start + len(body.rstrip()))


def _written(piece: Styled, limits: Limits) -> Text:
    text, plain = render(piece, limits.markup), render(piece, Markup.PLAIN)
    return Text(text=text, plain=plain if text != plain else "")
