"""Markup of an agent: its Markdown, parsed once into styled text."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from belino.delivery.links import spelled_out
from belino.delivery.styled import Span, Style, Styled

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PARSED_CHARS = 40_000
"""A longer text is not parsed: parsing it would block the event loop."""
DEEPEST = 18
"""The library drops content nested more than twenty levels deep; such a text is not parsed either."""
LINK_CHARS = 2_000
BULLET = "• "
RULE = "———"

_SIGNS = re.compile(r"([\\`*_\[\]<>&~|])")
_INLINE = {"strong_open": Style.BOLD, "em_open": Style.ITALIC, "s_open": Style.STRIKE}
_CLOSING = {"strong_close": Style.BOLD, "em_close": Style.ITALIC, "s_close": Style.STRIKE}
_SAFE_LINK = re.compile(r"(https?|mailto|tel|tg):", re.IGNORECASE)


def parse(source: str, *, link_chars: int = LINK_CHARS) -> Styled:
    """The text as a reader sees it, and its styles. Accepts any text; what is not Markdown stays as it is.

    An address longer than `link_chars` makes no link: it follows its label, where it can be cut.
    """
    tokens = _parser().parse(source) if len(source) <= PARSED_CHARS else []
    if any(token.level > DEEPEST for token in tokens):
        tokens = []
    writer = _Writer(link_chars)
    for token in tokens:
        writer.block(token)
    # A text that renders as nothing, for example a link definition, is shown as written.
    return writer.styled() or Styled(text=source)


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


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


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
            for child in token.children or ():
                self._inline(child)
            return
        cell = _Writer(self._link_chars)
        for child in token.children or ():
            cell._inline(child)
        written = cell.styled()
        self._cells[-1].append(" ".join(spelled_out(written).text.split()) if written else "")

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
        if _SAFE_LINK.match(address) and len(address) <= self._link_chars:
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


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table in fixed-width characters, with a line under its header."""
    widths = [max(len(row[place]) if place < len(row) else 0 for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * max(width, 1) for width in widths))
    return "\n".join(lines)
