"""Numbers and dates of a spreadsheet as their number format shows them."""

import operator
import re
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from belino.media.document.moments import is_date, moment
from belino.media.document.numerals import general, numeral

_WHOLE, _MONEY = "#,##0_);(#,##0)", "#,##0.00_);(#,##0.00)"
_IN_COLUMNS, _IN_COLUMNS_MONEY = '#,##0_);(#,##0);"-"_)', '#,##0.00_);(#,##0.00);"-"_)'
_DAY = "yyyy-mm-dd"
_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: _WHOLE, 6: _WHOLE, 7: _MONEY, 8: _MONEY, 9: "0%", 10: "0.00%",
    11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: _DAY, 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: f"{_DAY} h:mm", 32: "h:mm", 33: "h:mm:ss",
    37: _WHOLE, 38: _WHOLE, 39: _MONEY, 40: _MONEY, 41: _IN_COLUMNS, 42: _IN_COLUMNS, 43: _IN_COLUMNS_MONEY,
    44: _IN_COLUMNS_MONEY, 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    **dict.fromkeys((27, 28, 29, 30, 31, 34, 35, 36, *range(50, 59)), _DAY),
}  # fmt: skip
"""The formats a file only names; short dates and currencies differ from country to country: dates are written so that
none misreads them, amounts without a currency."""

_PIECE = re.compile(r'"[^"]*"?|\\.|[_*].|\[[^\]]*\]?|;|.', re.DOTALL)
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)\s*(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)\]")
_HOLDS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
_TEXT = re.compile(r'(?:"[^"]*"?|\\.|\[[^\]]*\]?|[^"\\\[@])*@', re.DOTALL)
_LONGEST_CODE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """What a format says of some of the values."""

    code: str
    condition: tuple[str, float] | None = None
    date: bool = False

    def takes(self, value: float) -> bool:
        """Whether a condition is stated, and holds."""
        return self.condition is not None and bool(_HOLDS[self.condition[0]](value, self.condition[1]))

    @property
    def of_the_negative(self) -> bool:
        """Whether its condition says already what a minus would."""
        return self.condition is not None and self.condition[0] in ("<", "<=") and self.condition[1] <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A number format, read once for all cells that have it."""

    sections: tuple[_Section, ...] = ()
    """For numbers: all of them, or the positive, the negative and zero; or those that a condition holds for."""
    hides: bool = False
    """Text is there and nobody sees it."""


GENERAL = Format()


@lru_cache(maxsize=1024)
def format_of(number: int, code: str | None) -> Format:
    """The format with this number, or with the code a file gives for it."""
    code = code if code is not None else _BUILT_IN.get(number, "")
    if len(code) > _LONGEST_CODE or code.lower() in ("", "general", "@"):
        return GENERAL
    codes = _split(code)
    numeric = [each for at, each in enumerate(codes[:3]) if not at or not _TEXT.match(each)]
    return Format(sections=tuple(map(_section, numeric)), hides=len(codes) > 3 and not codes[3].strip())


def shown(value: float, form: Format, *, since_1904: bool = False) -> str:
    """The number as a person sees it in its cell; nothing, if its format hides it."""
    if not isfinite(value):
        return str(value)
    if not form.sections:
        return general(value)
    section, minus = _chosen(form.sections, value)
    if section is None:
        return general(value)
    if section.date:
        return moment(value + (1462 if since_1904 else 0), section.code)
    return numeral(value if minus else abs(value), section.code)


def seen(value: float, form: Format, *, since_1904: bool = False) -> tuple[str, bool]:
    """The number as its format shows it, or as it is and that its format hides it; a hidden zero is nothing."""
    text = shown(value, form, since_1904=since_1904)
    return (text, False) if text or not value else (general(value), True)


def _split(code: str) -> list[str]:
    codes = [""]
    for piece in _PIECE.findall(code):
        if piece == ";":
            codes.append("")
        else:
            codes[-1] += piece
    return codes


def _section(code: str) -> _Section:
    found = _CONDITION.search(code)
    condition = (found.group(1), float(found.group(2))) if found else None
    return _Section(code=code, condition=condition, date=is_date(code))


def _chosen(sections: tuple[_Section, ...], value: float) -> tuple[_Section | None, bool]:
    """The section that speaks of a value, and whether a minus is left to be written."""
    if all(section.condition is None for section in sections):
        if value < 0 and len(sections) > 1:
            return sections[1], False
        return sections[2 if value == 0 and len(sections) > 2 else 0], True
    for section in sections:
        if section.takes(value):
            return section, not section.of_the_negative
    others = [section for section in sections if section.condition is None]
    if not others:
        return None, True
    return others[0 if value < 0 else -1], True
