"""Tokens that text and pictures cost a model, estimated by script and word, without a vocabulary.

Tokenizers keep short and English words whole, split the long words of other languages into pieces, and spend close to a
token on every ideograph; an estimate of one quarter of the length is wrong by a factor of two as soon as the script
changes. The figures were fitted against o200k on chat and interface text, erring high so that budgets hold.
"""

import re
import unicodedata
from typing import NamedTuple

from belino.domain.outcome import CacheSize

IMAGE_PIXELS_PER_TOKEN = 750
IMAGE_TOKENS_AT_MOST = 1600

# A word with its English ending; digits; a mark that joins the word after it; other marks; anything else; blanks.
# A space belongs to what follows it, unless that is a digit.
_PIECE = re.compile(
    r" ?[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+(?:['’](?:s|t|m|d|re|ve|ll)\b)?| ?[\u0400-\u052f]+|[0-9]+"
    r"|[-'’./_](?=[^\W\d_])| ?[!-/:-@\[-`{-~]+| ?[^\s0-9]|\s+(?!\S)|\s",
)

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
_SLOPE, _LEAST_SLOPE, _MOST_SLOPE = 0.16, 0.06, 0.40  # tokens for each letter beyond those
_CYRILLIC = 1.4  # factor for such a letter in Cyrillic
_MARKED_SHARE = 0.12  # of words with language-specific letters, up to which a text counts as well known
_CAUTION = 1.03

_LETTER = {
    "GREEK": 0.42,
    "ARABIC": 0.385,
    "HEBREW": 0.43,
    "DEVANAGARI": 0.39,
    "BENGALI": 0.44,
    "TAMIL": 0.42,
    "THAI": 0.42,
    "HANGUL": 0.84,
    "HIRAGANA": 0.64,
    "KATAKANA": 0.62,
    "KATAKANA-HIRAGANA": 0.62,
    "CJK": 0.77,
}
_OTHER_LETTER = 0.8
_CLASS = {"N": 1.0, "P": 1.0, "C": 0.6, "Z": 0.5}
_SYMBOL = 2.0
_PRICES_MOST = 16_384
_PRICED_CHARS = 64


class _Piece(NamedTuple):
    """The cost of a piece by itself, and its evidence about the text."""

    cost: float
    words: int = 0
    letters: float = 0.0
    """Letters beyond those that cost nothing extra."""
    known: float = 0.0
    marked: float = 0.0


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model spends on this text."""
    if not text:
        return 0
    pieces = map(_PRICES.__getitem__, _PIECE.findall(text))
    costs, words, letters, known, marked = map(sum, zip(*pieces, strict=True))
    further = letters * _slope(known / words, marked / words) if words else 0
    return max(1, round((costs + further) * _CAUTION))


def estimate_image_tokens(width: int, height: int) -> int:
    """Estimate how many tokens a model spends on a picture of this size."""
    return max(1, min(IMAGE_TOKENS_AT_MOST, round(width * height / IMAGE_PIXELS_PER_TOKEN)))


def _slope(known: float, marked: float) -> float:
    """The cost of a long word's letters, by the shares of well-known words and of language-specific letters."""
    if marked > _MARKED_SHARE:
        return min(_MOST_SLOPE, _SLOPE + marked - _MARKED_SHARE)
    return max(_LEAST_SLOPE, _SLOPE - 0.7 * known)


class _Prices(dict[str, _Piece]):
    """Cached costs of pieces; a plain dictionary, because every turn looks up some ten thousand of them."""

    def __missing__(self, piece: str) -> _Piece:
        price = _piece(piece)
        if len(piece) <= _PRICED_CHARS:  # very long words must not fill the cache
            if len(self) >= _PRICES_MOST:
                self.clear()
            self[piece] = price
        return price


_PRICES = _Prices()


def cache_size() -> CacheSize:
    """The cached pieces."""
    return CacheSize.of_entries(len(_PRICES), most=_PRICES_MOST, each=170)


def _piece(piece: str) -> _Piece:
    if piece.isspace():
        return _Piece(1.0 if piece == " " else 0.7)
    piece = piece.removeprefix(" ")
    first = piece[0]
    if "0" <= first <= "9":
        return _Piece(-(-len(piece) // 3))
    if "\u0400" <= first <= "\u052f":
        beyond = _CYRILLIC * max(0, len(piece) - _WHOLE)
        return _Piece(1.0, 1, beyond, marked=1.0 if _NOT_RUSSIAN.search(piece) else 0.0)
    if first.isalpha() and (first < "\u0250" or "\u1e00" <= first <= "\u1eff"):
        return _latin(piece)
    return _Piece(_character(piece) if len(piece) == 1 else 1.0 + 0.4 * (len(piece) - 2))


def _latin(word: str) -> _Piece:
    beyond = max(0, len(word) - _WHOLE)
    if not word.isascii():
        if _VIETNAMESE.search(word):
            return _Piece(1.2, 1, marked=1.0)
        return _Piece(1.12, 1, beyond, marked=1.0 if _NOT_ROMANCE.search(word) else 0.4)
    cost = 1.0 + 0.8 * len(_HUMP.findall(word))
    if beyond and (word.isupper() or not _VOWEL.search(word)):
        cost += 0.3 * beyond
    plain = word.lower()
    return _Piece(cost, 1, beyond, known=1.0 if plain in _ENGLISH else 0.2 if plain in _ROMANCE else 0.0)


def _character(character: str) -> float:
    if character.isascii():
        return 0.1 if character == "'" else 0.4 if character in "-./_" else 0.95
    category = unicodedata.category(character)[0]
    if category in "LM":
        return _LETTER.get(unicodedata.name(character, "").partition(" ")[0], _OTHER_LETTER)
    return _CLASS.get(category, _SYMBOL)
