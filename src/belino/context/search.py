"""Search of one channel: an intent in words, answered page by page from the stored messages, without a model.

A page is written as lines within a price, or as JSON.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from belino.context.json_format import author_json, iso_time, media_json, spoken_json, trust
from belino.context.line_format import labels, line, short_time, spoken_marks
from belino.context.snapshot import words_of
from belino.domain.errors import ToolError
from belino.domain.media import DocumentUnit, MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import Standing
from belino.domain.safe_text import clean_name, disarm, one_line
from belino.domain.search import Found, FoundPassage, SearchHit, SearchPage
from belino.domain.stored import StoredMessage
from belino.domain.tokens import estimate_tokens
from belino.domain.units import clock_time
from belino.search.excerpt import Excerpts
from belino.search.query import parse_query
from belino.search.ranking import SHOWN
from belino.search.tokenizer import query_words
from belino.storage.store import Store

INTENT_CHARS = 4_000
"""Longer intents are cut."""
RESULTS_AT_MOST = SHOWN
TOKENS = 390
"""Estimated tokens for a page of eight results, so that no tokenizer counts more than 450: paths, host names and
versions cost up to a sixth more than estimated. More results may cost proportionally more.
"""
PAGE = 8
MESSAGE_CHARS = 40_000
EXCERPT_CHARS = (300, 260, 220, 190, 165, 145, 125, 110, 95, 80, 65, 50, 40, 30)
SIGNAL_CHARS = 60
COLUMNS = "id|MM-DD HH:MM|author|text|why|thread(replies)|marks, media"


class _Bookmark(NamedTuple):
    """Where a page begins, in a ranking of the messages up to the seq `until`."""

    offset: int
    until: int | None


class _Told(NamedTuple):
    """A result, and excerpts of its text and of its document."""

    found: Found
    said: Excerpts
    read: Excerpts | None


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


def results_lines(page: SearchPage, intent: str, *, now: datetime) -> str:
    """The longest excerpts that fit the page's budget, what was searched, and how to continue."""
    if not page.results:
        return f"Nothing found. {_coverage(page)} Other words, or fewer, may find it."
    wanted = [term for word in query_words(intent) for term in (word.word, *word.terms)]
    budget = TOKENS * max(len(page.results), PAGE) // PAGE
    found = [_told(one, wanted) for one in page.results]
    for chars in EXCERPT_CHARS:
        text = _written(page, found, now, chars)
        if estimate_tokens(text) <= budget:
            break
    return text


def results_json(page: SearchPage) -> dict[str, object]:
    """The same page as JSON, with whole texts."""
    covered = page.coverage.time_range
    return {
        "results": [_found_json(found) for found in page.results],
        "total": page.total,
        "next_cursor": page.next_cursor,
        "coverage": {
            "messages_scanned": page.coverage.messages_scanned,
            "time_range": [iso_time(moment) for moment in covered] if covered else None,
        },
    }


def _found(hit: SearchHit) -> Found:
    message, passage = hit.message, hit.passage
    forwarded = () if message.forward is None or passage is None else message.forward.media
    return Found(
        message_id=message.id,
        thread_id=message.root or message.conversation.thread,
        ts=message.sent,
        author=message.author,
        text=message.text if passage is not None and passage.unit is DocumentUnit.SECOND else _text(message),
        thread_summary=hit.thread,
        relevance_signal=hit.reason,
        media=message.media + tuple(ref for ref in forwarded if passage is not None and ref.id == passage.ref),
        passage=passage,
        observed=message.standing is not Standing.MAY_COMMAND,
        spoken=message.spoken,
    )


def _text(message: StoredMessage) -> str:
    """What it says; captions are found in its media."""
    return message.text if message.spoken is None else words_of(message)


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


def _written(page: SearchPage, told: Sequence[_Told], now: datetime, chars: int) -> str:
    lines = [f"{COLUMNS} (UTC; today is {now.astimezone(UTC):%Y-%m-%d})"]
    lines += [_line(one, now, chars) for one in told]
    more = f" More: cursor={page.next_cursor}." if page.next_cursor else ""
    lines.append(f"{_coverage(page)}{more} In full: channel_messages.")
    return "\n".join(lines)


def _told(found: Found, wanted: Sequence[str]) -> _Told:
    read = None if found.passage is None else Excerpts(one_line(found.passage.text), wanted)
    return _Told(found, Excerpts(one_line(found.text), wanted), read)


def _line(told: _Told, now: datetime, chars: int) -> str:
    found = told.found
    return line(
        (
            disarm(found.message_id),
            short_time(found.ts, now),
            clean_name(found.author.name) or "somebody",
            _said(told, chars),
            _signal(found.relevance_signal),
            _thread(found),
            ", ".join(
                [
                    *labels(found.author, found.observed),
                    *spoken_marks(found.spoken),
                    *(_media(found, ref) for ref in found.media),
                ]
            ),
        )
    ).rstrip("|")


def _said(told: _Told, chars: int) -> str:
    """The excerpts, each with a share of the characters."""
    passage = told.found.passage
    if passage is None or told.read is None:
        return told.said.of(chars)
    said = told.said.of(chars // 3)
    read = told.read.of(chars - len(said))
    return f"{said} · {_where(passage)}: {read}".removeprefix(" · ")


def _media(found: Found, ref: MediaRef) -> str:
    passage = found.passage
    page = f" {_where(passage)}" if passage is not None and passage.ref == ref.id else ""
    return f"{ref.kind.value} {ref.id}{page}"


def _where(passage: FoundPassage) -> str:
    """`p. 3`, `sheet 2`: what `pages` of `fetch_media` counts; `12:40`: what `time_range` takes."""
    if passage.unit is DocumentUnit.SECOND:
        return clock_time(passage.number - 1)
    return f"p. {passage.number}" if passage.unit is DocumentUnit.PAGE else f"{passage.unit.value} {passage.number}"


def _thread(found: Found) -> str:
    replies = f"({found.thread_summary.reply_count})" if found.thread_summary else ""
    return f"{disarm(found.thread_id or '')}{replies}"


def _signal(signal: str) -> str:
    return clean_name(signal, limit=SIGNAL_CHARS)


def _coverage(page: SearchPage) -> str:
    covered = page.coverage.time_range
    since = f" since {covered[0].astimezone(UTC):%Y-%m-%d}" if covered else ""
    return f"{len(page.results)} of {page.total} found in {page.coverage.messages_scanned} messages{since}."


def _found_json(found: Found) -> dict[str, object]:
    summary = found.thread_summary
    return {
        "message_id": disarm(found.message_id),
        "thread_id": None if found.thread_id is None else disarm(found.thread_id),
        "ts": iso_time(found.ts),
        "author": author_json(found.author),
        "trust": trust(found.observed),
        "text": disarm(found.text[:MESSAGE_CHARS]),
        "is_truncated": len(found.text) > MESSAGE_CHARS,
        "thread_summary": None
        if summary is None
        else {
            "reply_count": summary.reply_count,
            "last_reply_ts": iso_time(summary.last_reply_ts) if summary.last_reply_ts else None,
            "participant_names": [clean_name(name) for name in summary.participant_names],
        },
        "relevance_signal": _signal(found.relevance_signal),
        "media": [_media_json(found, ref) for ref in found.media],
    } | spoken_json(found.spoken)


def _media_json(found: Found, ref: MediaRef) -> dict[str, object]:
    passage = found.passage
    if passage is None or passage.ref != ref.id:
        return media_json(ref)
    is_time = passage.unit is DocumentUnit.SECOND
    place: dict[str, object] = {"time": _where(passage)} if is_time else {"page": passage.number}
    return media_json(ref) | place | {"unit": passage.unit.value, "excerpt": disarm(passage.text)}
