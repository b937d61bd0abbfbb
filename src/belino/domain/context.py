"""Context values: what an agent reads about a channel and a thread."""

from dataclasses import dataclass
from datetime import datetime

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Quote, SpokenText

SCHEMA_VERSION = "1.0"
MOST_COUNTED = 5_000
"""Messages beyond so many are not counted: counting a channel of a million takes longer than all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """A message in full."""

    message_id: str
    ts: datetime
    author: Author
    text: str
    """Disarmed: nothing invisible, nothing that passes for a placeholder."""
    media: tuple[MediaRef, ...] = ()
    thread_id: str | None = None
    is_truncated: bool = False
    observed: bool = False
    """Its author may not command the agent."""
    quote: Quote | None = None
    forward: Quote | None = None
    edited: datetime | None = None
    deleted: bool = False
    spoken: SpokenText | None = None
    """What its text holds from voice messages."""
    seq: int = 0
    """What cursors name."""
    short_id: str = ""
    """Its id in lines."""
    replies_to: str = ""
    """The short id of the message it replies to, if that is shown too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadActivity:
    """How active the thread under a message is."""

    reply_count: int
    replies_last_1h: int | None
    """None if not all of them are known."""
    last_reply_ts: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacentMessage:
    """A message near the anchor, as a snippet."""

    message_id: str
    ts: datetime
    author: Author
    snippet: str
    thread_activity: ThreadActivity | None = None
    media: tuple[MediaRef, ...] = ()
    shows_refs: bool = False
    """Whether its line has the refs of its media: there is room for them."""
    reactions: tuple[str, ...] = ()
    observed: bool = False
    spoken: SpokenText | None = None
    """What its snippet is taken from, if it is a voice message."""
    seq: int = 0
    short_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherThread:
    """A thread that is counted and not shown."""

    thread_id: str
    short_id: str
    """The full id if its first message is not stored."""
    replies: int
    """Those that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSnapshot:
    """The message being answered and what was said just before it."""

    channel: ConversationKey
    channel_name: str
    anchor: ContextMessage
    adjacent: tuple[AdjacentMessage, ...] = ()
    omitted: int = 0
    """How many of the messages just before the anchor did not fit."""
    older: int = 0
    """How many messages there are before those, counted up to `MOST_COUNTED`."""
    cursor: int = 0
    """Where `channel_messages` continues with the messages that are left out."""
    replies_elsewhere: int = 0
    """Replies in other threads since the oldest message just before the anchor: counted, not listed."""
    threads_elsewhere: tuple[OtherThread, ...] = ()
    """The threads with the newest of these."""

    @property
    def before(self) -> int:
        """All messages of the channel before the anchor."""
        return len(self.adjacent) + self.omitted + self.older


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What a thread context leaves out."""

    total_replies: int | None
    """None if the platform could not be asked."""
    included_replies: int
    strategy: str = "most_recent"
    omitted_range_ts: tuple[datetime, datetime] | None = None

    @property
    def omitted(self) -> int | None:
        """How many replies are left out."""
        return None if self.total_replies is None else self.total_replies - self.included_replies


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """The thread being answered: its root and the newest replies that fit."""

    thread_id: str
    root: ContextMessage | None
    """None if it no longer exists."""
    replies: tuple[ContextMessage, ...]
    truncation: Truncation
    short_id: str = ""
    """The short id of its first message; empty if that is not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpoke:
    """The last message of the agent in a thread, topic or chain of replies."""

    at: datetime
    turn: int | None = None
    """The number of the turn that it answers, if it answers one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFacts:
    """What the store knows about the place of an arrival that decides who may do what there."""

    server: str = ""
    """The id of its server or workspace, if it has one."""
    is_direct: bool | None = None
    """Whether it is a direct conversation; None if that is not known."""
    spoke: AgentSpoke | None = None
    """If the agent spoke in its thread."""
    bot_turns: int = 0
    """Messages of bots that the agent answered there since a person last wrote."""
