"""Outcome of a message, a media item or a turn, with its reason, and counters of outcomes.

Outcomes are closed sets, so that nothing ends silently and the number of metrics is bounded.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Standing(StrEnum):
    """The rights of a sender in a channel."""

    DENIED = "denied"
    OBSERVED = "observed"
    MAY_COMMAND = "may_command"


class MessageOutcome(StrEnum):
    """The outcome of an arrival."""

    DENIED = "denied"
    """Counted; no content stored."""
    DUPLICATE = "duplicate"
    OBSERVED = "observed"
    """Stored as context, not answered."""
    WAITING = "waiting"
    """A turn will answer it."""
    WORKING = "working"
    ANSWERED = "answered"
    SILENT = "chose silence"
    """Its turn ended, and the agent chose to send nothing."""
    FAILED = "failed"
    ABORTED = "aborted"
    NOTED = "noted"
    """An edit, deletion, reaction or delivery status was applied."""
    UNSUPPORTED = "unsupported"
    COMMAND = "command"
    """Carried out by belino itself; no turn answers it, and no agent sees it or its answer."""
    RECALLED = "recalled"
    """Sent before we listened, or while we could not; stored as context, never answered."""


class TurnState(StrEnum):
    """The state of a turn. The last three are final."""

    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    ABORTED = "aborted"


class MediaOutcome(StrEnum):
    """The outcome of a media item."""

    REFERENCED = "referenced"
    """A promise, nothing fetched."""
    HELD = "held"
    """Its bytes are stored."""
    EXPIRED = "expired"
    TOO_LARGE = "too large"
    OVER_DAILY_LIMIT = "over daily limit"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    FAILED = "failed"


class Stage(StrEnum):
    """The stages of a message, in order."""

    RECEIVED = "received"
    STORED = "stored"
    GATE = "gate"
    TURN = "turn"
    TOOL = "tool"
    MEDIA = "media"
    READING = "reading"
    REPLY = "reply"
    DELIVERY = "delivery"


CHOSE_SILENCE = MessageOutcome.SILENT.value
"""Begins the reason of a turn whose agent answered with nothing."""
PASSED_ON = "passed on to the channel's client"
"""The reason of a turn whose message a connected client answers in its own time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event in the processing of a message, with its time and reason."""

    at: datetime
    stage: Stage
    outcome: str
    reason: str = ""
    subject: str = ""
    """The ref, tool or parcel concerned, if not the message itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSize:
    """The current size of a cache."""

    entries: int
    bytes: int
    most_bytes: int
    """Its limit."""

    @classmethod
    def of_entries(cls, entries: int, *, most: int, each: int) -> "CacheSize":
        """The size of a cache that is limited by entries of about so many bytes each."""
        return cls(entries=entries, bytes=entries * each, most_bytes=most * each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check, for the doctor."""

    name: str
    ok: bool
    says: str
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts by outcome; the outcomes are a closed set, so the number of metrics is bounded."""

    arrivals: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    parcels: Counter[str] = field(default_factory=Counter)
    media: Counter[str] = field(default_factory=Counter)
    adapter_restarts: Counter[str] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    """Cache hits and misses of media bytes in memory."""
    unhandled: Counter[str] = field(default_factory=Counter)
    """Unhandled exceptions of tasks and callbacks, by type."""
    history: Counter[str] = field(default_factory=Counter)
    """History calls, what they waited for, and how often none was needed."""

    def as_mapping(self) -> Mapping[str, Mapping[str, int]]:
        """Every count, by what is counted and its outcome."""
        return {
            "arrivals": dict(self.arrivals),
            "turns": dict(self.turns),
            "parcels": dict(self.parcels),
            "media": dict(self.media),
            "adapter_restarts": dict(self.adapter_restarts),
            "memory": dict(self.memory),
            "history": dict(self.history),
            "unhandled_exceptions": dict(self.unhandled),
        }
