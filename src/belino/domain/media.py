"""Media in three stages: a ref (a promise of bytes), a blob (the bytes), a reading (their text)."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from belino.domain.errors import MediaNotFound
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST


class MediaKind(StrEnum):
    """The platform's kind of the item; anything unknown is a document."""

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef:
    """A promise of bytes: free to hold, safe to store, resolved by the adapter that made it."""

    platform: str
    account: str
    channel_id: str
    message_id: str
    item: str
    """The platform's own permanent file id, else the index of the item in its message."""
    kind: MediaKind
    mime: str
    created: datetime
    id: str = ""
    """Assigned at intake; `parse` leaves it empty."""
    file_name: str | None = None
    size: int | None = None
    duration: float | None = None
    width: int | None = None
    height: int | None = None
    caption: str | None = None
    alt: str | None = None
    """What a picture that the agent sent shows, for people who do not see it."""
    locator: Mapping[str, str] = field(default_factory=dict)
    """The ids an adapter needs to open the ref. Never a URL, never a secret."""
    sealed: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys a platform puts into the message: encrypted by storage, never exported, logged or shown."""
    file_id: str | None = None
    """The platform's id of the bytes, if they never change under it: the account fetches such a file once."""
    transcript: str | None = field(default=None, repr=False)
    """What the platform itself has heard in it: a reading without bytes and calls; untrusted text."""
    is_transcript_partial: bool = False
    """Whether the platform told only the beginning of its transcript."""
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes we hold, named by their hash."""

    sha256: str
    mime: str
    size: int


OpenBlob = Callable[[str], AbstractAsyncContextManager[Path]]
"""Opens a blob, by its sha256, as a file to read, at a path valid inside the block. MediaNotFound if it is not held."""


def open_files(paths: Mapping[str, Path]) -> OpenBlob:
    """Opens files of our own, by the sha256 that stands for each, as if they were blobs of a store."""

    @asynccontextmanager
    async def opened(sha256: str) -> AsyncIterator[Path]:
        if sha256 not in paths:
            raise MediaNotFound("there is no such file")
        yield paths[sha256]

    return opened


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """Text for an agent."""

    text: str
    data: Mapping[str, object] | None = field(default=None, compare=False, repr=False)
    """The same as JSON, for programs; models get the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBlock:
    """A picture for an agent that sees images."""

    mime: str
    data: bytes = field(repr=False)
    ref: str
    sha256: str
    tokens: int = IMAGE_TOKENS_AT_MOST
    """Approximate cost for a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBlock:
    """A document in its own format, for an agent that reads it itself."""

    mime: str
    data: bytes = field(repr=False)
    ref: str
    sha256: str
    tokens: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioBlock:
    """A sound, for an agent that hears it."""

    mime: str
    data: bytes = field(repr=False)
    ref: str
    sha256: str
    """Of the original."""
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBlock:
    """A file in the session's folder, for an agent that opens files."""

    path: Path
    mime: str
    ref: str
    sha256: str
    note: str = ""


MediaBlock = ImageBlock | DocumentBlock | AudioBlock
"""Media that the model gets as bytes: recorded in the manifest once it was accepted."""
Block = TextBlock | MediaBlock | FileBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormats:
    """The documents that a model takes as they are, and what they cost it."""

    mimes: frozenset[str]
    max_bytes: int
    max_pages: int
    """Of all documents in one request."""
    page_tokens: int
    """Of the picture of a page."""
    charges_text: bool
    """Whether the text of the pages costs tokens besides their pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFormats:
    """The sounds that a model takes, and what they cost it."""

    mimes: frozenset[str]
    max_bytes: int
    max_seconds: float
    second_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMedia:
    """The blocks that an agent accepts besides text and, if it sees images, pictures."""

    documents: DocumentFormats | None = None
    audio: AudioFormats | None = None
    in_results: bool = True
    """Whether a tool's result may hold them; otherwise they only go with the prompt."""
    in_prompt: bool = True
    """Whether the prompt may hold media; otherwise only the results of tools do."""
    files: bool = True
    """Whether the agent opens files by their path; one that does not is given none."""
    tokens: int | None = None
    """The most tokens of media that are attached to a prompt without a request; None if the agent sets no limit."""
    texts: bool = True
    """Whether the prompt brings what documents, pictures and videos hold as text; otherwise only sounds are read."""


TEXT_AND_PICTURES = AcceptedMedia()


def kind_of(mime: str) -> MediaKind:
    """The kind of a MIME type, if the platform gives none."""
    match mime.partition(";")[0].strip().lower().partition("/")[0]:
        case "image":
            return MediaKind.IMAGE
        case "video":
            return MediaKind.VIDEO
        case "audio":
            return MediaKind.AUDIO
        case _:
            return MediaKind.DOCUMENT


class Likeness(StrEnum):
    """How a picture relates to another."""

    SAME = "same"
    """Equal bytes."""
    RECOMPRESSED = "recompressed"
    """The whole picture in other bytes: encoded again or resized."""
    CROPPED = "cropped"
    """A part of it."""
    UNCROPPED = "uncropped"
    """The whole picture, and more around it."""

    @property
    def reverse(self) -> "Likeness":
        """The relation in the other direction."""
        return {Likeness.CROPPED: Likeness.UNCROPPED, Likeness.UNCROPPED: Likeness.CROPPED}.get(self, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A picture of a channel and its image print."""

    ref: str
    sha256: str
    bits: bytes


class DocumentUnit(StrEnum):
    """The unit in which a document is counted, for `pages` of `fetch_media`."""

    PAGE = "page"
    SHEET = "sheet"
    SLIDE = "slide"
    CHAPTER = "chapter"
    PART = "part"
    """A text without pages, split at its headings or paragraphs."""
    LIST = "list"
    """The entries of an archive, many per part."""
    SECOND = "second"
    """A second of a sound or video: part 1 holds what begins in its first second."""


class Unread(StrEnum):
    """Why there is no text, in the words that are shown."""

    RENDERED = "rendered to images"
    NO_TEXT = "no text"
    UNSUPPORTED = "unsupported format"
    NOT_ALLOWED = "type not allowed"
    UNREADABLE = "could not be read"
    TOO_LARGE = "too large"


OWN_READER = "belino"
"""Named as the reader of text that a document contains itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page, sheet, slide or chapter: untrusted text."""

    number: int
    """Counts from 1."""
    text: str
    title: str = ""
    """A sheet's name, a slide's title, a chapter's heading."""
    scanned: bool = False
    """Whether it is a picture of a page: its own text, if any, is not worth reading."""
    read_by: str = ""
    """The provider that recognised the text; empty for text that the document contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """The text of a document, as far as it was read."""

    unit: DocumentUnit
    total: int
    """Parts in all, read or not."""
    parts: tuple[Part, ...] = ()
    """Those that were read, in order."""
    unread: Unread | None = None
    """Set if no part has text, or none could be read."""
    reason: str = ""
    """Why it, or a part of it, could not be read; for the agent and the operator."""
    notes: tuple[str, ...] = ()
    """What a reader should know: hidden text was marked, macros were left out, attachments are listed."""
