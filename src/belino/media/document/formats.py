"""Numbers and dates of a spreadsheet as their number format shows them."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite

_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 14: "yyyy-mm-dd",
    15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
"""The formats a file only names; short dates differ from country to country and are written so that none misreads."""

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*)[^\]]*\]|(\[(?:h+|m+|s+)\])|\[[^\]]*\]'
    r"|(AM/PM|A/P|y+|m+|d+|h+|s+|0(?=[^0#?]|$)|e+)|(.)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER = re.compile(r"[0#?][0#?,]*(?:\.[0#?]*)?(?:E[+-][0#?]+)?|\.[0#?]+", re.IGNORECASE)
_LONGEST_CODE = 255
_ASIDE = 0xF0000
"""Characters for private use, one for each word that was put aside."""
_LAST_DAY = 2_958_465
"""The year 9999 ends there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A number format, read once for all cells that have it."""

    code: str = ""
    date: bool = False
    hides: bool = False
    """Three semicolons: the value is there and nobody sees it."""


GENERAL = Format()


@lru_cache(maxsize=1024)
def format_of(number: int, code: str | None) -> Format:
    """The format with this number, or with the code a file gives for it."""
    code = code if code is not None else _BUILT_IN.get(number, "")
    if len(code) > _LONGEST_CODE or code.lower() in ("", "general", "@"):
        return GENERAL
    if not code.replace(";", "").strip():
        return Format(code=code, hides=True)
    return Format(code=code, date=_is_date(code))


def shown(value: float, form: Format, *, since_1904: bool = False) -> str:
    """The number as a person sees it in its cell."""
    if not isfinite(value):
        return str(value)
    if form.date:
        return _moment(value + (1462 if since_1904 else 0), form.code.split(";")[0])
    return _numeral(value, form.code) if form.code else general(value)


def general(value: float) -> str:
    """A number without a format: no more digits than a spreadsheet keeps."""
    if isfinite(value) and abs(value) < 1e17 and value == int(value):
        return str(int(value))
    return f"{value:.15g}"


def _is_date(code: str) -> bool:
    section = code.split(";")[0]
    plain = re.sub(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', "", section, flags=re.IGNORECASE).lower()
    return any(letter in plain.replace("general", "").replace("e+", "").replace("e-", "") for letter in "ymdhs")


def _numeral(value: float, code: str) -> str:
    sections = code.split(";")
    section, minus = sections[0], "-" if value < 0 else ""
    if value < 0 and len(sections) > 1:
        section, minus = sections[1], ""
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    words: list[str] = []
    bare = "".join(_bare(found, words) for found in _TOKEN.finditer(section))
    found = _NUMBER.search(bare)
    if found is None:
        return _restored(minus + bare, words) or general(value)
    if "/" in bare[found.end() :]:
        return general(value)
    number = abs(value) * 100 ** bare.count("%")
    return _restored(minus + bare[: found.start()] + _digits(number, found.group(0)) + bare[found.end() :], words)


def _bare(found: re.Match[str], words: list[str]) -> str:
    """A piece of a format; words are put aside, so that nothing in them is taken for the place of a digit."""
    quoted, escaped, currency, _, letters, other = found.groups()
    literal = next((word for word in (quoted, escaped, currency) if word is not None), None)
    if literal is None:
        return letters or other or ""
    words.append(literal)
    return chr(_ASIDE + len(words) - 1)


def _restored(text: str, words: list[str]) -> str:
    for at, word in enumerate(words):
        text = text.replace(chr(_ASIDE + at), word)
    return text.strip()


def _digits(number: float, pattern: str) -> str:
    if "E" in pattern.upper():
        decimals = len(pattern.upper().split("E")[0].partition(".")[2])
        return f"{number:.{min(decimals, 15)}E}"
    whole, _, fraction = pattern.partition(".")
    while whole.endswith(","):
        whole, number = whole[:-1], number / 1000
    least, most = fraction.count("0"), min(len(fraction), 15)
    text = f"{number:,.{most}f}" if "," in whole else f"{number:.{most}f}"
    before, dot, after = text.partition(".")
    while len(after) > least and after.endswith("0"):
        after = after[:-1]
    before = before.zfill(min(whole.count("0"), 30))
    if before == "0" and "0" not in whole and after:
        before = ""
    return before + dot + after if after else before


def _moment(value: float, code: str) -> str:
    """A day and a time of day; days are counted from the end of 1899, as if 1900 had been a leap year."""
    if not 0 <= value < _LAST_DAY + 1:
        return general(value)
    whole, seconds = divmod(round(value * 86_400, 3), 86_400)
    day = datetime(1899, 12, 30) + timedelta(days=whole + (1 if whole < 60 else 0))
    moment = day + timedelta(seconds=seconds if "." in code else round(seconds))
    tokens = list(_TOKEN.finditer(code))
    half = any((found.group(5) or "").upper() in ("AM/PM", "A/P") for found in tokens)
    text, clock = "", False
    for at, found in enumerate(tokens):
        quoted, escaped, currency, elapsed, letters, other = found.groups()
        if elapsed:
            text, clock = text + _elapsed(value, elapsed), True
        elif letters:
            after = next((later.group(5) for later in tokens[at + 1 :] if later.group(5)), "") or ""
            minutes = letters.lower() in ("m", "mm") and (clock or after.lower().startswith("s"))
            text += _piece(moment, letters.lower(), half=half, minutes=minutes)
            clock = letters[0].lower() in "hs" or (clock and letters[0].lower() not in "yd")
        else:
            text += next((word for word in (quoted, escaped, currency, other) if word is not None), "")
    return text.strip() or moment.isoformat(" ")


def _elapsed(value: float, token: str) -> str:
    width = len(token) - 2
    return f"{int(value * {'h': 24, 'm': 1440, 's': 86_400}[token[1].lower()] + 1e-6):0{width}}"


def _piece(moment: datetime, letters: str, *, half: bool, minutes: bool) -> str:
    hour = moment.hour % 12 or 12 if half else moment.hour
    width, first = len(letters), letters[0]
    match first:
        case "a":
            return "AM" if moment.hour < 12 else "PM"
        case "y" | "e":
            return f"{moment.year:04}" if width > 2 or first == "e" else f"{moment.year % 100:02}"
        case "m" if minutes:
            return f"{moment.minute:0{min(width, 2)}}"
        case "m" | "d" if width >= 3:
            name = _MONTHS[moment.month - 1] if first == "m" else _DAYS[moment.weekday()]
            return name[:3] if width == 3 else name[:1] if width == 5 else name
        case "m" | "d" | "h" | "s":
            number = {"m": moment.month, "d": moment.day, "h": hour, "s": moment.second}[first]
            return f"{number:0{min(width, 2)}}"
        case _:
            return f"{moment.microsecond // 100_000}"
