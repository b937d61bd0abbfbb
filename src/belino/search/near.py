"""Near a message: the evidence for what it answers, and for what is said around it, whatever words it shares."""

from math import log

from belino.search.postings import ChannelPostings
from belino.search.query import SearchRange
from belino.search.segment import MessageFlag
from belino.search.tokenizer import name_parts, stem
from belino.search.weights import Weights

TERMS = 24
"""Terms of the message that are looked for around it."""


def nearness(index: ChannelPostings, anchor: int, visible: SearchRange, weights: Weights) -> dict[int, float]:
    """The score of the messages around one: how near they are, and whether its author talks with theirs."""
    first = max(visible.start, anchor - weights.near_before)
    places = [place for place in range(first, min(visible.end, anchor + weights.near_after)) if place != anchor]
    rows, own = index.rows, index.rows[anchor]
    said = set(index.terms(anchor))
    authors = {rows[place].author for place in places}
    addressed = {author for author in authors if said & _names(index, author)}
    answering = index.matches(places, [_names(index, own.author)])
    alike = _alike(index, places, said)
    scores: dict[int, float] = {}
    for place in places:
        row = rows[place]
        if row.flags & MessageFlag.GONE:
            continue
        away = anchor - place if place < anchor else 2 * (place - anchor)
        score = weights.near * weights.near_half / (weights.near_half + away) + alike.get(place, 0.0)
        if row.author in addressed:
            score += weights.addressed
        if place in answering and row.author != own.author:
            score += weights.addresses
        if row.author == own.author:
            score += weights.near_own
        if row.group == own.group:
            score += weights.near_thread
        scores[place] = score
    return scores


def _names(index: ChannelPostings, author: int) -> set[int]:
    """The terms by which a person may be addressed."""
    return {index.number(stem(part, "english")) for part in name_parts(index.names[author])}


def _alike(index: ChannelPostings, places: list[int], said: set[int]) -> dict[int, float]:
    """The weight of the words that messages share with the one they are near to, rarer words first."""
    size = len(index)
    times = {term: index.frequency(term) for term in sorted(said)}
    rarest = sorted(times, key=lambda term: (times[term], term))[:TERMS]
    worths = [log(1 + (size - times[term] + 0.5) / (times[term] + 0.5)) for term in rarest]
    masks = index.matches(places, [[term] for term in rarest])
    return {
        place: sum(worth for at, worth in enumerate(worths) if mask >> at & 1) for place, (mask, _) in masks.items()
    }
