"""Tokenizer: text to search terms, by script and language, with ids and codes whole."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

from belino.search.segment import MessageFlag
from belino.search.stopwords import LANGUAGES_OF, STOP_WORDS

VERSION = 2
"""Version of the terms: an index of another version is rebuilt."""
TERMS_AT_MOST = 4_000
"""Terms of one text: a pasted log must not fill the index."""
QUERY_WORDS = 64
"""Words of one query; those that follow are ignored."""
TERM_CHARS = 80
REMEMBERED = 20_000
DEFAULT = "english"

# Letters, digits, and the combining marks that Python's \w leaves out: Thai, Hindi and Arabic words contain them.
_W = (
    r"[\w\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0dff\u0e00-\u109f\u1780-\u17ff\u200c\u200d]"
)
_PIECES = re.compile(rf"https?://[^\s<>\"'`]+|[@#]?{_W}+(?:['.:/\\@+&=-]{_W}+)*")
_PARTS = re.compile(rf"{_W}+")
_BETWEEN_SCRIPTS = re.compile(
    r"([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff]+)"
)
_HAN = re.compile(r"[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_UNSPOKEN = re.compile(r"[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640\u0591-\u05c7\u200c\u200d]")
# Soft hyphens, zero-width spaces, direction marks, variation selectors, tags: invisible inside a word.
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_LATIN_MARKS = re.compile(r"[\u0300-\u036f]")


# Words for times, and numbers as words.
_TIMES = """
    yesterday today tonight tomorrow ago last next since recently week weeks weekend weekends month months year years
    monday tuesday wednesday thursday friday saturday sunday birthday holiday january february march april june july
    august september october november december summer winter spring autumn gestern heute morgen letzte letzten letztes
    nächste nächsten woche wochen monat monate jahr jahre jahren montag dienstag mittwoch donnerstag freitag samstag
    sonntag hier demain semaine mois année lundi mardi mercredi jeudi vendredi samedi dimanche ayer mañana semana mes
    año lunes martes miércoles jueves viernes sábado domingo вчера сегодня завтра неделя неделе недели неделю месяц
    месяце год году года лет понедельник вторник среду четверг пятницу субботу воскресенье
"""
_COUNTS = """
    one two three four five six seven eight nine ten dozen once twice couple few zwei drei vier fünf zehn deux trois
    quatre cinq dix dos tres cuatro cinco diez два три четыре пять десять
"""
_TIME_WORDS = frozenset(_TIMES.split())
_COUNT_WORDS = frozenset(_COUNTS.split())
_CLOCK = re.compile(r"\d[:.]\d\d|\b(?:19|20)\d\d\b")
_DIGIT = re.compile(r"\d")
_CJK_TIME = re.compile(r"[年月日昨周]|今天|明天|明日")
_CJK_NUMBER = re.compile(r"[一二三四五六七八九十]")
_NAMED = re.compile(r"[a-zà-ÿа-я,;:] [\"'“(]?[A-ZÀ-ÞА-Я][a-zà-ÿа-я]")
_ASKS = re.compile(r"[?？؟]")


Terms = tuple[tuple[str, ...], tuple[str, ...]]
"""The terms of the words in order, and additional ones (codes, single Han characters)."""


class QueryWord(NamedTuple):
    """One word of a query as it is written, and the terms it may be indexed as."""

    word: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text's terms in order, the language they are stemmed in, and its `MessageFlag` bits."""

    terms: list[str]
    language: str
    flags: int


def tokenize(text: str) -> TokenizedText:
    """The terms of a text: those of its words, then the additional ones."""
    folded = fold(text)
    pieces = _PIECES.findall(folded)
    language = language_of(pieces)
    remembered = _memory(language)
    terms: list[str] = []
    beside: list[str] = []
    for piece in pieces:
        known = remembered.get(piece)
        if known is None:
            known = _terms(piece, language)
            if len(piece) <= TERM_CHARS:  # very long words take too much memory
                if len(remembered) >= REMEMBERED:
                    remembered.clear()
                remembered[piece] = known
        terms += known[0]
        beside += known[1]
        if len(terms) > TERMS_AT_MOST:
            break
    return TokenizedText(terms[:TERMS_AT_MOST] + beside[:TERMS_AT_MOST], language, _flags(text, pieces))


def query_words(text: str, languages: Collection[str] = ()) -> list[QueryWord]:
    """The words of a query in order, without stop words, each with its terms.

    `languages` are those of the messages: a word is stemmed in each of them.
    """
    pieces = _PIECES.findall(fold(text))
    own = language_of(pieces)
    others = sorted(language for language in languages if language != own)
    found: list[QueryWord] = []
    for piece in pieces:
        words, beside = _terms(piece, own)
        foreign = [_terms(piece, language)[0] for language in others]
        alike = [variant for variant in foreign if len(variant) == len(words)]
        for position, term in enumerate(words):
            terms = dict.fromkeys((term, *(variant[position] for variant in alike)))
            found.append(QueryWord(piece, tuple(terms)))
        found += (QueryWord(piece, (term,)) for term in beside if not _HAN.fullmatch(term))
        if len(found) >= QUERY_WORDS:
            break
    return found[:QUERY_WORDS]


def phrase_terms(phrase: str, languages: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The terms of a phrase in order, stemmed in each of the languages."""
    pieces = _PIECES.findall(fold(phrase))
    stemmed = dict.fromkeys([language_of(pieces), *sorted(languages)])
    rows = (tuple(term for piece in pieces for term in _terms(piece, language)[0]) for language in stemmed)
    return list(dict.fromkeys(filter(None, rows)))


def _flags(text: str, pieces: list[str]) -> int:
    """The flags that depend on the text alone."""
    flags = MessageFlag.QUESTION if _ASKS.search(text) else 0
    if not _TIME_WORDS.isdisjoint(pieces) or _CLOCK.search(text):
        flags |= MessageFlag.TIME
    if not _COUNT_WORDS.isdisjoint(pieces) or _DIGIT.search(text):
        flags |= MessageFlag.NUMBER
    if _NAMED.search(text):
        flags |= MessageFlag.NAME
    if not text.isascii():
        flags |= MessageFlag.TIME if _CJK_TIME.search(text) else 0
        flags |= MessageFlag.NUMBER if _CJK_NUMBER.search(text) else 0
    return flags


def name_parts(text: str) -> list[str]:
    """The words of a name, or of a text that may contain one, unstemmed."""
    return [part.removesuffix("'s") for part in re.findall(rf"{_W}+(?:'s\b)?", fold(text)) if len(part) > 1]


def fold(text: str) -> str:
    """Lower case, NFKC, without invisible characters."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold().replace("’", "'")


def language_of(pieces: list[str]) -> str:
    """The language with most stop words among the pieces; English if in doubt."""
    votes = [LANGUAGES_OF[piece] for piece in pieces if piece in LANGUAGES_OF]
    if not votes or all(DEFAULT in vote for vote in votes):
        return DEFAULT
    counted = Counter(language for vote in votes for language in vote)
    best = max(counted.values())
    if counted[DEFAULT] == best or best < 2:
        return DEFAULT
    return min(language for language, times in counted.items() if times == best)


def stem(word: str, language: str) -> str:
    """The stem of a word, in the language of its script."""
    if word.isascii():
        return _stemmer(language).stemWord(word) if language in _LATIN else _stemmer(DEFAULT).stemWord(word)
    first = next((char for char in word if char > "\u024f"), "")
    for low, high, script_language in _SCRIPTS:
        if low <= first <= high:
            return _UNSPOKEN.sub("", _stemmer(script_language).stemWord(_UNSPOKEN.sub("", word)))
    stemmed = _stemmer(language if language in _LATIN else DEFAULT).stemWord(word)
    return unicodedata.normalize("NFC", _LATIN_MARKS.sub("", unicodedata.normalize("NFD", stemmed)))


_LATIN = frozenset(
    (
        "english",
        "german",
        "french",
        "spanish",
        "portuguese",
        "italian",
        "dutch",
        "swedish",
        "norwegian",
        "polish",
        "turkish",
    )
)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802  PyStemmer's name


@cache
def _stemmer(language: str) -> _Stemmer:
    made: _Stemmer = import_module("Stemmer").Stemmer(language)
    return made


@cache
def _memory(language: str) -> dict[str, Terms]:
    return {}


def _terms(piece: str, language: str) -> Terms:
    """The terms of one piece, and the additional ones."""
    if piece in STOP_WORDS[language]:
        return (), ()
    if piece.isalpha() and piece.isascii():
        return (stem(piece, language),), ()
    if piece.startswith(("http://", "https://")):
        return _address(piece, language)
    mark = piece[0] if piece[0] in "@#" else ""
    bare = piece[len(mark) :]
    parts = _PARTS.findall(bare)
    if "'" in bare and bare == "'".join(parts):
        return _apostrophe(bare, language), ()
    words, beside = _all(parts, language)
    if mark or _is_code(bare, parts):
        beside = (*(name[:TERM_CHARS] for name in dict.fromkeys((piece, bare)) if name not in words), *beside)
    return words, beside


def _is_code(bare: str, parts: list[str]) -> bool:
    """Whether a piece is a term as a whole too: a file name, an address, an id; not a hyphenated word."""
    if len(parts) == 1:
        return "_" in bare.strip("_")
    return bare != "-".join(parts) or "_" in bare or any(char.isdigit() for char in bare)


def _all(parts: list[str], language: str) -> Terms:
    found = [_word(small, language) for part in parts for small in part.split("_") if small]
    return tuple(term for words, _ in found for term in words), tuple(term for _, aside in found for term in aside)


def _apostrophe(word: str, language: str) -> tuple[str, ...]:
    if word in STOP_WORDS[language]:
        return ()
    if language in ("french", "italian"):
        word = word.rpartition("'")[2]
        return _word(word, language)[0]
    return (stem(word, language).replace("'", ""),)


def _address(piece: str, language: str) -> Terms:
    whole = piece.rstrip(".,;:!?)]}'\"")
    rest = whole.partition("://")[2]
    host, _, path = rest.partition("/")
    words = [term for part in _PARTS.findall(path) for term in _word(part, language)[0]]
    return tuple(words), (whole[:TERM_CHARS], host[:TERM_CHARS], host.removeprefix("www.")[:TERM_CHARS])


def _word(word: str, language: str) -> Terms:
    """The terms of one word without punctuation; scripts without spaces become pairs of characters."""
    if word in STOP_WORDS[language]:
        return (), ()
    if word.isascii():
        return ((stem(word, language) if word.isalpha() else word[:TERM_CHARS]),), ()
    runs = _BETWEEN_SCRIPTS.split(word)
    if len(runs) == 1:
        if word in LANGUAGES_OF and word[0] > "\u024f":
            return (), ()
        return (stem(word, language) if any(char.isalpha() for char in word) else word[:TERM_CHARS],), ()
    words: list[str] = []
    beside: list[str] = []
    for position, run in enumerate(runs):
        if not run:
            continue
        if position % 2 == 0:
            words += _word(run, language)[0]
        elif len(run) == 1:
            words.append(run)
        else:
            words += (run[at : at + 2] for at in range(len(run) - 1))
            beside += _HAN.findall(run)
    return tuple(words), tuple(beside)
