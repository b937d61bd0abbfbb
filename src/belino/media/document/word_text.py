"""The words of one paragraph of a Word document: what is shown, what is hidden, what was deleted."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal
from xml.etree.ElementTree import Element

from belino.media.document import equations
from belino.media.document.package import Link
from belino.media.document.parts import HIDDEN_NOTE, marked, one_line
from belino.media.document.xml import find, local, value

Kind = Literal["shown", "hidden", "deleted"]
Span = tuple[Kind, str]

TINY_HALF_POINTS = 4
DELETED_NOTE = "text that tracked changes have deleted is marked as (deleted text: …)"

_SKIPPED = frozenset({"pPr", "rPr", "sectPr", "tblPr", "instrText", "delInstrText", "rt", "binData", "proofErr"})
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "ptab": "\t"}
ADDRESS = re.compile(r'HYPERLINK\s+"([^"]{1,2000})"')
_WHITE = re.compile(r"(?:F[5-9A-F]){3}", re.IGNORECASE)
_PAPER = re.compile(rf"auto|{_WHITE.pattern}", re.IGNORECASE)
_OFF = ("0", "false", "off", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """As far as it may hide text; None where nothing is said."""

    vanished: bool | None = None
    white: bool | None = None
    tiny: bool | None = None
    shaded: bool = False

    def over(self, under: "Look") -> "Look":
        """What counts where one is said of text that the other is said of too."""
        return Look(
            vanished=under.vanished if self.vanished is None else self.vanished,
            white=under.white if self.white is None else self.white,
            tiny=under.tiny if self.tiny is None else self.tiny,
            shaded=self.shaded or under.shaded,
        )

    def hides(self, *, shaded: bool) -> bool:
        """Whether nobody would see such text, on a ground that is paper unless it is shaded."""
        return bool(self.vanished or self.tiny or (self.white and not shaded and not self.shaded))


NO_LOOK = Look()


def look_of(about: Element | None) -> Look:
    """What the properties of a run or of a style's text say."""
    vanished = white = tiny = None
    for each in about if about is not None else ():
        match local(each.tag), value(each, "val"):
            case "vanish" | "specVanish", set_to:
                vanished = set_to not in _OFF
            case "color", set_to:
                white = _WHITE.fullmatch(set_to) is not None
            case "sz", set_to if set_to.isdigit():
                tiny = int(set_to) <= TINY_HALF_POINTS
    return Look(vanished=vanished, white=white, tiny=tiny, shaded=shades(about))


def shades(about: Element | None) -> bool:
    """Whether the ground of a run, a paragraph or a cell is anything but white."""
    if (highlight := value(find(about, "highlight"), "val", "none")) not in ("none", "white"):
        return bool(highlight)
    shade = find(about, "shd")
    if shade is None:
        return False
    pattern = value(shade, "val", "clear") not in ("clear", "nil")
    return pattern or bool(value(shade, "themeFill")) or not _PAPER.fullmatch(value(shade, "fill", "auto"))


@dataclass(slots=True)
class Writer:
    """Writes paragraphs of one part of the document, whose links are its own."""

    links: Mapping[str, Link]
    note: Callable[[str], None]
    looks: Mapping[str, Look]
    """How each style makes text look; under no name, how text looks without one."""
    boxes: list[Element] = field(default_factory=list)
    """Text boxes that were passed: they are read after the paragraph they hang on."""
    marks: list[str] = field(default_factory=list)
    """Notes and comments that were referred to, in order."""
    _shaded: bool = False
    _look: Look = NO_LOOK
    _address: str = ""

    def paragraph(self, element: Element, *, shaded: bool = False) -> str:
        """Its text, hidden and deleted text marked."""
        about = find(element, "pPr")
        self._look = self.looks.get(value(find(about, "pStyle"), "val"), NO_LOOK)
        self._shaded = shaded or shades(about)
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
                return [("shown", equations.written(child))]
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
            return self._look.hides(shaded=self._shaded)
        look = look_of(about)
        if style := value(find(about, "rStyle"), "val"):
            look = look.over(self.looks.get(style, NO_LOOK))
        return look.over(self._look).hides(shaded=self._shaded)

    def _link(self, element: Element) -> list[Span]:
        text = joined(self._spans(element), self.note)
        link = self.links.get(value(element, "id"))
        if link is None or not link.external or not text or link.target in (text, f"mailto:{text}"):
            return [("shown", text)]
        return [("shown", f"[{text}]({one_line(link.target)[:2000]})")]

    def _alternative(self, element: Element) -> list[Span]:
        """The same thing said in several ways: the first that says anything."""
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


def joined(spans: Iterable[Span], note: Callable[[str], None]) -> str:
    """The words of a paragraph, hidden and deleted ones marked, and a note of it."""
    text = ""
    for kind, group in groupby(spans, key=lambda span: span[0]):
        words = "".join(piece for _, piece in group)
        if kind == "shown" or not words.strip():
            text += words
        else:
            note(HIDDEN_NOTE if kind == "hidden" else DELETED_NOTE)
            text += marked(kind, words)
    return text


def _symbol(child: Element) -> str:
    code = value(child, "char")
    try:
        point = int(code, 16)
    except ValueError:
        return ""
    return symbol(point)


def symbol(point: int) -> str:
    """A character of a symbol font: in the private area it is not known what it draws."""
    return chr(point) if 0x20 <= point < 0xD800 else "•"
