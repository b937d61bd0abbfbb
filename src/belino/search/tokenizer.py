"""Tokenizer: text to search terms, by script and language, with ids and codes whole."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

from belino.search.dates import DATE_WORDS
from belino.search.han import HAN, simplified
from belino.search.segment import MessageFlag
from belino.search.stopwords import LANGUAGES_OF, STOP_WORDS

VERSION = 5
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
# Pairs of letters that are flags, pictographs, dingbats, arrows and signs that are shown as pictures.
_PICTURES = (
    r"[\U0001f1e6-\U0001f1ff]{2}|[\u203c\u2049\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f"
    r"\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_EMOJI = re.compile(_PICTURES)
_WORD_PIECES = rf"https?://[^\s<>\"'`]+|[@#]?{_W}+(?:['.:/\\@+&=-]{_W}+)*"
_ASCII_PIECES, _PIECES = re.compile(_WORD_PIECES, re.ASCII), re.compile(f"{_WORD_PIECES}|{_PICTURES}")
_PARTS = re.compile(rf"{_W}+")
_BETWEEN_SCRIPTS = re.compile(
    r"([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff]+)"
)
_HEBREW = re.compile(r"[\u05d0-\u05ea]+")
_HEBREW_PREFIXES = frozenset("ובהכלמש")
"""And, in, the, as, to, from, that: written as part of the word that follows."""
_HASH = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{6,64}")
HASH_PREFIX = 6
"""Digits of a hash by which it is found; more of them are compared as a word."""
# Words that are put together by capital letters, and their parts.
_HAS_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL = re.compile(r"\b[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*")
_CAMEL_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Letters of few languages, as good as a stop word of each of them.
_LETTERS = {
    **dict.fromkeys("ğı", ("turkish",)),
    **dict.fromkeys("ş", ("turkish", "romanian")),
    **dict.fromkeys("łąęśźżćń", ("polish",)),
    **dict.fromkeys("řěůťď", ("czech",)),
    **dict.fromkeys("šč", ("czech",)),
    **dict.fromkeys("őű", ("hungarian",)),
    **dict.fromkeys("ñ", ("spanish",)),
    **dict.fromkeys("ãõ", ("portuguese",)),
    **dict.fromkeys("êèœ", ("french",)),
    **dict.fromkeys("øæ", ("danish", "norwegian")),
    **dict.fromkeys("å", ("danish", "norwegian", "swedish")),
    **dict.fromkeys("ä", ("finnish", "german", "swedish")),
    **dict.fromkeys("ö", ("finnish", "german", "hungarian", "swedish", "turkish")),
    **dict.fromkeys("ü", ("german", "hungarian", "turkish")),
    **dict.fromkeys("țșă", ("romanian",)),
}
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_UNSPOKEN = re.compile(r"[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640\u0591-\u05c7\u200c\u200d]")
# Soft hyphens, zero-width spaces, direction marks, variation selectors, skin tones, tags: no part of a word.
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff"
    r"\U000e0000-\U000e01ef]"
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


Terms = tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]
"""The forms of each word in order, the usual one first, and additional terms (codes, single Han characters)."""


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
    may_name_dates: bool
    """False if it certainly names none."""


def tokenize(text: str) -> TokenizedText:
    """The terms of a text: those of its words, then the additional ones."""
    pieces = _pieces(text)
    language = language_of(pieces)
    remembered = _memory(language)
    terms: list[str] = []
    beside = [term for part in _camel_parts(text) for term in _word_terms(part, language)]
    for piece in pieces:
        known = remembered.get(piece)
        if known is None:
            words, more = _terms(piece, language)
            known = tuple(forms[0] for forms in words), (*(form for forms in words for form in forms[1:]), *more)
            if len(piece) <= TERM_CHARS:  # very long words take too much memory
                if len(remembered) >= REMEMBERED:
                    remembered.clear()
                remembered[piece] = known
        terms += known[0]
        beside += known[1]
        if len(terms) > TERMS_AT_MOST:
            break
    flags = _flags(text, pieces)
    dated = flags & MessageFlag.TIME != 0 or not DATE_WORDS.isdisjoint(pieces)
    return TokenizedText(terms[:TERMS_AT_MOST] + beside[:TERMS_AT_MOST], language, flags, dated)


def written_words(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The words of a text as they are written, folded, each with its terms."""
    pieces = _pieces(text)
    language = language_of(pieces)
    for piece in pieces:
        words, beside = _terms(piece, language)
        yield piece, [*(form for forms in words for form in forms), *beside]


def words_in(text: str) -> set[str]:
    """The words of a text as they are written, folded, and those inside names of code; no terms are made of them."""
    parts = (part for piece in _pieces(text) for part in _PARTS.findall(piece))
    return {word for part in parts for word in part.split("_") if word}.union(_camel_parts(text))


def query_words(text: str, languages: Collection[str] = ()) -> list[QueryWord]:
    """The words of a query in order, without stop words, each with its terms.

    `languages` are those of the messages: a word is stemmed in each of them.
    """
    pieces = _pieces(text)
    own = language_of(pieces)
    others = sorted(language for language in languages if language != own)
    found: list[QueryWord] = []
    for piece in pieces:
        words, beside = _terms(piece, own)
        foreign = [_terms(piece, language)[0] for language in others]
        alike = [words, *(variant for variant in foreign if len(variant) == len(words))]
        for position in range(len(words)):
            forms = dict.fromkeys(form for variant in alike for form in variant[position])
            found.append(QueryWord(piece, tuple(forms)))
        found += (QueryWord(piece, (term,)) for term in beside if not HAN.fullmatch(term))
        if len(found) >= QUERY_WORDS:
            break
    found += (QueryWord(part, (term,)) for part in _camel_parts(text) for term in _word_terms(part, own))
    return found[:QUERY_WORDS]


def phrase_terms(phrase: str, languages: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The terms of a phrase in order, stemmed in each of the languages."""
    pieces = _pieces(phrase)
    stemmed = dict.fromkeys([language_of(pieces), *sorted(languages)])
    rows = (tuple(forms[0] for piece in pieces for forms in _terms(piece, language)[0]) for language in stemmed)
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


def text_flags(text: str) -> int:
    """The same for a text that is not tokenized."""
    return _flags(text, _pieces(text))


def name_parts(text: str) -> list[str]:
    """The words of a name, or of a text that may contain one, unstemmed."""
    found = re.findall(rf"{_W}+(?:'s\b)?", simplified(fold(text)))
    return [part.removesuffix("'s") for part in found if len(part) > 1]


def _pieces(text: str) -> list[str]:
    """The words, codes, addresses and pictures of a text, folded."""
    folded = fold(text)
    return (_ASCII_PIECES if folded.isascii() else _PIECES).findall(folded)


def fold(text: str) -> str:
    """Lower case, NFKC, without invisible characters."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold().replace("’", "'")


def language_of(pieces: list[str]) -> str:
    """The language with most stop words and letters of its own among the pieces; English if in doubt."""
    votes = [LANGUAGES_OF[piece] for piece in pieces if piece in LANGUAGES_OF]
    foreign = [piece for piece in pieces if not piece.isascii()]
    votes += [_LETTERS[char] for piece in foreign for char in set(piece) & _LETTERS.keys()]
    if not votes or all(DEFAULT in vote for vote in votes):
        return DEFAULT
    counted = Counter(language for vote in votes for language in vote)
    best = max(counted.values())
    if counted[DEFAULT] == best or best < 2:
        return DEFAULT
    return min(language for language, times in counted.items() if times == best)


def text_language(text: str) -> str:
    """The language of a text."""
    return language_of(_pieces(text))


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


_NAMES = """
    english german french spanish portuguese italian dutch swedish norwegian danish finnish polish czech hungarian
    romanian turkish indonesian
"""
_LATIN = frozenset(_NAMES.split())


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802  PyStemmer's name


@cache
def _stemmer(language: str) -> _Stemmer:
    made: _Stemmer = import_module("Stemmer").Stemmer(language)
    return made


@cache
def _memory(language: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The terms of pieces in order, and the additional ones."""
    return {}


def _camel_parts(text: str) -> list[str]:
    """The parts of words like `parseUserToken`."""
    if not _HAS_CAMEL.search(text):
        return []
    return [part.lower() for word in _CAMEL.findall(text) for part in _CAMEL_PARTS.findall(word) if len(part) > 1]


def _terms(piece: str, language: str) -> Terms:
    """The terms of one piece, and the additional ones."""
    if piece in STOP_WORDS[language]:
        return (), ()
    if piece.isalpha() and piece.isascii():
        return ((stem(piece, language),),), ()
    if _EMOJI.fullmatch(piece):
        return (), (piece,)
    if piece.startswith(("http://", "https://")):
        return _address(piece, language)
    mark = piece[0] if piece[0] in "@#" else ""
    bare = piece[len(mark) :]
    parts = _PARTS.findall(bare)
    if "'" in bare and bare == "'".join(parts):
        return _apostrophe(bare, language), ()
    words, beside = _all(parts, language)
    if mark or _is_code(bare, parts):
        known = {forms[0] for forms in words}
        beside = (*(name[:TERM_CHARS] for name in dict.fromkeys((piece, bare)) if name not in known), *beside)
    return words, beside


def _is_code(bare: str, parts: list[str]) -> bool:
    """Whether a piece is a term as a whole too: a file name, an address, an id; not a hyphenated word."""
    if len(parts) == 1:
        return "_" in bare.strip("_")
    return bare != "-".join(parts) or "_" in bare or any(char.isdigit() for char in bare)


def _all(parts: list[str], language: str) -> Terms:
    found = [_word(small, language) for part in parts for small in part.split("_") if small]
    return tuple(term for words, _ in found for term in words), tuple(term for _, aside in found for term in aside)


def _apostrophe(word: str, language: str) -> tuple[tuple[str, ...], ...]:
    if word in STOP_WORDS[language]:
        return ()
    if language in ("french", "italian"):
        word = word.rpartition("'")[2]
        return _word(word, language)[0]
    return ((stem(word, language).replace("'", ""),),)


def _address(piece: str, language: str) -> Terms:
    whole = piece.rstrip(".,;:!?)]}'\"")
    rest = whole.partition("://")[2]
    host, _, path = rest.partition("/")
    words = [forms for part in _PARTS.findall(path) for forms in _word(part, language)[0]]
    return tuple(words), (whole[:TERM_CHARS], host[:TERM_CHARS], host.removeprefix("www.")[:TERM_CHARS])


def _word_terms(word: str, language: str) -> list[str]:
    return [forms[0] for forms in _word(word, language)[0]]


def _word(word: str, language: str) -> Terms:
    """The terms of one word without punctuation; scripts without spaces become pairs of characters."""
    if word in STOP_WORDS[language] or not word.strip("\u200c\u200d"):
        return (), ()
    if word.isascii():
        return (_ascii_forms(word, language),), ()
    runs = _BETWEEN_SCRIPTS.split(word)
    if len(runs) == 1:
        if word in LANGUAGES_OF and word[0] > "\u024f":
            return (), ()
        if not any(char.isalpha() for char in word):
            return ((word[:TERM_CHARS],),), ()
        bare = _UNSPOKEN.sub("", word)
        return (_hebrew_forms(bare) if _HEBREW.fullmatch(bare) else (stem(word, language),),), ()
    words: list[tuple[str, ...]] = []
    beside: list[str] = []
    for position, run in enumerate(runs):
        if not run:
            continue
        run = simplified(run)
        if position % 2 == 0:
            words += _word(run, language)[0]
        elif len(run) == 1:
            words.append((run,))
        else:
            words += ((run[at : at + 2],) for at in range(len(run) - 1))
            beside += HAN.findall(run)
    return tuple(words), tuple(beside)


def _ascii_forms(word: str, language: str) -> tuple[str, ...]:
    """The stem of a word, or a code as it is; a hash is also known by its first digits."""
    if word.isalpha():
        return (stem(word, language),)
    if _HASH.fullmatch(word):
        return word[:TERM_CHARS], f"{word[:HASH_PREFIX]}\u2026"
    return (word[:TERM_CHARS],)


def _hebrew_forms(word: str) -> tuple[str, ...]:
    """A Hebrew word as it is written, and without one or two prefixes."""
    forms = [word]
    for at in (1, 2):
        if len(word) - at < 3 or word[at - 1] not in _HEBREW_PREFIXES:
            break
        forms.append(word[at:])
    return tuple(forms)
