"""Limits of a platform, as data on its adapter."""

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
    """The agent's own, as it is."""
    HTML = "html"
    """A few tags: b, i, s, code, pre, a, blockquote."""
    MRKDWN = "mrkdwn"
    """`*bold*`, `_italic_`, `<address|words>`."""
    CHAT = "chat"
    """Markdown as chats read it: three levels of headings, no tables, no pictures."""


class Once(StrEnum):
    """How a parcel offered twice is kept from being seen twice."""

    KEY = "key"
    """The platform knows our key."""
    READ_BACK = "read_back"
    """We can look whether it arrived."""
    UNCERTAIN = "uncertain"
    """Neither: a possible duplicate is flagged."""


class Unit(StrEnum):
    """What a platform counts when it says how long a text may be."""

    CHARS = "chars"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        """How long a text is."""
        match self:
            case Unit.CHARS:
                return len(text)
            case Unit.UTF16:
                return len(text.encode("utf-16-le", errors="surrogatepass")) // 2
            case Unit.BYTES:
                return len(text.encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimit:
    """What a file must be to be sent in one form."""

    max_bytes: int
    mimes: frozenset[str] = frozenset()
    """Empty means any."""
    codecs: frozenset[str] = frozenset()
    """What the sound must be encoded with; empty means any."""
    max_side: int | None = None
    max_pixels: int | None = None
    max_sides: int | None = None
    """Width and height together."""
    max_ratio: float | None = None
    """The longer side by the shorter one."""
    side: int | None = None
    """What the longer side must have, no more and no less."""
    max_seconds: float | None = None
    caption: bool = True
    """Whether a caption goes with a file in this form."""
    alone: bool = False
    """Whether a file in this form travels without text, also where text travels with files."""
    waveform: bool = False
    """Whether the platform draws how loud a sound goes and wants to be told."""
    apart: Mapping[str, "FileLimit"] = field(default_factory=dict)
    """Types that have bounds of their own in this form."""

    def of(self, mime: str) -> "FileLimit":
        """The bounds for one type."""
        return self.apart.get(mime, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything a planner must know about a platform."""

    text_chars: int
    once: Once
    key_seconds: float | None = None
    """How long the platform surely knows a key, with Once.KEY; None means for good."""
    text_lines: int | None = None
    unit: Unit = Unit.CHARS
    """What `text_chars` and `caption_chars` count."""
    caption_chars: int = 0
    markup: Markup = Markup.PLAIN
    counts_markup: bool = True
    """Whether tags and signs count as text; if not, only what a reader sees does."""
    styles: int | None = None
    """How many styles the platform reads in a message: the address of a link beyond them would be lost."""
    files: Mapping[SendAs, FileLimit] = field(default_factory=dict)
    """Forms that are missing cannot be sent."""
    album_items: int = 1
    album_mixes: tuple[frozenset[SendAs], ...] = ()
    """Forms that may share one album."""
    album_bytes: int | None = None
    """What the files of one album may weigh together."""
    text_with_files: bool = False
    """Text travels in the same call as files."""
    fetch_bytes: int | None = None
    """The largest file the platform hands to us."""
