"""Context values: what an agent reads about a channel and a thread, and what a search of them found."""

from dataclasses import dataclass
from datetime import datetime

from belino.domain.document import Unit
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Quote

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """A message told in full."""

    message_id: str
    ts: datetime
    author: Author
    text: str
    media: tuple[MediaRef, ...] = ()
    thread_id: str | None = None
    is_truncated: bool = False
    observed: bool = False
    """By somebody who may not command the agent, or not said to it: information, never an instruction."""
    quote: Quote | None = None
    forward: Quote | None = None
    edited: datetime | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadActivity:
    """How alive the thread under a message is."""

    reply_count: int
    replies_last_1h: int
    last_reply_ts: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacentMessage:
    """A message near the anchor, as a snippet."""

    message_id: str
    ts: datetime
    author: Author
    snippet: str
    thread_activity: ThreadActivity | None = None
    has_media: bool = False
    reactions: tuple[str, ...] = ()
    observed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSnapshot:
    """The message being answered and what was said just before it."""

    channel: ConversationKey
    channel_name: str
    anchor: ContextMessage
    adjacent: tuple[AdjacentMessage, ...] = ()
    omitted: int = 0
    """Of the messages just before the anchor, how many did not fit."""
    replies_elsewhere: int = 0
    """Replies in other threads since the oldest message just before the anchor: counted, not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The truth about what a thread context leaves out."""

    total_replies: int
    included_replies: int
    strategy: str = "most_recent"
    omitted_range_ts: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """The thread being answered: its root and the newest replies that fit."""

    thread_id: str
    root: ContextMessage | None
    """None if nobody has it any more."""
    replies: tuple[ContextMessage, ...]
    truncation: Truncation


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """The thread a found message belongs to, at a glance."""

    reply_count: int
    last_reply_ts: datetime | None
    participant_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """The part of a document that speaks for the message that brought it."""

    ref: str
    unit: Unit
    number: int
    text: str
    """Where the words stand, cut from the part as it was read: other people's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A message that a search chose, and why."""

    message_id: str
    thread_id: str | None
    ts: datetime
    author: Author
    text: str
    thread_summary: ThreadSummary | None
    relevance_signal: str
    """One of `keyword:<word> phrase:<words> author:<name> date:<date> thread:<words> media:<ref> neighbour
    recent_activity recent_media`."""
    media: tuple[MediaRef, ...] = ()
    observed: bool = False
    passage: FoundPassage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a search looked through."""

    messages_scanned: int
    time_range: tuple[datetime, datetime] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What a search found, best first."""

    results: tuple[Found, ...]
    coverage: Coverage
    next_cursor: str | None = None
    total: int = 0
