"""People that a query names: by their names here or on the platform, by one edit, or as others address them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from belino.search.marks import address_mark, author_mark, other_name_mark
from belino.search.postings import ChannelPostings
from belino.search.stopwords import LANGUAGES_OF
from belino.search.tail import NO_PLACE
from belino.search.tokenizer import fold, name_parts, stem
from belino.search.weights import Weights

SHORTEST = 4
"""Letters of a name that may be misspelt: with one edit, a shorter one becomes another."""
LISTED = 40
"""The newest messages of people whom the platform lists by a name."""
ADDRESSED = 40
"""The newest messages that address someone by a name, from which it is learned who that is."""


class NamedPeople(NamedTuple):
    """The people whom a query names, or the caller requests."""

    scores: Mapping[int, float]
    """Of their messages."""
    names: frozenset[str]
    """The words of the query that name them, in the form of `name_parts`."""


def named_people(index: ChannelPostings, text: str, wanted: Sequence[str], weights: Weights) -> NamedPeople:
    """The people whom a query names by any of their names, or whom the caller requests."""
    scores: dict[int, float] = {}
    names: set[str] = set()
    for part in dict.fromkeys(name_parts(text)):
        for person in index.called.get(part, ()):
            share = 1 / max(1, len(name_parts(index.names[person])))
            scores[person] = min(weights.author, scores.get(person, 0.0) + weights.author * share)
            names.add(part)
    for name, is_capital in _unknown_names(index, text):
        found = _known_as(index, name, weights, is_name=is_capital)
        scores.update({person: max(scores.get(person, 0.0), weights.author) for person in found})
        if found and _is_name(index, name):
            names.add(name)
    for author in wanted:
        for person in _requested(index, author, weights):
            scores[person] = scores.get(person, 0.0) + weights.wanted
    return NamedPeople(scores, frozenset(names))


def newest_of(index: ChannelPostings, person: int, start: int, end: int, count: int) -> list[int]:
    """The newest messages of a person between two places."""
    return _newest(index, author_mark(index.ids[person]), start, end, count)


def _newest(index: ChannelPostings, mark: str, start: int, end: int, count: int) -> list[int]:
    found: list[int] = []
    for base, places, _ in reversed(list(index.postings(index.number(mark)))):
        last = bisect_left(places, end - base)
        found += (base + place for place in places[max(0, last - count) : last] if base + place >= start)
    return sorted(found)[-count:]


def _unknown_names(index: ChannelPostings, text: str) -> Iterator[tuple[str, bool]]:
    """Words of a query that may be names, and are no part of a name of anyone here; and whether they look like one.

    They begin with a capital letter, or nothing in the query does and no message has them.
    """
    capitals = {part for word in text.split() if word[:1].isupper() for part in name_parts(word)}
    for part in dict.fromkeys(name_parts(text)):
        if len(part) < SHORTEST or part in index.called or part in LANGUAGES_OF:
            continue
        if part in capitals or (not capitals and _is_name(index, part)):
            yield part, part in capitals


def _is_name(index: ChannelPostings, part: str) -> bool:
    is_word = any(index.frequency(index.number(stem(part, language))) for language in index.languages)
    return not is_word or index.frequency(index.number(address_mark(part))) > 0


def _requested(index: ChannelPostings, author: str, weights: Weights) -> Iterator[int]:
    """The people that a caller means by a name or id."""
    asked = fold(author).lstrip("@")
    found = [
        person
        for person, (own, name) in enumerate(zip(index.ids, index.names, strict=True))
        if asked in {fold(own), fold(name), *name_parts(name)}
    ]
    if not found:
        parts = [part for part in name_parts(author) if len(part) >= SHORTEST]
        found = [person for part in parts for person in _known_as(index, part, weights)]
    yield from dict.fromkeys(found)


def _known_as(index: ChannelPostings, name: str, weights: Weights, *, is_name: bool = True) -> list[int]:
    """The people whom a name means that none of them has here: as the platform lists them, misspelt, or addressed."""
    return _listed_as(index, name) or _misspelt(index, name, is_name=is_name) or _addressed_as(index, name, weights)


def _listed_as(index: ChannelPostings, name: str) -> list[int]:
    """The people whom the platform lists by another name."""
    listed = _newest(index, other_name_mark(name), 0, len(index), LISTED)
    return sorted({index.rows[place].author for place in listed})


def _misspelt(index: ChannelPostings, name: str, *, is_name: bool) -> list[int]:
    """The people one of whose names is one edit away: a letter more, less or other, or two exchanged.

    A short word that is not written as a name is another word, as is one that begins otherwise: "mill" is not Will.
    """
    near = [known for known in index.called if abs(len(known) - len(name)) < 2 and _is_one_edit(known, name)]
    if not is_name:
        near = [known for known in near if len(name) > SHORTEST and known[0] == name[0]]
    return sorted({person for known in near if len(known) >= SHORTEST for person in index.called[known]})


def _is_one_edit(one: str, other: str) -> bool:
    if len(one) > len(other):
        one, other = other, one
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    rest, others = one[start:], other[start:]
    return rest[1:] == others[1:] or (rest[1::-1] == others[:2] and rest[2:] == others[2:])


def _addressed_as(index: ChannelPostings, name: str, weights: Weights) -> list[int]:
    """The person who answers to a name: most messages that address it are followed, or led, by one of theirs."""
    votes = Counter(_answering(index, place) for place in _newest(index, address_mark(name), 0, len(index), ADDRESSED))
    votes.pop(None, None)
    best = votes.most_common(1)
    if not best or best[0][1] < max(weights.alias_votes, weights.alias_share * votes.total()):
        return []
    return [person for person, _ in best if person is not None]


def _answering(index: ChannelPostings, place: int) -> int | None:
    """Who speaks next in the thread or session of a message, other than its author; else who spoke before."""
    rows = index.rows
    row = rows[place]
    for link in (row.after, row.before):
        if link != NO_PLACE and rows[link].author != row.author:
            return rows[link].author
    return None
