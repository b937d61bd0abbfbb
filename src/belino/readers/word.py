"""Word documents: headings, lists, tables, notes, comments, headers and footers, in the order of reading."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit
from belino.readers import drawing, html, mail
from belino.readers.package import Package, Relationship, children, find, local, named, value
from belino.readers.parts import (
    HIDDEN_NOTE,
    PLAIN_STYLE,
    BlockCutter,
    CannotRead,
    ParagraphBlock,
    Parts,
    ReadOptions,
    Span,
    TextStyle,
    joined,
    one_line,
    table,
)

_CONTAINERS = frozenset({
    "sdt", "sdtContent", "smartTag", "customXml", "ins", "moveTo", "txbxContent", "AlternateContent", "Choice", "tc",
    "footnote", "endnote", "comment", "hdr", "ftr",
})  # fmt: skip
_ASIDES = {"footnotes": ("footnote", ""), "endnotes": ("endnote", "e"), "comments": ("comment", "c")}
_PAGES, _MAILS = frozenset({"html", "htm", "xhtml"}), frozenset({"mht", "mhtml"})
BOXES_AT_MOST = 1_000
COLUMNS_AT_MOST = 1_000
STYLES_DEEP = 20

TINY_HALF_POINTS = 4

_SKIPPED = frozenset({"pPr", "rPr", "sectPr", "tblPr", "instrText", "delInstrText", "rt", "binData", "proofErr"})
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "ptab": "\t"}
ADDRESS = re.compile(r'HYPERLINK\s+"([^"]{1,2000})"')
_WHITE = re.compile(r"(?:F[5-9A-F]){3}", re.IGNORECASE)
_PAPER = re.compile(rf"auto|{_WHITE.pattern}", re.IGNORECASE)
_OFF = ("0", "false", "off", "none")

LEVELS = 9
_COUNTER = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParagraphStyle:
    heading: int = 0
    list_number: str = ""
    list_depth: int = 0


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The document's text, split at its headings."""
    package = Package(file)
    parts = Parts(options, DocumentUnit.PART)
    package.tell(parts)
    main = package.main("word/document.xml")
    content, links = package.archive.read(main), package.links(main)
    reader = _DocumentReader(package, parts, links)
    cutter = BlockCutter(parts)
    for header in reader.margins("header"):
        cutter.add(f"Header: {header}")
    try:
        # A content control that spans the whole document is read like the body.
        cutter.take(reader.blocks(children(content, {"body", "sdt", "sdtContent"})))
    except CannotRead as error:
        parts.broke(error)
    for aside in reader.asides():
        cutter.add(aside)
    for footer in reader.margins("footer"):
        cutter.add(f"Footer: {footer}")
    return cutter.document()


def _style_of(about: Element | None) -> TextStyle:
    """The text style of a run, or of a style."""
    vanished = white = tiny = None
    for each in about if about is not None else ():
        match local(each.tag), value(each, "val"):
            case "vanish" | "specVanish", set_to:
                vanished = set_to not in _OFF
            case "color", set_to:
                white = _WHITE.fullmatch(set_to) is not None
            case "sz", set_to if set_to.isdigit():
                tiny = int(set_to) <= TINY_HALF_POINTS
    return TextStyle(vanished=vanished, white=white, tiny=tiny, shaded=_shades(about))


def _shades(about: Element | None) -> bool:
    """Whether the background of a run, a paragraph or a cell is not white."""
    if (highlight := value(find(about, "highlight"), "val", "none")) not in ("none", "white"):
        return bool(highlight)
    shade = find(about, "shd")
    if shade is None:
        return False
    pattern = value(shade, "val", "clear") not in ("clear", "nil")
    return pattern or bool(value(shade, "themeFill")) or not _PAPER.fullmatch(value(shade, "fill", "auto"))


@dataclass(slots=True)
class _ParagraphWriter:
    """Writes paragraphs of one part of the document, with the relationships of that part."""

    links: Mapping[str, Relationship]
    note: Callable[[str], None]
    text_styles: Mapping[str, TextStyle]
    """The text style of each named style; under the empty name, that of text without one."""
    boxes: list[Element] = field(default_factory=list)
    """Text boxes found so far: they are read after the paragraph they are anchored to."""
    marks: list[str] = field(default_factory=list)
    """Notes and comments referenced so far, in order."""
    _shaded: bool = False
    _text_style: TextStyle = PLAIN_STYLE
    _address: str = ""

    def paragraph(self, element: Element, *, shaded: bool = False) -> str:
        """Its text, hidden and deleted text marked."""
        about = find(element, "pPr")
        self._text_style = self.text_styles.get(value(find(about, "pStyle"), "val"), PLAIN_STYLE)
        self._shaded = shaded or _shades(about)
        self._address = ""
        return joined(self._spans(element), self.note).strip(" \t")

    def _spans(self, element: Element) -> list[Span]:
        found: list[Span] = []
        for child in element:
            found += self._span(child, local(child.tag))
        return found

    def _span(self, child: Element, name: str) -> list[Span]:
        match name:
            case "t":
                return [("shown", child.text or "")]
            case "delText":
                return [("deleted", child.text or "")]
            case "r":
                return self._run(child)
            case "hyperlink":
                return self._link(child)
            case "del" | "moveFrom":
                return [("deleted", text) for _, text in self._spans(child)]
            case "AlternateContent":
                return self._alternative(child)
            case "oMath" | "oMathPara":
                return [("shown", drawing.equation_text(child))]
            case "txbxContent":
                self.boxes.append(child)
                return []
            case "footnoteReference" | "endnoteReference" | "commentReference":
                return self._mark(child, name)
            case _:
                return self._other(child, name)

    def _other(self, child: Element, name: str) -> list[Span]:
        if name in _SKIPPED:
            if name == "instrText" and (found := ADDRESS.search(child.text or "")):
                self._address = found.group(1)
            return []
        if name == "fldChar" and self._address and value(child, "fldCharType") == "end":
            address, self._address = self._address, ""
            return [("shown", f" ({address})")]
        if name == "sym":
            return [("shown", _symbol(child))]
        if name == "docPr" and (described := one_line(value(child, "descr") or value(child, "title"))):
            return [("shown", f"(picture: {described})")]
        return [("shown", _BREAKS[name])] if name in _BREAKS else self._spans(child)

    def _run(self, run: Element) -> list[Span]:
        spans = self._spans(run)
        if spans and self._is_hidden(find(run, "rPr")):
            return [("hidden" if kind == "shown" else kind, text) for kind, text in spans]
        return spans

    def _is_hidden(self, about: Element | None) -> bool:
        if about is None:
            return self._text_style.hides(shaded=self._shaded)
        text_style = _style_of(about)
        if style := value(find(about, "rStyle"), "val"):
            text_style = text_style.over(self.text_styles.get(style, PLAIN_STYLE))
        return text_style.over(self._text_style).hides(shaded=self._shaded)

    def _link(self, element: Element) -> list[Span]:
        text = joined(self._spans(element), self.note)
        link = self.links.get(value(element, "id"))
        if link is None or not link.external or not text or link.target in (text, f"mailto:{text}"):
            return [("shown", text)]
        return [("shown", f"[{text}]({one_line(link.target)[:2000]})")]

    def _alternative(self, element: Element) -> list[Span]:
        """The first alternative that has any text."""
        for way in element:
            before = len(self.boxes)
            if (spans := self._spans(way)) or len(self.boxes) > before:
                return spans
        return []

    def _mark(self, child: Element, name: str) -> list[Span]:
        sign = {"footnoteReference": "", "endnoteReference": "e", "commentReference": "c"}[name]
        key = f"{sign}{value(child, 'id')}"
        self.marks.append(key)
        return [("shown", f"[^{key}]")]


def _symbol(child: Element) -> str:
    code = value(child, "char")
    try:
        point = int(code, 16)
    except ValueError:
        return ""
    return symbol(point)


def symbol(point: int) -> str:
    """A character of a symbol font: what it draws in the private-use area is unknown."""
    return chr(point) if 0x20 <= point < 0xD800 else "•"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListLevel:
    style: str = "bullet"
    shape: str = ""
    start: int = 1


@dataclass(slots=True)
class _Numbering:
    """All lists of the document, with their counters."""

    _levels: dict[str, dict[int, _ListLevel]] = field(default_factory=dict)
    _abstract: dict[str, str] = field(default_factory=dict)
    _own: dict[str, dict[int, _ListLevel]] = field(default_factory=dict)
    """Levels that a list overrides."""
    _starts: dict[tuple[str, int], int] = field(default_factory=dict)
    """Numbers at which a list that continues another one restarts."""
    _counted: dict[str, list[int]] = field(default_factory=dict)

    def learn(self, numbering: Element | None) -> None:
        """Read the lists from `numbering.xml`."""
        for each in numbering if numbering is not None else ():
            match local(each.tag):
                case "abstractNum":
                    self._levels[value(each, "abstractNumId")] = dict(map(_list_level, named(each, "lvl")))
                case "num":
                    number = value(each, "numId")
                    self._abstract[number] = value(find(each, "abstractNumId"), "val")
                    self._own[number] = dict(map(_list_level, named(each, "lvl")))
                    for other in named(each, "lvlOverride"):
                        if start := value(find(other, "startOverride"), "val"):
                            self._starts[number, _whole(value(other, "ilvl"))] = _whole(start)

    def mark(self, number: str, depth: int) -> str:
        """The label of the next list item, with its indent; empty if it is not in a list."""
        if number not in self._abstract:
            return ""
        abstract, depth = self._abstract[number], min(max(depth, 0), LEVELS - 1)
        levels = self._levels.get(abstract, {}) | self._own[number]
        level = levels.get(depth, _ListLevel())
        counted = self._counted.setdefault(abstract, [levels.get(at, _ListLevel()).start - 1 for at in range(LEVELS)])
        if (start := self._starts.pop((number, depth), None)) is not None:
            counted[depth] = start - 1
        counted[depth] += 1
        for deeper in range(depth + 1, LEVELS):
            counted[deeper] = levels.get(deeper, _ListLevel()).start - 1
        if level.style == "none":
            return ""
        return "  " * depth + (_number_text(level, levels, counted) or "-") + " "


def _list_level(element: Element) -> tuple[int, _ListLevel]:
    start = value(find(element, "start"), "val", "1")
    return _whole(value(element, "ilvl")), _ListLevel(
        style=value(find(element, "numFmt"), "val", "decimal"),
        shape=value(find(element, "lvlText"), "val"),
        start=_whole(start),
    )


def _number_text(level: _ListLevel, levels: dict[int, _ListLevel], counted: list[int]) -> str:
    if level.style == "bullet":
        return "-"

    def place(found: re.Match[str]) -> str:
        at = int(found.group(1)) - 1
        return _counter_text(max(counted[at], 1), levels.get(at, _ListLevel()).style)

    return _COUNTER.sub(place, level.shape)


def _counter_text(count: int, style: str) -> str:
    match style:
        case "lowerLetter" | "upperLetter":
            letters = chr(ord("a") + (count - 1) % 26) * min(1 + (count - 1) // 26, 10)
            return letters if style == "lowerLetter" else letters.upper()
        case "lowerRoman" | "upperRoman" if count < 4000:
            letters = _roman(count)
            return letters if style == "lowerRoman" else letters.upper()
        case "decimalZero":
            return f"{count:02}"
        case _:
            return str(count)


def _roman(count: int) -> str:
    letters = ""
    for worth, letter in _ROMAN:
        letters += letter * (count // worth)
        count %= worth
    return letters


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


@dataclass(slots=True)
class _DocumentReader:
    package: Package
    parts: Parts
    links: Mapping[str, Relationship]
    _styles: dict[str, _ParagraphStyle] = field(default_factory=dict)
    _text_styles: Mapping[str, TextStyle] = field(default_factory=dict)
    _lists: _Numbering = field(default_factory=_Numbering)
    _writer: _ParagraphWriter = field(init=False)

    def __post_init__(self) -> None:
        self._styles, self._text_styles = _styles(self._only("styles"))
        self._lists.learn(self._only("numbering"))
        self._writer = self._writer_of(self.links)

    def blocks(self, elements: Iterable[Element]) -> Iterator[ParagraphBlock]:
        """Paragraphs and tables in order."""
        for element in elements:
            if self.parts.late:
                return
            yield from self._block(element, self._writer)

    def margins(self, kind: str) -> Iterator[str]:
        """Headers or footers, each text once."""
        told: set[str] = set()
        for link in self._of(kind):
            text = self._whole(self.package.tree(link.target), self.package.links(link.target))
            if text and text not in told:
                told.add(text)
                yield text

    def asides(self) -> Iterator[str]:
        """The notes and comments that the text references, in the order of the references."""
        wanted = dict.fromkeys(self._writer.marks)
        found: dict[str, str] = {}
        for part, (name, sign) in _ASIDES.items():
            for link in self._of(part):
                tree, links = self.package.tree(link.target), self.package.links(link.target)
                for each in tree if tree is not None else ():
                    key = f"{sign}{value(each, 'id')}"
                    if local(each.tag) == name and key in wanted:
                        author = f"comment by {one_line(value(each, 'author'))}: " if name == "comment" else ""
                        found[key] = author + self._whole(each, links)
        yield from (f"[^{key}]: {found[key]}" for key in wanted if found.get(key))

    def _only(self, kind: str) -> Element | None:
        return next((self.package.tree(link.target) for link in self._of(kind)), None)

    def _of(self, kind: str) -> Iterator[Relationship]:
        return (link for link in self.links.values() if link.kind == kind and not link.external)

    def _whole(self, element: Element | None, links: Mapping[str, Relationship]) -> str:
        if element is None:
            return ""
        return "\n".join(block.text for block in self._block(element, self._writer_of(links)) if block.text)

    def _writer_of(self, links: Mapping[str, Relationship]) -> _ParagraphWriter:
        return _ParagraphWriter(links, self.parts.note, self._text_styles)

    def _block(self, element: Element, writer: _ParagraphWriter, *, shaded: bool = False) -> Iterator[ParagraphBlock]:
        name = local(element.tag)
        if name == "p":
            yield self._paragraph(element, writer, shaded=shaded)
            yield from self._boxes(writer)
        elif name == "tbl":
            yield ParagraphBlock(text=self._table(element, writer))
        elif name == "altChunk":
            yield ParagraphBlock(text=self._chunk(writer.links.get(value(element, "id"))))
        elif name in _CONTAINERS:
            for child in element:
                yield from self._block(child, writer, shaded=shaded)

    def _chunk(self, link: Relationship | None) -> str:
        """Embedded content in another format, which Word imports when it opens the document."""
        content = self.package.archive.find(link.target) if link is not None and not link.external else None
        kind = link.target.lower().rpartition(".")[2] if link is not None else ""
        if content and kind in _PAGES:
            shown = html.show(html.decoded(content))
            self.parts.note(*[HIDDEN_NOTE] if shown.hides else [])
            return shown.text
        if content and kind in _MAILS:
            messages = list(mail.messages(content))
            self.parts.note(*[HIDDEN_NOTE] if any(message.hides for message in messages) else [])
            return "\n\n".join(message.body.strip() for message in messages)
        if content and kind == "txt":
            return html.decoded(content)
        self.parts.note("text in another format, which was put in as it is, was left out")
        return ""

    def _boxes(self, writer: _ParagraphWriter) -> Iterator[ParagraphBlock]:
        boxes, writer.boxes = writer.boxes[:BOXES_AT_MOST], []
        for box in boxes:
            yield from self._block(box, writer, shaded=True)

    def _paragraph(self, element: Element, writer: _ParagraphWriter, *, shaded: bool) -> ParagraphBlock:
        text = writer.paragraph(element, shaded=shaded)
        if not text:
            return ParagraphBlock(text="")
        about = find(element, "pPr")
        style = self._styles.get(value(find(about, "pStyle"), "val"), _ParagraphStyle())
        level = _level(about) or style.heading
        number = value(find(about, "numPr", "numId"), "val") or style.list_number
        depth = value(find(about, "numPr", "ilvl"), "val") or str(style.list_depth)
        mark = self._lists.mark(number, int(depth) if depth.isdigit() else 0)
        if level:
            return ParagraphBlock(text=f"{'#' * min(level, 6)} {mark.lstrip()}{one_line(text)}", heading=one_line(text))
        return ParagraphBlock(text=mark + text, item=bool(mark))

    def _table(self, element: Element, writer: _ParagraphWriter) -> str:
        # A table style may shade any cell: white text in such a table is most likely visible.
        shaded = find(element, "tblPr", "tblStyle") is not None
        rows: list[list[str]] = []
        room = self.parts.room
        for row in _rows(element):
            if room < 0 or self.parts.late:
                break
            cells: list[str] = []
            for cell in _cells(row):
                about = find(cell, "tcPr")
                merged = find(about, "vMerge")
                text = "" if merged is not None and value(merged, "val") != "restart" else "\n".join(
                    block.text
                    for block in self._block(cell, writer, shaded=shaded or _shades(about))
                )  # fmt: skip
                wide = value(find(about, "gridSpan"), "val", "1")
                cells += [text, *[""] * (min(int(wide), COLUMNS_AT_MOST) - 1 if wide.isdigit() else 0)]
            rows.append(cells)
            room -= sum(map(len, cells))
        return table(rows)


def _rows(element: Element) -> Iterator[Element]:
    for child in element:
        if local(child.tag) == "tr":
            yield child
        elif local(child.tag) in _CONTAINERS:
            yield from _rows(child)


def _cells(row: Element) -> Iterator[Element]:
    for child in row:
        if local(child.tag) == "tc":
            yield child
        elif local(child.tag) in _CONTAINERS:
            yield from _cells(child)


def _level(about: Element | None) -> int:
    """The outline level that a paragraph or a style states: 1 to 9, or 0 for body text."""
    level = value(find(about, "outlineLvl"), "val", "9")
    return int(level) + 1 if level in "012345678" and level else 0


def _styles(tree: Element | None) -> tuple[dict[str, _ParagraphStyle], dict[str, TextStyle]]:
    """Each style with what it inherits: its headings and lists, and its text style."""
    styles = (
        {value(style, "styleId"): style for style in tree if local(style.tag) == "style"} if tree is not None else {}
    )
    found: dict[str, _ParagraphStyle] = {}
    # A paragraph without a style has the default one.
    text_styles = {"": _style_of(find(tree, "docDefaults", "rPrDefault", "rPr"))}
    for key in styles:
        heading, number, depth, text_style = 0, "", "0", TextStyle()
        for style in _based(styles, key):
            about = find(style, "pPr")
            heading = heading or _level(about) or _named_heading(value(find(style, "name"), "val"))
            if not number:
                number = value(find(about, "numPr", "numId"), "val")
                depth = value(find(about, "numPr", "ilvl"), "val", "0")
            text_style = text_style.over(_style_of(find(style, "rPr"))).over(TextStyle(shaded=_shades(about)))
        found[key] = _ParagraphStyle(
            heading=heading, list_number=number, list_depth=int(depth) if depth.isdigit() else 0
        )
        text_styles[key] = text_style
        if value(styles[key], "type") == "paragraph" and value(styles[key], "default") in ("1", "true"):
            text_styles[""] = text_style.over(text_styles[""])
    return found, text_styles


def _based(styles: Mapping[str, Element], key: str) -> Iterator[Element]:
    """A style and those it is based on, in order; they may form a loop."""
    seen: set[str] = set()
    while key in styles and key not in seen and len(seen) < STYLES_DEEP:
        seen.add(key)
        yield styles[key]
        key = value(find(styles[key], "basedOn"), "val")


def _named_heading(name: str) -> int:
    name = name.lower()
    if name == "title":
        return 1
    level = name.removeprefix("heading ")
    return int(level) if level != name and level in "123456789" and level else 0
