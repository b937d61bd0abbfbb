"""Text of a reply as messages: in the platform's markup, each well formed and within the limits.

A long text is cut between paragraphs, else lines, sentences or words. The bodies of the parts, joined, are the text. A
code fence that is open at a cut is closed there and opened again.
"""

import re
from dataclasses import dataclass, replace
from math import inf

from belino.delivery.dialects import is_exact, render
from belino.delivery.markup import Style, Styled, guarded, parse, source_blocks, without_mentions
from belino.delivery.rich_html import rich_html
from belino.domain.graphemes import cut_before, is_boundary
from belino.domain.limits import Limits, Markup, Rich

# A line of three or more backticks or tildes opens a code fence; the same character, as often and alone, closes it.
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# Each pattern matches at the start of a run, so that a text of a million dots is read once and not once per dot.
# Each comes with how full a part must be for a cut there: half empty messages flood a chat.
_BREAKS = (
    (re.compile(r"\n[ \t]*\n+"), 0.6),
    (re.compile(r"\n(?![ \t]*\|)"), 0.5),  # not between the rows of a table
    (re.compile(r"\n"), 0.5),
    (re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』）]*+"), 0.5),
    (re.compile(r"\s+"), 0.25),
)

LEAST_RICH_CHARS = 200
"""A text whose pieces would have to be shorter is not sent in the richer format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text of one message."""

    text: str
    plain: str = ""
    """The same without markup; empty if it has none."""
    rich: str = ""
    """The same in the platform's richer format; empty if `text` shows all of it."""


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


def texts(source: str, limits: Limits) -> tuple[Text, ...]:
    """The messages for this Markdown, in order; none if nothing is visible."""
    if limits.markup is Markup.MARKDOWN:
        return _as_it_is(source, limits)
    styled = _parsed(source, limits)
    if limits.rich is not None and _needs_rich(source, styled, limits):
        return _rich_texts(source, limits)
    return _styled_texts(styled, limits)


def _styled_texts(styled: Styled, limits: Limits) -> tuple[Text, ...]:
    found, start = list[Text](), 0
    while start < len(styled.text):
        end = _end(styled, start, limits)
        piece = _trimmed(styled, start, end)
        if piece is not None:
            found.append(_written(piece, limits))
        start = end
    return tuple(found)


def _needs_rich(source: str, styled: Styled, limits: Limits) -> bool:
    """Whether the platform's markup shows less than was meant."""
    if any(span.style is Style.HEADING for span in styled.spans) or not is_exact(styled, limits.markup):
        return True
    return "|" in source and any(block.is_table for block in source_blocks(source))


def _rich_texts(source: str, limits: Limits) -> tuple[Text, ...]:
    """The messages, cut in the Markdown itself, so that each has both formats and fits in both."""
    room = limits.rich_chars
    while room > LEAST_RICH_CHARS:
        parts = [str(part).strip("\r\n") for part in chunk(source, room) if part.body.strip()]
        pieces = [(part, _parsed(part, limits)) for part in parts]
        over = max((_over(styled, limits) for _, styled in pieces), default=0.0)
        if over <= 1:
            return tuple(_rich_text(part, styled, limits) for part, styled in pieces if styled.text.strip())
        room = min(room - 1, int(min(room, len(source)) / over))
    return _styled_texts(_parsed(source, limits), limits)


def _rich_text(source: str, styled: Styled, limits: Limits) -> Text:
    piece = _trimmed(styled, 0, len(styled.text)) or styled
    if not _needs_rich(source, piece, limits):
        return _written(piece, limits)
    rich = rich_html(source) if limits.rich is Rich.HTML else without_mentions(guarded(source))
    return replace(_written(piece, limits), rich=rich)


def caption(source: str, limits: Limits) -> Text | None:
    """A caption in the platform's markup; None if it is longer than captions may be."""
    if limits.markup is Markup.MARKDOWN:
        text = Text(text=source.strip())
    else:
        styled = _parsed(source, limits)
        piece = _trimmed(styled, 0, len(styled.text))
        text = _written(piece, limits) if piece is not None else Text(text="")
    return text if length(text, limits) <= limits.caption_chars else None


def plain_text(source: str) -> str:
    """The text as people read it, without markup."""
    return render(parse(source), Markup.PLAIN).strip()


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
        parts = tuple(str(part) for part in chunk(source, room))
        longest = max((limits.unit.length(part) for part in parts), default=0)
        if longest <= limits.text_chars or room == 1:
            return tuple(Text(text=part.strip("\r\n")) for part in parts if part.strip())
        room = max(1, room * limits.text_chars // (longest + 1))


def _end(styled: Styled, start: int, limits: Limits) -> int:
    """The end of the message that begins here: as late as the limits allow, at the best place to cut."""
    most = min(start + limits.text_chars, len(styled.text))
    while True:
        end = _best_cut(styled.text, start, most)
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
        len(piece.spans) / (limits.styles or inf),
    )


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


def chunk(text: str, limit: int) -> tuple[TextPart, ...]:
    """The text in parts of at most `limit` characters; none for an empty text."""
    parts: list[TextPart] = []
    start, fence = 0, None
    while start < len(text):
        opening = f"{fence.line}\n" if fence else ""
        end = _best_cut(text, start, start + limit - len(opening))
        open_at_end = _fence_at(text, start, end, fence, limit)
        closing = _closing(open_at_end, text[end - 1]) if end < len(text) else ""
        while len(opening) + end - start + len(closing) > limit:
            # The closing line needs space too; an earlier end may be before the fence.
            end = _best_cut(text, start, start + limit - len(opening) - len(closing))
            open_at_end = _fence_at(text, start, end, fence, limit)
            closing = _closing(open_at_end, text[end - 1])
        parts.append(TextPart(opening=opening, body=text[start:end], closing=closing))
        start, fence = end, open_at_end
    return tuple(parts)


def _best_cut(text: str, start: int, most: int) -> int:
    """The best cut at or before `most`; the text's end if it is within `most`."""
    if most >= len(text):
        return len(text)
    for pattern, full in _BREAKS:
        least = start + max(1, int((most - start) * full))
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
