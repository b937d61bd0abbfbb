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
_OFF = ("0", "false", "off", "none")


@dataclass(slots=True)
class Writer:
    """Writes paragraphs of one part of the document, whose links are its own."""

    links: Mapping[str, Link]
    note: Callable[[str], None]
    hidden_styles: frozenset[str] = frozenset()
    boxes: list[Element] = field(default_factory=list)
    """Text boxes that were passed: they are read after the paragraph they hang on."""
    marks: list[str] = field(default_factory=list)
    """Notes and comments that were referred to, in order."""
    _shaded: bool = False
    _address: str = ""

    def paragraph(self, element: Element, *, shaded: bool = False) -> str:
        """Its text, hidden and deleted text marked."""
        about = find(element, "pPr")
        self._shaded = shaded or find(about, "shd") is not None or find(about, "pStyle") is not None
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
            return False
        for each in about:
            name, set_to = local(each.tag), value(each, "val")
            if name == "vanish" and set_to not in _OFF:
                return True
            if name == "rStyle" and set_to in self.hidden_styles:
                return True
            if name == "sz" and set_to.isdigit() and int(set_to) <= TINY_HALF_POINTS:
                return True
            if name == "color" and set_to.upper() == "FFFFFF" and not self._shaded:
                return find(about, "shd") is None and find(about, "highlight") is None
        return False

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
