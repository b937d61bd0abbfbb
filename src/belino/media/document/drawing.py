"""What office drawings say: the text of shapes, tables, charts and diagrams."""

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from belino.media.document import equations
from belino.media.document.package import Link
from belino.media.document.parts import one_line, table
from belino.media.document.xml import find, local, named, value

TINY_HUNDREDTHS = 200
POINTS_AT_MOST = 2_000
SERIES_AT_MOST = 200
COLUMNS_AT_MOST = 1_000


def paragraphs(body: Element | None, links: Mapping[str, Link]) -> Iterator[tuple[str, str]]:
    """Each paragraph of a text body: what is seen of it, and what is too small to be seen."""
    for paragraph in body if body is not None else ():
        if local(paragraph.tag) == "p":
            seen, tiny = _runs(paragraph, links)
            yield _indent(find(paragraph, "pPr")) + seen if seen.strip() else "", tiny


def grid(element: Element, links: Mapping[str, Link]) -> str:
    """A table of a drawing."""
    rows = []
    for row in (child for child in element if local(child.tag) == "tr"):
        cells = [child for child in row if local(child.tag) == "tc"][:COLUMNS_AT_MOST]
        rows.append(
            ["\n".join(seen or tiny for seen, tiny in paragraphs(find(cell, "txBody"), links)) for cell in cells]
        )
    return table(rows)


def chart(space: Element | None) -> str:
    """A chart's title, and what it shows as a table: one row for each category, one column for each series."""
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
    """The words in the shapes of a diagram, one line each."""
    points = named(model, "pt") if model is not None else ()
    return "\n".join(f"- {text}" for point in points if (text := one_line(_letters(find(point, "t")))))


def _runs(paragraph: Element, links: Mapping[str, Link]) -> tuple[str, str]:
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
                seen += "".join(equations.written(each) for each in named(child, "oMath"))
    return seen, tiny


def _linked(words: str, link: Link | None) -> str:
    if link is None or not link.external or not words.strip() or link.target == words:
        return words
    return f"[{words}]({one_line(link.target)[:2000]})"


def _indent(about: Element | None) -> str:
    level = value(about, "lvl", "0")
    depth = min(int(level), 8) if level.isdigit() else 0
    listed = find(about, "buChar") is not None or find(about, "buAutoNum") is not None
    return "  " * depth + ("- " if depth or listed else "")


def _points(element: Element | None) -> dict[int, str]:
    """The values a chart keeps of the cells it was made from, by place."""
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
