"""A number as a section of a number format writes it: digits in their places, fractions, powers of ten."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite

_TOKEN = re.compile(
    r'"([^"]*)"?|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]?|\[[^\]]*\]?|(general|@)|(E[+-]|[0#?.,/%]|[^0#?.,/%"\\])',
    re.IGNORECASE | re.DOTALL,
)
_FRACTION = re.compile(r"(?:([0#?]+) +)?([0#?]+) *[/] *([0#?]+|[1-9][0-9]{0,4})")
_PLACES = re.compile(r"[0#?]")
_MANTISSA = re.compile(r"[0#?.](?:.*[0#?.])?,*", re.DOTALL)
_POWER = re.compile(r"(E[+-])([0#?]+)", re.IGNORECASE)
_ASIDE = 0xF0000
"""Characters for private use, one for each word that was put aside, so that nothing in it is taken for a place."""
_VALUE = "\ue000"
"""Stands for the number without a format."""
# Halves are rounded away from zero, as spreadsheets do; no number has more than 308 digits before the point.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_FRACTIONS_BELOW = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """A section, taken apart."""

    before: str
    after: str
    words: tuple[str, ...]
    whole: str = ""
    part: str = ""
    has_part: bool = False
    grouped: bool = False
    shift: int = 0
    """By how many powers of ten the number is written larger, for per cents, or smaller, for thousands."""
    power: tuple[str, int] | None = None
    fraction: tuple[str, int, int | None] | None = None
    """Places of whole numbers, digits of the denominator, and the denominator if it is given."""


def general(value: float) -> str:
    """A number without a format: no more digits than a spreadsheet keeps."""
    if isfinite(value) and abs(value) < 1e17 and value == int(value):
        return str(int(value))
    return f"{value:.15g}"


def numeral(value: float, section: str) -> str:
    """The number as a section of a format shows it."""
    pattern = _pattern(section)
    minus = "-" if value < 0 else ""
    text = pattern.before + pattern.after
    if pattern.fraction is not None:
        text = pattern.before + _fraction(abs(value), *pattern.fraction) + pattern.after
    elif pattern.whole or pattern.has_part:
        number = Decimal(f"{abs(value):.15g}").scaleb(pattern.shift, _EXACT)
        text = pattern.before + (_power if pattern.power else _digits)(number, pattern) + pattern.after
    if not text:
        return ""
    for at, word in enumerate(pattern.words):
        text = text.replace(chr(_ASIDE + at), word)
    return minus + text.replace(_VALUE, general(abs(value))).strip()


@lru_cache(maxsize=1024)
def _pattern(section: str) -> _Pattern:
    words: list[str] = []
    bare = "".join(_bare(found, words) for found in _TOKEN.finditer(section))
    if (found := _FRACTION.search(bare)) is not None:
        given = found.group(3)
        return _Pattern(
            before=bare[: found.start()],
            after=bare[found.end() :],
            words=tuple(words),
            fraction=(found.group(1) or "", len(given), int(given) if given[0] in "123456789" else None),
        )
    power = _POWER.search(bare)
    found = _MANTISSA.match(bare, *_first_place(bare, power.start() if power else len(bare)))
    if found is None:
        return _Pattern(before=bare, after="", words=tuple(words))
    mantissa, end = found.group(0), power.end() if power else found.end()
    whole, dot, part = mantissa.partition(".")
    places = whole.rstrip(",")
    return _Pattern(
        before=bare[: found.start()],
        after=bare[end:],
        words=tuple(words),
        whole=places.replace(",", ""),
        part=part.replace(",", ""),
        has_part=bool(dot),
        grouped="," in places,
        shift=2 * bare.count("%") - 3 * (len(whole) - len(places) + len(part) - len(part.rstrip(","))),
        power=(power.group(1), len(power.group(2))) if power else None,
    )


def _first_place(bare: str, end: int) -> tuple[int, int]:
    """Where the digits may be: from the first place for one; a point before it belongs to them."""
    found = _PLACES.search(bare, 0, end)
    at = found.start() if found else end
    return (at - 1 if bare[:at].endswith(".") else at), end


def _bare(found: re.Match[str], words: list[str]) -> str:
    """A piece of a format; words are put aside."""
    quoted, escaped, currency, value, other = found.groups()
    literal = next((word for word in (quoted, escaped, currency) if word is not None), None)
    if literal is None:
        return _VALUE if value else other or ""
    words.append(literal)
    return chr(_ASIDE + len(words) - 1)


def _digits(number: Decimal, pattern: _Pattern) -> str:
    decimals = len(_PLACES.findall(pattern.part))
    rounded = number.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)
    before, _, after = f"{rounded:f}".partition(".")
    part = _part(pattern.part, after)
    whole = _whole(pattern.whole, before.lstrip("0"), grouped=pattern.grouped)
    return f"{whole}.{part}" if part else whole


def _whole(places: str, digits: str, *, grouped: bool) -> str:
    """Digits in their places from the last to the first, which takes all that are left."""
    first = next((at for at, place in enumerate(places) if place in "0#?"), len(places))
    text, count = "", 0
    for at in range(len(places) - 1, -1, -1):
        place = places[at]
        if place not in "0#?":
            text = place + text if digits or "0" in places[:at] else text
            continue
        for _ in range(max(1, len(digits)) if at == first else 1):
            if not digits and place != "0":
                break
            text = ("," if grouped and count and count % 3 == 0 else "").join((digits[-1:] or "0", text))
            digits, count = digits[:-1], count + 1
    return text


def _part(places: str, digits: str) -> str:
    """Digits after the point; zeros at the end only where the format has one."""
    text, at = "", 0
    for where, place in enumerate(places):
        if place not in "0#?":
            text += place
            continue
        if not digits[at:].strip("0") and "0" not in places[where:]:
            break
        text, at = text + digits[at], at + 1
    return text


def _power(number: Decimal, pattern: _Pattern) -> str:
    """In powers of ten; with several places before the point, of as many."""
    sign, width = pattern.power or ("E+", 1)
    step = max(1, len(_PLACES.findall(pattern.whole)))
    power = number.adjusted() if number else 0
    power -= power % step
    text = _digits(number.scaleb(-power, _EXACT), pattern)
    if len(text.partition(".")[0]) > step:  # rounded up to the next
        power += step
        text = _digits(number.scaleb(-power, _EXACT), pattern)
    mark = "-" if power < 0 else "+" if sign.endswith("+") else ""
    return f"{text}E{mark}{abs(power):0{width}}"


def _fraction(value: float, whole: str, digits: int, denominator: int | None) -> str:
    if value >= _FRACTIONS_BELOW:
        return general(value)
    exact = Fraction(f"{value:.15g}")
    number = int(exact) if whole else 0
    rest = exact - number
    if denominator is None:
        near = rest.limit_denominator(10 ** min(digits, 7) - 1)
        above, below = near.numerator, near.denominator
    else:
        above, below = int(rest * denominator + Fraction(1, 2)), denominator
    if not whole:
        return f"{above}/{below}"
    if above >= below:
        number, above = number + 1, 0
    if not above:
        return str(number)
    return f"{number} {above}/{below}" if number or "0" in whole else f"{above}/{below}"
