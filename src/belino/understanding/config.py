"""Config of media understanding: the tables `tools.media` and `profiles`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from belino.domain.errors import ConfigError
from belino.domain.message import ChatType
from belino.domain.reading import MediaCapability
from belino.net.redact import Secret
from belino.understanding.speech import SpeechConfig

T = TypeVar("T")


def _setting(default: T, says: str, *, least: float = 0, most: float | None = None) -> T:
    return field(default=default, metadata={"says": says, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The keys of an account at a provider; the next one is used when one is refused or used up."""

    key: Secret | None = field(default=None, metadata={"says": "The key, if there is one."})
    keys: tuple[Secret, ...] = _setting((), "Several keys, in the order in which they are used.")

    def __post_init__(self) -> None:
        if not self.all_keys:
            raise ConfigError('key is missing; write key = "env:NAME", with the key in that environment variable')

    @property
    def all_keys(self) -> tuple[Secret, ...]:
        """Every key, in order."""
        return (*((self.key,) if self.key is not None else ()), *self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One provider that may read media, with its own settings."""

    provider: str = field(metadata={"says": "The provider's name."})
    type: Literal["provider", "cli"] = _setting(
        "provider", "`cli` runs a command; it is the default where `command` is set, and no provider."
    )
    profile: str | None = _setting(None, "The profile whose keys are used; if unset, the provider's usual variable.")
    prompt: str | None = _setting(None, "What the provider is asked; if unset, belino's own words.")
    max_chars: int | None = _setting(None, "The most characters of a reading.", least=1)
    max_bytes: int | None = _setting(None, "The largest file that is given to this entry, in bytes.", least=1)
    timeout_seconds: float | None = _setting(None, "How long one call may take.", least=0.1, most=3600)
    language: str | None = _setting(None, "The language of the media, such as `de`; if unset, the provider decides.")
    usd_per_minute: float | None = _setting(None, "The price of a minute of sound or video, in US dollars.")
    usd_per_page: float | None = _setting(None, "The price of a picture or page, in US dollars.")
    usd_per_mtok: float | None = _setting(None, "The price of a million tokens, in US dollars.")
    options: Any = None
    """The provider's own Config, read from the same table."""

    @property
    def priced(self) -> bool:
        """Whether some price is configured."""
        return (self.usd_per_minute, self.usd_per_page, self.usd_per_mtok) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentRules:
    """Which attachments of a message are read."""

    mode: Literal["first", "all"] = _setting("all", "`first` reads one attachment of each kind, `all` all of them.")
    max_attachments: int = _setting(10, "The most attachments of a kind that are read for one message.", least=1)
    prefer: Literal["first", "last", "path", "url"] = _setting(
        "first", "Which come first: the `first` or `last` ones, those already stored (`path`) or those not (`url`)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRule:
    """Allows or denies readings in the conversations that match; a field that is unset matches all."""

    action: Literal["allow", "deny"] = field(metadata={"says": "Whether media is read there: `allow` or `deny`."})
    platform: str | None = _setting(None, "The platform.")
    chat_type: ChatType | None = field(default=None, metadata={"says": "The type of the chat."})
    key_prefix: str | None = _setting(None, "The beginning of the conversation, such as `PLATFORM:ACCOUNT:`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRules:
    """Where media is read; the first rule that matches decides."""

    default: Literal["allow", "deny"] = _setting("allow", "What applies where no rule matches.")
    rules: tuple[ScopeRule, ...] = _setting((), "The rules, in order.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityTools:
    """How one kind of media is read."""

    enabled: bool = _setting(True, "Whether this kind of media is read at all.")
    models: tuple[ModelEntry, ...] = _setting((), "The providers to try, in order.")
    prompt: str | None = _setting(None, "What providers are asked, unless their entry says otherwise.")
    max_chars: int | None = _setting(None, "The most characters of a reading.", least=1)
    max_bytes: int | None = _setting(None, "The largest file that is read, in bytes.", least=1)
    timeout_seconds: float | None = _setting(None, "How long one call may take.", least=0.1, most=3600)
    language: str | None = _setting(None, "The language of the media, such as `de`.")
    attachments: AttachmentRules | None = field(
        default=None, metadata={"says": "Which attachments are read; if unset, as `tools.media` says."}
    )
    scope: ScopeRules | None = field(
        default=None, metadata={"says": "Where they are read; if unset, as `tools.media` says."}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyReadingLimits:
    """How much of a channel's media providers may read within 24 hours."""

    seconds_per_day: float | None = _setting(None, "The most seconds of sound and video.")
    pages_per_day: int | None = _setting(None, "The most pictures and pages.")
    usd_per_day: float | None = _setting(None, "The most US dollars; an entry without a price is then skipped.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTools:
    """How media is made readable as text."""

    auto: Literal["local", "any"] = _setting(
        "local", "Without entries: `local` uses installed local providers, `any` also remote ones whose key is found."
    )
    models: tuple[ModelEntry, ...] = _setting((), "Providers for every kind of media, after the kind's own.")
    image: CapabilityTools = field(default_factory=CapabilityTools, metadata={"says": "Pictures."})
    audio: CapabilityTools = field(default_factory=CapabilityTools, metadata={"says": "Voice messages and sounds."})
    video: CapabilityTools = field(default_factory=CapabilityTools, metadata={"says": "Videos."})
    document: CapabilityTools = field(default_factory=CapabilityTools, metadata={"says": "Documents."})
    attachments: AttachmentRules = field(
        default_factory=AttachmentRules, metadata={"says": "Which attachments of a message are read."}
    )
    scope: ScopeRules = field(default_factory=ScopeRules, metadata={"says": "Where media is read."})
    limits: DailyReadingLimits = field(
        default_factory=DailyReadingLimits, metadata={"says": "How much is read per channel and day."}
    )
    speech: SpeechConfig = field(default_factory=SpeechConfig, metadata={"says": "The voice of the agent's answers."})
    concurrency: int = _setting(2, "How many readings run at the same time.", least=1, most=64)
    turn_seconds: float = _setting(120, "How long a turn waits for the readings of its message.", least=0.1, most=3600)
    worker_idle_seconds: float = _setting(
        120, "How long the process of a local provider waits for the next reading before it ends.", most=86_400
    )
    echo_transcript: bool = _setting(False, "Whether the transcript of a voice message is posted to the chat.")
    echo_format: str = _setting("{transcript}", "How it is posted; `{transcript}` stands for the words.")
    audio_preflight: bool = _setting(
        False, "Whether a voice message without text is read where the agent answers only when it is mentioned."
    )

    read_ahead: Literal["off", "local"] = _setting(
        "off",
        "`local`: between turns, local providers read media of senders who may command the agent, so that search "
        "finds it. Remote providers never read ahead.",
    )
    read_ahead_fetch: bool = _setting(
        False, "Whether media is also fetched from the platform to be read ahead; otherwise only stored bytes are read."
    )

    def __post_init__(self) -> None:
        if "{transcript}" not in self.echo_format:
            raise ConfigError("echo_format must contain {transcript}")

    def of(self, capability: MediaCapability) -> CapabilityTools:
        """The settings of one kind of media."""
        chosen: CapabilityTools = getattr(self, capability.value)
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """The limits of one reading by one entry."""

    max_bytes: int
    max_chars: int | None
    timeout: float


DEFAULTS: Mapping[MediaCapability, ReadingLimits] = MappingProxyType(
    {
        MediaCapability.IMAGE: ReadingLimits(max_bytes=10 * 1024 * 1024, max_chars=500, timeout=60.0),
        MediaCapability.AUDIO: ReadingLimits(max_bytes=20 * 1024 * 1024, max_chars=None, timeout=60.0),
        MediaCapability.VIDEO: ReadingLimits(max_bytes=50 * 1024 * 1024, max_chars=500, timeout=120.0),
        MediaCapability.DOCUMENT: ReadingLimits(max_bytes=20 * 1024 * 1024, max_chars=20_000, timeout=60.0),
    }
)
"""The limits where neither the entry nor the kind of media sets them."""
