"""Query: an intent parsed into a value, and weighted words, people and flags for one channel's postings."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from math import log
from typing import NamedTuple

from belino.domain.search import SearchIntent
from belino.search.dates import asked_days, date_words, span
from belino.search.expansion import compounds, expand, part_languages
from belino.search.postings import ChannelPostings
from belino.search.segment import MessageFlag
from belino.search.synonyms import derived, synonyms
from belino.search.tokenizer import QueryWord, fold, phrase_terms, query_words, stem, text_language
from belino.search.weights import Weights

# English words that frame a question and are rarely in its answer.
_FRAMING = """
    activities activity based became become both came certain come current currently different do done during enjoy
    event events example experience experienced favorite feel feels felt find first found gave get getting give go
    goes going gone got happen happened kind kinds last like liked likes long look looking made main make making
    many name names new often particular plan planned planning reason receive received recent recently related see
    seen share shared sort specific start started take taken thing things time times took tried try two type types
    use used using various visit want wanted wants way ways went
"""
# English words that report what people say: they ask for the conversation, not for the words in it.
_SPEAKING = """
    according agree agreed agreement agrees ask asked asks attitude attitudes conclude concluded conclusion consider
    considered conversation decide decided decision decisions describe described describes disagree discuss
    discussed discusses discussing discussion discussions explain explained explaining explains mention mentioned
    mentioning mentions opinion opinions present presentation presented presenting propose proposed recommend
    recommended regarding replied reply respond responded response said say saying says suggest suggested summarise
    summarize summary talk talked talking talks tell telling tells think thinks thought told view views
"""
_VAGUE = frozenset(_FRAMING.split())
_REPORTING = frozenset(_SPEAKING.split())
_ASKING = re.compile(
    r"\?\s*$|^\W*(what|who|whose|whom|which|when|where|why|how|did|do|does|is|are|was|were|has|have|had|can|could|"
    r"would|should|will|summari[sz]e|describe|explain|list|find|show|tell|name|give)\b",
    re.IGNORECASE,
)
_SPEAKERS = re.compile(
    r"\b(?:the|this|that|our|their|last|previous)\s+"
    r"((?:group|team|meeting|committee|chat|channel|people|participant|member)s?)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"^\W*(when|wann|quand|cuándo|quando|когда)\b|\bhow (long|recently)\b|什么时候|什麼時候|いつ|متى", re.IGNORECASE
)
_COUNT = re.compile(
    r"\bhow (many|much|often|old)\b|\b(wie ?viele?|combien|cuánt\w+|quant[oi]|сколько)\b|多少|几个|いくつ|كم",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"^\W*(who|which|whose|wer|qui|quién|chi|кто)\b|\b(names?|called|nicknames?)\b|谁|誰|من هو", re.IGNORECASE
)
_QUOTED = re.compile(r'"([^"]{2,200})"|“([^”]{2,200})”|„([^“”]{2,200})[“”]|«([^»]{2,200})»|「([^」]{2,200})」')
_OF_MEDIA = re.compile(
    r"\b(photos?|pictures?|pics?|images?|screenshots?|videos?|files?|documents?|pdfs?|voice|audio|attachments?|recordings?|"
    r"fotos?|bild(er)?|datei(en)?|dokumente?|fichiers?|imágenes|imagen|archivos?|фото|картинк\w+|файлы?|видео)\b|图片|照片|文件|写真|画像",
    re.IGNORECASE,
)


class WeightedPostings(NamedTuple):
    """A posting list of a term, with the weight of the term."""

    worth: float
    """Its idf, times the share that counts."""
    base: int
    places: Sequence[int]
    impacts: Sequence[int]


class MatchedWord(NamedTuple):
    """A word of the query, and the keyed hashes of the terms that show that a message contains it."""

    word: str
    terms: frozenset[int]
    related: frozenset[int] = frozenset()
    """Those of its synonyms, derived words and compounds."""


@dataclass(frozen=True, slots=True)
class WeightedWord:
    """A word of the query with its weight, and where it, its synonyms and derived words are."""

    match: MatchedWord
    worth: float
    exact: Sequence[WeightedPostings]
    related: Sequence[WeightedPostings]
    share: float = 1.0
    """The share of its idf that counts."""

    @property
    def is_specific(self) -> bool:
        """Whether it names what is searched for: it neither frames the question nor names someone here, or a day."""
        return self.share == 1.0

    @property
    def times(self) -> int:
        return sum(len(postings.places) for postings in self.exact)


class SearchRange(NamedTuple):
    """The places that may be found: from `start` up to `end`, and not sent before `since` if that is given."""

    start: int
    end: int
    since: int | None
    scanned: int
    first: int
    last: int

    def has(self, index: ChannelPostings, place: int) -> bool:
        return self.start <= place < self.end and (self.since is None or index.rows[place].sent >= self.since)


def parse_intent(text: str, *, now: datetime, zone: tzinfo = UTC) -> SearchIntent:
    """An intent: its words, and the phrases and dates that it names, in the time zone of who asks."""
    days = asked_days(text, now.astimezone(zone).date(), text_language(text))
    return SearchIntent(
        text=text,
        phrases=_quoted_phrases(text),
        days=tuple((found.first, found.end) for found in days),
        spans=tuple(span(found, zone) for found in days),
        of_media=_OF_MEDIA.search(text) is not None,
    )


def _quoted_phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(next(filter(None, found)).split()) for found in _QUOTED.findall(text))


def weighted_words(
    index: ChannelPostings, intent: SearchIntent, names: Collection[str], visible: SearchRange, weights: Weights
) -> list[WeightedWord]:
    """The words of a query, each once; `names` are those that name an author."""
    roles = _WordRoles(intent, names, weights)
    language = text_language(intent.text)
    words: dict[tuple[str, ...], WeightedWord] = {}
    for word in query_words(intent.text, index.languages):
        if word.terms not in words:
            for one in _weighted(index, word, language, roles.share(word), visible, weights):
                words[word.terms if one.match.word == word.word else (one.match.word,)] = one
    return list(words.values())


class _WordRoles:
    """What the words of a query are there for: to name what is searched for, its author or its day, or to frame the
    question about it."""

    def __init__(self, intent: SearchIntent, names: Collection[str], weights: Weights) -> None:
        self._names = names
        self._dates = date_words(intent.text, intent.days)
        self._weights = weights
        self._asks = _ASKING.search(intent.text) is not None
        self._speakers = {fold(speakers) for speakers in _SPEAKERS.findall(intent.text)}

    def share(self, word: QueryWord) -> float:
        """The share of a word's idf that counts. Only a question is framed; a title names its topic."""
        if word.word.removesuffix("'s").lstrip("@") in self._names or word.word in self._dates:
            return self._weights.name
        if not self._asks:
            return 1.0
        if word.word in _REPORTING or word.word.removesuffix("'s") in self._speakers:
            return self._weights.reporting
        return self._weights.vague if word.word in _VAGUE else 1.0


def _weighted(
    index: ChannelPostings, word: QueryWord, language: str, share: float, visible: SearchRange, weights: Weights
) -> Iterator[WeightedWord]:
    """A word with its postings; of a compound that no message has, the words that it is made of."""
    own = [index.number(term) for term in word.terms]
    exact = _postings(index, own, share, visible)
    times = sum(len(postings.places) for postings in exact)
    if not exact and share == 1.0:
        expansion = expand(index, word, language, weights)
        own, exact = [*own, *expansion.terms], list(_substitutes(index, expansion.terms, share, visible))
        for part in expansion.parts:
            yield from _part(index, part, language, share * weights.part, visible)
    related: list[WeightedPostings] = []
    seen = set(own)
    if times < weights.rare and share > weights.name:
        for numbers, worth in _relatives(index, word, language, times, weights):
            more = [number for number in numbers if number not in seen]
            seen.update(more)
            related += _postings(index, more, share * worth, visible)
    worth = max((postings.worth for postings in exact), default=0.0)
    match = MatchedWord(word.word, frozenset(own), frozenset(seen.difference(own)))
    yield WeightedWord(match, worth, exact, related, share)


def _substitutes(
    index: ChannelPostings, terms: Mapping[int, float], share: float, visible: SearchRange
) -> Iterator[WeightedPostings]:
    """The postings of terms that stand for a word."""
    for worth in sorted(set(terms.values()), reverse=True):
        yield from _postings(index, [term for term in terms if terms[term] == worth], share * worth, visible)


def _part(
    index: ChannelPostings, part: str, language: str, share: float, visible: SearchRange
) -> Iterator[WeightedWord]:
    """A part of a compound as a word of its own."""
    numbers = [
        index.number(term) for term in dict.fromkeys(stem(part, each) for each in part_languages(index, language))
    ]
    exact = _postings(index, numbers, share, visible)
    if exact:
        yield WeightedWord(MatchedWord(part, frozenset(numbers)), exact[0].worth, exact, ())


def _relatives(
    index: ChannelPostings, word: QueryWord, language: str, times: int, weights: Weights
) -> Iterator[tuple[Iterable[int], float]]:
    """The terms of derived words, synonyms and compounds, and the weight of each kind."""
    if word.word.isascii() and word.word.isalpha():
        yield map(index.number, derived(word.word)), weights.derived
        yield map(index.number, synonyms(word.word)), weights.synonym
    if times:
        yield compounds(index, word, language), weights.compound


def _postings(
    index: ChannelPostings, numbers: Iterable[int], share: float, visible: SearchRange
) -> list[WeightedPostings]:
    """The posting lists of terms, cut to what may be found and weighted by how rare the terms are together."""
    found = [lists for number in numbers for lists in index.postings(number)]
    if visible.start or visible.end < len(index):
        found = [_cut(*lists, visible) for lists in found]
    times = sum(len(places) for _, places, _ in found)
    size = visible.end - visible.start
    worth = share * log(1 + (max(0, size - times) + 0.5) / (times + 0.5))
    return [WeightedPostings(worth, *lists) for lists in found if lists[1]]


def _cut(
    base: int, places: Sequence[int], impacts: Sequence[int], visible: SearchRange
) -> tuple[int, Sequence[int], Sequence[int]]:
    start, end = bisect_left(places, visible.start - base), bisect_left(places, visible.end - base)
    return base, places[start:end], impacts[start:end]


def phrase_numbers(index: ChannelPostings, phrase: str) -> list[tuple[int, ...]]:
    """The sequences of terms that a phrase may be indexed as."""
    return [tuple(map(index.number, terms)) for terms in phrase_terms(phrase, index.languages)]


def wanted_flags(text: str, weights: Weights) -> list[tuple[int, float]]:
    """The flags of messages that contain what the query asks for, with the score of each."""
    wanted = [(MessageFlag.NAME, weights.informative)]
    if _WHEN.search(text):
        wanted.append((MessageFlag.TIME, weights.time_asked))
    if _COUNT.search(text):
        wanted.append((MessageFlag.NUMBER, weights.number_asked))
    if _NAME.search(text):
        wanted.append((MessageFlag.NAME, weights.name_asked))
    return wanted
