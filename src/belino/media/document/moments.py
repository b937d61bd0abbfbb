"""A day and a time as a section of a number format writes them."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from belino.media.document.numerals import general

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_JAPANESE_DAYS = "月火水木金土日"
_ERAS = ((date(2019, 5, 1), "令和", "R"), (date(1989, 1, 8), "平成", "H"), (date(1926, 12, 25), "昭和", "S"),
         (date(1912, 7, 30), "大正", "T"), (date(1868, 1, 25), "明治", "M"))  # fmt: skip
_TOKEN = re.compile(
    r'"([^"]*)"?|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]?|\[(h+|m+|s+)\]|\[[^\]]*\]?'
    r"|(AM/PM|A/P|上午/下午|y+|m+|d+|h+|s+|g+|e+|a{3,4}|general)|(\.0{1,6})|(.)",
    re.IGNORECASE | re.DOTALL,
)
_ADVANCES = re.compile(r'"[^"]*"?|\\.|[_*].|\[(?!h+\]|m+\]|s+\])[^\]]*\]?|general|e[+-]', re.IGNORECASE)
_HALVES = frozenset({"am/pm", "a/p", "上午/下午"})
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_LAST_DAY = 2_958_465
"""The year 9999 ends there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """A piece of a section: one of these."""

    word: str
    elapsed: str
    letters: str
    fraction: str


@lru_cache(maxsize=1024)
def is_date(section: str) -> bool:
    """Whether a section of a format writes days or times."""
    return any(letter in _ADVANCES.sub("", section).lower() for letter in "ymdhs")


def moment(value: float, section: str) -> str:
    """Days are counted from the end of 1899, as if 1900 had been a leap year."""
    tokens = _tokens(section)
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
def _tokens(section: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    for quoted, escaped, currency, elapsed, letters, fraction, other in _TOKEN.findall(section):
        word = quoted or escaped or currency or other
        found.append(_Token(word=word, elapsed=elapsed.lower(), letters=letters.lower(), fraction=fraction[1:]))
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
    """Of a Japanese emperor: its name, its letter and the year in it."""
    for begin, name, letter in _ERAS:
        if at.date() >= begin:
            return name, letter, at.year - begin.year + 1
    return "", "", at.year
