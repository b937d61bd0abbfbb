"""Search hits: rank a channel's messages for a query, and read the ones of the page from the store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from belino.domain.media import DocumentUnit
from belino.domain.search import (
    Coverage,
    FoundPassage,
    HitKind,
    SearchHit,
    SearchHits,
    SearchIntent,
    SearchQuery,
    ThreadSummary,
)
from belino.domain.stored import StoredMessage
from belino.search.excerpt import excerpt
from belino.search.match_reason import MatchReasons
from belino.search.passages import PassageHit
from belino.search.postings import ChannelPostings
from belino.search.ranking import Ranking, rank, take_turns
from belino.search.tokenizer import query_words
from belino.search.weights import WEIGHTS, Weights
from belino.storage.database import TableRow, Tx, from_micros, maybe_from_micros
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK
from belino.storage.search_passages import ChannelPassages
from belino.storage.search_vectors import ChannelVectors
from belino.storage.thread_reports import LATEST, count_threads, reported

PEOPLE_NAMED = 5
PASSAGE_CHARS = 1_200
"""The most characters of a document's part that are shown with its message: a receipt or a paragraph is whole."""


class ChannelRecords:
    """The messages of one channel, in one snapshot of the store."""

    def __init__(self, tx: Tx, keys: Keys, channel: int) -> None:
        self._tx = tx
        self._keys = keys
        self._channel = channel

    def numbered(self, seqs: Sequence[int]) -> tuple[StoredMessage, ...]:
        """The messages of these seqs, oldest first. A seq cannot reach into another channel."""
        own = [self._channel << SEQ_BITS | seq for seq in seqs if 0 < seq <= SEQ_MASK]
        return by_number(self._tx, self._keys, own) if own else ()

    def texts(self, seqs: Sequence[int]) -> Mapping[int, str]:
        """What messages say, with what they forward, and the captions and names of their files."""
        own = [self._channel << SEQ_BITS | seq for seq in seqs if 0 < seq <= SEQ_MASK]
        texts: dict[int, list[str]] = {}
        for row in self._tx.execute(
            f"SELECT id, text, forward FROM messages WHERE id IN ({marks(own)}) AND deleted IS NULL", tuple(own)
        ):
            forwarded = orjson.loads(row["forward"])["text"] if row["forward"] is not None else ""
            texts[row["id"]] = [row["text"], forwarded]
        for row in self._tx.execute(
            "SELECT b.message, r.caption, r.file_name FROM message_refs b JOIN refs r ON r.seq = b.ref "
            f"WHERE b.role IN ('own', 'forwarded') AND b.message IN ({marks(own)})",
            tuple(own),
        ):
            texts.get(row["message"], []).extend(filter(None, (row["caption"], row["file_name"])))
        return {number & SEQ_MASK: "\n".join(filter(None, parts)) for number, parts in texts.items()}

    def thread_summaries(self, roots: Sequence[str]) -> Mapping[str, ThreadSummary]:
        """The threads of these messages that have replies, and who wrote most of them; deleted replies do not count."""
        asked = tuple(dict.fromkeys(roots))
        rows = self._tx.execute(
            "SELECT a.root, a.replies, a.last, (SELECT m.author_name FROM messages m WHERE m.channel = a.channel "
            "AND m.root = a.root AND m.deleted IS NULL AND m.sent = a.last AND m.author_id = a.author_id "
            "ORDER BY m.id DESC LIMIT 1) AS author_name FROM ("
            "SELECT channel, root, author_id, count(*) AS replies, max(sent) AS last, min(id) AS first FROM messages "
            f"WHERE channel = ? AND root IN ({marks(asked)}) AND deleted IS NULL GROUP BY channel, root, author_id"
            ") a ORDER BY a.replies DESC, a.first",
            (self._channel, *asked),
        ).fetchall()
        by_root: dict[str, list[TableRow]] = {}
        for row in rows:
            by_root.setdefault(row["root"], []).append(row)
        summaries = {
            root: ThreadSummary(
                reply_count=sum(row["replies"] for row in people),
                last_reply_ts=from_micros(max(row["last"] for row in people)),
                participant_names=tuple(row["author_name"] for row in people[:PEOPLE_NAMED]),
            )
            for root, people in by_root.items()
        }
        return summaries | self._reported(asked, summaries)

    def _reported(self, roots: Sequence[str], stored: Mapping[str, ThreadSummary]) -> dict[str, ThreadSummary]:
        """The threads that the platform reported on, of which only some replies may be stored."""
        named = [report["root"] for report in reported(self._tx, self._channel, roots)]
        names = {root: stored[root].participant_names for root in named if root in stored}
        return {
            root: ThreadSummary(
                reply_count=count.replies,
                last_reply_ts=maybe_from_micros(count.last),
                participant_names=tuple(dict.fromkeys((*names.get(root, ()), *count.participants)))[:PEOPLE_NAMED],
            )
            for root, count in count_threads(self._tx, self._channel, named, since=LATEST).items()
        }


class ChannelView(NamedTuple):
    """Everything a search reads of one channel, in one snapshot of the store."""

    postings: ChannelPostings
    passages: ChannelPassages
    records: ChannelRecords
    vectors: ChannelVectors | None = None
    """By which results are re-ranked; None if they are not."""


def find_hits(view: ChannelView, query: SearchQuery, weights: Weights = WEIGHTS) -> SearchHits:
    """Rank and read in one snapshot of the store, so that no message changes between the two."""
    ranked = [_ranked(view, query, intent, weights) for intent in query.intents]
    rankings = [ranking for ranking in ranked if ranking is not None]
    if not rankings:
        return SearchHits()
    order = take_turns([ranking.seqs for ranking in rankings])
    one = rankings[0]
    return SearchHits(
        hits=_page(view, query, rankings, order),
        total=len(order),
        found=sum(seq not in rankings[intent].nearby for seq, intent in order),
        coverage=Coverage(messages_scanned=one.scanned, time_range=(from_micros(one.first), from_micros(one.last))),
        newest=one.newest,
    )


def _ranked(view: ChannelView, query: SearchQuery, intent: SearchIntent, weights: Weights) -> Ranking | None:
    """Near a message, who speaks when says more than similarity."""
    ranking = rank(view.postings, view.passages, query, intent, weights)
    if ranking is None or view.vectors is None or query.near is not None:
        return ranking
    return view.vectors.reranked(ranking, intent, weights.similarity)


def _page(
    view: ChannelView, query: SearchQuery, rankings: Sequence[Ranking], order: Sequence[tuple[int, int]]
) -> tuple[SearchHit, ...]:
    """The hits from `offset` on. The first page ends with recent media, and has recent messages if nothing matches."""
    intent_of = dict(order[query.offset : query.offset + query.limit])
    recent: dict[int, str] = {}
    if not query.offset:
        recent.update((seq, "recent_activity") for seq in rankings[0].recent if not order)
        media = (seq for ranking in rankings for seq in ranking.recent_media)
        recent.update((seq, "recent_media") for seq in media if seq not in intent_of and seq not in recent)
    stored = {message.seq: message for message in view.records.numbered((*intent_of, *recent))}
    messages = [stored[seq] for seq in (*intent_of, *recent) if seq in stored and stored[seq].deleted is None]
    summaries = view.records.thread_summaries([message.root or message.id for message in messages])
    number = view.postings.number
    reasons = [MatchReasons(intent, ranking, number) for intent, ranking in zip(query.intents, rankings, strict=True)]
    hits: list[SearchHit] = []
    for message in messages:
        seq, at = message.seq, intent_of.get(message.seq, 0)
        ranking, intent = rankings[at], query.intents[at]
        nearby = HitKind.NEARBY if seq in ranking.nearby else HitKind.FOUND
        passage = ranking.passages.get(seq) if seq in intent_of else None
        hits.append(
            SearchHit(
                message=message,
                score=ranking.scores.get(seq, 0.0) if seq in intent_of else 0.0,
                reason=recent.get(seq) or reasons[at].of(message),
                kind=HitKind.RECENT if seq in recent else nearby,
                intent=at,
                thread=summaries.get(message.root or message.id),
                passage=None if passage is None else _passage(view.passages, intent.text, passage),
            )
        )
    return tuple(hits)


def _passage(passages: ChannelPassages, text: str, hit: PassageHit) -> FoundPassage:
    """A part of a document with an excerpt."""
    wanted = [term for word in query_words(text, passages.languages) for term in (word.word, *word.terms)]
    return FoundPassage(
        ref=hit.ref,
        unit=DocumentUnit(passages.unit(hit.document)),
        number=hit.number,
        text=excerpt(" ".join(passages.text(hit.document, hit.number).split()), wanted, PASSAGE_CHARS),
    )
