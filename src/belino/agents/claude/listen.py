"""Listen to the CLI: convert its messages to parts of a reply."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from belino.agents.claude.failures import PicturesRefused, blamed, blames_a_picture, failure, why_refused
from belino.agents.claude.wire import tool_name
from belino.domain.errors import AgentError
from belino.domain.media import Block, ImageBlock
from belino.domain.turn import Accepted, Compacted, Final, ReplyPart, TextDelta, ToolNote, Usage, tool_words

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, SystemMessage

PARAGRAPH = "\n\n"


class CliListener:
    """Reads one turn; its last part is the Final, or it raises an AgentError.

    `unaccepted` are pictures the model has not accepted yet: the turn's own, and those that tools add.
    """

    def __init__(self, blocks: Sequence[Block], unaccepted: list[ImageBlock], names: Mapping[str, str]) -> None:
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
            if blames_a_picture(message.error, text):
                raise PicturesRefused(why_refused(text), blamed(text, self._blocks, self._unaccepted))
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
            raise AgentError(f"the agent took {message.num_turns} steps and had no answer yet")
        if message.is_error:
            raise failure(self._failed[0], message.api_error_status, message.terminal_reason or "")
        yield Final(text=self._answer)
