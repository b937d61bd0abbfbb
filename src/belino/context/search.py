"""Search of one channel: an intent in words, answered page by page from the stored messages, without a model."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from belino.context.readings import words_of
from belino.domain.errors import ToolError
from belino.domain.media import DocumentUnit
from belino.domain.message import ConversationKey
from belino.domain.search import Found, SearchHit, SearchPage, SearchQuery
from belino.domain.stored import StoredMessage
from belino.search.query import parse_intent
from belino.search.ranking import SHOWN
from belino.storage.library_verbs import LibraryVerbs
from belino.storage.store import Store

INTENT_CHARS = 4_000
"""Longer intents are cut."""
INTENTS_AT_MOST = 4
RESULTS_AT_MOST = SHOWN


class _Bookmark(NamedTuple):
    """Where a page begins, in a ranking of the messages up to the seq `until`."""

    offset: int
    until: int | None


async def search(
    store: Store,
    channel: ConversationKey,
    intent: str | Sequence[str],
    *,
    now: datetime,
    since: datetime | None = None,
    authors: Sequence[str] = (),
    near: str | None = None,
    limit: int = 8,
    cursor: str | None = None,
) -> SearchPage:
    """The messages of a channel that match an intent best, or several in turn, each with the reason.

    `near` is the id of a message around which others are preferred.
    """
    intents = [one[:INTENT_CHARS].strip() for one in ([intent] if isinstance(intent, str) else intent)]
    if not intents or not all(intents):
        raise ToolError("the intent is empty; say in a few words what you are looking for")
    if len(intents) > INTENTS_AT_MOST:
        raise ToolError(f"{len(intents)} intents are too many; ask at most {INTENTS_AT_MOST} at once")
    bound_to = _digest(channel, intents, since, authors, near)
    limit = max(1, min(limit, RESULTS_AT_MOST))
    offset, until = _Bookmark(0, None) if cursor is None else _read_cursor(cursor, bound_to)
    query = SearchQuery(
        intents=tuple(parse_intent(one, now=now, zone=store.zone) for one in intents),
        since=since,
        authors=tuple(authors),
        near=None if near is None else (await message_named(store, channel, near)).seq,
        until=until,
        offset=offset,
        limit=limit,
    )
    found = await store.search(channel, query)
    roots = {hit.message.root for hit in found.hits if hit.message.root is not None}
    threads = (
        {message.id: message.short_id for message in await store.messages(channel, sorted(roots))} if roots else {}
    )
    cursors = [
        _cursor(place, found.newest, bound_to) if place < found.total else None
        for place in range(offset + 1, offset + len(found.hits) + 1)
    ]
    return SearchPage(
        results=tuple(_found(hit, threads, cursor) for hit, cursor in zip(found.hits, cursors, strict=True)),
        coverage=found.coverage,
        next_cursor=_cursor(offset + limit, found.newest, bound_to) if offset + limit < found.total else None,
        total=found.total,
        found=found.found,
    )


async def named_messages(
    library: LibraryVerbs, channel: ConversationKey, names: Sequence[str]
) -> Mapping[str, StoredMessage | None]:
    """The messages of a channel by their ids or short ids; ToolError if a short id is of several."""
    found = await library.messages_named(channel, names)
    unclear = [
        f"{name} may be {' or '.join(message.short_id for message in messages)}; give one of these"
        for name, messages in found.items()
        if len(messages) > 1
    ]
    if unclear:
        raise ToolError("; ".join(unclear))
    return {name: messages[0] if messages else None for name, messages in found.items()}


async def message_named(library: LibraryVerbs, channel: ConversationKey, name: str) -> StoredMessage:
    """One of them; ToolError if the channel has none, whether another channel has it or not."""
    message = (await named_messages(library, channel, [name]))[name]
    if message is None:
        raise ToolError("there is no such message in this channel; search results and lines show ids")
    return message


def _found(hit: SearchHit, threads: Mapping[str, str], cursor: str | None) -> Found:
    message, passage = hit.message, hit.passage
    forwarded = () if message.forward is None or passage is None else message.forward.media
    thread = message.root or message.conversation.thread
    # What is said in a voice message is in the passage that was found.
    heard = passage is not None and passage.unit is DocumentUnit.SECOND and message.spoken is not None
    return Found(
        message_id=message.id,
        short_id=message.short_id,
        thread_id=thread,
        short_thread_id=threads.get(thread or "", ""),
        ts=message.sent,
        author=message.author,
        text=message.text if heard else words_of(message),
        thread_summary=hit.thread,
        relevance_signal=hit.reason,
        kind=hit.kind,
        intent=hit.intent,
        media=message.media + tuple(ref for ref in forwarded if passage is not None and ref.id == passage.ref),
        passage=passage,
        observed=message.is_observed,
        spoken=message.spoken,
        next_cursor=cursor,
    )


def _digest(
    channel: ConversationKey, intents: Sequence[str], since: datetime | None, authors: Sequence[str], near: str | None
) -> bytes:
    from_on = "" if since is None else since.isoformat()
    parts = (str(channel.whole_channel), str(len(intents)), *intents, from_on, near or "", *authors)
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
