"""Equations of office files as one line of text, written as in LaTeX."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

from belino.media.document.xml import find, local, value

_APPLIED = "\u2061"
"""Stands between a function and what it is applied to, and is not seen."""
_LARGE = {"∑": "\\sum", "∫": "\\int", "∏": "\\prod", "⋃": "\\bigcup", "⋂": "\\bigcap"}
_ACCENTS = {"\u0302": "\\hat", "\u0303": "\\tilde", "\u0304": "\\bar", "\u0305": "\\overline", "\u20d7": "\\vec",
            "\u0307": "\\dot", "\u0308": "\\ddot"}  # fmt: skip


def written(equation: Element) -> str:
    """The equation between dollar signs; nothing if it is empty."""
    text = _all(equation).strip()
    return f"${text}$" if text else ""


def _all(element: Element | None) -> str:
    return "".join(_one(child) for child in element) if element is not None else ""


def _one(element: Element) -> str:
    name = local(element.tag)
    if name == "t":
        return (element.text or "").replace(_APPLIED, "")
    if name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name)
    return write(element) if write else _all(element)


def _part(element: Element, name: str) -> str:
    return _all(find(element, name))


def _raised(element: Element) -> str:
    below, above = _part(element, "sub"), _part(element, "sup")
    return (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")


def _scripts(element: Element) -> str:
    return _part(element, "e") + _raised(element)


def _prescripts(element: Element) -> str:
    return "{}" + _raised(element) + _part(element, "e")


def _root(element: Element) -> str:
    degree = _part(element, "deg")
    return f"\\sqrt[{degree}]{{{_part(element, 'e')}}}" if degree else f"\\sqrt{{{_part(element, 'e')}}}"


def _nary(element: Element) -> str:
    sign = value(find(element, "naryPr", "chr"), "val", "∫")
    return f"{_LARGE.get(sign, sign)}{_raised(element)} {_part(element, 'e')}"


def _delimited(element: Element) -> str:
    about = find(element, "dPr")
    begin, end = (
        value(find(about, name), "val", usual) if find(about, name) is not None else usual
        for name, usual in (("begChr", "("), ("endChr", ")"))
    )
    between = value(find(about, "sepChr"), "val", "|")
    return begin + between.join(_all(child) for child in element if local(child.tag) == "e") + end


def _rows(element: Element) -> str:
    rows = [child for child in element if local(child.tag) in ("mr", "e")]
    lines = [" & ".join(_all(cell) for cell in row) if local(row.tag) == "mr" else _all(row) for row in rows]
    return " \\\\ ".join(lines)


def _accent(element: Element) -> str:
    sign = value(find(element, "accPr", "chr"), "val", "\u0302")
    return f"{_ACCENTS.get(sign, sign)}{{{_part(element, 'e')}}}"


_WRITERS: dict[str, Callable[[Element], str]] = {
    "f": lambda element: f"\\frac{{{_part(element, 'num')}}}{{{_part(element, 'den')}}}",
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "sPre": _prescripts,
    "rad": _root,
    "nary": _nary,
    "d": _delimited,
    "m": _rows,
    "eqArr": _rows,
    "acc": _accent,
    "bar": lambda element: f"\\overline{{{_part(element, 'e')}}}",
    "func": lambda element: f"{_part(element, 'fName')} {_part(element, 'e')}",
    "limLow": lambda element: f"{_part(element, 'e')}_{{{_part(element, 'lim')}}}",
    "limUpp": lambda element: f"{_part(element, 'e')}^{{{_part(element, 'lim')}}}",
}
