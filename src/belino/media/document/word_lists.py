"""The numbers and bullets of a Word document's lists, counted as Word shows them."""

import re
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from belino.media.document.xml import find, local, named, value

LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    style: str = "bullet"
    shape: str = ""
    start: int = 1


@dataclass(slots=True)
class Lists:
    """Knows every list of the document and how far each has been counted."""

    _levels: dict[str, dict[int, _Level]] = field(default_factory=dict)
    _abstract: dict[str, str] = field(default_factory=dict)
    _own: dict[str, dict[int, _Level]] = field(default_factory=dict)
    """Levels that a list writes otherwise than the one it is made like."""
    _starts: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where a list that is counted together with others begins anew, until it has."""
    _counted: dict[str, list[int]] = field(default_factory=dict)

    def learn(self, numbering: Element | None) -> None:
        """Take the lists from `numbering.xml`."""
        for each in numbering if numbering is not None else ():
            match local(each.tag):
                case "abstractNum":
                    self._levels[value(each, "abstractNumId")] = dict(map(_level, named(each, "lvl")))
                case "num":
                    number = value(each, "numId")
                    self._abstract[number] = value(find(each, "abstractNumId"), "val")
                    self._own[number] = dict(map(_level, named(each, "lvl")))
                    for other in named(each, "lvlOverride"):
                        if start := value(find(other, "startOverride"), "val"):
                            self._starts[number, _whole(value(other, "ilvl"))] = _whole(start)

    def mark(self, number: str, depth: int) -> str:
        """What stands before the next item of a list, with its indent; nothing if it is no list."""
        if number not in self._abstract:
            return ""
        abstract, depth = self._abstract[number], min(max(depth, 0), LEVELS - 1)
        levels = self._levels.get(abstract, {}) | self._own[number]
        level = levels.get(depth, _Level())
        counted = self._counted.setdefault(abstract, [levels.get(at, _Level()).start - 1 for at in range(LEVELS)])
        if (start := self._starts.pop((number, depth), None)) is not None:
            counted[depth] = start - 1
        counted[depth] += 1
        for deeper in range(depth + 1, LEVELS):
            counted[deeper] = levels.get(deeper, _Level()).start - 1
        if level.style == "none":
            return ""
        return "  " * depth + (_shown(level, levels, counted) or "-") + " "


def _level(element: Element) -> tuple[int, _Level]:
    start = value(find(element, "start"), "val", "1")
    return _whole(value(element, "ilvl")), _Level(
        style=value(find(element, "numFmt"), "val", "decimal"),
        shape=value(find(element, "lvlText"), "val"),
        start=_whole(start),
    )


def _shown(level: _Level, levels: dict[int, _Level], counted: list[int]) -> str:
    if level.style == "bullet":
        return "-"

    def place(found: re.Match[str]) -> str:
        at = int(found.group(1)) - 1
        return _written(max(counted[at], 1), levels.get(at, _Level()).style)

    return _PLACE.sub(place, level.shape)


def _written(count: int, style: str) -> str:
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
