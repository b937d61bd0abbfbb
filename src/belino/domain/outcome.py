"""Outcome of a message, a media item or a turn, with its reason: closed sets, so that nothing ends silently."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Standing(StrEnum):
    """What a sender may do where they speak."""

    DENIED = "denied"
    OBSERVED = "observed"
    MAY_COMMAND = "may_command"


class MessageOutcome(StrEnum):
    """What became of an arrival."""

    DENIED = "denied"
    """Counted; no content kept."""
    DUPLICATE = "duplicate"
    OBSERVED = "observed"
    """Kept as context, not answered."""
    WAITING = "waiting"
    """A turn will answer it."""
    WORKING = "working"
    ANSWERED = "answered"
    FAILED = "failed"
    ABORTED = "aborted"
    NOTED = "noted"
    """An edit, deletion, reaction or delivery status was applied."""
    UNSUPPORTED = "unsupported"
    RECALLED = "recalled"
    """Said before we listened, or while we could not; kept as context, never answered."""


class TurnState(StrEnum):
    """Where a turn stands. The last three are ends."""

    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    ABORTED = "aborted"


class MediaOutcome(StrEnum):
    """What became of a media item."""

    REFERENCED = "referenced"
    """A promise, nothing fetched."""
    HELD = "held"
    """Its bytes are here."""
    EXPIRED = "expired"
    TOO_LARGE = "too large"
    OVER_DAILY_LIMIT = "over daily limit"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    FAILED = "failed"


class Stage(StrEnum):
    """The way of a message through the house, in order."""

    RECEIVED = "received"
    STORED = "stored"
    GATE = "gate"
    TURN = "turn"
    TOOL = "tool"
    MEDIA = "media"
    REPLY = "reply"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened to a message, when, and why."""

    at: datetime
    stage: Stage
    outcome: str
    reason: str = ""
    subject: str = ""
    """The ref, tool or parcel it happened to, if not the message itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSize:
    """How much one cache holds now."""

    entries: int
    bytes: int
    most_bytes: int
    """What it may grow to."""

    @classmethod
    def of_entries(cls, entries: int, *, most: int, each: int) -> "CacheSize":
        """The size of a cache that is limited by its entries, one of which takes about so many bytes."""
        return cls(entries=entries, bytes=entries * each, most_bytes=most * each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found, for the doctor."""

    name: str
    ok: bool
    says: str
    cure: str = ""
