"""Drawings of office files: the text of shapes, tables, charts, diagrams and equations."""

from collections.abc import Callable, Iterator, Mapping
from xml.etree.ElementTree import Element

from belino.readers.package import Relationship, find, local, named, value
from belino.readers.parts import one_line, table

TINY_HUNDREDTHS = 200
POINTS_AT_MOST = 2_000
SERIES_AT_MOST = 200
COLUMNS_AT_MOST = 1_000

_APPLIED = "\u2061"
"""The invisible function application character, between a function and its argument."""
_LARGE_OPERATORS = {"∑": "\\sum", "∫": "\\int", "∏": "\\prod", "⋃": "\\bigcup", "⋂": "\\bigcap"}
_ACCENTS = {"\u0302": "\\hat", "\u0303": "\\tilde", "\u0304": "\\bar", "\u0305": "\\overline", "\u20d7": "\\vec",
            "\u0307": "\\dot", "\u0308": "\\ddot"}  # fmt: skip


def paragraphs(body: Element | None, links: Mapping[str, Relationship]) -> Iterator[tuple[str, str]]:
    """Each paragraph of a text body: its visible text, and text too small to be seen."""
    for paragraph in body if body is not None else ():
        if local(paragraph.tag) == "p":
            seen, tiny = _runs(paragraph, links)
            yield _indent(find(paragraph, "pPr")) + seen if seen.strip() else "", tiny


def grid(element: Element, links: Mapping[str, Relationship]) -> str:
    """A table of a drawing."""
    rows = []
    for row in (child for child in element if local(child.tag) == "tr"):
        cells = [child for child in row if local(child.tag) == "tc"][:COLUMNS_AT_MOST]
        rows.append(
            ["\n".join(seen or tiny for seen, tiny in paragraphs(find(cell, "txBody"), links)) for cell in cells]
        )
    return table(rows)


def chart(space: Element | None) -> str:
    """A chart's title and data as a table: one row per category, one column per series."""
    whole = find(space, "chart")
    if whole is None:
        return ""
    title = one_line(_letters(find(whole, "title")))
    columns: list[tuple[str, dict[int, str]]] = []
    categories: dict[int, str] = {}
    for series in list(named(whole, "ser"))[:SERIES_AT_MOST]:
        name = " ".join(_points(find(series, "tx")).values()) or f"Series {len(columns) + 1}"
        categories = categories or _points(find(series, "cat")) or _points(find(series, "xVal"))
        columns.append((name, _points(find(series, "val")) or _points(find(series, "yVal"))))
    places = sorted({*categories, *(at for _, points in columns for at in points)})[:POINTS_AT_MOST]
    rows = [[categories.get(at, str(at + 1)), *(points.get(at, "") for _, points in columns)] for at in places]
    shown = table([["", *(name for name, _ in columns)], *rows]) if rows else ""
    return "\n\n".join(filter(None, [f"Chart: {title}" if title else "Chart" if shown else "", shown]))


def diagram(model: Element | None) -> str:
    """The text in the shapes of a diagram, one line each."""
    points = named(model, "pt") if model is not None else ()
    return "\n".join(f"- {text}" for point in points if (text := one_line(_letters(find(point, "t")))))


def _runs(paragraph: Element, links: Mapping[str, Relationship]) -> tuple[str, str]:
    seen, tiny = "", ""
    for child in paragraph:
        match local(child.tag):
            case "r" | "fld":
                text = find(child, "t")
                about = find(child, "rPr")
                words = text.text or "" if text is not None else ""
                size = value(about, "sz")
                if size.isdigit() and int(size) <= TINY_HUNDREDTHS:
                    tiny += words
                else:
                    seen += _linked(words, links.get(value(find(about, "hlinkClick"), "id")))
            case "br":
                seen += "\n"
            case "m" | "AlternateContent":
                seen += "".join(equation_text(each) for each in named(child, "oMath"))
    return seen, tiny


def _linked(words: str, link: Relationship | None) -> str:
    if link is None or not link.external or not words.strip() or link.target == words:
        return words
    return f"[{words}]({one_line(link.target)[:2000]})"


def _indent(about: Element | None) -> str:
    level = value(about, "lvl", "0")
    depth = min(int(level), 8) if level.isdigit() else 0
    listed = find(about, "buChar") is not None or find(about, "buAutoNum") is not None
    return "  " * depth + ("- " if depth or listed else "")


def _points(element: Element | None) -> dict[int, str]:
    """The cell values cached in a chart, by index."""
    found: dict[int, str] = {}
    for point in named(element, "pt") if element is not None else ():
        place, text = value(point, "idx"), find(point, "v")
        if place.isdigit() and text is not None and len(found) < POINTS_AT_MOST:
            found[int(place)] = text.text or ""
    if not found and element is not None and (text := find(element, "v")) is not None:
        found[0] = text.text or ""
    return found


def _letters(element: Element | None) -> str:
    if element is None:
        return ""
    lines = ("".join(each.text or "" for each in named(line, "t") if not len(each)) for line in named(element, "p"))
    return "\n".join(lines)


def equation_text(equation: Element) -> str:
    """The equation between dollar signs; empty if it has no content."""
    text = _elements(equation).strip()
    return f"${text}$" if text else ""


def _elements(element: Element | None) -> str:
    return "".join(_element(child) for child in element) if element is not None else ""


def _element(element: Element) -> str:
    name = local(element.tag)
    if name == "t":
        return (element.text or "").replace(_APPLIED, "")
    if name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name)
    return write(element) if write else _elements(element)


def _child(element: Element, name: str) -> str:
    return _elements(find(element, name))


def _raised(element: Element) -> str:
    below, above = _child(element, "sub"), _child(element, "sup")
    return (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")


def _scripts(element: Element) -> str:
    return _child(element, "e") + _raised(element)


def _prescripts(element: Element) -> str:
    return "{}" + _raised(element) + _child(element, "e")


def _root(element: Element) -> str:
    degree = _child(element, "deg")
    return f"\\sqrt[{degree}]{{{_child(element, 'e')}}}" if degree else f"\\sqrt{{{_child(element, 'e')}}}"


def _nary(element: Element) -> str:
    sign = value(find(element, "naryPr", "chr"), "val", "∫")
    return f"{_LARGE_OPERATORS.get(sign, sign)}{_raised(element)} {_child(element, 'e')}"


def _delimited(element: Element) -> str:
    about = find(element, "dPr")
    begin, end = (
        value(find(about, name), "val", usual) if find(about, name) is not None else usual
        for name, usual in (("begChr", "("), ("endChr", ")"))
    )
    between = value(find(about, "sepChr"), "val", "|")
    return begin + between.join(_elements(child) for child in element if local(child.tag) == "e") + end


def _matrix(element: Element) -> str:
    rows = [child for child in element if local(child.tag) in ("mr", "e")]
    lines = [" & ".join(_elements(cell) for cell in row) if local(row.tag) == "mr" else _elements(row) for row in rows]
    return " \\\\ ".join(lines)


def _accent(element: Element) -> str:
    sign = value(find(element, "accPr", "chr"), "val", "\u0302")
    return f"{_ACCENTS.get(sign, sign)}{{{_child(element, 'e')}}}"


_WRITERS: dict[str, Callable[[Element], str]] = {
    "f": lambda element: f"\\frac{{{_child(element, 'num')}}}{{{_child(element, 'den')}}}",
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "sPre": _prescripts,
    "rad": _root,
    "nary": _nary,
    "d": _delimited,
    "m": _matrix,
    "eqArr": _matrix,
    "acc": _accent,
    "bar": lambda element: f"\\overline{{{_child(element, 'e')}}}",
    "func": lambda element: f"{_child(element, 'fName')} {_child(element, 'e')}",
    "limLow": lambda element: f"{_child(element, 'e')}_{{{_child(element, 'lim')}}}",
    "limUpp": lambda element: f"{_child(element, 'e')}^{{{_child(element, 'lim')}}}",
}
