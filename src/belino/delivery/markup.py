"""Markup of an agent: its Markdown, parsed once into styled text, which is spans over plain text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

PARSED_CHARS = 40_000
"""A longer text is not parsed: parsing it would block the event loop."""
DEEPEST = 18
"""The library drops content nested more than twenty levels deep; such a text is not parsed either."""
LINK_CHARS = 2_000
BULLET = "• "
RULE = "———"

_SIGNS = re.compile(r"([\\`*_\[\]<>&~|])")
SAFE_LINK = re.compile(r"(https?|mailto|tel|tg):", re.IGNORECASE)
_NONE = re.compile(r"(?!)")
# Inline code, addresses, a star between two letters or digits, and LaTeX in its brackets.
_MEANT = re.compile(
    r"(?<![A-Za-z0-9*])\*[A-Za-z0-9]{1,60}\*(?=[A-Za-z0-9])|(?P<ticks>`+)(?!`)[^\n]{1,1000}?(?<!`)(?P=ticks)(?!`)"
    r"|<[^<>\s]{0,2000}>|https?://[^\s<>]+|(?<=[A-Za-z0-9)])(?P<star>\*)(?=[A-Za-z0-9(])"
    r"|(?<!\\)\\(?P<open>[(\[])(?P<math>[^\n]{1,400}?)\\(?P<close>[)\]])"
)
_LATEX = re.compile(r"[=^]|(?<!\\)\\[a-zA-Z]{2}")
_MENTION = re.compile(r"<(?=[!@#])")
_BARS = re.compile(r"(?<!\|)\|\|(?!\|)")
_LINE_END = re.compile(r"\r\n?|\n")


class Style(StrEnum):
    """A style of text."""

    QUOTE = "quote"
    PRE = "pre"
    HEADING = "heading"
    SPOILER = "spoiler"
    LINK = "link"
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"


NESTING = tuple(Style)
"""The nesting order of spans over the same text, outermost first."""
_INLINE = {"strong_open": Style.BOLD, "em_open": Style.ITALIC, "s_open": Style.STRIKE}
_CLOSING = {"strong_close": Style.BOLD, "em_close": Style.ITALIC, "s_close": Style.STRIKE}


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


def parse(source: str, *, link_chars: int = LINK_CHARS) -> Styled:
    """The text as a reader sees it, and its styles. Accepts any text; what is not Markdown stays as it is.

    An address longer than `link_chars` makes no link: it follows its label, where it can be cut.
    """
    tokens = parser().parse(guarded(source)) if len(source) <= PARSED_CHARS else []
    if any(token.level > DEEPEST for token in tokens):
        tokens = []
    writer = _Writer(link_chars)
    for token in tokens:
        writer.block(token)
    # A text that renders as nothing, for example a link definition, is shown as written.
    return writer.styled() or Styled(text=source)


def guarded(source: str) -> str:
    """The Markdown with a backslash before signs that are meant as they are: `2*3*4`, and LaTeX's brackets."""
    if not _MEANT.search(source):
        return source
    pieces, at = list[str](), 0
    for start, end in (*code_blocks(source), (len(source), len(source))):
        pieces += [_MEANT.sub(_meant, source[at:start]), source[start:end]]
        at = end
    return "".join(pieces)


def without_mentions(source: str) -> str:
    """The Markdown for a platform that reads `<@…>` and `<!…>` as mentions, with those as text, except in code."""
    pieces, at = list[str](), 0
    for start, end in (*code_blocks(source), (len(source), len(source))):
        pieces += [_MENTION.sub("&lt;", source[at:start]), source[start:end]]
        at = end
    return "".join(pieces)


def _meant(match: re.Match[str]) -> str:
    """Outside of code and addresses, the escaped sign; square brackets may be escaped for other reasons."""
    if match["star"]:
        return "\\*"
    if not match["open"] or (match["open"] == "[" and not _LATEX.search(match["math"])):
        return match[0]
    return f"\\\\{match['open']}{match['math']}\\\\{match['close']}"


def code_blocks(source: str) -> tuple[tuple[int, int], ...]:
    """Where the code blocks of a text begin and end, with their fences. Accepts a text of any length."""
    starts = [0, *(line_end.end() for line_end in _LINE_END.finditer(source)), len(source)]
    blocks = (token for token in _block_parser().parse(source) if token.type in ("fence", "code_block"))
    return tuple((starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]) for token in blocks if token.map)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBlock:
    """A code block or a table in a Markdown text."""

    start: int
    end: int
    content: str
    language: str = ""
    is_table: bool = False


def source_blocks(source: str) -> tuple[SourceBlock, ...]:
    """The code blocks and tables of a Markdown text that are in no list or quote."""
    starts = [0, *(line_end.end() for line_end in _LINE_END.finditer(source)), len(source)]
    found = []
    for token in _block_parser().parse(source):
        if token.level or not token.map or token.type not in ("fence", "code_block", "table_open"):
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        is_table = token.type == "table_open"
        content = source[start:end] if is_table else token.content
        words = token.info.split() if token.type == "fence" else []
        found.append(SourceBlock(start=start, end=end, content=content, language="".join(words[:1]), is_table=is_table))
    return tuple(found)


def literal(text: str) -> str:
    """Markdown that renders as exactly this text."""
    return _SIGNS.sub(r"\\\1", text)


def as_code(text: str) -> str:
    """Markdown that shows this text, for example a file name, as code."""
    plain = " ".join(text.split())
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if "`" in (plain[:1], plain[-1:]) else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


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


@cache
def parser() -> "MarkdownIt":
    """The parser of agents' Markdown."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.core.ruler.at("text_join", _with_escapes)
    return made


def _with_escapes(state: "StateCore") -> None:
    """Take an escaped sign for text, but keep it apart: joined to its neighbours it would look like markup of ours."""
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "text_special":
                child.type = "text"


@cache
def _block_parser() -> "MarkdownIt":
    """Finds blocks only: what is inside of them takes the time."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")


class _Writer:
    """Writes the text token by token. A gap is written with the text after it, so that nothing ends with one."""

    def __init__(self, link_chars: int) -> None:
        self._link_chars = link_chars
        self._pieces: list[str] = []
        self._length = 0
        self._gap = ""
        self._open: list[tuple[Style, str, int | None]] = []
        self._spans: list[Span] = []
        self._lists: list[int | None] = []
        """For each open list, the number of its next item; None if it has bullets."""
        self._cells: list[list[str]] | None = None

    def styled(self) -> Styled | None:
        """The result; None if it is empty."""
        text = "".join(self._pieces)
        return Styled(text=text, spans=tuple(self._spans)) if text.strip() else None

    def block(self, token: "Token") -> None:
        match token.type:
            case "inline":
                self._inline_or_cell(token)
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self._write(RULE)
                self._gap = "\n\n"
            case "paragraph_close":
                self._gap = "\n" if token.hidden else "\n\n"
            case "heading_open":
                self._begin(Style.HEADING, token.tag[1:])
            case "heading_close":
                self._end(Style.HEADING)
                self._gap = "\n\n"
            case "blockquote_open":
                self._begin(Style.QUOTE)
            case "blockquote_close":
                self._end(Style.QUOTE)
                self._gap = "\n\n"
            case _ if token.type.startswith(("bullet_list", "ordered_list", "list_item")):
                self._list(token)
            case _:
                self._table(token)

    def _list(self, token: "Token") -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrs.get("start", 1)))
            case "list_item_open":
                number = self._lists[-1]
                self._write("  " * (len(self._lists) - 1) + (BULLET if number is None else f"{number}. "))
                if number is not None:
                    self._lists[-1] = number + 1
            case "list_item_close":
                # An empty item has only its marker; the next item still begins on its own line.
                self._gap = self._gap or "\n"
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._gap = "\n" if self._lists else "\n\n"

    def _code(self, token: "Token") -> None:
        content = token.content.removesuffix("\n")
        if content:
            # Code begins on its own line: the text before it, such as a list marker, is not code.
            self._gap = self._gap or ("\n" if self._length else "")
            words = token.info.split() if token.type == "fence" else []
            self._begin(Style.PRE, words[0] if words else "")
            self._write(content)
            self._end(Style.PRE)
        self._gap = "\n\n"

    def _table(self, token: "Token") -> None:
        match token.type:
            case "table_open":
                self._cells = []
            case "tr_open" if self._cells is not None:
                self._cells.append([])
            case "table_close" if self._cells is not None:
                rows, self._cells = self._cells, None
                self._begin(Style.PRE)
                self._write(_aligned(rows))
                self._end(Style.PRE)
                self._gap = "\n\n"

    def _inline_or_cell(self, token: "Token") -> None:
        if self._cells is None:
            bars = spoiler_bars(token.children or ())
            for place, child in enumerate(token.children or ()):
                self._hidden(child, bars.get(place, ()))
            return
        cell = _Writer(self._link_chars)
        for child in token.children or ():
            cell._inline(child)
        written = cell.styled()
        self._cells[-1].append(" ".join(spelled_out(written).text.split()) if written else "")

    def _hidden(self, token: "Token", bars: Sequence[int]) -> None:
        """Write a token, in which spoilers begin and end at these bars."""
        at = 0
        for bar in bars:
            self._write(token.content[at:bar])
            if any(style is Style.SPOILER for style, _, _ in self._open):
                self._end(Style.SPOILER)
            else:
                self._begin(Style.SPOILER)
            at = bar + 2
        if bars:
            self._write(token.content[at:])
        else:
            self._inline(token)

    def _inline(self, token: "Token") -> None:
        match token.type:
            case "softbreak" | "hardbreak":
                self._gap += "\n" + "  " * len(self._lists)
            case "code_inline":
                self._begin(Style.CODE, "`" if "`" in token.content else "")
                self._write(token.content)
                self._end(Style.CODE)
            case "link_open":
                self._begin(Style.LINK, str(token.attrs.get("href", "")))
            case "link_close":
                self._end_link()
            case "image":
                self._image(token)
            case _ if token.type in _INLINE:
                self._begin(_INLINE[token.type])
            case _ if token.type in _CLOSING:
                self._end(_CLOSING[token.type])
            case _:
                self._write(token.content)

    def _image(self, token: "Token") -> None:
        address = str(token.attrs.get("src", ""))
        inside = any(style is Style.LINK for style, _, _ in self._open)
        if not inside:
            self._begin(Style.LINK, address)
        self._write(token.content or address)
        if not inside:
            self._end_link()

    def _begin(self, style: Style, detail: str = "") -> None:
        self._open.append((style, detail, None))

    def _end_link(self) -> None:
        address, start = self._end(Style.LINK, keep=False)
        if start is None:
            self._write(address)
            return
        if SAFE_LINK.match(address) and len(address) <= self._link_chars:
            self._spans.append(Span(start=start, end=self._length, style=Style.LINK, detail=address))
        elif address and address != "".join(self._pieces)[start:]:
            self._write(f" ({address})")

    def _end(self, style: Style, *, keep: bool = True) -> tuple[str, int | None]:
        """Close the innermost span of a style; a span without text and a quote within a quote are dropped."""
        at = max(place for place, (each, _, _) in enumerate(self._open) if each is style)
        _, detail, start = self._open.pop(at)
        twice = style is Style.QUOTE and any(each is Style.QUOTE for each, _, _ in self._open)
        if keep and start is not None and not twice:
            self._spans.append(Span(start=start, end=self._length, style=style, detail=detail))
        return detail, start

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._length and self._gap:
            self._pieces.append(self._gap)
            self._length += len(self._gap)
        self._gap = ""
        self._open = [(style, detail, self._length if start is None else start) for style, detail, start in self._open]
        self._pieces.append(text)
        self._length += len(text)


def spoiler_bars(children: Sequence["Token"]) -> dict[int, list[int]]:
    """The bars that hide text between them, by the token they are in: `||hidden||`, not the `||` of code."""
    found: dict[int, list[int]] = {}
    opened: tuple[int, int] | None = None
    for place, token in enumerate(children):
        for bar in _BARS.finditer(token.content) if _is_plain(token) else ():
            before, after = token.content[: bar.start()][-1:], token.content[bar.end() :][:1]
            opens = not before.isalnum() and bool(after.strip() or (not after and place + 1 < len(children)))
            closes = not after.isalnum() and bool(before.strip() or (not before and place))
            if opened is not None and closes and opened != (place, bar.start() - 2):
                for where, start in (opened, (place, bar.start())):
                    found.setdefault(where, []).append(start)
                opened = None
            elif opens:
                opened = place, bar.start()
    return found


def _is_plain(token: "Token") -> bool:
    """Whether a token is text outside of other markup, and no escaped sign."""
    return token.type == "text" and not token.level and not token.markup


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table in fixed-width characters, with a line under its header."""
    widths = [max(len(row[place]) if place < len(row) else 0 for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * max(width, 1) for width in widths))
    return "\n".join(lines)


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
