"""What a platform accepts, as data on its adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class SendAs(StrEnum):
    """The form a file takes on a platform."""

    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    ANIMATION = "animation"
    STICKER = "sticker"
    DOCUMENT = "document"


class Markup(StrEnum):
    """The markup a platform reads in text."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    HTML = "html"
    MRKDWN = "mrkdwn"


class Once(StrEnum):
    """How a parcel offered twice is kept from being seen twice."""

    KEY = "key"
    """The platform knows our key."""
    READ_BACK = "read_back"
    """We can look whether it arrived."""
    UNCERTAIN = "uncertain"
    """Neither: a possible duplicate is flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimit:
    """What a file must be to be sent in one form."""

    max_bytes: int
    mimes: frozenset[str] = frozenset()
    """Empty means any."""
    max_side: int | None = None
    max_pixels: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything a planner must know about a platform."""

    text_chars: int
    once: Once
    text_lines: int | None = None
    caption_chars: int = 0
    markup: Markup = Markup.PLAIN
    files: Mapping[SendAs, FileLimit] = field(default_factory=dict)
    """Forms that are missing cannot be sent."""
    album_items: int = 1
    album_mixes: tuple[frozenset[SendAs], ...] = ()
    """Forms that may share one album."""
    text_with_files: bool = False
    """Text travels in the same call as files (Discord)."""
    fetch_bytes: int | None = None
    """The largest file the platform hands to us."""
