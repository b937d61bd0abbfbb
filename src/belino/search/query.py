"""Query: an intent parsed into a value, then into weighted words, people and flags for one channel's postings."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log
from typing import NamedTuple

from belino.domain.search import SearchQuery
from belino.search.dates import named_spans
from belino.search.postings import ChannelPostings
from belino.search.segment import MessageFlag
from belino.search.synonyms import derived, synonyms
from belino.search.tokenizer import QueryWord, fold, name_parts, phrase_terms, query_words
from belino.search.weights import Weights

# English words that frame a question and are rarely in its answer.
_FRAMING = """
    according activities activity based became become both came certain come consider considered current currently
    decide decided describe described different discuss discussed discussion do done during enjoy event events example
    experience experienced favorite feel feels felt find first found gave get getting give go goes going gone got
    happen happened kind kinds last like liked likes long look looking made main make making many mention mentioned
    name names new often particular plan planned planning reason receive received recent recently regarding related
    said say says see seen share shared sort specific start started take taken talk talked tell think thing things
    thought time times took told tried try two type types use used using various visit want wanted wants way ways went
"""
_VAGUE = frozenset(_FRAMING.split())
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
    """A word of the query, and the terms that show that a message contains it."""

    word: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class WeightedWord:
    """A word of the query with its weight, and where it, its synonyms and derived words are."""

    match: MatchedWord
    worth: float
    exact: Sequence[WeightedPostings]
    related: Sequence[WeightedPostings]

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
        return self.start <= place < self.end and (self.since is None or index.sents[place] >= self.since)


def parse_query(
    text: str,
    *,
    now: datetime,
    since: datetime | None = None,
    authors: Sequence[str] = (),
    until: int | None = None,
    offset: int = 0,
    limit: int = 8,
) -> SearchQuery:
    """The query for an intent: its words, and the phrases and dates that it names."""
    return SearchQuery(
        text=text,
        phrases=_quoted_phrases(text),
        spans=named_spans(text, now),
        of_media=_OF_MEDIA.search(text) is not None,
        since=since,
        authors=tuple(authors),
        until=until,
        offset=offset,
        limit=limit,
    )


def _quoted_phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(next(filter(None, found)).split()) for found in _QUOTED.findall(text))


def weighted_words(index: ChannelPostings, text: str, visible: SearchRange, weights: Weights) -> list[WeightedWord]:
    """The words of a query, each once."""
    words: dict[tuple[str, ...], WeightedWord] = {}
    for word in query_words(text, index.languages):
        if word.terms not in words:
            words[word.terms] = _weighted(index, word, visible, weights)
    return list(words.values())


def share_of(index: ChannelPostings, word: QueryWord, weights: Weights) -> float:
    """The share of a word's idf that counts, by its role in the query."""
    return weights.name if _is_name(index, word) else weights.vague if word.word in _VAGUE else 1.0


def _is_name(index: ChannelPostings, word: QueryWord) -> bool:
    return word.word.removesuffix("'s").lstrip("@") in index.called


def _weighted(index: ChannelPostings, word: QueryWord, visible: SearchRange, weights: Weights) -> WeightedWord:
    share = share_of(index, word, weights)
    own = [index.number(term) for term in word.terms]
    exact = _postings(index, own, share, visible)
    related: list[WeightedPostings] = []
    times = sum(len(postings.places) for postings in exact)
    if times < weights.rare and not _is_name(index, word) and word.word.isascii() and word.word.isalpha():
        seen = set(own)
        for terms, worth in ((derived(word.word), weights.derived), (synonyms(word.word), weights.synonym)):
            numbers = [number for number in map(index.number, terms) if number not in seen]
            seen.update(numbers)
            related += _postings(index, numbers, share * worth, visible)
    worth = max((postings.worth for postings in exact), default=0.0)
    return WeightedWord(MatchedWord(word.word, frozenset(word.terms)), worth, exact, related)


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


def named_people(index: ChannelPostings, text: str, wanted: Sequence[str], weights: Weights) -> Mapping[int, float]:
    """The score of a message whose author is named in the query, or requested by the caller."""
    people: dict[int, float] = {}
    for part in dict.fromkeys(name_parts(text)):
        for place in index.called.get(part, ()):
            share = 1 / max(1, len(name_parts(index.names[place])))
            people[place] = min(weights.author, people.get(place, 0.0) + weights.author * share)
    asked = {fold(author).lstrip("@") for author in wanted}
    for place, (author, name) in enumerate(zip(index.ids, index.names, strict=True)) if asked else ():
        if asked & {fold(author), fold(name), *name_parts(name)}:
            people[place] = people.get(place, 0.0) + weights.wanted
    return people


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
