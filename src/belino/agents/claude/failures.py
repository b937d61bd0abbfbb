"""Failures of the model's API as a sentence, without the API's text, which may contain an address or user content."""

import re
from collections.abc import Sequence

from belino.domain.errors import AgentError
from belino.domain.media import ImageBlock
from belino.net.redact import redact

REASON_CHARS = 200

_PLACE = re.compile(r"messages\.\d+\.content\.(\d+)\b(?!\.tool_result)")
_REFUSAL = re.compile(r"API Error: \d{3} (?:messages\S*: )?(.*)", re.DOTALL)

BY_KIND = {
    "authentication_failed": "Anthropic refused the API key; check api_key in the table [agent]",
    "oauth_org_not_allowed": "Anthropic refused the API key; check api_key in the table [agent]",
    "billing_error": "the account behind the API key has no credit left",
    "rate_limit": "the model's rate limit is reached; try again in a minute",
    "overloaded": "the model is overloaded just now; try again in a few minutes",
    "model_not_found": "the API does not know the model, or the key may not use it; check model in the table [agent]",
    "max_output_tokens": "the answer became longer than the model may write",
    "prompt_too_long": "the conversation has become too long for the model",
}
BY_STATUS = {
    401: BY_KIND["authentication_failed"],
    403: BY_KIND["authentication_failed"],
    413: "the conversation has become too large for the model's API",
    429: BY_KIND["rate_limit"],
    529: BY_KIND["overloaded"],
}


class PicturesRefused(AgentError):
    """The API refused a picture; `pictures` are the candidates, empty if it is in the history."""

    def __init__(self, why: str, pictures: Sequence[ImageBlock]) -> None:
        super().__init__(f"the model's API refused a picture: {why}")
        self.why = why
        self.pictures = tuple(pictures)


class SessionLost(AgentError):
    """The CLI's transcript of the conversation no longer exists."""


def failure(kind: str, status: int | None, reason: str) -> AgentError:
    """The error for a turn that failed at the API; `kind` and `reason` are the CLI's terms for it."""
    for known in (kind, reason):
        if known in BY_KIND:
            return AgentError(BY_KIND[known])
    if status in BY_STATUS:
        return AgentError(BY_STATUS[status])
    if status is None:
        return AgentError("the model's API cannot be reached, or broke off; try again in a moment")
    trouble = "has trouble of its own" if status >= 500 else "refused the request"
    return AgentError(f"the model's API {trouble} (status {status})")


def blames_a_picture(kind: str, text: str) -> bool:
    """Whether an error is about a picture: only refused requests are, and they say so."""
    return kind in ("invalid_request", "unknown") and "image" in text.lower()


def blamed(text: str, sent: Sequence[object], unaccepted: Sequence[ImageBlock]) -> tuple[ImageBlock, ...]:
    """Of the pictures the API has not accepted yet, the one its error points at, else all of them."""
    found = _PLACE.search(text)
    index = int(found[1]) if found else -1
    pointed = sent[index] if 0 <= index < len(sent) else None
    if isinstance(pointed, ImageBlock) and pointed in unaccepted:
        return (pointed,)
    return tuple(unaccepted)


def why_refused(text: str) -> str:
    """The API's reason for refusing a picture, as far as the CLI reports it."""
    found = _REFUSAL.match(text)
    words = redact(" ".join(found[1].split())) if found else ""
    return words[:REASON_CHARS].rstrip(". ") or "it could not be processed"
