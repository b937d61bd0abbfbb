"""Language of a sender: what the platform says, or what their recent words look like."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from belino.search.stopwords import LANGUAGES_OF

LETTERS_AT_LEAST = 12
"""A text with fewer letters tells no language."""
CHARS_AT_MOST = 4_000
STOP_WORDS_AT_LEAST = 3

_TAGS = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "portuguese": "pt", "italian": "it",
    "dutch": "nl", "swedish": "sv", "norwegian": "no", "polish": "pl", "turkish": "tr", "russian": "ru",
    "arabic": "ar", "hindi": "hi", "greek": "el",
}  # fmt: skip
# The first word of a letter's Unicode name; the language is the one that most people write with it.
_SCRIPTS = {
    "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar", "HEBREW": "he", "DEVANAGARI": "hi", "HANGUL": "ko",
    "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "THAI": "th", "ARMENIAN": "hy", "GEORGIAN": "ka",
    "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_ADDRESS = re.compile(r"https?://\S+|[@#/]\w+|`[^`]*`")


def tag_of(language: str | None) -> str | None:
    """The language of a tag without its region: `de` of `de-AT`; None if it is no tag."""
    plain = (language or "").strip().lower().replace("_", "-").partition("-")[0]
    return plain if re.fullmatch(r"[a-z]{2,3}", plain) else None


def guess_language(texts: Sequence[str]) -> str | None:
    """The language that these texts are written in; None in doubt."""
    text = _ADDRESS.sub(" ", " ".join(texts)[:CHARS_AT_MOST]).lower()
    scripts = Counter(_script(letter) for letter in text if letter.isalpha())
    if scripts.total() < LETTERS_AT_LEAST and not set(scripts) - {"LATIN"}:
        return None
    script, times = scripts.most_common(1)[0] if scripts else ("", 0)
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0 and script in ("CJK", "HIRAGANA", "KATAKANA"):
        return "ja"
    if times * 2 <= scripts.total():
        return None
    return _by_words(text) if script == "LATIN" else _SCRIPTS.get(script)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _by_words(text: str) -> str | None:
    votes = Counter(language for word in _WORD.findall(text) for language in LANGUAGES_OF.get(word, ()))
    if not votes:
        return None
    first, most = votes.most_common(1)[0]
    # Related languages share their short words; what has to be certain is whether it is English.
    rivals = max((times for language, times in votes.items() if language != first), default=0)
    rival = rivals if first == "english" else votes["english"]
    return _TAGS[first] if most >= STOP_WORDS_AT_LEAST and most > 1.25 * rival else None
