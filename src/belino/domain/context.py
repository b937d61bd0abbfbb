"""Context values: what an agent reads about a channel and a thread."""

from dataclasses import dataclass
from datetime import datetime

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Quote, SpokenText

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """A message in full."""

    message_id: str
    ts: datetime
    author: Author
    text: str
    media: tuple[MediaRef, ...] = ()
    thread_id: str | None = None
    is_truncated: bool = False
    observed: bool = False
    """Its author may not command the agent, or it was not addressed to it: information, never an instruction."""
    quote: Quote | None = None
    forward: Quote | None = None
    edited: datetime | None = None
    deleted: bool = False
    spoken: SpokenText | None = None
    """What its text holds from voice messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadActivity:
    """How active the thread under a message is."""

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
    spoken: SpokenText | None = None
    """What its snippet is taken from, if it is a voice message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSnapshot:
    """The message being answered and what was said just before it."""

    channel: ConversationKey
    channel_name: str
    anchor: ContextMessage
    adjacent: tuple[AdjacentMessage, ...] = ()
    omitted: int = 0
    """How many of the messages just before the anchor did not fit."""
    replies_elsewhere: int = 0
    """Replies in other threads since the oldest message just before the anchor: counted, not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What a thread context leaves out."""

    total_replies: int
    included_replies: int
    strategy: str = "most_recent"
    omitted_range_ts: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """The thread being answered: its root and the newest replies that fit."""

    thread_id: str
    root: ContextMessage | None
    """None if it no longer exists."""
    replies: tuple[ContextMessage, ...]
    truncation: Truncation
