"""What leaves: a reply, cut into parcels of one platform call each, and the receipts that come back."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from belino.domain.errors import StoreError
from belino.domain.limits import Markup, SendAs
from belino.domain.message import ConversationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A file the agent wants to send: its bytes are held under their hash, its form is not decided yet."""

    name: str
    mime: str
    """What the bytes are, not what the name says."""
    size: int
    sha256: str
    caption: str = ""
    wanted: SendAs | None = None
    width: int | None = None
    height: int | None = None
    frames: int = 1
    seconds: float | None = None
    codec: str = ""
    waveform: bytes = b""
    pending: str | None = None
    """What tells it from other files in the folder `pending`, if that is where it came from."""


def _unopened() -> AsyncIterator[bytes]:
    raise StoreError("this file is only planned; the outbox opens it when its parcel is claimed")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    """A file on its way out: an adapter reads its chunks and never learns a path."""

    name: str
    mime: str
    size: int
    sha256: str
    send_as: SendAs = SendAs.DOCUMENT
    caption: str = ""
    """In the parcel's markup."""
    plain: str = ""
    """The caption for a platform that refused the markup; empty if there is no markup in it."""
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    waveform: bytes = b""
    """How loud a sound goes, from 0 to 255 at 256 points of equal distance, where the platform wants to be told."""
    pending: str | None = None
    """What tells it from other files in the folder `pending`, from where it moves once the parcel has ended."""
    chunks: Callable[[], AsyncIterator[bytes]] = field(repr=False, compare=False, default=_unopened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the agent answers, before any platform's limits are applied."""

    conversation: ConversationKey
    text: str
    files: tuple[Offer, ...] = ()
    reply_to: str | None = None


DRAFT_OF = "draft:"
"""Before the key of a draft, where a parcel says what it edits and no receipt has named the message yet."""


class ParcelKind(StrEnum):
    """What one parcel makes visible."""

    TEXT = "text"
    FILES = "files"
    DRAFT = "draft"
    EDIT = "edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One call that makes something visible. Offered twice under the same key it must be seen once."""

    key: str
    conversation: ConversationKey
    kind: ParcelKind = ParcelKind.TEXT
    text: str = ""
    markup: Markup = Markup.PLAIN
    plain: str = ""
    """The text for a platform that refused the markup; empty if there is no markup in it."""
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str | None = None
    edits: str | None = None
    """The platform's id of the message this parcel changes; in the outbox also DRAFT_OF and a draft's key."""
    trace: str = ""
    created: datetime | None = field(default=None, compare=False)
    """When it was put into the outbox: it cannot have arrived before."""


class ParcelState(StrEnum):
    """Where a parcel is on its way."""

    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    HELD = "held"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as the platform says it keeps it; what it does not say is None."""

    form: SendAs | None = None
    size: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The platform's proof that it took a parcel."""

    message_id: str
    sent: datetime
    also: tuple[str, ...] = ()
    """Further messages the same call made (an album)."""
    stored: tuple[StoredFile, ...] | None = None
    """What became of the parcel's files, in their order; None if the platform does not say."""
