"""HTML as a reader sees it: headings, lists, tables and links as text; scripts left out, hidden text marked."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Self

from belino.domain.media import DocumentText, Unread
from belino.readers import charset
from belino.readers.parts import CannotRead, ReadOptions, cut_document, hidden, one_line, table

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

BYTES_AT_MOST = 20 * 1024 * 1024
"""Takes twenty times as much memory, and some ten seconds."""
DEPTH_AT_MOST = 3_000
"""Elements open at once; the parser's time grows with the square of this."""
FLAT = "(nested too deeply to tell what a reader sees of it: scripts and hidden text stand among the rest)"
HIDDEN_CHARS = 2_000
LINK_CHARS = 200

_META_CHARSET = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})["']""")
_OUT = (
    "script",
    "style",
    "template",
    "iframe",
    "object",
    "embed",
    "head",
    "audio",
    "video",
    "canvas",
    "math annotation",
)
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "details", "dialog", "dd", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "li", "main", "menu",
    "nav", "ol", "p", "section", "summary", "table", "tr", "ul", "caption", "tbody", "thead", "tfoot",
})  # fmt: skip
_TIGHT = frozenset({"li", "dd", "dt", "tr", "summary", "figcaption"})
"""Blocks that follow one another without an empty line."""
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\n\f]+")
_OPENED = re.compile(
    r"<(/)?(?!(?:p|li|br|img|input|meta|link|hr|td|tr|th|option|dt|dd|col|source|wbr|area|param|tbody|thead)\b)[a-zA-Z]",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*+>")

STYLES_CHARS = 500_000
_UNKNOWN = "?"

_HIDES = re.compile(
    r"(?:^|[;{\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|font-size\s*:\s*(?:0+(?:\.0*)?(?:px|pt|em|rem|%|vw)?|0?\.\d{1,6}(?:px|pt)|1(?:\.0*)?px)\s*(?=[;!]|$)"
    r"|opacity\s*:\s*0(?:\.0*)?\s*(?=[;!]|$)|text-indent\s*:\s*-\d{3,}"
    r"|(?:left|top|margin-left|margin-top|right)\s*:\s*-\d{3,}(?:px|em|pt|rem)"
    r"|clip\s*:\s*rect\(\s*(?:0|1px)|mso-hide\s*:\s*all|transform\s*:\s*scale\(\s*0\s*\))",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"(?:^|[;\s])color\s*:\s*([^;!]{1,60})", re.IGNORECASE)
_BACKGROUND = re.compile(r"(?:^|[;\s])background(-color)?\s*:\s*([^;!]{1,200})", re.IGNORECASE)
_DIGITS, _FEW_DIGITS = re.compile(r"[0-9a-f]{6}(?:[0-9a-f]{2})?"), re.compile(r"[0-9a-f]{3,4}")
_NUMBERS = re.compile(r"rgba?\(\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*[, ]\s*(\d{1,3})")
_NAMED = {"white": "ffffff", "black": "000000", "red": "ff0000", "blue": "0000ff", "yellow": "ffff00", "snow": "fffafa"}
_NEAR = 8
"""The difference per colour component up to which text is unreadable on its background."""

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+\*/")
# Rules for print or narrow screens do not apply to the page as it is read.
_CONDITIONAL = re.compile(r"@[a-z-]{1,30}[^{};]{0,500}\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\}", re.IGNORECASE)
_RULE = re.compile(r"([^{}@;]{1,500})\{([^{}]{0,5000})\}")
_SIMPLE = re.compile(r"(?:[a-z][a-z0-9]{0,20})?(?:([.#])([A-Za-z_-][\w-]{0,100}))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page, its title, and whether any of it was hidden."""

    text: str
    title: str
    hides: bool


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    import selectolax.lexbor  # noqa: F401

    charset.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The page, cut into parts at its headings."""
    content = file.read(BYTES_AT_MOST + 1)
    if len(content) > BYTES_AT_MOST:
        raise CannotRead(Unread.TOO_LARGE, f"pages over {BYTES_AT_MOST // 2**20} MB are not read")
    shown = show(decoded(content))
    title = f"{shown.title}\n\n" if shown.title and shown.title not in shown.text[:500] else ""
    return cut_document(title + shown.text, options, hides=shown.hides)


def decoded(content: bytes) -> str:
    """A page's text, by its declared charset if that is plausible."""
    found = _XML_CHARSET.match(content[:256].lstrip()) or _META_CHARSET.search(content[:4096])
    return charset.decode(content, declared=charset.written_in_ascii(found[1]) if found else "")


def show(page: str) -> PageText:
    """The visible text of a page, with hidden text marked."""
    from selectolax.lexbor import LexborHTMLParser

    if _depth(page) > DEPTH_AT_MOST:
        return PageText(f"{FLAT}\n\n{html.unescape(one_line(_TAG.sub(' ', page)))}", "", False)
    tree = LexborHTMLParser(page)
    title = tree.css_first("title")
    name = one_line(title.text()) if title is not None else ""
    unseen = _HiddenElements.of_styles(style.text() for style in tree.css("style"))
    tree.strip_tags(list(_OUT))
    if tree.root is None:
        return PageText("", name, False)
    writer = _PageWriter(unseen, _arranging(tree))
    writer.walk(tree.root)
    return PageText(writer.finished(), name, writer.hides)


def _arranging(tree: "LexborHTMLParser") -> frozenset[int]:
    """Tables that contain tables: these are used for layout."""
    found: set[int] = set()
    for inner in tree.css("table table"):
        above = inner.parent
        while above is not None and above.tag != "table":
            above = above.parent
        found.update((above.mem_id,) if above is not None else ())
    return frozenset(found)


def _depth(page: str) -> int:
    depth = most = 0
    for found in _OPENED.finditer(page):
        depth = depth + 1 if found[1] is None else max(0, depth - 1)
        most = max(most, depth)
    return most


@dataclass(slots=True)
class _OpenTable:
    """A table that is written when it ends; the lines before it wait outside."""

    node: int
    rows: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class _PageWriter:
    """Writes lines while elements begin and end."""

    unseen: "_HiddenElements"
    arranging: frozenset[int]
    hides: bool = False
    _out: list[str] = field(default_factory=list)
    _line: list[str] = field(default_factory=list)
    _lists: list[int | None] = field(default_factory=list)
    """For each open list the number of its last item; None where items have bullets."""
    _links: list[tuple[int, int]] = field(default_factory=list)
    _table: _OpenTable | None = None
    _quotes: int = 0
    _pre: int = 0
    _mark: str = ""

    def walk(self, root: "LexborNode") -> None:
        """Visit every node in order, without recursion: pages may nest deeply."""
        node: LexborNode | None = root
        last = root.mem_id
        while node is not None:
            below = node.child if self._begin(node) else None
            if below is not None:
                node = below
                continue
            while node is not None:
                self._end(node)
                if node.mem_id == last:
                    return
                if node.next is not None:
                    node = node.next
                    break
                node = node.parent

    def finished(self) -> str:
        """The text."""
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "".join(self._out)).strip()

    def _begin(self, node: "LexborNode") -> bool:
        """Begin an element; whether its content is to be visited."""
        if node.is_text_node:
            text = node.text_content or ""
            self._line.append(text if self._pre else _SPACE.sub(" ", text))
            return False
        if not node.is_element_node:
            return False
        tag = node.tag or ""
        if self.unseen.enters(node):
            self._hide(node)
            return False
        if tag in _BLOCKS or tag in _HEADINGS or tag == "pre":
            self._break(tight=tag in _TIGHT)
            self._open_block(tag, node)
        else:
            self._open_inline(tag, node)
        return True

    def _open_block(self, tag: str, node: "LexborNode") -> None:
        match tag:
            case "ul" | "menu":
                self._lists.append(None)
            case "ol":
                start = node.attributes.get("start") or ""
                self._lists.append(int(start) - 1 if re.fullmatch(r"\d{1,6}", start) else 0)
            case "li":
                self._mark = self._item()
            case "blockquote":
                self._quotes += 1
            case "pre":
                self._pre += 1
                self._line.append("```\n")
            case "table" if self._table is None and node.mem_id not in self.arranging:
                self._table = _OpenTable(node.mem_id)
            case "tr" if self._table is not None:
                self._table.rows.append([])
            case _:
                self._mark = _HEADINGS.get(tag, self._mark)

    def _open_inline(self, tag: str, node: "LexborNode") -> None:
        match tag:
            case "br":
                self._line.append(" " if self._table is not None else "\n")
            case "a":
                if node.prev is not None and node.prev.tag == "a":
                    self._line.append(" ")
                self._links.append((len(self._out), len(self._line)))
            case "img":
                alt = one_line(node.attributes.get("alt") or "")
                self._line.append(f" ![{alt}] " if alt else "")
            case "option" | "input" | "button":
                self._line.append(" ")

    def _end(self, node: "LexborNode") -> None:
        if not node.is_element_node or self.unseen.leaves(node):
            return
        tag = node.tag or ""
        match tag:
            case "a":
                self._link(node)
            case "td" | "th":
                self._cell()
            case "pre":
                self._line.append("\n```")
                self._break()
                self._pre = max(0, self._pre - 1)
            case "table" if self._table is not None and self._table.node == node.mem_id:
                self._tabulate(self._table)
            case _ if tag in _BLOCKS or tag in _HEADINGS:
                self._close_block(tag)

    def _close_block(self, tag: str) -> None:
        self._break(tight=tag in _TIGHT)
        if tag in ("ul", "ol", "menu") and self._lists:
            self._lists.pop()
        elif tag == "blockquote":
            self._quotes = max(0, self._quotes - 1)

    def _hide(self, node: "LexborNode") -> None:
        text = one_line(node.text(deep=True, separator=" "))[:HIDDEN_CHARS]
        if text:
            self.hides = True
            self._line.append(f" {hidden(text)} ")

    def _item(self) -> str:
        depth = max(0, len(self._lists) - 1)
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            return f"{'  ' * depth}{self._lists[-1]}. "
        return f"{'  ' * depth}- "

    def _link(self, node: "LexborNode") -> None:
        out, line = self._links.pop() if self._links else (len(self._out), len(self._line))
        href = (node.attributes.get("href") or "").strip()
        if not href.lower().startswith(("http://", "https://", "mailto:", "tel:")):
            return
        # The query of a long URL is mostly for tracking.
        target = href if len(href) <= LINK_CHARS else f"{href.partition('?')[0][:LINK_CHARS]}…"
        if out == len(self._out) and line < len(self._line):
            text = one_line("".join(self._line[line:]))
            if text:
                self._line[line:] = [text if text == target else f"[{text}]({target})"]

    def _cell(self) -> None:
        """End a cell of a table; in layout tables, cells are only separated by a space."""
        if self._table is None:
            self._line.append(" ")
            return
        if not self._table.rows:
            self._table.rows.append([])
        self._table.rows[-1].append(one_line("".join(self._line)))
        self._line.clear()

    def _tabulate(self, ended: _OpenTable) -> None:
        self._table = None
        rows = [row for row in ended.rows if any(row)]
        wide = max((len(row) for row in rows), default=0) > 1
        self._put(table(rows) if wide else "\n\n".join(row[0] for row in rows), tight=False)

    def _break(self, *, tight: bool = False) -> None:
        """End the line; inside a cell there is only one."""
        if self._table is not None:
            self._line.append(" ")
            return
        text = "".join(self._line)
        self._line.clear()
        if not self._pre:
            text = "\n".join(line for line in (one_line(each) for each in text.split("\n")) if line)
        if text.strip():
            self._put(self._mark + text, tight=tight or bool(self._lists))
            self._mark = ""
        elif not tight and self._out and self._out[-1] != "\n":
            self._out.append("\n")

    def _put(self, text: str, *, tight: bool) -> None:
        if self._quotes:
            text = "\n".join(f"> {line}" for line in text.split("\n"))
        self._out.append(f"{text}\n" if tight else f"{text}\n\n")


@dataclass(slots=True)
class _HiddenElements:
    """Tracks which elements of a page are hidden as they begin and end."""

    classes: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    _grounds: list[tuple[int, str]] = field(default_factory=list)
    """Open elements with a background of their own; one set by a style sheet is unknown."""
    _hidden: int | None = None

    @classmethod
    def of_styles(cls, styles: Iterable[str]) -> Self:
        """The simple selectors that a page's style sheets hide: `.name`, `#name`, `tag.name`."""
        rules = _CONDITIONAL.sub(" ", _COMMENT.sub(" ", "\n".join(styles)[:STYLES_CHARS]))
        classes: set[str] = set()
        ids: set[str] = set()
        for found in _RULE.finditer(rules):
            if not _HIDES.search(found[2]):
                continue
            for selector in found[1].split(","):
                if simple := _SIMPLE.fullmatch(selector.strip()):
                    (classes if simple[1] == "." else ids).add(simple[2])
        return cls(frozenset(classes), frozenset(ids))

    def enters(self, node: "LexborNode") -> bool:
        """Begin an element; whether it is hidden."""
        attributes = node.attributes
        if not attributes:
            return False
        style = attributes.get("style") or ""
        if self._by_attribute(attributes) or (style and _HIDES.search(style)) or self._by_rule(attributes):
            self._hidden = node.mem_id
            return True
        ground = _background(style, attributes)
        if ground:
            self._grounds.append((node.mem_id, ground))
        written = _text_colour(style, attributes)
        if written and _alike(written, self._grounds[-1][1] if self._grounds else "ffffff"):
            self._hidden = node.mem_id
            return True
        return False

    def leaves(self, node: "LexborNode") -> bool:
        """End an element; whether it was hidden."""
        if self._grounds and self._grounds[-1][0] == node.mem_id:
            self._grounds.pop()
        if self._hidden == node.mem_id:
            self._hidden = None
            return True
        return False

    @staticmethod
    def _by_attribute(attributes: dict[str, str | None]) -> bool:
        return (
            ("hidden" in attributes and attributes["hidden"] != "until-found")
            or (attributes.get("aria-hidden") or "").lower() == "true"
            or (attributes.get("type") or "").lower() == "hidden"
        )

    def _by_rule(self, attributes: dict[str, str | None]) -> bool:
        names = (attributes.get("class") or "").split() if self.classes else ()
        return any(name in self.classes for name in names) or (attributes.get("id") or "") in self.ids


def _background(style: str, attributes: dict[str, str | None]) -> str:
    if style and (found := _BACKGROUND.search(style)):
        return _colour(found[2]) or _UNKNOWN
    if bgcolor := attributes.get("bgcolor"):
        return _colour(bgcolor) or _UNKNOWN
    return _UNKNOWN if "class" in attributes or "id" in attributes or "background" in attributes else ""


def _text_colour(style: str, attributes: dict[str, str | None]) -> str:
    if style and (found := _COLOUR.search(style)):
        return _colour(found[1]) or _UNKNOWN
    named = attributes.get("color")
    return _colour(named) if named else ""


def _colour(text: str) -> str:
    """Six hexadecimal digits; empty for any other notation."""
    word = text.strip().lower()
    if "transparent" in word and not word.startswith("#"):
        return ""
    first = word.split()[0] if word else ""
    digits = first.removeprefix("#")
    if _DIGITS.fullmatch(digits):
        return digits[:6]
    if _FEW_DIGITS.fullmatch(digits) and first.startswith("#"):
        return "".join(digit * 2 for digit in digits[:3])
    if found := _NUMBERS.match(word):
        return "".join(f"{min(255, int(part)):02x}" for part in found.groups())
    return _NAMED.get(first, "")


def _alike(one: str, other: str) -> bool:
    if _UNKNOWN in (one, other):
        return False
    parts = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (0, 2, 4))
    return all(abs(a - b) <= _NEAR for a, b in parts)
