"""Tokens that text and pictures cost a model, estimated by script and word, without a vocabulary.

Tokenizers keep short and English words whole, split the long words of other languages into pieces, and spend close to a
token on every ideograph; an estimate of one quarter of the length is wrong by a factor of two as soon as the script
changes. A word costs more after a mark than after a blank: names, paths and identifiers are seldom whole tokens. The
figures were fitted against o200k on chat and interface text, erring high so that budgets hold.
"""

import re
import unicodedata
from functools import lru_cache

from belino.domain.outcome import CacheSize

IMAGE_PIXELS_PER_TOKEN = 750
IMAGE_TOKENS_AT_MOST = 1600

# A text is priced by what stands between its blanks, because most of that is known from before. Within it: a word with
# the mark before it and its English ending; digits; other marks; letters of other scripts; anything else.
_LATIN = "A-Za-z\\u00c0-\\u024f\\u1e00-\\u1eff"
_CYRILLIC = "\\u0400-\\u052f"
_MARK = r"!-/:-@\[-`{-~’"
_PIECE = re.compile(
    rf"(?P<mark>[{_MARK}])?(?:(?P<latin>[{_LATIN}]+)(?:['’](?:s|t|m|d|re|ve|ll)\b)?|(?P<cyrillic>[{_CYRILLIC}]+))"
    rf"|(?P<digits>[0-9]{{1,3}})|(?P<marks>[{_MARK}]+)"
    rf"|(?P<letters>(?:[^\W\d_{_LATIN}{_CYRILLIC}]|[\u0300-\u036f\u0590-\u05cf\u0600-\u0e7f])+)|(?P<other>.)",
    re.DOTALL,
)
_BLANKS = re.compile("(?<=[^ \n])  +")

# They identify English, and languages whose long words tokenizers know nearly as well.
_ENGLISH_WORDS = (
    "the and you for that this with have are was not but what your from they will would can just about there it is of "
    "to my we be do if how get like so know it's i'm don't all out up at on an when me our has been think one"
)
_ROMANCE_WORDS = "que la le les de des et est une un el los las para por con como não uma os as pas pour dans je del su"
_ENGLISH, _ROMANCE = frozenset(_ENGLISH_WORDS.split()), frozenset(_ROMANCE_WORDS.split())
_VIETNAMESE = re.compile(r"[\u1ea0-\u1ef9ơưđ]")
_NOT_ROMANCE = re.compile(r"[^a-zà-âç-ëî-ïñôõùûœ]", re.IGNORECASE)
_NOT_RUSSIAN = re.compile(r"[іїєґўјљњћђѓќ]", re.IGNORECASE)
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z])[A-Z]")

_WHOLE = 3  # letters up to which a word is one token in any language
_SLOPE, _LEAST_SLOPE, _MOST_SLOPE = 0.135, 0.045, 0.40  # tokens for each letter beyond those
_INNER_SLOPE = 0.24  # the same in a word that follows a mark or digits
_JOINED_SLOPE = 0.18  # the same after a mark that joins words
_COLUMN_SLOPE = 0.33  # the same at the beginning of a column, where names are
_JOINING, _ENDING = "._-/(", "'’"
_NAME_SLOPE = 0.07  # what a capital adds to it
_CYRILLIC_LETTERS = 1.65  # factor for such a letter in Cyrillic
_MARKED_SHARE = 0.12  # of words with language-specific letters, up to which a text counts as well known
_NEWLINE = 0.7
_CAUTION = 1.01

_LETTER = {
    "GREEK": 0.42,
    "ARABIC": 0.35,
    "HEBREW": 0.42,
    "DEVANAGARI": 0.34,
    "BENGALI": 0.44,
    "TAMIL": 0.42,
    "THAI": 0.42,
    "HANGUL": 0.84,
    "HIRAGANA": 0.64,
    "KATAKANA": 0.62,
    "KATAKANA-HIRAGANA": 0.62,
    "CJK": 0.77,
    "MATHEMATICAL": 3.5,
}
_OTHER_LETTER = 0.8
_CLASS = {"N": 1.0, "P": 1.0, "C": 0.6, "Z": 0.5}
_ARROW, _RARE_MARK, _SYMBOL = 1.2, 2.5, 2.0
_PRICES_MOST = 32_768
_PRICED_CHARS = 64

# The sums over a text are made in one number, with room for each of them: thousandths of tokens, words, and tenths of
# letters beyond those that cost nothing extra, of well-known words, and of words with language-specific letters.
_ROOM = 40
_FIELD = (1 << _ROOM) - 1


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model spends on this text."""
    if not text:
        return 0
    total = sum(map(_PRICES.__getitem__, text.split()))
    cost = (total & _FIELD) / 1000 + _NEWLINE * text.count("\n")
    if "  " in text:
        cost += len(_BLANKS.findall(text))
    letters = total >> 2 * _ROOM & _FIELD
    if letters:
        known, marked = total >> 3 * _ROOM & _FIELD, total >> 4 * _ROOM
        cost += letters * _slope(total >> _ROOM & _FIELD, known, marked) / 10
    return round(cost * _CAUTION) or 1


def estimate_image_tokens(width: int, height: int) -> int:
    """Estimate how many tokens a model spends on a picture of this size."""
    return max(1, min(IMAGE_TOKENS_AT_MOST, round(width * height / IMAGE_PIXELS_PER_TOKEN)))


def _slope(words: int, known: int, marked: int) -> float:
    """The cost of a long word's letters, by the tenths of well-known words and of language-specific ones."""
    share = marked / (10 * words) if marked else 0.0
    if share > _MARKED_SHARE:
        return min(_MOST_SLOPE, _SLOPE + share - _MARKED_SHARE)
    slope = _SLOPE - 0.07 * known / words
    return slope if slope > _LEAST_SLOPE else _LEAST_SLOPE


class _Prices(dict[str, int]):
    """Cached costs; a plain dictionary, because every turn looks up some ten thousand of them."""

    def __missing__(self, chunk: str) -> int:
        price = sum(_price(piece) for piece in _PIECE.finditer(chunk))
        if len(chunk) <= _PRICED_CHARS:  # very long words must not fill the cache
            if len(self) >= _PRICES_MOST:
                self.clear()
            self[chunk] = price
        return price


_PRICES = _Prices()


def cache_size() -> CacheSize:
    """The cached costs."""
    return CacheSize.of_entries(len(_PRICES), most=_PRICES_MOST, each=150)


def _price(piece: re.Match[str]) -> int:
    is_first = piece.start() == 0
    mark = piece["mark"]
    if word := piece["latin"]:
        return _latin(word, None if is_first and not mark else _slope_after(mark)) + _packed(_mark_before(mark, word))
    if word := piece["cyrillic"]:
        beyond = _CYRILLIC_LETTERS * max(0, len(word) - _WHOLE)
        marked = 1.0 if _NOT_RUSSIAN.search(word) else 0.0
        return _packed(1.0 + _mark_before(mark, word), 1, beyond, marked=marked)
    if piece["digits"]:
        return _packed(2.0 if is_first else 1.0)  # a blank before digits is a token of its own
    if marks := piece["marks"]:
        return _packed(1.0 + 0.22 * (len(marks) - 1))
    if letters := piece["letters"]:
        return _packed(max(1.0, sum(map(_character, letters))))
    return _packed(_character(piece["other"]))


def _mark_before(mark: str | None, word: str) -> float:
    """What a mark adds to the word after it: some are mostly one token with a word in small letters."""
    if mark is None:
        return 0.0
    if mark in _ENDING:
        return 0.2
    return 0.3 if mark in _JOINING and word[0].islower() else 1.0


def _slope_after(mark: str | None) -> float:
    if mark == "|":
        return _COLUMN_SLOPE
    return _JOINED_SLOPE if mark and mark in _JOINING else _INNER_SLOPE


def _latin(word: str, slope: float | None) -> int:
    """The price of a word; its letters have this slope, or that of the text if it stands after a blank."""
    beyond = max(0, len(word) - _WHOLE)
    if not word.isascii():
        if _VIETNAMESE.search(word):
            return _packed(1.2, 1, marked=1.0)
        return _packed(1.08, 1, beyond, marked=1.0 if _NOT_ROMANCE.search(word) else 0.4)
    cost = 1.0 + 0.65 * len(_HUMP.findall(word))
    if beyond and word.isupper():
        cost += 0.4 * beyond
    elif len(word) >= _WHOLE and not _VOWEL.search(word):
        cost += 0.4 * (beyond + 1)
    elif slope is not None:
        cost += slope * beyond
        beyond = 0
    elif word[0].isupper():
        cost += _NAME_SLOPE * beyond
    plain = word.lower()
    return _packed(cost, 1, beyond, known=1.0 if plain in _ENGLISH else 0.2 if plain in _ROMANCE else 0.0)


def _packed(cost: float, words: int = 0, letters: float = 0.0, *, known: float = 0.0, marked: float = 0.0) -> int:
    fields = (round(cost * 1000), words, round(letters * 10), round(known * 10), round(marked * 10))
    return sum(value << _ROOM * field for field, value in enumerate(fields))


@lru_cache(maxsize=8192)
def _character(character: str) -> float:
    category = unicodedata.category(character)[0]
    if category in "LM":
        return _LETTER.get(unicodedata.name(character, "").partition(" ")[0], _OTHER_LETTER)
    if "\u2190" <= character <= "\u21ff":
        return _ARROW
    if category in "PS" and ("\u2200" <= character <= "\u2fff" or "\u0100" <= character < "\u2000"):
        return _RARE_MARK
    return _CLASS.get(category, _SYMBOL)
