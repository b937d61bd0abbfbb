"""Speech settings: which voice speaks an agent's answers, and when."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeVar

from belino.domain.errors import ConfigError
from belino.net.rest import check_base_url

T = TypeVar("T")

COMMAND = "command"
"""The provider's name of a local program."""
TEMPLATE = re.compile(r"\{\{(\w+)\}\}")
TEMPLATES = ("TextPath", "OutputPath", "Voice", "Model", "Language")
"""What may stand in the arguments of a command."""
MOST_CHARS = 20_000
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechDefaults:
    """The defaults and limits of a remote service that speaks text."""

    base_url: str
    model: str
    voice: str
    max_chars: int
    """The longest text of one call, by its documentation."""
    variable: str
    """The environment variable in which its key usually is."""


SERVICES: Mapping[str, SpeechDefaults] = MappingProxyType(
    {
        "openai": SpeechDefaults(
            base_url="https://api.openai.com/v1",
            model="gpt-4o-mini-tts",
            voice="alloy",
            max_chars=4_096,
            variable="OPENAI_API_KEY",
        ),
        # The model is the voice.
        "deepgram": SpeechDefaults(
            base_url="https://api.deepgram.com/v1",
            model="aura-2-thalia-en",
            voice="",
            max_chars=2_000,
            variable="DEEPGRAM_API_KEY",
        ),
    }
)
"""The services that belino knows; any other name means a server with OpenAI's interface at `base_url`."""


def _setting(default: T, says: str, *, least: float = 0, most: float | None = None) -> T:
    return field(default=default, metadata={"says": says, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechConfig:
    """The voice that speaks answers: a remote service or a local program; by default, none."""

    provider: str | None = _setting(
        None, "The service that speaks: `openai`, `deepgram`, or any name with the `base_url` of an OpenAI-like server."
    )
    command: str | None = _setting(None, "A local program that speaks instead, such as `espeak-ng` or `piper`.")
    args: tuple[str, ...] = _setting(
        (),
        "Its arguments, with `{{TextPath}}`, `{{OutputPath}}`, `{{Voice}}`, `{{Model}}`, `{{Language}}`; without the "
        "first two, it reads the text from standard input and writes the sound to standard output.",
    )
    base_url: str | None = _setting(None, "The address of the service; if unset, the provider's own.")
    profile: str | None = _setting(None, "The profile whose keys are used; if unset, the provider's usual variable.")
    model: str | None = _setting(None, "The model; if unset, the provider's default.")
    voice: str | None = _setting(None, "The voice; if unset, the provider's default.")
    language: str | None = _setting(None, "The language that is spoken, such as `de`.")
    format: Literal["mp3", "opus", "flac", "wav", "aac"] = _setting(
        "mp3", "The format that an OpenAI-like server is asked for; what is sent is Opus."
    )
    max_chars: int = _setting(
        1_500, "The most characters that are spoken; a longer answer ends at a sentence.", least=50, most=MOST_CHARS
    )
    timeout_seconds: float = _setting(30.0, "How long an answer waits for its voice message.", least=0.1, most=600)
    usd_per_mchar: float | None = _setting(None, "The price of a million characters, in US dollars.")
    auto: Literal["off", "inbound", "always"] = _setting(
        "off", "Which answers are spoken, too: none, those to a voice message (`inbound`), or all (`always`)."
    )

    def __post_init__(self) -> None:
        if self.provider is not None and self.command is not None:
            raise ConfigError("provider and command exclude each other; set one of them")
        if self.auto != "off" and not self.is_on:
            raise ConfigError(f'auto = "{self.auto}" needs a voice; set provider or command')
        if self.args and self.command is None:
            raise ConfigError("args belong to command, which is not set")
        self._check_service()
        self._check_command()

    def _check_command(self) -> None:
        if self.command is not None and "/" in self.command and not self.command.startswith("/"):
            raise ConfigError("command must be a name on PATH or an absolute path")
        for name in (name for word in self.args for name in TEMPLATE.findall(word)):
            if name not in TEMPLATES:
                known = ", ".join(f"{{{{{each}}}}}" for each in TEMPLATES)
                raise ConfigError(f"args holds {{{{{name}}}}}, which is not known; the known ones are {known}")
            if name in ("Voice", "Model", "Language") and getattr(self, name.lower()) is None:
                raise ConfigError(f"args holds {{{{{name}}}}}, and {name.lower()} is not set")

    def _check_service(self) -> None:
        if self.base_url is not None:
            check_base_url("base_url", self.base_url)
        if self.provider is None:
            return
        service = SERVICES.get(self.provider)
        if service is None and self.base_url is None:
            known = ", ".join(SERVICES)
            raise ConfigError(f"provider {self.provider!r} needs a base_url; without one, write {known}")
        if service is None and self.model is None:
            raise ConfigError(f"provider {self.provider!r} needs a model; belino knows none of its models")
        if service is not None and self.max_chars > service.max_chars:
            raise ConfigError(f"max_chars must be at most {service.max_chars}, which is the limit of {self.provider}")

    @property
    def is_on(self) -> bool:
        """Whether there is a voice."""
        return self.provider is not None or self.command is not None

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.provider or COMMAND

    def price(self, chars: int) -> float | None:
        """What so many characters cost, in US dollars; None if that is not known."""
        if self.usd_per_mchar is not None:
            return self.usd_per_mchar * chars / MILLION
        return 0.0 if self.command is not None else None
