"""Number formats of spreadsheets: numbers, dates and times as their cells display them."""

import operator
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite

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
"""Built-in formats, which a file references by number: dates are unambiguous, amounts have no currency."""

_PIECE = re.compile(r'"[^"]*"?|\\.|[_*].|\[[^\]]*\]?|;|.', re.DOTALL)
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)\s*(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)\]")
_HOLDS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
_TEXT_SECTION = re.compile(r'(?:"[^"]*"?|\\.|\[[^\]]*\]?|[^"\\\[@])*@', re.DOTALL)
_LONGEST_CODE = 255
_NUMBER_TOKEN = re.compile(
    r'"([^"]*)"?|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]?|\[[^\]]*\]?|(general|@)|(E[+-]|[0#?.,/%]|[^0#?.,/%"\\])',
    re.IGNORECASE | re.DOTALL,
)
_FRACTION = re.compile(r"(?:([0#?]+) +)?([0#?]+) *[/] *([0#?]+|[1-9][0-9]{0,4})")
_PLACES = re.compile(r"[0#?]")
_MANTISSA = re.compile(r"[0#?.](?:.*[0#?.])?,*", re.DOTALL)
_POWER = re.compile(r"(E[+-])([0#?]+)", re.IGNORECASE)
_ASIDE = 0xF0000
"""First of the private-use characters that replace literals, so that nothing in them is taken for a digit placeholder.
"""
_VALUE = "\ue000"
"""Stands for the number in General format."""
# Halves are rounded away from zero, as spreadsheets do; no number has more than 308 digits before the point.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_FRACTIONS_BELOW = 10**15
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_JAPANESE_DAYS = "月火水木金土日"
_ERAS = ((date(2019, 5, 1), "令和", "R"), (date(1989, 1, 8), "平成", "H"), (date(1926, 12, 25), "昭和", "S"),
         (date(1912, 7, 30), "大正", "T"), (date(1868, 1, 25), "明治", "M"))  # fmt: skip
_DATE_TOKEN = re.compile(
    r'"([^"]*)"?|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]?|\[(h+|m+|s+)\]|\[[^\]]*\]?'
    r"|(AM/PM|A/P|上午/下午|y+|m+|d+|h+|s+|g+|e+|a{3,4}|general)|(\.0{1,6})|(.)",
    re.IGNORECASE | re.DOTALL,
)
_ADVANCES = re.compile(r'"[^"]*"?|\\.|[_*].|\[(?!h+\]|m+\]|s+\])[^\]]*\]?|general|e[+-]', re.IGNORECASE)
_HALVES = frozenset({"am/pm", "a/p", "上午/下午"})
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_LAST_DAY = 2_958_465
"""The last day of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section of a format, which applies to some of the values."""

    code: str
    condition: tuple[str, float] | None = None
    date: bool = False

    def takes(self, value: float) -> bool:
        """Whether it has a condition, and the value meets it."""
        return self.condition is not None and bool(_HOLDS[self.condition[0]](value, self.condition[1]))

    @property
    def of_the_negative(self) -> bool:
        """Whether its condition already implies the minus sign."""
        return self.condition is not None and self.condition[0] in ("<", "<=") and self.condition[1] <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """A parsed number format, shared by all cells that have it."""

    sections: tuple[_Section, ...] = ()
    """For numbers: one for all, or for positive, negative and zero; or by conditions."""
    hides: bool = False
    """Whether text is hidden."""


GENERAL = NumberFormat()


@lru_cache(maxsize=1024)
def format_of(number: int, code: str | None) -> NumberFormat:
    """The format with this number, or with the code that a file defines for it."""
    code = code if code is not None else _BUILT_IN.get(number, "")
    if len(code) > _LONGEST_CODE or code.lower() in ("", "general", "@"):
        return GENERAL
    codes = _split(code)
    numeric = [each for at, each in enumerate(codes[:3]) if not at or not _TEXT_SECTION.match(each)]
    return NumberFormat(sections=tuple(map(_section, numeric)), hides=len(codes) > 3 and not codes[3].strip())


def shown(value: float, form: NumberFormat, *, since_1904: bool = False) -> str:
    """The number as displayed in its cell; empty if its format hides it."""
    if not isfinite(value):
        return str(value)
    if not form.sections:
        return general(value)
    section, minus = _chosen(form.sections, value)
    if section is None:
        return general(value)
    if section.date:
        return _moment(value + (1462 if since_1904 else 0), section.code)
    return numeral(value if minus else abs(value), section.code)


def seen(value: float, form: NumberFormat, *, since_1904: bool = False) -> tuple[str, bool]:
    """The displayed number, or the plain number and True if its format hides it; a hidden zero is empty."""
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
    return _Section(code=code, condition=condition, date=_is_date(code))


def _chosen(sections: tuple[_Section, ...], value: float) -> tuple[_Section | None, bool]:
    """The section that applies to a value, and whether a minus sign must be added."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """A parsed section."""

    before: str
    after: str
    words: tuple[str, ...]
    whole: str = ""
    part: str = ""
    has_part: bool = False
    grouped: bool = False
    shift: int = 0
    """The power of ten by which the number is multiplied, for per cents, or divided, for thousands."""
    power: tuple[str, int] | None = None
    fraction: tuple[str, int, int | None] | None = None
    """Digit placeholders of the integer part, digits of the denominator, and the denominator if it is given."""


def general(value: float) -> str:
    """A number in General format: no more digits than a spreadsheet keeps."""
    if isfinite(value) and abs(value) < 1e17 and value == int(value):
        return str(int(value))
    return f"{value:.15g}"


def numeral(value: float, section: str) -> str:
    """The number as displayed by a section of a format."""
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
    bare = "".join(_bare(found, words) for found in _NUMBER_TOKEN.finditer(section))
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
    """The range of the digit placeholders; a point before the first belongs to it."""
    found = _PLACES.search(bare, 0, end)
    at = found.start() if found else end
    return (at - 1 if bare[:at].endswith(".") else at), end


def _bare(found: re.Match[str], words: list[str]) -> str:
    """A piece of a format; literals are replaced."""
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
    """Fill digits into placeholders from the last to the first, which takes all that are left."""
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
    """Digits after the point; trailing zeros only where the format has a 0."""
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
    """Scientific notation; with several placeholders before the point, the exponent is a multiple of their number."""
    sign, width = pattern.power or ("E+", 1)
    step = max(1, len(_PLACES.findall(pattern.whole)))
    power = number.adjusted() if number else 0
    power -= power % step
    text = _digits(number.scaleb(-power, _EXACT), pattern)
    if len(text.partition(".")[0]) > step:  # rounded up to the next power
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
        above, below = rest.limit_denominator(10 ** min(digits, 7) - 1).as_integer_ratio()
    else:
        above, below = int(rest * denominator + Fraction(1, 2)), denominator
    if not whole:
        return f"{above}/{below}"
    if above >= below:
        number, above = number + 1, 0
    if not above:
        return str(number)
    return f"{number} {above}/{below}" if number or "0" in whole else f"{above}/{below}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DateToken:
    """A token of a date section; one field is set."""

    word: str
    elapsed: str
    letters: str
    fraction: str


@lru_cache(maxsize=1024)
def _is_date(section: str) -> bool:
    """Whether a section of a format displays dates or times."""
    return any(letter in _ADVANCES.sub("", section).lower() for letter in "ymdhs")


def _moment(value: float, section: str) -> str:
    """Days are counted from the end of 1899, as if 1900 had been a leap year."""
    tokens = _date_tokens(section)
    total = round(value * 86_400, max(len(token.fraction) for token in tokens))
    if not 0 <= total < (_LAST_DAY + 1) * 86_400:
        return general(value)
    days, seconds = divmod(total, 86_400)
    at = datetime(1899, 12, 30) + timedelta(days=days + (1 if days < 60 else 0), seconds=seconds)
    letters = [token.letters for token in tokens]
    half, era = not _HALVES.isdisjoint(letters), any(each.startswith("g") for each in letters)
    text, clock = "", False
    for number, token in enumerate(tokens):
        if token.elapsed:
            text, clock = f"{text}{int(total // _SECONDS[token.elapsed[0]]):0{len(token.elapsed)}}", True
        elif token.letters:
            after = next(filter(None, letters[number + 1 :]), "")
            minutes = token.letters in ("m", "mm") and (clock or after.startswith("s"))
            text += f"{at.minute:0{len(token.letters)}}" if minutes else _piece(at, token.letters, half=half, era=era)
            clock = token.letters[0] in "hs" or (clock and token.letters[0] not in "yd")
        elif token.fraction:
            text += f".{at.microsecond:06}"[: 1 + len(token.fraction)]
        else:
            text += token.word
    return text.strip() or at.isoformat(" ")


@lru_cache(maxsize=1024)
def _date_tokens(section: str) -> tuple[_DateToken, ...]:
    found: list[_DateToken] = []
    for quoted, escaped, currency, elapsed, letters, fraction, other in _DATE_TOKEN.findall(section):
        word = quoted or escaped or currency or other
        found.append(_DateToken(word=word, elapsed=elapsed.lower(), letters=letters.lower(), fraction=fraction[1:]))
    return tuple(found)


def _piece(at: datetime, letters: str, *, half: bool, era: bool) -> str:
    if letters in _HALVES:
        halves = {"am/pm": ("AM", "PM"), "a/p": ("A", "P")}.get(letters, ("上午", "下午"))
        return halves[at.hour >= 12]
    width, first = len(letters), letters[0]
    match first:
        case "g":
            return _era(at)[0][: width - 1] or _era(at)[1]
        case "e" if era:
            return f"{_era(at)[2]:0{width}}"
        case "y" | "e":
            return f"{at.year:04}" if width > 2 or first == "e" else f"{at.year % 100:02}"
        case "a":
            return _JAPANESE_DAYS[at.weekday()] + ("曜日" if width == 4 else "")
        case "m" | "d" if width >= 3:
            name = _MONTHS[at.month - 1] if first == "m" else _DAYS[at.weekday()]
            return name[:3] if width == 3 else name[:1] if width == 5 else name
        case _:
            hour = at.hour % 12 or 12 if half else at.hour
            number = {"m": at.month, "d": at.day, "h": hour, "s": at.second}.get(first)
            return "" if number is None else f"{number:0{min(width, 2)}}"


def _era(at: datetime) -> tuple[str, str, int]:
    """The Japanese era: its name, its letter and the year in it."""
    for begin, name, letter in _ERAS:
        if at.date() >= begin:
            return name, letter, at.year - begin.year + 1
    return "", "", at.year
