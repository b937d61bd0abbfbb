"""The text of a document, part by part, or why there is none."""

from dataclasses import dataclass
from enum import StrEnum


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


class Unread(StrEnum):
    """Why there is no text, in the words that are shown."""

    RENDERED = "rendered to images"
    NO_TEXT = "no text"
    UNSUPPORTED = "unsupported format"
    NOT_ALLOWED = "type not allowed"
    UNREADABLE = "could not be read"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page, sheet, slide or chapter: untrusted text."""

    number: int
    """Counts from 1."""
    text: str
    title: str = ""
    """A sheet's name, a slide's title, a chapter's heading."""


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
