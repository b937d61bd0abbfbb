"""Failures of a provider: refused media, a wait, or a sentence for the operator."""

import re
from dataclasses import dataclass
from typing import Literal

from belino.agents.llm.messages import Completion
from belino.agents.llm.providers import Chosen
from belino.domain.errors import AgentError
from belino.net.redact import redact

SAID_CHARS = 200
BROKE_OFF = "the model's answer broke off before its end; ask again"
NOT_SET_UP = "the agent is not set up correctly; its operator has been told"
NO_CREDIT = "the account that pays for the model is used up; its operator has been told"
NOT_TAKEN = "the model's provider refused this request; its operator has been told"
TOO_LONG = "this conversation has become longer than the model takes; its operator has been told"

# Providers' messages about refused media, from their documentation and public error reports.
# The first match counts; a row for all providers comes last.
REFUSALS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (provider, re.compile(pattern, re.IGNORECASE), why)
    for provider, pattern, why in (
        ("anthropic", r"image exceeds [0-9.]+ ?[km]i?b maximum", "too many bytes"),
        ("anthropic", r"image dimensions exceeds? max allowed size", "too many pixels"),
        ("anthropic", r"could not process image|image cannot be empty|invalid base64", "it cannot be read"),
        (
            "anthropic",
            r"image was specified using|does not match the provided media type",
            "its type is not what it says",
        ),
        ("anthropic", r"media_type: input should be|unsupported image", "its type"),
        ("anthropic", r"image.*(?:not allowed|polic|blocked)", "its content"),
        ("anthropic", r"maximum of \d+ pdf pages", "too many pages"),
        ("anthropic", r"pdf specified is password protected", "it is protected by a password"),
        ("anthropic", r"pdf specified was not valid|could not process pdf", "it cannot be read"),
        ("openai", r"image_too_large|image_file_too_large|below 20 ?mb|image.{0,40}too large", "too many bytes"),
        ("openai", r"image_too_small", "too few pixels"),
        ("openai", r"invalid_image_format|unsupported_image_media_type|unsupported image", "its type"),
        ("openai", r"image_content_policy_violation|safety system|moderation_blocked", "its content"),
        (
            "openai",
            r"invalid_image\b|invalid_base64_image|image_parse_error|empty_image_file|does not represent a valid image"
            r"|invalid image",
            "it cannot be read",
        ),
        (
            "openai",
            r"image_url is only supported by certain models|does not support image",
            "this model sees no pictures",
        ),
        (
            "openai",
            r"invalid file data|invalid_file|the file in .{0,80}could not be processed|audio file could not be decoded",
            "it cannot be read",
        ),
        ("openai", r"input_audio is only supported|does not support audio", "this model hears no sounds"),
        ("openai", r"invalid value: '(?:file|input_file)'", "this model takes no documents"),
        ("google", r"unable to process input image|provided image is not valid", "it cannot be read"),
        ("google", r"document has no pages", "it cannot be read"),
        ("google", r"document has more than \d+ pages|too many pages|pages exceed", "too many pages"),
        ("google", r"unsupported mime type", "its type"),
        ("google", r"payload size exceeds the limit", "too many bytes"),
        ("google", r"image_safety|image.*prohibited", "its content"),
        ("google", r"image input modality is not enabled", "this model sees no pictures"),
        # All that Gemini says about some types; checked only if the request contained media.
        ("google", r"request contains an invalid argument", "it may be what was refused"),
        ("groq", r"(?:maximum|allowed).{0,40}pixels|too many pixels|resolution", "too many pixels"),
        ("groq", r"image.{0,40}too large|request_too_large|entity too large", "too many bytes"),
        ("groq", r"content must be a string", "this model sees no pictures"),
        ("groq", r"invalid image|failed to decode image", "it cannot be read"),
        ("ollama", r"failed to load image|invalid image|illegal base64|unknown format", "it cannot be read"),
        (
            "ollama",
            r"missing data required for image input|image input is not supported",
            "this model sees no pictures",
        ),
        (
            "*",
            r"\bimages?\b|image_url|inline_?data|\bpdfs?\b|\bdocuments?\b|\baudio\b|input_(?:audio|file)|file_data",
            "the model would not take it",
        ),
    )
)
REFUSING = frozenset({400, 413, 415, 422})
PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})

_UNPAID = re.compile(
    r"credit balance|insufficient[_ ](?:quota|credit|balance|funds)|out of credits|no credits?\b|billing"
    r"|payment required|exceeded your current quota|spending limit",
    re.IGNORECASE,
)
# Codes of an account that is used up; they come with the status of a limit on the rate.
# https://developers.openai.com/api/docs/guides/error-codes
_QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit_reached|credit_balance_exhausted|spend_limit_exceeded"
    r"|organization_usage_limit_exceeded|billing_error"
)
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|reduce the length of the messages|prompt is too long",
    re.IGNORECASE,
)
_MESSAGE_INDEX = re.compile(r"\bmessages\.([0-9]{1,6})\.content\.")
_RETRY_DELAY = re.compile(r"retryDelay['\"]?:\s*['\"]([0-9]{1,6}(?:\.[0-9]+)?)s")


class ModelError(Exception):
    """A request to a model that did not end with an answer."""


class Blocked(ModelError):
    """The provider's filter blocked the whole answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Cut(ModelError):
    """The stream ended before the answer was complete."""


class ModelSilent(ModelError):
    """The provider cannot be reached, or is silent."""

    def __init__(self, *, late: bool = False) -> None:
        super().__init__()
        self.late = late


class NotAnAnswer(ModelError):
    """The provider sent something that is no answer; its kind is named."""


class Declined(ModelError):
    """The provider answered with an error."""

    def __init__(
        self,
        status: int | None,
        body: object,
        *,
        code: str = "",
        retry_after: float | None = None,
        is_unpaid: bool = False,
        is_too_long: bool = False,
    ) -> None:
        """`status` is None for an error inside an answer that names none."""
        super().__init__()
        self.status = status
        self.body = body
        self.code = code
        self.retry_after = retry_after
        words = f"{code} {body}"
        self.is_unpaid = is_unpaid or bool(_QUOTA.search(words)) or _says_unpaid(status, words)
        self.is_too_long = is_too_long or bool(_TOO_LONG.search(words))


def _says_unpaid(status: int | None, words: str) -> bool:
    """Whether a refusal is for lack of credit; some providers use the status of a wrong key for it."""
    return status == 402 or (status in (400, 401, 403) and bool(_UNPAID.search(words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A classified error."""

    kind: Literal["media", "passing", "cut", "too long", "lasting"]
    sentence: str
    """The reason; without key and URL."""
    says: str = ""
    """For people in the chat, if the sentence is for the operator."""
    why: str = ""
    """Why media was refused."""
    message: int | None = None
    """The index of the message with the media, if the provider says."""
    wait: float | None = None
    """The seconds the provider asks to wait."""

    def error(self) -> AgentError:
        """The error that ends the turn."""
        return AgentError(self.sentence, says=self.says)


def check_whole(completion: Completion) -> None:
    """Raise if a stream ended before the answer was complete, or with only a filter's verdict."""
    if completion.ends is None:
        raise Cut
    if completion.ends == "error":
        raise Blocked("the provider says it failed")
    if completion.ends == "filter" and not (completion.answer.text or completion.answer.calls):
        raise Blocked(completion.reason or "content filter")


def understand(error: ModelError, chosen: Chosen) -> Failure:
    """Classify an error of the model."""
    if isinstance(error, Cut):
        return Failure(kind="cut", sentence=BROKE_OFF)
    if isinstance(error, Blocked):
        return _blocked(error, chosen)
    if isinstance(error, ModelSilent):
        why = "did not answer in time" if error.late else "cannot be reached"
        return Failure(kind="passing", sentence=f"the model's provider {why}")
    if isinstance(error, Declined):
        if refused := _refused_media(error, chosen):
            return refused
        if error.status is not None:
            return _http(error, error.status, chosen)
    sentence = f"the model's provider answered with something odd ({str(error) or 'an error'})"
    return Failure(kind="cut", sentence=sentence, says="the model's provider sent something unreadable; ask again")


def _blocked(error: Blocked, chosen: Chosen) -> Failure:
    sentence = f"the model's provider would not answer this ({_one_line(error.reason)})"
    why = _why(error.reason, None, chosen)
    return Failure(kind="media" if why else "lasting", sentence=sentence, why=why)


def _refused_media(error: Declined, chosen: Chosen) -> Failure | None:
    if error.status in (401, 403, 404, 429):
        return None
    words = f"{error.code} {error.body}"
    why = _why(words, error.status, chosen)
    if not why:
        return None
    named = _MESSAGE_INDEX.search(words)
    return Failure(
        kind="media",
        sentence=f"the model's provider refused the request: {_said(error)}",
        says=NOT_TAKEN,
        why=why,
        message=int(named[1]) if named else None,
    )


def _why(words: str, status: int | None, chosen: Chosen) -> str:
    if status == 413:
        return "too many bytes"
    for provider, pattern, why in REFUSALS:
        if provider == "*" and status not in REFUSING:
            continue
        if provider in ("*", chosen.provider, "openai" if chosen.wire == "chat" else "") and pattern.search(words):
            return why
    return ""


def _http(error: Declined, status: int, chosen: Chosen) -> Failure:
    if error.is_unpaid:
        sentence = f"the account at the model's provider has no credit left (status {status})"
        return Failure(kind="lasting", sentence=sentence, says=NO_CREDIT)
    if status in (401, 403) or "API_KEY_INVALID" in str(error.body):
        sentence = f"the model's provider refused the API key (status {status}); run `belino setup agent`"
        return Failure(kind="lasting", sentence=sentence, says=NOT_SET_UP)
    if error.is_too_long:
        sentence = "the conversation is longer than the model takes; lower history_tokens"
        return Failure(kind="too long", sentence=sentence, says=TOO_LONG)
    if status == 404:
        sentence = f"the provider {chosen.provider} knows no model {chosen.name!r} here; set model in [agent]"
        return Failure(kind="lasting", sentence=sentence, says=NOT_SET_UP)
    if status in PASSING:
        asks = "asks to wait" if status == 429 else "is overloaded" if status == 529 else "failed"
        wait = error.retry_after if error.retry_after is not None else _retry_delay(error)
        sentence = f"the model's provider {asks} (status {status}); try again in a moment"
        return Failure(kind="passing", sentence=sentence, wait=wait)
    sentence = f"the model's provider refused the request: {_said(error)}"
    return Failure(kind="lasting", sentence=sentence, says=NOT_TAKEN)


def _retry_delay(error: Declined) -> float | None:
    """The delay that Gemini writes into the body."""
    found = _RETRY_DELAY.search(str(error.body))
    return float(found[1]) if found else None


def _said(error: Declined) -> str:
    """The provider's own message, if any."""
    body = error.body
    for _ in range(3):
        if isinstance(body, list) and body:
            body = body[0]
        if isinstance(body, dict):
            body = body.get("error") or body.get("message")
    return _one_line(body if isinstance(body, str) and body else "an error")


def _one_line(text: str) -> str:
    words = redact(" ".join(text.split()))
    return words if len(words) <= SAID_CHARS else f"{words[: SAID_CHARS - 1]}…"
