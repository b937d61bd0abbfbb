"""Ranking of a channel's messages: a pure function of the postings, the query and the weights."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from belino.domain.search import HitKind, SearchIntent, SearchQuery
from belino.search.dates import micros
from belino.search.passages import PassageHit, Passages, best_passages
from belino.search.people import named_people
from belino.search.postings import ChannelPostings
from belino.search.query import MatchedWord, SearchRange, weighted_words
from belino.search.scoring import HIDDEN, Scoring, largest
from belino.search.segment import MessageFlag
from belino.search.weights import WEIGHTS, Weights

SHOWN = 50
"""Results whose matched words are returned: no page is longer."""
FEW = 8
"""With fewer results than this, the latest media are added."""
RECENT_SHOWN = 3
"""Newest messages that are returned where an intent names something and nothing matches."""
MEDIA_SHOWN = 3
LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Seqs that match one intent, best first, and what was searched."""

    seqs: tuple[int, ...]
    """Found and nearby messages. Of each thread the best comes first; its others follow all other results."""
    scores: Mapping[int, float]
    """Of the first seqs; those that follow were found by words and not scored in full."""
    scanned: int
    first: int
    last: int
    """When the oldest and the newest message that was searched were sent, in microseconds."""
    newest: int
    """The newest seq that was searched."""
    nearby: frozenset[int]
    """Seqs that match only by what is around them."""
    recent: tuple[int, ...]
    """The newest seqs, newest first, if nothing matches."""
    recent_media: tuple[int, ...]
    matched: Mapping[int, tuple[str, ...]]
    """The query's words in the first seqs, captions included, rarest first."""
    words: tuple[MatchedWord, ...]
    """The query's words that are in the channel, rarest first."""
    related: tuple[MatchedWord, ...]
    """Those of which related words are."""
    people: frozenset[str]
    """The ids of the authors whom the query names, or the caller requests."""
    naming_days: frozenset[int]
    """Seqs that name a day that the query names."""
    passages: Mapping[int, PassageHit]
    """The best part of a document by the seq of its message."""
    found_by_passage: frozenset[int]
    """Seqs whose document scores higher than their own words."""
    raised: frozenset[int] = frozenset()
    """Seqs that come earlier because they are similar to the intent."""


def rank(
    index: ChannelPostings, documents: Passages, query: SearchQuery, intent: SearchIntent, weights: Weights = WEIGHTS
) -> Ranking | None:
    """The messages that match one intent of a query best; None if there are no messages at all."""
    visible = _visible(index, query)
    if not visible.scanned:
        return None
    people = named_people(index, intent.text, query.authors, weights)
    words = weighted_words(index, intent, people.names, visible, weights)
    passages = best_passages(index, documents, intent, words, visible, weights)
    scoring = Scoring(index, query, intent, weights, people.scores, words, visible, passages)
    scores = scoring.scores()
    kinds = {place: scoring.kind(place) for place in scores}
    scored = [place for place in largest(scores, len(scores)) if kinds[place] is not HitKind.RECENT]
    scores |= _one_per_thread(index, scores, scored, weights.same_thread)
    scored = largest({place: scores[place] for place in scored}, len(scored))
    # Later pages show the other matches too; the first page already counts them.
    best = scored + [place for place in scoring.best_found if place not in scores and scoring.is_visible(place)]
    seqs = dict(zip(best, index.seqs(best), strict=True))
    return Ranking(
        seqs=tuple(seqs.values()),
        scores={seqs[place]: scores[place] for place in scored},
        scanned=visible.scanned,
        first=visible.first,
        last=visible.last,
        newest=index.seq(visible.end - 1),
        nearby=frozenset(seqs[place] for place in scored if kinds[place] is HitKind.NEARBY),
        recent=() if best else _newest_with(index, visible, RECENT_SHOWN if words else query.limit, 0, HIDDEN),
        recent_media=_newest_with(index, visible, MEDIA_SHOWN, MessageFlag.MEDIA, MessageFlag.GONE)
        if intent.of_media or len(best) < FEW
        else (),
        matched=scoring.matched({place: seqs[place] for place in best[:SHOWN]}),
        words=tuple(word.match for word in sorted(words, key=lambda word: -word.worth) if word.exact),
        related=tuple(word.match for word in words if word.related),
        people=frozenset(index.ids[person] for person in scoring.people),
        naming_days=frozenset(map(index.seq, scoring.days)),
        passages={index.seq(place): hit for place, hit in passages.hits.items()},
        found_by_passage=frozenset(
            index.seq(place) for place in passages.hits if scoring.read(place) > scoring.own(place)
        ),
    )


def take_turns(rankings: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The seqs of several rankings, each once, and which ranking it is from: the best of each, then the second best."""
    turns: dict[int, int] = {}
    for row in zip_longest(*rankings):
        for at, seq in enumerate(row):
            if seq is not None:
                turns.setdefault(seq, at)
    return list(turns.items())


def _visible(index: ChannelPostings, query: SearchQuery) -> SearchRange:
    """The places that may be found. They are in order of arrival, which is nearly always that of the times."""
    end = len(index) if query.until is None else index.place_after(query.until)
    start, since = 0, None if query.since is None else micros(query.since)
    if since is not None and index.in_time:
        start, since = min(index.place_since(since), end), None
    return SearchRange(start, end, since, *index.living(start, end, since))


def _newest_with(index: ChannelPostings, visible: SearchRange, count: int, has: int, lacks: int) -> tuple[int, ...]:
    """The newest seqs that have and lack flags, newest first; not many messages are looked at."""
    start = max(visible.start, visible.end - LOOKED_AT)
    found = (place for place in index.with_flags(start, visible.end, has, lacks) if visible.has(index, place))
    return tuple(map(index.seq, islice(found, count)))


def _one_per_thread(
    index: ChannelPostings, scores: Mapping[int, float], places: Iterable[int], share: float
) -> dict[int, float]:
    """Scores, highest first, where only the best message of each thread keeps its own, and the others a share of it."""
    seen: set[int] = set()
    kept: dict[int, float] = {}
    for place in places:
        thread = index.thread(place)
        kept[place] = scores[place] * (share if thread in seen else 1.0)
        if thread is not None:
            seen.add(thread)
    return kept if not seen else {place: kept[place] for place in largest(kept, len(kept))}
