"""Rich HTML of a Markdown text: headings, lists and tables as tags, for platforms that lay them out.

No tag loads anything: a picture becomes a link.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from belino.delivery.markup import PARSED_CHARS, SAFE_LINK, guarded, parser, spoiler_bars

if TYPE_CHECKING:
    from markdown_it.token import Token

MOST_BLOCKS = 500
MOST_COLUMNS = 20
DEEPEST = 12
"""Platforms read sixteen levels, styles included."""
_TAGS = {
    "strong": "b", "em": "i", "s": "s", "blockquote": "blockquote", "bullet_list": "ul", "list_item": "li",
    "table": "table bordered", "tr": "tr",
}  # fmt: skip
_BREAK = "<br>"


def rich_html(source: str) -> str:
    """The text as HTML; empty if it is more than the platform lays out."""
    if len(source) > PARSED_CHARS:
        return ""
    tokens = parser().parse(guarded(source))
    blocks = sum(token.nesting == 1 or token.type in ("fence", "code_block", "hr") for token in tokens)
    if blocks > MOST_BLOCKS or any(token.level > DEEPEST for token in tokens) or _columns(tokens) > MOST_COLUMNS:
        return ""
    writer = _Writer()
    for token in tokens:
        writer.block(token)
    return "".join(writer.pieces)


def _columns(tokens: Sequence["Token"]) -> int:
    most = count = 0
    for token in tokens:
        count = 0 if token.type == "tr_open" else count + (token.type in ("th_open", "td_open"))
        most = max(most, count)
    return most


class _Writer:
    """Writes tags, token by token."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._inside = 0
        """Open lists and quotes: in them, paragraphs are lines."""
        self._first = True
        """Whether nothing was written in the innermost list item or quote yet."""
        self._links: list[str] = []

    def block(self, token: "Token") -> None:
        name = token.type.removesuffix("_open").removesuffix("_close")
        match name:
            case "inline":
                self._line(token.children or ())
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self.pieces.append("<hr/>")
            case "paragraph":
                self._paragraph(token)
            case "heading":
                self.pieces.append(f"<{'/' * (token.nesting < 0)}{token.tag}>")
            case "ordered_list":
                start = token.attrs.get("start", 1)
                self._tag(token, "ol", f' start="{start}"' if token.nesting > 0 and start != 1 else "")
            case "th" | "td":
                align = str(token.attrs.get("style", "")).removeprefix("text-align:")
                self._tag(token, name, f' align="{align}"' if align else "")
            case _ if name in _TAGS:
                self._tag(token, _TAGS[name])

    def _tag(self, token: "Token", tag: str, more: str = "") -> None:
        if tag in ("ul", "ol", "blockquote"):
            self._inside += token.nesting
        if tag in ("li", "blockquote"):
            self._first = token.nesting > 0
        self.pieces.append(f"<{tag}{more}>" if token.nesting > 0 else f"</{tag.partition(' ')[0]}>")

    def _paragraph(self, token: "Token") -> None:
        if not self._inside:
            self.pieces.append("<p>" if token.nesting > 0 else "</p>")
        elif token.nesting > 0:
            self.pieces.append("" if self._first else _BREAK)
            self._first = False

    def _code(self, token: "Token") -> None:
        language = "".join(token.info.split()[:1]) if token.type == "fence" else ""
        body = escape(token.content.removesuffix("\n"), quote=False)
        named = f'<code class="language-{escape(language)}">{body}</code>' if language else body
        self.pieces.append(f"<pre>{named}</pre>" if body else "")

    def _line(self, children: Sequence["Token"]) -> None:
        bars, hidden = spoiler_bars(children), False
        for place, token in enumerate(children):
            at = 0
            for bar in bars.get(place, ()):
                self.pieces.append(escape(token.content[at:bar], quote=False))
                self.pieces.append("</tg-spoiler>" if hidden else "<tg-spoiler>")
                hidden, at = not hidden, bar + 2
            self._word(token, at)

    def _word(self, token: "Token", at: int) -> None:
        match token.type:
            case "softbreak" | "hardbreak":
                self.pieces.append(_BREAK)
            case "code_inline":
                self.pieces.append(f"<code>{escape(token.content, quote=False)}</code>")
            case "link_open":
                address = str(token.attrs.get("href", ""))
                self._links.append(address)
                self.pieces.append(f'<a href="{escape(address)}">' if SAFE_LINK.match(address) else "")
            case "link_close":
                address = self._links.pop()
                self.pieces.append("</a>" if SAFE_LINK.match(address) else escape(f" ({address})", quote=False))
            case "image":
                address, words = str(token.attrs.get("src", "")), escape(token.content, quote=False)
                linked = SAFE_LINK.match(address) and not self._links
                self.pieces.append(f'<a href="{escape(address)}">{words or "picture"}</a>' if linked else words)
            case _ if token.nesting:
                self._tag(token, _TAGS[token.type.partition("_")[0]])
            case _:
                self.pieces.append(escape(token.content[at:], quote=False))
