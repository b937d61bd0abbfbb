"""Search values: the query that crosses the storage port, the hits it returns, and the page made of them."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from belino.domain.media import DocumentUnit, MediaRef
from belino.domain.message import Author, SpokenText
from belino.domain.stored import StoredMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchIntent:
    """One question of a search, and what it names."""

    text: str
    """The question in words; the store derives terms from it in the languages of the channel."""
    phrases: tuple[str, ...] = ()
    """Text to find exactly."""
    spans: tuple[tuple[datetime, datetime], ...] = ()
    """Times that the text names, end excluded: messages sent then are preferred."""
    days: tuple[tuple[date, date], ...] = ()
    """The same times as days, where the question is asked: messages that name one of them are preferred."""
    of_media: bool = False
    """The text is about something that was sent rather than said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to find in one channel, and which of the ranked results to return."""

    intents: tuple[SearchIntent, ...]
    """One question, or several whose results take turns."""
    since: datetime | None = None
    """Older messages are not found."""
    authors: tuple[str, ...] = ()
    """Names or ids of people whose messages are preferred."""
    near: int | None = None
    """The seq of a message: those around it, and those of people who talk with its author, are preferred."""
    until: int | None = None
    """The newest seq that counts, so that later pages continue the first."""
    offset: int = 0
    limit: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """The thread of a found message: its replies and who wrote most of them."""

    reply_count: int
    last_reply_ts: datetime | None
    participant_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """The part of a document for which its message was found."""

    ref: str
    unit: DocumentUnit
    number: int
    text: str
    """An excerpt around the words, untrusted like the document itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The messages that a search looked through."""

    messages_scanned: int
    time_range: tuple[datetime, datetime] | None


class HitKind(StrEnum):
    """What relates a message to a query."""

    FOUND = "found"
    """It has words that the query asks for, or is of an author or day that it asks for."""
    NEARBY = "nearby"
    """Messages around it, or in its thread, have the words."""
    RECENT = "recent"
    """Nothing; it is one of the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that matches a query, as the store returns it."""

    message: StoredMessage
    score: float
    """The sum of the evidence; 0 for a message that was not scored in full, and for recent media."""
    reason: str
    """One of `keyword:<word> phrase:<words> author:<name> date:<date> thread:<words> media:<ref> neighbour
    recent_activity recent_media`, with `+similar` if similarity to the question raised it."""
    kind: HitKind = HitKind.FOUND
    intent: int = 0
    """The place of its question among the query's intents."""
    thread: ThreadSummary | None = None
    passage: FoundPassage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """One page of the hits of a query, best first; empty for a channel that the store does not know.

    Where nothing matches, they are a few of the newest messages.
    """

    hits: tuple[SearchHit, ...] = ()
    total: int = 0
    """Found and nearby messages on all pages; neither recent messages nor recent media are counted."""
    found: int = 0
    """Of these the found ones."""
    coverage: Coverage = Coverage(messages_scanned=0, time_range=None)
    newest: int = 0
    """The newest seq that was searched: `until` of the pages that follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A found message as the agent gets it, with the reason."""

    message_id: str
    thread_id: str | None
    ts: datetime
    author: Author
    text: str
    thread_summary: ThreadSummary | None
    relevance_signal: str
    """The `reason` of its hit."""
    kind: HitKind = HitKind.FOUND
    intent: int = 0
    """The place of its question among the query's intents."""
    short_id: str = ""
    short_thread_id: str = ""
    """The ids for lines; empty where they are unknown."""
    next_cursor: str | None = None
    """The cursor of the results that follow it."""
    media: tuple[MediaRef, ...] = ()
    observed: bool = False
    passage: FoundPassage | None = None
    spoken: SpokenText | None = None
    """What is said in its voice messages; its text holds it, unless the passage does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What a search found, best first."""

    results: tuple[Found, ...]
    coverage: Coverage
    next_cursor: str | None = None
    total: int = 0
    """As in `SearchHits`."""
    found: int = 0
    """As in `SearchHits`."""
