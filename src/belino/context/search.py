"""Search of one channel: an intent in words, answered page by page from the stored messages, without a model."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from belino.domain.errors import ToolError
from belino.domain.message import ConversationKey
from belino.domain.outcome import Standing
from belino.domain.search import Found, SearchHit, SearchPage
from belino.search.query import parse_query
from belino.search.ranking import SHOWN
from belino.storage.store import Store

INTENT_CHARS = 4_000
"""Longer intents are cut."""
RESULTS_AT_MOST = SHOWN


class _Bookmark(NamedTuple):
    """Where a page begins, in a ranking of the messages up to the seq `until`."""

    offset: int
    until: int | None


async def search(
    store: Store,
    channel: ConversationKey,
    intent: str,
    *,
    now: datetime,
    since: datetime | None = None,
    authors: Sequence[str] = (),
    limit: int = 8,
    cursor: str | None = None,
) -> SearchPage:
    """The messages of a channel that match an intent best, each with the reason."""
    intent = intent[:INTENT_CHARS].strip()
    if not intent:
        raise ToolError("the intent is empty; say in a few words what you are looking for")
    bound_to = _digest(channel, intent, since, authors)
    limit = max(1, min(limit, RESULTS_AT_MOST))
    offset, until = _Bookmark(0, None) if cursor is None else _read_cursor(cursor, bound_to)
    query = parse_query(intent, now=now, since=since, authors=authors, until=until, offset=offset, limit=limit)
    found = await store.search(channel, query)
    after = offset + limit
    return SearchPage(
        results=tuple(_found(hit) for hit in found.hits),
        coverage=found.coverage,
        next_cursor=_cursor(after, found.newest, bound_to) if after < found.total else None,
        total=found.total,
    )


def _found(hit: SearchHit) -> Found:
    message, passage = hit.message, hit.passage
    forwarded = () if message.forward is None or passage is None else message.forward.media
    return Found(
        message_id=message.id,
        thread_id=message.root or message.conversation.thread,
        ts=message.sent,
        author=message.author,
        text=message.text,
        thread_summary=hit.thread,
        relevance_signal=hit.reason,
        media=message.media + tuple(ref for ref in forwarded if passage is not None and ref.id == passage.ref),
        passage=passage,
        observed=message.standing is not Standing.MAY_COMMAND,
    )


def _digest(channel: ConversationKey, intent: str, since: datetime | None, authors: Sequence[str]) -> bytes:
    parts = (str(channel.whole_channel), intent, "" if since is None else since.isoformat(), *authors)
    said = b"".join(len(part).to_bytes(4, "big") + part.encode("utf-8", "surrogatepass") for part in parts)
    return hashlib.blake2b(said, digest_size=8).digest()


def _cursor(offset: int, until: int, bound_to: bytes) -> str:
    packed = offset.to_bytes(4, "big") + until.to_bytes(6, "big") + bound_to
    return urlsafe_b64encode(packed).decode().rstrip("=")


def _read_cursor(cursor: str, bound_to: bytes) -> _Bookmark:
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        packed = b""
    if len(packed) != 18 or packed[10:] != bound_to:
        raise ToolError("the cursor does not belong to this search; ask without one to begin again")
    return _Bookmark(int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:10], "big"))
