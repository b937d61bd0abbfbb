"""Find what was said: an intent in words, answered from one channel's stored messages, without a model."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from belino.context.dates import spans_of
from belino.context.excerpt import excerpt
from belino.context.ranking import SHOWN, Question, Ranking, rank
from belino.context.signals import phrases_of, signal_of, speaks_of_media
from belino.domain.concordance import Concordance
from belino.domain.context import Coverage, Found, FoundPassage, SearchPage, ThreadSummary
from belino.domain.document import Unit
from belino.domain.errors import ToolError
from belino.domain.message import ConversationKey
from belino.domain.outcome import Standing
from belino.domain.store import Archive
from belino.domain.stored import StoredMessage
from belino.storage.timestamps import from_micros, to_micros
from belino.storage.words import ask

INTENT_CHARS = 4_000
"""More of an intent than this is not read."""
RESULTS_AT_MOST = SHOWN
PASSAGE_CHARS = 400
"""What is told of a document's part that was found; the rest is for `fetch_media`."""
_NOTHING = SearchPage(results=(), coverage=Coverage(messages_scanned=0, time_range=None))


class _Bookmark(NamedTuple):
    """Where the next page begins, in the order of a question asked when `until` was the newest message."""

    offset: int
    until: int


async def search(
    archive: Archive,
    channel: ConversationKey,
    intent: str,
    *,
    now: datetime,
    since: datetime | None = None,
    authors: Sequence[str] = (),
    limit: int = 8,
    cursor: str | None = None,
) -> SearchPage:
    """The messages of a channel that serve an intent best, each with the reason it was chosen."""
    intent = intent[:INTENT_CHARS].strip()
    if not intent:
        raise ToolError("the intent is empty; say in a few words what you are looking for")
    limit = max(1, min(limit, RESULTS_AT_MOST))
    bound_to = _digest(channel, intent, since, authors)
    bookmark = None if cursor is None else _read_cursor(cursor, bound_to)
    question = Question(
        text=intent,
        since=None if since is None else to_micros(since),
        authors=tuple(authors),
        spans=tuple((to_micros(first), to_micros(last)) for first, last in spans_of(intent, now)),
        phrases=phrases_of(intent),
        of_media=speaks_of_media(intent),
        until=None if bookmark is None else bookmark.until,
    )
    offset = 0 if bookmark is None else bookmark.offset
    page = await archive.consult(channel, lambda index: _page(index, question, bound_to, offset, limit))
    return _NOTHING if page is None else page


def _page(index: Concordance, question: Question, bound_to: bytes, offset: int, limit: int) -> SearchPage | None:
    """Ranked and read from one view of the store, so that no message is gone or other between the two."""
    ranking = rank(index, question)
    if ranking is None:
        return None
    total, after = len(ranking.seqs), offset + limit
    return SearchPage(
        results=_load(index, question, ranking, offset, limit),
        coverage=Coverage(
            messages_scanned=ranking.scanned, time_range=(from_micros(ranking.first), from_micros(ranking.last))
        ),
        next_cursor=_cursor(_Bookmark(after, ranking.newest), bound_to) if after < total else None,
        total=total,
    )


def _load(index: Concordance, question: Question, ranking: Ranking, offset: int, limit: int) -> tuple[Found, ...]:
    seqs = ranking.seqs[offset : offset + limit]
    media = () if offset else tuple(seq for seq in ranking.recent_media if seq not in seqs)
    stored = {message.seq: message for message in index.records.numbered((*seqs, *media))}
    messages = [stored[seq] for seq in (*seqs, *media) if seq in stored and stored[seq].deleted is None]
    summaries = index.records.thread_summaries([message.root or message.id for message in messages])
    passages = _passages(index, question, ranking, seqs)
    return tuple(
        _found(
            message,
            summaries,
            "recent_media" if message.seq in media else signal_of(message, question, ranking),
            passages.get(message.seq),
        )
        for message in messages
    )


def _passages(
    index: Concordance, question: Question, ranking: Ranking, seqs: Sequence[int]
) -> Mapping[int, FoundPassage]:
    """What documents say to these results."""
    hits = {seq: ranking.passages[seq] for seq in seqs if seq in ranking.passages}
    if not hits:
        return {}
    wanted = [term for asked in ask(question.text, index.passages.languages) for term in (asked.word, *asked.terms)]
    return {
        seq: FoundPassage(
            ref=hit.ref,
            unit=Unit(index.passages.unit(hit.document)),
            number=hit.number,
            text=excerpt(" ".join(index.passages.text(hit.document, hit.number).split()), wanted, PASSAGE_CHARS),
        )
        for seq, hit in hits.items()
    }


def _found(
    message: StoredMessage, summaries: Mapping[str, ThreadSummary], signal: str, passage: FoundPassage | None
) -> Found:
    forwarded = () if message.forward is None or passage is None else message.forward.media
    return Found(
        message_id=message.id,
        thread_id=message.root or message.conversation.thread,
        ts=message.sent,
        author=message.author,
        text=message.text,
        thread_summary=summaries.get(message.root or message.id),
        relevance_signal=signal,
        media=message.media + tuple(ref for ref in forwarded if passage is not None and ref.id == passage.ref),
        passage=passage,
        observed=message.standing is not Standing.MAY_COMMAND,
    )


def _digest(channel: ConversationKey, intent: str, since: datetime | None, authors: Sequence[str]) -> bytes:
    parts = (str(channel.whole_channel), intent, "" if since is None else since.isoformat(), *authors)
    said = b"".join(len(part).to_bytes(4, "big") + part.encode("utf-8", "surrogatepass") for part in parts)
    return hashlib.blake2b(said, digest_size=8).digest()


def _cursor(bookmark: _Bookmark, bound_to: bytes) -> str:
    packed = bookmark.offset.to_bytes(4, "big") + bookmark.until.to_bytes(6, "big") + bound_to
    return urlsafe_b64encode(packed).decode().rstrip("=")


def _read_cursor(cursor: str, bound_to: bytes) -> _Bookmark:
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        packed = b""
    if len(packed) != 18 or packed[10:] != bound_to:
        raise ToolError("the cursor does not belong to this search; ask without one to begin again")
    return _Bookmark(int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:10], "big"))
