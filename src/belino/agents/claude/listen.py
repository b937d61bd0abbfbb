"""Listen to the CLI: its messages become parts of a reply, and the API's failures one sentence.

The sentence holds none of the API's own text, which may contain an address or user content.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from belino.agents.claude.wire import tool_name
from belino.domain.errors import AgentError
from belino.domain.media import Block, DocumentBlock, ImageBlock, MediaBlock
from belino.domain.turn import Accepted, Compacted, Final, ReplyPart, TextDelta, ToolNote, Usage, tool_words
from belino.net.redact import redact

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, SystemMessage

REASON_CHARS = 200

_PLACE = re.compile(r"messages\.\d+\.content\.(\d+)\b(?!\.tool_result)")
_MEDIA = re.compile(r"image|document|pdf", re.IGNORECASE)
_REFUSAL = re.compile(r"API Error: \d{3} (?:messages\S*: )?(.*)", re.DOTALL)

CUT_SHORT = "\n\n(cut here: the answer became too long)"
STOPPED = "\n\n(stopped here: it took too many steps)"
NOT_SET_UP = "the agent is not set up correctly; its operator has been told"
NO_CREDIT = "the account that pays for the model is used up; its operator has been told"
REFUSED = "the model declined to answer this"

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

# What people in the chat read where the sentence is for the operator.
SAYS = {
    BY_KIND["authentication_failed"]: NOT_SET_UP,
    BY_KIND["billing_error"]: NO_CREDIT,
    BY_KIND["model_not_found"]: NOT_SET_UP,
}

PARAGRAPH = "\n\n"


class MediaRefusedByModel(AgentError):
    """The API refused a picture or a document; `media` are the candidates, empty if it is in the history."""

    def __init__(self, why: str, media: Sequence[MediaBlock]) -> None:
        super().__init__(f"the model's API refused a picture or document: {why}")
        self.why = why
        self.media = tuple(media)


class SessionLost(AgentError):
    """The CLI's transcript of the conversation no longer exists."""


def failure(kind: str, status: int | None, reason: str) -> AgentError:
    """The error for a turn that failed at the API; `kind` and `reason` are the CLI's terms for it."""
    for known in (kind, reason):
        if known in BY_KIND:
            return AgentError(BY_KIND[known], says=SAYS.get(BY_KIND[known], ""))
    if status in BY_STATUS:
        return AgentError(BY_STATUS[status], says=SAYS.get(BY_STATUS[status], ""))
    if status is None:
        return AgentError("the model's API cannot be reached, or broke off; try again in a moment")
    trouble = "has trouble of its own" if status >= 500 else "refused the request"
    return AgentError(f"the model's API {trouble} (status {status})")


def blames_media(kind: str, text: str) -> bool:
    """Whether an error is about a picture or document: only refused requests are, and they say so."""
    return kind in ("invalid_request", "unknown") and _MEDIA.search(text) is not None


def blamed(text: str, sent: Sequence[object], unaccepted: Sequence[MediaBlock]) -> tuple[MediaBlock, ...]:
    """Of the media the API has not accepted yet, the item its error points at, else all of the kind it names."""
    found = _PLACE.search(text)
    index = int(found[1]) if found else -1
    pointed = sent[index] if 0 <= index < len(sent) else None
    if isinstance(pointed, ImageBlock | DocumentBlock) and pointed in unaccepted:
        return (pointed,)
    named = _MEDIA.search(text)
    kind = ImageBlock if named is None or named[0].lower() == "image" else DocumentBlock
    return tuple(block for block in unaccepted if isinstance(block, kind))


def why_refused(text: str) -> str:
    """The API's reason for refusing media, as far as the CLI reports it."""
    found = _REFUSAL.match(text)
    words = redact(" ".join(found[1].split())) if found else ""
    return words[:REASON_CHARS].rstrip(". ") or "it could not be processed"


class CliListener:
    """Reads one turn; its last part is the Final, or it raises an AgentError.

    `unaccepted` is media the model has not accepted yet: the turn's own, and what tools add.
    """

    def __init__(self, blocks: Sequence[Block], unaccepted: list[MediaBlock], names: Mapping[str, str]) -> None:
        self._blocks = blocks
        self._unaccepted = unaccepted
        self._names = names
        self._answer = ""
        self._joint = ""
        self._written = False
        self._model = ""
        self._failed = ("", "")
        self.message = ""
        """The CLI's id of the answer's last message."""
        self.session = ""
        self.spent_before = 0.0
        self.spent = 0.0
        """The session's total cost, in dollars."""

    def hear(self, message: "Message") -> Iterator[ReplyPart]:
        """The reply parts of one message."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, StreamEvent, SystemMessage, TextBlock, UserMessage

        match message:
            case StreamEvent(parent_tool_use_id=None):
                yield from self._stream(message)
            case AssistantMessage(parent_tool_use_id=None):
                yield from self._assistant(message)
            case SystemMessage():
                yield from self._system(message)
            case UserMessage(content=[TextBlock(), *_]):
                self._joint = ""  # the answer was cut off and continues where it stopped
            case ResultMessage():
                yield from self._result(message)

    def _stream(self, message: "StreamEvent") -> Iterator[ReplyPart]:
        event = message.event
        if event.get("type") == "message_start":
            self._unaccepted.clear()
            self._written = False
            yield Accepted()
        delta = event.get("delta", {})
        if event.get("type") == "content_block_delta" and delta.get("type") == "text_delta" and delta.get("text"):
            joint = "" if self._written else self._joint
            self._written = True
            yield TextDelta(text=joint + delta["text"])

    def _assistant(self, message: "AssistantMessage") -> Iterator[ReplyPart]:
        from claude_agent_sdk import TextBlock, ToolUseBlock

        if message.error is not None:
            text = " ".join(block.text for block in message.content if isinstance(block, TextBlock))
            self._failed = (message.error, text)
            if blames_media(message.error, text):
                raise MediaRefusedByModel(why_refused(text), blamed(text, self._blocks, self._unaccepted))
            return
        self._model = message.model
        self.message = message.uuid or self.message
        for block in message.content:
            if isinstance(block, TextBlock) and block.text:
                self._answer += self._joint + block.text
                self._joint = PARAGRAPH
            elif isinstance(block, ToolUseBlock):
                name = tool_name(block.name)
                yield ToolNote(tool=name, text=tool_words(name, block.input, self._names))

    def _system(self, message: "SystemMessage") -> Iterator[ReplyPart]:
        if message.subtype == "compact_boundary":
            yield Compacted()
        elif message.subtype == "api_retry":
            yield ToolNote(tool="", text="the model does not answer; trying again")

    def _result(self, message: "ResultMessage") -> Iterator[ReplyPart]:
        self.session = message.session_id
        self.spent = max(message.total_cost_usd or 0.0, self.spent_before)
        usage = message.usage or {}
        read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        yield Usage(
            input_tokens=sum(int(usage.get(key) or 0) for key in read),
            output_tokens=int(usage.get("output_tokens") or 0),
            cost_usd=self.spent - self.spent_before,
            model=self._model,
        )
        if message.subtype == "error_max_turns":
            why = f"the model called tools {message.num_turns - 1} times (max_steps) and did not answer"
            yield from self._incomplete(STOPPED, why)
            return
        if message.stop_reason == "refusal":
            raise AgentError(REFUSED)
        if self._failed[0] == "max_output_tokens" and self._answer:
            yield from self._incomplete(CUT_SHORT, BY_KIND["max_output_tokens"])
            return
        if message.is_error:
            raise failure(self._failed[0], message.api_error_status, message.terminal_reason or "")
        yield Final(text=self._answer)

    def _incomplete(self, mark: str, why: str) -> Iterator[ReplyPart]:
        """What was written so far, marked where it ends; empty if nothing was."""
        if self._answer:
            yield TextDelta(text=mark)
        yield Final(text=self._answer and self._answer + mark, why=why)
