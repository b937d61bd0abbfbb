"""Config of the Claude agent, and the doctor's check of it: whether the API answers and accepts the key."""

import asyncio
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from belino.domain.errors import AdapterError, ConfigError, MediaError
from belino.domain.media import DocumentFormats
from belino.domain.outcome import Finding
from belino.domain.ports import Question
from belino.net.client import Client
from belino.net.redact import Secret

OFFICIAL_URL = "https://api.anthropic.com"

# The smallest window that the CLI accepts.
LEAST_WINDOW = 100_000

# https://platform.claude.com/docs/en/build-with-claude/pdf-support
DOCUMENTS = DocumentFormats(
    mimes=frozenset({"application/pdf"}), max_bytes=20_000_000, max_pages=100, page_tokens=1_600, charges_text=True
)

_KEY = re.compile(r"[\x21-\x7e]{1,512}")

SETUP = (
    Question(key="api_key", ask="Which API key did Anthropic give you? (platform.claude.com, API keys.)", secret=True),
    Question(key="model", ask="Which model answers? (sonnet, opus, haiku, or a full name)", default="sonnet"),
)

NAME = "agent claude"
VERSION = "2023-06-01"
CHECK_SECONDS = 10.0
ANSWER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Claude, through the Claude Agent SDK."""

    api_key: Secret | None = field(
        default=None, metadata={"says": "Anthropic's API key; a `base_url` of your own may need none."}
    )
    model: str = field(default="sonnet", metadata={"says": "The model: `sonnet`, `opus`, `haiku` or a full name."})
    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the Messages API."})
    instructions: str = field(default="", metadata={"says": "Your instructions to the agent, after belino's own."})
    read_files: bool = field(
        default=False, metadata={"says": "Whether the agent may open the files it fetched here, and no others."}
    )
    thinking: bool = field(
        default=True,
        metadata={"says": "Whether the model may reason before it answers: better, slower, more expensive."},
    )
    max_steps: int = field(
        default=40, metadata={"says": "How many steps, mostly tool calls, one answer may take.", "least": 1}
    )
    retries: int = field(default=5, metadata={"says": "How often a failed call of the model is retried.", "most": 10})
    compact_tokens: int = field(
        default=0,
        metadata={
            "says": "A conversation over this many tokens is compacted, at least 100000; 0 leaves it to the model."
        },
    )
    idle_seconds: int = field(
        default=600,
        metadata={
            "says": "Seconds without a message after which a session's process is ended; the next message resumes it."
        },
    )
    max_live: int = field(
        default=4,
        metadata={"says": "How many sessions may have a running process at once; each takes about 250 MB.", "least": 1},
    )

    def __post_init__(self) -> None:
        if self.api_key is None and self.base_url == OFFICIAL_URL:
            raise ConfigError('api_key is needed; write api_key = "env:ANTHROPIC_API_KEY", or run `belino setup agent`')
        if self.api_key is not None and not _KEY.fullmatch(self.api_key.reveal()):
            raise ConfigError("api_key must be printable characters without spaces, at most 512")
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
        raise ConfigError("base_url must begin with https://, or the key would be sent unencrypted")


def _is_near(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False


async def check_api(config: Config) -> tuple[Finding, ...]:
    """Check the API with one call that costs nothing."""
    client = Client(hosts=hosts(config))
    headers = {"anthropic-version": VERSION, "x-api-key": config.api_key.reveal() if config.api_key else "unneeded"}
    url = f"{config.base_url.rstrip('/')}/v1/models?limit=1"
    try:
        async with asyncio.timeout(CHECK_SECONDS), client.request("GET", url, headers=headers) as answer:
            await answer.read(ANSWER_BYTES)
            status = answer.status
    except (AdapterError, MediaError, TimeoutError):
        cure = "Check that this machine reaches the address and that base_url in [agent] is right."
        return (Finding(name=f"{NAME} api", ok=False, says="the API cannot be reached", cure=cure),)
    finally:
        await client.close()
    return (_finding(status),)


def _finding(status: int) -> Finding:
    if status in (401, 403):
        cure = "Make a key at platform.claude.com and run `belino setup agent` with it."
        return Finding(name=f"{NAME} key", ok=False, says=f"the API refuses the key (status {status})", cure=cure)
    if status == 200:
        return Finding(name=f"{NAME} key", ok=True, says="the API accepts the key")
    if status == 404:
        says = "the API answers and lists no models; only the first answer shows whether it accepts the key"
        return Finding(name=f"{NAME} key", ok=True, says=says)
    return Finding(name=f"{NAME} api", ok=False, says=f"the API answers with status {status}", cure="Try again later.")
