"""Graphemes: where text may be cut without breaking what a reader sees as one character.

A close approximation of the extended grapheme clusters of UAX #29 on the standard library's tables. Where it differs it
keeps more together, never less.
"""

import unicodedata

ZWJ = "\u200d"
_LINKER = 9  # the combining class of a virama: what follows joins the same conjunct
_EMOJI_MODIFIERS = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_REGIONAL = range(0x1F1E6, 0x1F200)
_HANGUL_LEADS = (range(0x1100, 0x1160), range(0xA960, 0xA97D))
_HANGUL_VOWELS_AND_TAILS = (range(0x1160, 0x1200), range(0xD7B0, 0xD7FC))
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
_PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e")


def cut_before(text: str, index: int, *, start: int = 0) -> int:
    """The last place at or before `index` where the text may be cut; `index` itself if there is none after `start`."""
    place = index
    while place > start and not is_boundary(text, place):
        place -= 1
    return place if place > start else index


def cut(text: str, limit: int) -> str:
    """The text, or as much of it as fits in `limit` characters without splitting a grapheme, and `…`."""
    if len(text) <= limit:
        return text
    place = cut_before(text, limit)
    # A grapheme longer than the limit, such as a letter with many marks, is left out.
    return f"{text[:place] if is_boundary(text, place) else ''}…"


def is_boundary(text: str, index: int) -> bool:
    """Whether the characters on both sides of `index` belong to different graphemes."""
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if _extends(after) or before == ZWJ or before in _PREPENDED:
        return before in "\r\n"
    if unicodedata.combining(before) == _LINKER and after.isalpha():
        return False
    if ord(before) in _REGIONAL and ord(after) in _REGIONAL:
        return _regional_run(text, index) % 2 == 0
    return not _hangul_joins(ord(before), ord(after))


def _extends(character: str) -> bool:
    code = ord(character)
    if character == ZWJ or code in _EMOJI_MODIFIERS or code in _TAGS or 0xDC00 <= code <= 0xDFFF:
        return True
    # Thai and Lao vowel signs that stand after their consonant are letters by category.
    return code in (0x0E33, 0x0EB3, 0x200C, 0xFF9E, 0xFF9F) or unicodedata.category(character) in ("Mn", "Me", "Mc")


def _regional_run(text: str, index: int) -> int:
    length = 0
    while length < index and ord(text[index - 1 - length]) in _REGIONAL:
        length += 1
    return length


def _hangul_joins(before: int, after: int) -> bool:
    lead = any(before in block for block in _HANGUL_LEADS)
    vowel_or_tail = any(after in block for block in _HANGUL_VOWELS_AND_TAILS)
    if lead:
        return vowel_or_tail or after in _HANGUL_SYLLABLES or any(after in block for block in _HANGUL_LEADS)
    inside = before in _HANGUL_SYLLABLES or any(before in block for block in _HANGUL_VOWELS_AND_TAILS)
    return inside and vowel_or_tail
