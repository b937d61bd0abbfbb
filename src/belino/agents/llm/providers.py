"""Providers: which model is configured, what its provider accepts, its client, and the doctor's check of it."""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, Protocol, assert_never
from urllib.parse import quote

from belino.agents.llm.messages import Asking, Completion
from belino.domain.errors import AdapterError, ConfigError, MediaTooLarge
from belino.domain.media import AudioFormats, DocumentFormats
from belino.domain.outcome import Finding
from belino.net.client import Client
from belino.net.guard import parse_url

ProviderName = Literal["openai", "anthropic", "google", "groq", "ollama"]
Wire = Literal["messages", "chat", "responses", "gemini"]

NEEDED = "the agent llm needs the package {package!r}; install it with pip install 'belino[{extra}]'"
# Placeholder, only for servers that need no key: the SDKs refuse to start without one.
NO_KEY = "none"

_TEXT_ONLY = re.compile(
    r"gpt-3\.5|gpt-4(?:$|-0|-32k)|gpt-oss|o1-(?:mini|preview)|o3-mini|claude-(?:1|2|instant)|gemma-2"
)
_SEEING = re.compile(
    r"vision|llava|-?vl\b|[0-9]vl|gemma-?[34]|pixtral|minicpm-v|moondream|llama-?4|scout|maverick|mistral-small-?3"
    r"|gpt-(?:4o|4\.1|4-turbo|5|6)|\bo[34]\b|claude|gemini"
)

# OpenAI's models that see, wherever they are served; servers of one's own take no documents.
_READING = re.compile(r"(?:chatgpt-)?gpt-(?:4o|4\.1|4-turbo|5|6)|o[134]\b")
# https://developers.openai.com/api/docs/models: gpt-audio, gpt-4o-audio-preview
_HEARING = re.compile(r"gpt-(?:4o-)?(?:mini-)?audio")
# Models that think before they answer, wherever they are served; what they think counts as output.
_REASONING = re.compile(
    r"\bgpt-(?:[5-9]|oss)|\bo[1-9](?:-|$)|claude-(?:3-7|(?:opus|sonnet|haiku)-[4-9]|fable|mythos)"
    r"|gemini-(?:2\.5|[3-9])|deepseek-(?:r|v[3-9])|\bqwq|\bqwen-?3|reason|think|magistral|\bgrok-[3-9]|kimi-k|\bglm-[4-9]"
)
REASONING_TOKENS = 32_000
ANSWER_TOKENS = 4096

PDF = frozenset({"application/pdf"})
ANSWER_BYTES = 1024 * 1024
CHECK_SECONDS = 10.0
ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider's own address, and its limits."""

    url: str
    key_name: str | None
    """The usual name of the environment variable for its key; None if it needs no key."""
    image_bytes: int
    """The largest picture it documents, before base64."""
    request_bytes: int
    """The largest request."""
    request_images: int
    """The most pictures in one request."""
    documents: DocumentFormats | None = None
    """What its models take that read documents."""
    audio: AudioFormats | None = None
    """What its models take that hear sounds."""


PROVIDERS: dict[ProviderName, Provider] = {
    # https://developers.openai.com/api/docs/guides/images-vision
    "openai": Provider(
        url="https://api.openai.com/v1",
        key_name="OPENAI_API_KEY",
        image_bytes=20_000_000,
        request_bytes=50_000_000,
        request_images=500,
        # The text and a picture of each page: https://developers.openai.com/api/docs/guides/file-inputs
        documents=DocumentFormats(mimes=PDF, max_bytes=32_000_000, max_pages=100, page_tokens=800, charges_text=True),
        # https://developers.openai.com/api/docs/guides/audio
        audio=AudioFormats(
            mimes=frozenset({"audio/wav", "audio/mpeg"}), max_bytes=20_000_000, max_seconds=3_600, second_tokens=10
        ),
    ),
    # A picture has 5 MiB of base64: https://platform.claude.com/docs/en/build-with-claude/vision
    "anthropic": Provider(
        url="https://api.anthropic.com",
        key_name="ANTHROPIC_API_KEY",
        image_bytes=3_932_160,
        request_bytes=32_000_000,
        request_images=100,
        # The text and a picture of each page: https://platform.claude.com/docs/en/build-with-claude/pdf-support
        documents=DocumentFormats(mimes=PDF, max_bytes=20_000_000, max_pages=100, page_tokens=1_600, charges_text=True),
    ),
    # 20 MB for the whole request, in base64: https://ai.google.dev/gemini-api/docs/image-understanding
    "google": Provider(
        url="https://generativelanguage.googleapis.com",
        key_name="GEMINI_API_KEY",
        image_bytes=14_000_000,
        request_bytes=20_000_000,
        request_images=3_600,
        # https://ai.google.dev/gemini-api/docs/document-processing
        documents=DocumentFormats(
            mimes=PDF, max_bytes=13_000_000, max_pages=1_000, page_tokens=258, charges_text=False
        ),
        # https://ai.google.dev/gemini-api/docs/audio
        audio=AudioFormats(
            mimes=frozenset({"audio/wav", "audio/flac", "audio/ogg", "audio/aac", "audio/aiff"}),
            max_bytes=13_000_000,
            max_seconds=9.5 * 3_600,
            second_tokens=32,
        ),
    ),
    # 4 MB of base64 for all pictures together: https://console.groq.com/docs/vision
    "groq": Provider(
        url="https://api.groq.com/openai/v1",
        key_name="GROQ_API_KEY",
        image_bytes=3_000_000,
        request_bytes=4_000_000,
        request_images=5,
    ),
    "ollama": Provider(
        url="http://127.0.0.1:11434/v1",
        key_name=None,
        image_bytes=20_000_000,
        request_bytes=100_000_000,
        request_images=100,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The configured model."""

    provider: ProviderName
    name: str
    url: str
    wire: Wire
    official: bool
    """Whether this is the provider's own address."""

    @property
    def facts(self) -> Provider:
        return PROVIDERS[self.provider]

    @property
    def sees_images(self) -> bool:
        """Whether a model of this name accepts pictures, judging by the name."""
        name = self.name.lower()
        if self.hears_audio and self.provider == "openai":
            return False
        if self.provider in ("anthropic", "google") or (self.provider == "openai" and self.official):
            return _TEXT_ONLY.match(name) is None
        return _SEEING.search(name) is not None and _TEXT_ONLY.match(name) is None

    @property
    def reads_documents(self) -> bool:
        """Whether a model of this name accepts documents, judging by the name."""
        name = self.name.lower()
        match self.provider:
            case "anthropic":
                return self.sees_images
            case "google":
                return name.startswith("gemini")
            case "openai":
                return self.sees_images and _READING.match(name) is not None
            case _:
                return False

    @property
    def answer_tokens(self) -> int:
        """The longest answer of a model of this name: one that reasons spends most of it before the first word."""
        return REASONING_TOKENS if _REASONING.search(self.name.lower()) else ANSWER_TOKENS

    @property
    def hears_audio(self) -> bool:
        """Whether a model of this name accepts sounds, judging by the name."""
        name = self.name.lower()
        if self.provider == "google":
            return name.startswith("gemini")
        return self.provider == "openai" and _HEARING.match(name) is not None


def choose(model: str, *, base_url: str | None, api: Literal["auto", "chat", "responses"]) -> Chosen:
    """Parse `provider:name`; ConfigError if it is invalid."""
    given, _, name = model.partition(":")
    provider = next((known for known in PROVIDERS if known == given), None)
    if provider is None or not name.strip():
        known = ", ".join(f"{each}:…" for each in PROVIDERS)
        raise ConfigError(f"model must be a provider and a name, like openai:gpt-5-mini; known providers: {known}")
    own = PROVIDERS[provider].url
    url = (base_url or own).rstrip("/")
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", url):
        raise ConfigError("base_url must be http:// or https:// with a host and maybe a path, and hold no secret")
    if provider != "openai" and api != "auto":
        raise ConfigError("api is for openai models only; leave it out")
    wire = _wire(provider, name.strip(), url, api)
    return Chosen(provider=provider, name=name.strip(), url=url, wire=wire, official=url == own)


def _wire(provider: ProviderName, name: str, url: str, api: Literal["auto", "chat", "responses"]) -> Wire:
    match provider:
        case "anthropic":
            return "messages"
        case "google":
            return "gemini"
        case "groq" | "ollama":
            return "chat"
        case "openai":
            if api != "auto":
                return api
            # Compatible servers support chat completions; few support responses, and none of these takes sounds.
            official = url == PROVIDERS["openai"].url
            return "responses" if official and not _HEARING.match(name.lower()) else "chat"
        case _:
            assert_never(provider)


def require_packages(chosen: Chosen) -> None:
    """ConfigError naming the extra, if packages that the API needs are not installed; nothing is imported."""
    for package in _packages(chosen):
        try:
            found = find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ConfigError(NEEDED.format(package=package, extra=chosen.provider))


def _packages(chosen: Chosen) -> Sequence[str]:
    """What an API needs that belino does not speak itself."""
    match chosen.wire:
        case "chat" | "messages":
            return ()
        case "responses":
            return ("pydantic_ai", "openai")
        case "gemini":
            return ("pydantic_ai", "google.genai")
        case _:
            assert_never(chosen.wire)


class ModelClient(Protocol):
    """An open client of a model; conversations share nothing else."""

    max_tokens: int

    def ask(self, asking: Asking) -> AsyncGenerator[str | Completion]:
        """One request: the words of the answer as they come, then the whole; an early exit closes its connection."""
        ...

    async def close(self) -> None: ...


def open_model(chosen: Chosen, key: str | None, *, max_tokens: int) -> ModelClient:
    """Import what the API needs and make the model's client. May take seconds of CPU: call it in a thread."""
    key = key or NO_KEY
    if chosen.wire in ("chat", "messages"):
        return _own_client(chosen, key, max_tokens)
    try:
        from belino.agents.llm.sdk import SdkClient

        return SdkClient(provider=chosen.provider, name=chosen.name, url=chosen.url, key=key, max_tokens=max_tokens)
    except ImportError as error:
        raise ConfigError(NEEDED.format(package=error.name, extra=chosen.provider)) from error


def _own_client(chosen: Chosen, key: str, max_tokens: int) -> ModelClient:
    from belino.agents.llm.anthropic import AnthropicClient
    from belino.agents.llm.chat import ChatClient
    from belino.agents.llm.http import ModelHttp
    from belino.agents.llm.prices import Prices

    prices = Prices(chosen.provider, chosen.url)
    prices.load()
    ModelHttp.load()
    client = AnthropicClient if chosen.wire == "messages" else ChatClient
    return client(name=chosen.name, url=chosen.url, key=key, max_tokens=max_tokens, prices=prices)


async def check_model(chosen: Chosen, key: str | None) -> Sequence[Finding]:
    """Check that the address answers, the key is accepted and the model exists."""
    url, headers = _question(chosen, key)
    client = Client(hosts=(parse_url(url).host_port,))
    try:
        async with client.request("GET", url, headers=headers, timeout=CHECK_SECONDS) as answer:
            status, body = answer.status, await answer.read(ANSWER_BYTES)
    except (AdapterError, MediaTooLarge) as error:
        cure = "Check that this machine reaches the provider and that base_url is right."
        return (Finding(name="agent model", ok=False, says=f"{chosen.provider} cannot be reached: {error}", cure=cure),)
    finally:
        await client.close()
    return (_finding(chosen, status, body),)


def _question(chosen: Chosen, key: str | None) -> tuple[str, dict[str, str]]:
    name = quote(chosen.name, safe="/:")
    match chosen.wire:
        case "messages":
            return f"{chosen.url}/v1/models/{name}", {"x-api-key": key or "", "anthropic-version": ANTHROPIC_VERSION}
        case "gemini":
            return f"{chosen.url}/v1/models/{name}", {"x-goog-api-key": key or ""}
        case _:
            return f"{chosen.url}/models/{name}", {"Authorization": f"Bearer {key}"} if key else {}


def _finding(chosen: Chosen, status: int, body: bytes) -> Finding:
    cure = "Run `belino setup agent` with a key of this provider."
    if status in (401, 403) or (status == 400 and b"API_KEY_INVALID" in body):
        return Finding(
            name="agent model", ok=False, says=f"{chosen.provider} refuses the API key (status {status})", cure=cure
        )
    if status == 200 and _is_json(body):
        return Finding(name="agent model", ok=True, says=f"{chosen.provider} has {chosen.name}")
    if status == 404 and chosen.official:
        says = f"{chosen.provider} knows no model {chosen.name!r}"
        return Finding(name="agent model", ok=False, says=says, cure="See the provider's list of models.")
    if status == 404:
        says = f"{chosen.provider} answers at base_url, but does not say whether it has {chosen.name}"
        return Finding(name="agent model", ok=True, says=says)
    return Finding(
        name="agent model", ok=False, says=f"{chosen.provider} answered with status {status}", cure="Try again later."
    )


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
