"""Synonyms and derived words, for queries that do not use the words of their answer.

Synonyms are a text file per language in this folder, `english.txt`: one group of words per line. Derived words come
from the endings by which English forms one word from another.
"""

from functools import cache, lru_cache
from importlib import resources

from belino.search.tokenizer import stem

# English endings, longest first, each with those it may have replaced.
_ENDINGS = (
    ("ization", ("ize", "")),
    ("ational", ("ate", "ation")),
    ("fulness", ("ful", "")),
    ("iveness", ("ive",)),
    ("ations", ("ate", "e", "")),
    ("ation", ("ate", "e", "")),
    ("ition", ("e", "ite", "")),
    ("ement", ("e", "")),
    ("ments", ("", "e")),
    ("ment", ("", "e")),
    ("ances", ("", "e", "ant")),
    ("ance", ("", "e", "ant", "ate")),
    ("ence", ("", "e", "ent")),
    ("ible", ("", "e")),
    ("able", ("", "e", "ate")),
    ("ious", ("y", "ion", "")),
    ("sion", ("d", "de", "se", "s")),
    ("tion", ("t", "te", "")),
    ("ical", ("ic", "y", "")),
    ("ness", ("", "y")),
    ("less", ("",)),
    ("ship", ("",)),
    ("hood", ("",)),
    ("ions", ("", "e")),
    ("ies", ("y", "ic")),
    ("ist", ("", "y", "e")),
    ("ism", ("", "e")),
    ("ity", ("", "e", "ous")),
    ("ive", ("", "e", "ion")),
    ("ion", ("", "e")),
    ("ous", ("", "e", "y")),
    ("ful", ("",)),
    ("ant", ("", "e")),
    ("ent", ("", "e")),
    ("ers", ("", "e")),
    ("ing", ("", "e")),
    ("er", ("", "e")),
    ("or", ("", "e")),
    ("al", ("", "e")),
    ("ic", ("", "y")),
    ("ed", ("", "e")),
    ("ly", ("", "e")),
    ("y", ("", "e")),
    ("s", ("",)),
)
_MORE = (
    "",
    "e",
    "y",
    "er",
    "or",
    "ist",
    "ion",
    "ation",
    "ment",
    "al",
    "ic",
    "ive",
    "ful",
    "ity",
    "ance",
    "ence",
    "ness",
    "ous",
    "ing",
    "able",
    "ant",
)
SHORTEST_ROOT = 4


def synonyms(word: str) -> tuple[str, ...]:
    """Terms of the synonyms of a word, in every language that has a file."""
    return tuple(term for language, groups in _groups().items() for term in groups.get(stem(word, language), ()))


@lru_cache(maxsize=4_096)
def derived(word: str) -> tuple[str, ...]:
    """Terms of English words of the same root, most of which do not exist."""
    own = stem(word, "english")
    roots = dict.fromkeys((word, own))
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_ROOT:
            bare = word[: -len(ending)]
            roots.update(dict.fromkeys(bare + other for other in instead))
    forms: dict[str, None] = {}
    for root in roots:
        short = root[:-1] if root.endswith(("e", "y")) else root
        if len(short) >= SHORTEST_ROOT:
            forms.update(dict.fromkeys(stem(short + more, "english") for more in _MORE))
    forms.pop(own, None)
    return tuple(forms)


@cache
def _groups() -> dict[str, dict[str, tuple[str, ...]]]:
    """The synonyms of each stem, by language."""
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(".txt")]
    return {
        file.name.removesuffix(".txt"): _read_groups(file.read_text(encoding="utf-8"), file.name.removesuffix(".txt"))
        for file in sorted(files, key=lambda file: file.name)
    }


def _read_groups(text: str, language: str) -> dict[str, tuple[str, ...]]:
    groups: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        stems = dict.fromkeys(stem(word, language) for word in line.split())
        for one in stems:
            groups.setdefault(one, {}).update(stems)
    return {one: tuple(other for other in others if other != one) for one, others in groups.items()}
