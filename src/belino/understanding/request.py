"""Request to read media, and the result of it: the values between this package and its callers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from belino.domain.media import DocumentText
from belino.domain.message import ChatType, ConversationKey
from belino.domain.reading import Attempt, MediaCapability, Reading, ReadingDecision, ReadingForm, ReadSegment
from belino.domain.stored import RefRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageMedia:
    """The media of a message that is being answered, and what decides about reading it."""

    conversation: ConversationKey
    chat_type: ChatType
    media: tuple[RefRecord, ...]
    """In the order of the message; a reading's `attachment_index` counts them from 0."""
    text: str = ""
    """The words of the message itself."""
    sees_images: bool = False
    """Whether the agent sees pictures itself: they are then not described."""
    attached: frozenset[str] = frozenset()
    """The types of documents that the agent gets as they are: their text is then not read."""
    language: str | None = None
    """The language that the platform reports for the sender, such as `de`."""
    recent_texts: tuple[str, ...] = ()
    """What the sender wrote lately, from which the language of a voice message is guessed."""


class ReadingState(StrEnum):
    """The state of one reading."""

    READING = "reading"
    READ = "read"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingNews:
    """A reading begins, goes on or ends."""

    ref: str
    capability: MediaCapability
    state: ReadingState
    provider: str = ""
    done: float = 0.0
    """Seconds of sound or pages that are read so far."""
    total: float | None = None
    """Seconds or pages in all, if known."""
    reason: str = ""
    """Why there is no text."""


Note = Callable[[ReadingNews], None]
"""Called while readings run; it must not raise and not wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Why an attachment has no text, in words of a closed set (`Unread`, or the reason of the decision)."""

    ref: str
    attachment_index: int
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReadings:
    """What was decided about the media of a message, and read from it."""

    decisions: tuple[ReadingDecision, ...]
    """One for each capability, in the order image, audio, video, document."""
    readings: tuple[Reading, ...] = ()
    """In the same order; within a capability, in the order of the message."""
    markers: tuple[Marker, ...] = ()
    """One for each attachment that was to be read and has no text."""
    uncounted: int = 0
    """Attachments without text beyond those that have a marker."""

    @property
    def transcript(self) -> str:
        """The words that were spoken, of all sounds together."""
        return "\n".join(reading.text for reading in self.readings if reading.kind == "audio.transcription")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRange:
    """The part of one file that is wanted, and how far one request goes."""

    pages: tuple[int, int | None] | None = None
    times: tuple[float, float | None] | None = None
    max_chars: int | None = None
    """No further page is read once there are so many."""
    seconds: float | None = None
    """No further page or stretch is begun after this time; if unset, that of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReading:
    """The text of one file, as far as it was asked for."""

    form: ReadingForm
    capability: MediaCapability
    text: str
    """All of it in one piece; empty if there is nothing (`document.unread` and `document.reason` say what)."""
    document: DocumentText
    """The same in parts: seconds of a sound, pages of a document, or one part."""
    provider: str
    model: str
    segments: tuple[ReadSegment, ...] = ()
    """The stretches of speech with their times and speakers."""
    language: str | None = None
    uncertain: bool = False
    cached: bool = False
    """Whether all of it was stored already: nothing was sent and nothing is charged."""
    attempts: tuple[Attempt, ...] = ()
    """Those of this request; empty if the text was stored."""
    seconds: float | None = None
    """The length of a sound or video, if known."""
    read_from: float = 0.0
    read_to: float | None = None
    """The stretch in seconds, or the pages, that the text covers."""
    next: float | None = None
    """Where to read on, in seconds or as a page number; None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPrice:
    """What a reading costs, known without a call."""

    tokens: int
    """Tokens of the text for the agent; 0 if there is no text."""
    exact: bool = False
    """False: an estimate from length or size."""
    usd: float | None = None
    """What the first entry charges; 0 for a local one and for stored text; None if that is unknown."""
    seconds: float = 0.0
    """The approximate duration."""
    provider: str = ""
    """The provider that would be asked first; empty for stored text."""
    local: bool = True
    stored: bool = False
