"""Paging: a document's text in pages of so many tokens, each beginning where the previous one ended.

A document's text is untrusted like any message: it is sanitised before it is counted or cut, so that an offset in it is
stable.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from belino.domain.graphemes import cut_before, is_boundary
from belino.domain.media import DocumentText, DocumentUnit, Part
from belino.domain.safe_text import clean_name, disarm
from belino.domain.units import NoRange

CHARS_PER_TOKEN = 8
"""The most characters a token has: the text examined to fill a page is bounded by it."""

_UNITS = "|".join(DocumentUnit)
_HEADING = re.compile(rf"^---(?= (?:{_UNITS})s? [0-9])", re.MULTILINE)
_CURSOR = re.compile(r"([0-9]{1,7})\.([0-9]{1,9})\.([0-9]{1,7})")
_SOFT = 5  # a page may be a fifth shorter than possible, to end at a natural break
_ENDS = ("\n\n", "\n", ". ", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPosition:
    """Where to continue: a part, the characters already returned of it, and the last part that is wanted."""

    part: int
    offset: int
    last: int

    def __str__(self) -> str:
        return f"{self.part}.{self.offset}.{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A stretch of one part."""

    part: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """As much text as there was room for."""

    text: str
    told: tuple[Told, ...]
    rest: TextPosition | None
    """Where to continue; None at the end of the request."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The rest of a part, or several empty parts, and the heading above."""

    part: int
    last: int
    heading: str
    text: str
    start: int

    @property
    def weight(self) -> int:
        return 1 + len(self.text)


def parse_cursor(text: str) -> TextPosition:
    """A cursor from the end of the previous page."""
    found = _CURSOR.fullmatch(text.strip())
    place = TextPosition(part=int(found[1]), offset=int(found[2]), last=int(found[3])) if found else None
    if place is None or not 1 <= place.part <= place.last:
        raise NoRange("cursor must be what the end of the page before said; leave it out to begin at the start")
    return place


def clean(text: str) -> str:
    """A part's text for an agent; lines that look like our headings are escaped."""
    return _HEADING.sub("———", disarm(text))


def page_of(text: DocumentText, place: TextPosition, *, room: int, price: Callable[[str], int]) -> Page:
    """As much of what was read, from `place` on, as fits into `room`; only consecutive parts."""
    parts: list[Part] = []
    chars, expected = 0, place.part
    for part in text.parts:
        if part.number != expected or chars > room * CHARS_PER_TOKEN + place.offset:
            break
        words = clean(part.text)
        parts.append(replace(part, text=words))
        chars, expected = chars + len(words), expected + 1
    more = expected <= min(place.last, text.total)
    return fill(parts, text.unit, place, room=room, price=price, alone=text.total == 1, more=more)


def whole_price(text: DocumentText, price: Callable[[str], int]) -> int:
    """The cost of the parts as written, each under its heading."""
    return sum(price(stretch.heading) + price(stretch.text) for stretch in _all_stretches(text))


def under_headings(text: DocumentText) -> str:
    """All parts as written, each under its heading."""
    return "\n".join(stretch.heading + stretch.text for stretch in _all_stretches(text))


def _all_stretches(text: DocumentText) -> "list[_Stretch]":
    parts = [replace(part, text=clean(part.text)) for part in text.parts]
    return _stretches(parts, text.unit, TextPosition(part=0, offset=0, last=text.total), text.total == 1)


def fill(
    parts: Sequence[Part],
    unit: DocumentUnit,
    start: TextPosition,
    *,
    room: int,
    price: Callable[[str], int],
    alone: bool = False,
    more: bool = False,
) -> Page:
    """The sanitised parts from `start` on, as far as their price stays within `room`.

    `alone`: a single part needs no heading. `more`: further parts are wanted too. A page holds at least one character,
    whatever it costs, so that reading terminates.
    """
    stretches = _stretches(parts, unit, start, alone)
    total = sum(stretch.weight for stretch in stretches)
    most = _most(stretches, total, room, price)
    if most < total:
        most = _pleasant(stretches, most)
        while most > 1 and price(_written(stretches, most)) > room:
            most = _pleasant(stretches, max(1, most - max(1, most // 20)))
    most = max(most, _least(stretches))
    rest = _rest(stretches, most, start)
    if rest is None and more and stretches:
        rest = TextPosition(part=stretches[-1].last + 1, offset=0, last=start.last)
    return Page(text=_written(stretches, most), told=_told(stretches, most), rest=rest)


def _stretches(parts: Sequence[Part], unit: DocumentUnit, start: TextPosition, alone: bool) -> list[_Stretch]:
    found: list[_Stretch] = []
    for part in parts:
        if not part.text and found and not found[-1].text and part.number == found[-1].last + 1:
            first = found.pop().part
            found.append(_Stretch(first, part.number, f"--- {unit}s {first}-{part.number}, no text ---", "", 0))
            continue
        begins = min(start.offset, len(part.text)) if part.number == start.part else 0
        title = f": {clean_name(part.title)}" if part.title and not begins else ""
        title += f", recognised by {clean_name(part.read_by)}" if part.read_by and part.text else ""
        state = ", continued ---\n" if begins else " ---\n" if part.text else ", no text ---"
        heading = "" if alone else f"--- {unit} {part.number}{title}{state}"
        found.append(_Stretch(part.number, part.number, heading, part.text[begins:], begins))
    return found


def _most(stretches: list[_Stretch], total: int, room: int, price: Callable[[str], int]) -> int:
    """The largest weight that fits, to within a hundredth; found by proportion, because pricing is expensive."""
    low, low_price = 0, price("")
    high = min(total, CHARS_PER_TOKEN * room)
    high_price = price(_written(stretches, high))
    if high_price <= room:
        return high
    while high - low > max(1, high // 100):
        share = (room - low_price) / max(1, high_price - low_price)
        guess = min(high - 1, max(low + 1, low + int((high - low) * min(0.95, max(0.05, share)))))
        cost = price(_written(stretches, guess))
        if cost <= room:
            low, low_price = guess, cost
        else:
            high, high_price = guess, cost
    return low


def _pleasant(stretches: list[_Stretch], weight: int) -> int:
    """Slightly less, to end with a paragraph, a line, a sentence or a word, and never inside a character."""
    at, left = _holds(stretches, weight)
    if at == len(stretches):
        return weight
    before, text = weight - left, stretches[at].text
    length = left - 1
    if length <= 0:
        return before
    reach = max(length - weight // _SOFT, 0)
    for end in _ENDS:
        found = text.rfind(end, reach, length)
        if found > 0:
            return before + 1 + found + len(end)
    place = cut_before(text, length)
    return before + 1 + place if is_boundary(text, place) else before


def _least(stretches: list[_Stretch]) -> int:
    if not stretches:
        return 0
    text, place = stretches[0].text, 1
    while not is_boundary(text, place):
        place += 1
    return 1 + min(place, len(text))


def _holds(stretches: list[_Stretch], weight: int) -> tuple[int, int]:
    """The stretch in which a weight ends, and how much of it is used."""
    for at, stretch in enumerate(stretches):
        if weight < stretch.weight:
            return at, weight
        weight -= stretch.weight
    return len(stretches), 0


def _written(stretches: list[_Stretch], weight: int) -> str:
    at, left = _holds(stretches, weight)
    lines = [stretch.heading + stretch.text for stretch in stretches[:at]]
    if left > 1:
        lines.append(stretches[at].heading + stretches[at].text[: left - 1])
    return "\n".join(lines)


def _told(stretches: list[_Stretch], weight: int) -> tuple[Told, ...]:
    at, left = _holds(stretches, weight)
    told = [
        Told(part=number, start=each.start, end=each.start + len(each.text))
        for each in stretches[:at]
        for number in range(each.part, each.last + 1)
    ]
    if left > 1:
        cut_off = stretches[at]
        told.append(Told(part=cut_off.part, start=cut_off.start, end=cut_off.start + left - 1))
    return tuple(told)


def _rest(stretches: list[_Stretch], weight: int, start: TextPosition) -> TextPosition | None:
    at, left = _holds(stretches, weight)
    if at == len(stretches):
        return None
    return TextPosition(part=stretches[at].part, offset=stretches[at].start + max(0, left - 1), last=start.last)
