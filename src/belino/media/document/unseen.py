"""Which elements of a page nobody sees: by attribute, by style, by a style sheet's simple rules, by colour."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

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
"""How far two colours may differ in each of their parts and still nobody reads one on the other."""

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+\*/")
# Rules for print or narrow screens say nothing of the page as it is read.
_CONDITIONAL = re.compile(r"@[a-z-]{1,30}[^{};]{0,500}\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\}", re.IGNORECASE)
_RULE = re.compile(r"([^{}@;]{1,500})\{([^{}]{0,5000})\}")
_SIMPLE = re.compile(r"(?:[a-z][a-z0-9]{0,20})?(?:([.#])([A-Za-z_-][\w-]{0,100}))", re.IGNORECASE)


@dataclass(slots=True)
class Unseen:
    """Follows a page as its elements begin and end, and tells which of them nobody sees."""

    classes: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    _grounds: list[tuple[int, str]] = field(default_factory=list)
    """Open elements that have a background of their own; one that only a style sheet knows is unknown."""
    _hidden: int | None = None

    @classmethod
    def of_styles(cls, styles: Iterable[str]) -> Self:
        """What the simple rules of a page's style sheets hide: `.name`, `#name`, `tag.name`."""
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
        """Whether this element, which begins, is hidden."""
        attributes = node.attributes
        if not attributes:
            return False
        style = attributes.get("style") or ""
        if self._by_attribute(attributes) or (style and _HIDES.search(style)) or self._by_rule(attributes):
            self._hidden = node.mem_id
            return True
        ground = _ground(style, attributes)
        if ground:
            self._grounds.append((node.mem_id, ground))
        written = _written(style, attributes)
        if written and _alike(written, self._grounds[-1][1] if self._grounds else "ffffff"):
            self._hidden = node.mem_id
            return True
        return False

    def leaves(self, node: "LexborNode") -> bool:
        """Whether this element, which ends, was hidden."""
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


def _ground(style: str, attributes: dict[str, str | None]) -> str:
    if style and (found := _BACKGROUND.search(style)):
        return _colour(found[2]) or _UNKNOWN
    if bgcolor := attributes.get("bgcolor"):
        return _colour(bgcolor) or _UNKNOWN
    return _UNKNOWN if "class" in attributes or "id" in attributes or "background" in attributes else ""


def _written(style: str, attributes: dict[str, str | None]) -> str:
    if style and (found := _COLOUR.search(style)):
        return _colour(found[1]) or _UNKNOWN
    named = attributes.get("color")
    return _colour(named) if named else ""


def _colour(text: str) -> str:
    """Six digits; nothing for a colour that is not spelled out."""
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
