"""Config of the Claude agent."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from belino.domain.errors import ConfigError
from belino.domain.ports import Question
from belino.net.redact import Secret

OFFICIAL_URL = "https://api.anthropic.com"

# The smallest window that the CLI accepts.
LEAST_WINDOW = 100_000

_KEY = re.compile(r"[\x21-\x7e]{8,512}")

SETUP = (
    Question(key="api_key", ask="Which API key did Anthropic give you? (platform.claude.com, API keys.)", secret=True),
    Question(key="model", ask="Which model shall answer? (sonnet, opus, haiku, or a full name)", default="sonnet"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Claude, through the Claude Agent SDK."""

    api_key: Secret | None = field(
        default=None, metadata={"says": "Anthropic's API key; a `base_url` of your own may need none."}
    )
    model: str = field(default="sonnet", metadata={"says": "The model: `sonnet`, `opus`, `haiku` or a full name."})
    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "Where the Messages API is."})
    instructions: str = field(default="", metadata={"says": "Your own words to the agent, after belino's."})
    read_files: bool = field(
        default=False, metadata={"says": "Whether the agent may open the files it fetched here, and no others."}
    )
    thinking: bool = field(
        default=True, metadata={"says": "Whether the model may think before it answers: better, slower, dearer."}
    )
    max_steps: int = field(
        default=40, metadata={"says": "How many steps, tool calls mostly, one answer may take.", "least": 1}
    )
    retries: int = field(
        default=5, metadata={"says": "How often a call of the model is tried again when it fails.", "most": 10}
    )
    compact_tokens: int = field(
        default=0,
        metadata={
            "says": "From how many tokens on the conversation is shortened, at least 100000; 0 leaves it to the model."
        },
    )
    idle_seconds: int = field(
        default=600, metadata={"says": "After how long without a message a session's process is ended, and resumed."}
    )
    max_live: int = field(
        default=4, metadata={"says": "How many sessions may have a process, each about 250 MB, at once.", "least": 1}
    )

    def __post_init__(self) -> None:
        if self.api_key is None and self.base_url == OFFICIAL_URL:
            raise ConfigError('api_key is needed; write api_key = "env:ANTHROPIC_API_KEY", or run `belino setup agent`')
        if self.api_key is not None and not _KEY.fullmatch(self.api_key.reveal()):
            raise ConfigError("api_key is not an API key; it looks like sk-ant-… and comes from platform.claude.com")
        if not self.model.strip() or self.model.startswith("-"):
            raise ConfigError("model must be a name, like sonnet")
        if 0 < self.compact_tokens < LEAST_WINDOW:
            raise ConfigError(f"compact_tokens must be 0 or at least {LEAST_WINDOW}")
        _check_url(urlsplit(self.base_url))


def hosts(config: Config) -> frozenset[str]:
    """The hosts the key may be sent to. A server that the operator names may be private, so its port is included."""
    url = urlsplit(config.base_url)
    if config.base_url.rstrip("/") == OFFICIAL_URL:
        return frozenset({url.netloc})
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return frozenset({f"{name}:{url.port or (443 if url.scheme == 'https' else 80)}"})


def _check_url(url: SplitResult) -> None:
    if url.scheme not in ("https", "http") or not url.hostname or url.username is not None or url.query:
        raise ConfigError("base_url must be https://host[:port][/path], without a name or password in it")
    if url.scheme == "http" and not _is_near(url.hostname):
        raise ConfigError("base_url must begin with https://, or the key would cross the network in the open")


def _is_near(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False
