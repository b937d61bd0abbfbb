"""Search hits: rank a channel's messages for a query, and read the ones of the page from the store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from belino.domain.media import DocumentUnit
from belino.domain.search import Coverage, FoundPassage, SearchHit, SearchHits, SearchQuery, ThreadSummary
from belino.domain.stored import StoredMessage
from belino.search.excerpt import excerpt
from belino.search.match_reason import match_reason
from belino.search.passages import PassageHit
from belino.search.postings import ChannelPostings
from belino.search.ranking import Ranking, rank
from belino.search.tokenizer import query_words
from belino.storage.database import TableRow, Tx, from_micros
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK
from belino.storage.search_passages import ChannelPassages

PEOPLE_NAMED = 5
PASSAGE_CHARS = 400
"""Characters of a document's part that are shown with its message."""


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
        return {
            root: ThreadSummary(
                reply_count=sum(row["replies"] for row in people),
                last_reply_ts=from_micros(max(row["last"] for row in people)),
                participant_names=tuple(row["author_name"] for row in people[:PEOPLE_NAMED]),
            )
            for root, people in by_root.items()
        }


class ChannelView(NamedTuple):
    """Everything a search reads of one channel, in one snapshot of the store."""

    postings: ChannelPostings
    passages: ChannelPassages
    records: ChannelRecords


def find_hits(view: ChannelView, query: SearchQuery) -> SearchHits:
    """Rank and read in one snapshot of the store, so that no message changes between the two."""
    ranking = rank(view.postings, view.passages, query)
    if ranking is None:
        return SearchHits()
    return SearchHits(
        hits=_page(view, query, ranking),
        total=len(ranking.seqs),
        coverage=Coverage(
            messages_scanned=ranking.scanned, time_range=(from_micros(ranking.first), from_micros(ranking.last))
        ),
        newest=ranking.newest,
    )


def _page(view: ChannelView, query: SearchQuery, ranking: Ranking) -> tuple[SearchHit, ...]:
    """The hits from `offset` on, and on the first page the recent media."""
    end = query.offset + query.limit
    seqs = ranking.seqs[query.offset : end]
    scores = dict(zip(seqs, ranking.scores[query.offset : end], strict=False))
    media = () if query.offset else tuple(seq for seq in ranking.recent_media if seq not in seqs)
    stored = {message.seq: message for message in view.records.numbered((*seqs, *media))}
    messages = [stored[seq] for seq in (*seqs, *media) if seq in stored and stored[seq].deleted is None]
    summaries = view.records.thread_summaries([message.root or message.id for message in messages])
    passages = _passages(view, query, {seq: ranking.passages[seq] for seq in seqs if seq in ranking.passages})
    return tuple(
        SearchHit(
            message=message,
            score=scores.get(message.seq, 0.0),
            reason="recent_media" if message.seq in media else match_reason(message, query, ranking),
            thread=summaries.get(message.root or message.id),
            passage=passages.get(message.seq),
        )
        for message in messages
    )


def _passages(view: ChannelView, query: SearchQuery, hits: Mapping[int, PassageHit]) -> Mapping[int, FoundPassage]:
    """The parts of documents with their excerpts, by seq."""
    if not hits:
        return {}
    passages = view.passages
    wanted = [term for word in query_words(query.text, passages.languages) for term in (word.word, *word.terms)]
    return {
        seq: FoundPassage(
            ref=hit.ref,
            unit=DocumentUnit(passages.unit(hit.document)),
            number=hit.number,
            text=excerpt(" ".join(passages.text(hit.document, hit.number).split()), wanted, PASSAGE_CHARS),
        )
        for seq, hit in hits.items()
    }
