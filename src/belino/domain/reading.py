"""Reading of media: what a provider is asked for, the material it is given, and the text it returns."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from belino.domain.media import DocumentText
from belino.domain.message import ConversationKey


class MediaCapability(StrEnum):
    """A kind of media that can be read, in the order in which readings are listed."""

    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"


class Skill(StrEnum):
    """What a provider can do with the material it is given."""

    TRANSCRIBE = "transcribe"
    """A sound: the words spoken in it, with their times."""
    DESCRIBE = "describe"
    """One or more pictures: what they show. The frames of a video come with their times."""
    DESCRIBE_VIDEO = "describe_video"
    """A video as one file: what it shows and what is said in it."""
    READ_TEXT = "read_text"
    """A picture: the text written in it, in reading order."""


NOT_UNDERSTOOD = "it hears speech that it does not understand"
"""The reason of a provider for failing on speech of a language that it does not know."""


class ReadingForm(StrEnum):
    """The form of a reading, as an agent asks for it."""

    TRANSCRIPT = "transcript"
    DESCRIPTION = "description"
    TEXT = "text"


KINDS = {
    ReadingForm.TRANSCRIPT: "transcription",
    ReadingForm.DESCRIPTION: "description",
    ReadingForm.TEXT: "text",
}
"""The second half of a reading's kind on the wire, such as `audio.transcription`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A file that a provider reads, decoded or re-encoded by the sandbox; it exists during the call only.

    A local provider gets plain samples (`audio/wav`, 16 kHz, mono, 16 bits) or plain pixels
    (`image/x-portable-pixmap`). A remote one gets `audio/flac` (16 kHz, mono), `image/jpeg`, `image/png` or
    `image/webp`, or a video, without metadata.
    """

    path: Path
    mime: str
    size: int
    at: float | None = None
    """The time of a frame of a video, in seconds."""
    seconds: float | None = None
    """The length of a sound or video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderLanguage:
    """What tells the language that the sender of a voice message speaks."""

    reported: str | None = None
    """The language tag that the platform reports for them."""
    recent_texts: tuple[str, ...] = ()
    """What they wrote lately, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options of a reading."""

    prompt: str | None = None
    language: str | None = None
    """A language tag such as `de`, if it is configured or known."""
    max_chars: int | None = None
    timeout: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSegment:
    """A stretch of speech, or a block of text on a page; untrusted text."""

    text: str
    start: float = 0.0
    """Seconds from the beginning of the material."""
    end: float = 0.0
    speaker: str = ""
    """The speaker's label, where the provider separates speakers."""
    box: tuple[float, float, float, float] | None = None
    """Left, top, right and bottom on the picture, from 0 to 1."""
    hidden: bool = False
    """Whether a person who looks at the picture does not see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a provider read from its material."""

    text: str
    """Empty if there is nothing: silence, a blank page."""
    model: str
    segments: tuple[ReadSegment, ...] = ()
    language: str | None = None
    """The language that the provider recognised."""
    uncertain: bool = False
    """Whether the provider is not confident of the text."""
    tokens: int | None = None
    """Tokens that the provider charges for, if it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPiece:
    """What a provider is asked to read at once: a window of a sound, a page, or a picture."""

    sha256: str
    """The bytes that it is a piece of."""
    form: ReadingForm
    provider: str
    model: str
    window: str
    """Its place in the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A finished reading of one attachment."""

    kind: str
    """As serialized: `audio.transcription`, `image.description` and others."""
    text: str
    provider: str
    model: str
    attachment_index: int = 0
    segments: tuple[ReadSegment, ...] = ()
    uncertain: bool = False
    partial: bool = False
    """Whether the media says more than this text."""


class ReadingOutcome(StrEnum):
    """How the readings of one capability ended."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    FAILED = "failed"
    DISABLED = "disabled"
    NO_ATTACHMENT = "no-attachment"
    SCOPE_DENY = "scope-deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to read an attachment with one configured entry."""

    provider: str
    model: str
    outcome: ReadingOutcome
    reason: str = ""
    milliseconds: int = 0
    cached: bool = False
    """Whether the text was stored already: nothing was sent and nothing is charged."""
    sent_to: str = ""
    """The host that the material was sent to; empty for a local provider."""
    usd: float | None = None
    """What it cost, as far as the entry's prices tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentRecord:
    """What happened to one attachment: every attempt, and the one that was chosen."""

    index: int
    ref: str
    attempts: tuple[Attempt, ...] = ()
    chosen: int | None = None
    """The number of the chosen attempt, from 0."""
    reason: str = ""
    """Why there was no attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDecision:
    """What was decided and done for one capability of one message."""

    capability: MediaCapability
    outcome: ReadingOutcome
    reason: str = ""
    attachments: tuple[AttachmentRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptWindow:
    """What was heard in one stretch of a sound, and shortly before and after it."""

    start: float
    end: float
    """The stretch in seconds; neighbouring windows meet there."""
    segments: tuple[ReadSegment, ...] = ()
    """With times from the beginning of the sound; some lie outside the stretch, where neighbours hear them, too."""
    language: str | None = None
    uncertain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """What one reader found in some bytes, or in a part of them."""

    reader: str
    """The reader's key: form, provider, model and the stretch that it read."""
    text: DocumentText
    window: TranscriptWindow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """An attempt to read a ref, as it is stored."""

    ref: str
    sha256: str
    channel: ConversationKey
    at: datetime
    form: ReadingForm
    attempt: Attempt
    seconds: float = 0.0
    """Seconds of sound or video that a provider was given."""
    pages: int = 0
    """Pictures or pages that a provider was given."""
    ahead: bool = False
    """Whether it was read in the background, before it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """How much of a channel's media providers have read since a time."""

    seconds: float = 0.0
    pages: int = 0
    usd: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(seconds=self.seconds + other.seconds, pages=self.pages + other.pages, usd=self.usd + other.usd)
