"""Limits of a platform as data on its adapter, and its capabilities, which the tables in the docs are made of."""

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
    """The markup a platform parses in text."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    """The agent's own, unchanged."""
    HTML = "html"
    """A few tags: b, i, s, code, pre, a, blockquote."""
    MRKDWN = "mrkdwn"
    """`*bold*`, `_italic_`, `<address|words>`."""
    LIGHT = "light"
    """`*bold*`, `_italic_`, `~struck~`, code; addresses are written out, and nothing is escaped."""
    CHAT = "chat"
    """Markdown as chats parse it: three levels of headings, no tables, no pictures."""


class Rich(StrEnum):
    """A richer format of text, beside a platform's markup."""

    MARKDOWN = "markdown"
    """The agent's own, which the platform lays out."""
    HTML = "html"
    """Tags for headings, lists and tables too."""


class Once(StrEnum):
    """How a parcel that is sent twice is kept from being shown twice."""

    KEY = "key"
    """The platform deduplicates by our key."""
    READ_BACK = "read_back"
    """We can check whether it arrived."""
    UNCERTAIN = "uncertain"
    """Neither: a possible duplicate is flagged."""


class Unit(StrEnum):
    """The unit in which a platform limits the length of a text."""

    CHARS = "chars"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        """The length of a text."""
        match self:
            case Unit.CHARS:
                return len(text)
            case Unit.UTF16:
                return len(text.encode("utf-16-le", errors="surrogatepass")) // 2
            case Unit.BYTES:
                return len(text.encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimit:
    """Limits of a file sent in one form."""

    max_bytes: int
    moving_bytes: int | None = None
    """The same for an animated picture, where it is another."""
    mimes: frozenset[str] = frozenset()
    """Empty means any."""
    codecs: frozenset[str] = frozenset()
    """Accepted audio codecs; empty means any."""
    max_side: int | None = None
    max_pixels: int | None = None
    max_sides: int | None = None
    """Width and height together."""
    max_ratio: float | None = None
    """The longer side divided by the shorter one."""
    side: int | None = None
    """The exact length of the longer side."""
    max_seconds: float | None = None
    caption: bool = True
    """Whether a caption goes with a file in this form."""
    alone: bool = False
    """Whether a file in this form is sent without text, also where text is sent with files."""
    waveform: bool = False
    """Whether the platform shows a waveform and expects us to send it."""
    names: str = ""
    """The pattern that the whole name of a file in this form has, where the platform sends its own by their name."""
    shown_as: SendAs | None = None
    """The form in which people see it, where it is another one."""
    apart: Mapping[str, "FileLimit"] = field(default_factory=dict)
    """Types with limits of their own in this form."""

    def of(self, mime: str) -> "FileLimit":
        """The limits for one type."""
        return self.apart.get(mime, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything a planner must know about a platform."""

    text_chars: int
    once: Once
    key_seconds: float | None = None
    """How long the platform is sure to know a key, with Once.KEY; None means for ever."""
    split_chars: int | None = None
    """The length, in `unit`, at which people's clients split or end a long text; None if they do not."""
    unit: Unit = Unit.CHARS
    """What `text_chars` and `caption_chars` count."""
    caption_chars: int = 0
    markup: Markup = Markup.PLAIN
    rich: Rich | None = None
    """A richer format, tried first for text that `markup` cannot show as it is meant."""
    rich_chars: int = 0
    counts_markup: bool = True
    """Whether markup counts toward the length; if not, only the visible text does."""
    styles: int | None = None
    """How many styles the platform parses in a message: those beyond them would be lost."""
    files: Mapping[SendAs, FileLimit] = field(default_factory=dict)
    """Missing forms cannot be sent."""
    album_items: int = 1
    album_mixes: tuple[frozenset[SendAs], ...] = ()
    """Forms that may share one album."""
    album_bytes: int | None = None
    """The total size of the files of one album."""
    text_with_files: bool = False
    """Text is sent in the same call as files."""
    buttons: bool = False
    """Whether choices are shown as buttons; otherwise as numbers in the text."""
    comment_chars: int | None = None
    """Text longer than this is not sent with files but after them; None if its first message is in any case."""
    scrolls_code: bool = False
    """Code of any length stays in the message; elsewhere, long code is sent as a file."""
    fetches_files: bool = False
    """The platform fetches files from us: they are sent only where `server.public_url` is an https address."""
    fetch_bytes: int | None = None
    """The largest file the platform lets us fetch."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """Emoji with which belino reacts instead of others that the platform does not have as reactions."""


class Capability(StrEnum):
    """Everything people do in chats, by the names used in the docs."""

    TEXT = "text"
    PICTURE = "pictures"
    VIDEO = "video"
    SOUND = "audio"
    VOICE = "voice messages"
    FILE = "files"
    STICKER = "stickers"
    ALBUM = "several files at once"
    REPLY = "replies and quotes"
    FORWARD = "forwards"
    THREAD = "threads"
    MENTION = "mentions and commands"
    PREVIEW = "previews and embeds"
    PLACE = "places, contacts, polls"
    EDIT = "edits"
    DELETION = "deletions"
    REACTION = "reactions"
    TYPING = "typing indicator"
    HISTORY = "what was said before"
    OTHER = "anything else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """One capability on one platform, in and out, in a few words each; empty where it is not supported."""

    thing: Capability
    comes: str = ""
    goes: str = ""


YES = "yes"
