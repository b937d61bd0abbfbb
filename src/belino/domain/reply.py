"""A reply, split into parcels of one platform call each, the receipts that come back, and the doubt where none came."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from belino.domain.choice import Button
from belino.domain.errors import StoreError
from belino.domain.limits import Markup, SendAs
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey

CALL_SECONDS = 60.0
SLOWEST_BYTES_A_SECOND = 64 * 1024
"""An upload that is slower than this is given up: half a megabit, less than any connection that carries files."""
LEASE_MARGIN_SECONDS = 120.0
"""From claim to call: time to check whether it arrived before, and whether it may still be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A file the agent wants to send: its bytes are stored under their hash, its form is not decided yet."""

    name: str
    mime: str
    """The detected type of the bytes, not that of the name."""
    size: int
    sha256: str
    caption: str = ""
    alt: str = ""
    """What a picture shows, for people who do not see it; without it, the caption says so."""
    wanted: SendAs | None = None
    width: int | None = None
    height: int | None = None
    frames: int = 1
    seconds: float | None = None
    codec: str = ""
    waveform: bytes = b""
    pending: str | None = None
    """Identifies it among the files in the folder `pending`, if it came from there."""
    source: str = ""
    """The hash of the file it was made from, to fit a platform; empty if it is unchanged."""


def _unopened() -> AsyncIterator[bytes]:
    raise StoreError("this file is only planned; the outbox opens it when its parcel is claimed")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    """A file to send: an adapter reads its chunks and never gets a path."""

    name: str
    mime: str
    size: int
    sha256: str
    send_as: SendAs = SendAs.DOCUMENT
    caption: str = ""
    """In the parcel's markup."""
    plain: str = ""
    """The caption for a platform that refused the markup; empty if there is no markup in it."""
    alt: str = ""
    """What a picture shows, as plain text, for people who do not see it."""
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    waveform: bytes = b""
    """Loudness of a sound, from 0 to 255 at 256 equidistant points, if the platform expects it."""
    pending: str | None = None
    """Identifies it among the files in the folder `pending`, from where it is moved once the parcel has ended."""
    source: str = ""
    """The hash of the file it was made from; empty if it is unchanged."""
    chunks: Callable[[], AsyncIterator[bytes]] = field(repr=False, compare=False, default=_unopened)

    @property
    def kind(self) -> MediaKind:
        """The kind that it has in the conversation, once it is sent."""
        return kind_sent(self.mime, self.send_as)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The agent's answer, before any platform's limits are applied."""

    conversation: ConversationKey
    text: str
    reply_to: str | None = None


def kind_sent(mime: str, form: SendAs) -> MediaKind:
    """The kind of a file that was sent in a form: some are more than their type."""
    return {SendAs.VOICE: MediaKind.VOICE, SendAs.STICKER: MediaKind.STICKER}.get(form) or kind_of(mime)


UNFINISHED = " …"
"""The end of a draft."""
DRAFT_OF = "draft:"
"""Prefix of a draft's key in `edits`, as long as no receipt has named the message."""


class ParcelKind(StrEnum):
    """The kind of a parcel."""

    TEXT = "text"
    FILES = "files"
    DRAFT = "draft"
    EDIT = "edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One call that makes something visible. Sent twice under the same key, it must be shown once."""

    key: str
    conversation: ConversationKey
    kind: ParcelKind = ParcelKind.TEXT
    text: str = ""
    markup: Markup = Markup.PLAIN
    plain: str = ""
    """The text for a platform that refused the markup; empty if there is no markup in it."""
    rich: str = ""
    """The text in the platform's richer format, which is tried first; empty if `text` shows all of it."""
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str | None = None
    edits: str | None = None
    """The platform's id of the message this parcel edits; in the outbox also DRAFT_OF and a draft's key."""
    trace: str = ""
    buttons: tuple[Button, ...] = ()
    """Shown below the text; an edit without any removes those of the message."""
    only_to: str | None = None
    """The id of the one person it is for, who gave the command `reply_to`; None for all in the conversation."""
    quoted: str = field(default="", compare=False)
    """The beginning of the message `reply_to`, as it is stored, for a platform where a reply carries what it quotes."""
    created: datetime | None = field(default=None, compare=False)
    """When it was put into the outbox: it cannot have arrived before."""


class ParcelState(StrEnum):
    """The delivery state of a parcel."""

    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    HELD = "held"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as the platform reports it; what it does not report is None."""

    form: SendAs | None = None
    size: int | None = None
    name: str | None = None
    ref: MediaRef | None = field(default=None, compare=False)
    """By which the adapter opens it again, to compare it with what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The platform's proof that it accepted a parcel."""

    message_id: str
    sent: datetime
    also: tuple[str, ...] = ()
    """Further messages made by the same call (an album)."""
    stored: tuple[StoredFile, ...] | None = None
    """The parcel's files as stored by the platform, in order; None if it does not report them."""
    expires: datetime | None = None
    """When it vanishes by the platform's timer, as for an arrival."""


class Doubt(IntEnum):
    """How likely earlier calls for a parcel made it visible although no receipt came."""

    NONE = 0
    FAILED = 1
    """The platform reported a failure; such reports are trusted, but have been wrong."""
    UNANSWERED = 2
    """A call was made, or may have been, and no answer came."""
    AGAIN = 3
    """The same again when it was sent again."""

    def unanswered(self) -> "Doubt":
        """After one more call without an answer."""
        return Doubt.UNANSWERED if self < Doubt.UNANSWERED else Doubt.AGAIN


def call_seconds(size: int) -> float:
    """How long one platform call that carries so many bytes may take."""
    return CALL_SECONDS + size / SLOWEST_BYTES_A_SECOND


def lease_seconds(size: int) -> float:
    """How long a claim on a parcel is exclusive; a call begins only if it also ends within."""
    return LEASE_MARGIN_SECONDS + call_seconds(size)
