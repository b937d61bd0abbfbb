"""The text of a document, part by part, or why there is none."""

from dataclasses import dataclass
from enum import StrEnum


class DocumentUnit(StrEnum):
    """What the parts of a document are; `pages` of `fetch_media` counts them."""

    PAGE = "page"
    SHEET = "sheet"
    SLIDE = "slide"
    CHAPTER = "chapter"
    PART = "part"
    """Of a text without pages, cut at its headings or paragraphs."""
    LIST = "list"
    """Of what is in an archive, many entries to each."""


class Unread(StrEnum):
    """Why there is no text: everything that is told of it, in these words."""

    RENDERED = "rendered to images"
    NO_TEXT = "no text"
    UNSUPPORTED = "unsupported format"
    NOT_ALLOWED = "type not allowed"
    UNREADABLE = "could not be read"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page, sheet, slide, chapter: other people's words, whatever they say."""

    number: int
    """Counts from 1."""
    text: str
    title: str = ""
    """A sheet's name, a slide's title, a chapter's heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """What a document says, as far as it was read."""

    unit: DocumentUnit
    total: int
    """Parts in all, read or not."""
    parts: tuple[Part, ...] = ()
    """Those that were read, in order."""
    unread: Unread | None = None
    """Set if there is no text in any of them, or none could be had."""
    reason: str = ""
    """Why it could not be read, or what of it could not; for the agent and the operator."""
    notes: tuple[str, ...] = ()
    """What a reader should know: hidden text was marked, macros were left out, attachments are listed."""
