"""What leaves: a reply, cut into parcels of one platform call each, and the receipts that come back."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from belino.domain.limits import Markup, SendAs
from belino.domain.message import ConversationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    """A file on its way out: an adapter reads its chunks and never learns a path."""

    name: str
    mime: str
    size: int
    sha256: str
    send_as: SendAs = SendAs.DOCUMENT
    caption: str = ""
    chunks: Callable[[], AsyncIterator[bytes]] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the agent answers, before any platform's limits are applied."""

    conversation: ConversationKey
    text: str
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str | None = None


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
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str | None = None
    edits: str | None = None
    """The platform's id of the message this parcel changes (drafts and edits)."""
    trace: str = ""


class ParcelState(StrEnum):
    """Where a parcel is on its way."""

    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    HELD = "held"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The platform's proof that it took a parcel."""

    message_id: str
    sent: datetime
    also: tuple[str, ...] = ()
    """Further messages the same call made (an album)."""
