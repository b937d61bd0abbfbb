"""One turn: message in, reply out, and what the agent may use."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from belino.domain.choice import Choice
from belino.domain.errors import ToolError
from belino.domain.media import Block, FileBlock, MediaRef
from belino.domain.message import Author, ConversationKey, Quote

WORDS_CHARS = 80
NO_NAMES: Mapping[str, str] = {}

# Real placeholders only: the gateway rewrites the bracket of look-alikes in untrusted text.
_PLACEHOLDER = re.compile(
    r"\[(Image|Video|Audio|Voice|Document|Sticker): ([^\[\]\n]{0,400}?)(?:, )?ref:([a-z0-9]{1,8}_[a-z0-9]{12})\]"
)
_NOT_NAME = re.compile(
    r"(?:, (?:[0-9][0-9.]*(?:B|KB|MB|GB)|(?:[0-9]+[hms])+|[^ ,]+/[^ ,]+|over daily limit|failed))*\Z"
)
_LISTED = re.compile(r"^([a-z0-9]{1,8}_[a-z0-9]{12})\|[a-z]+\|((?:[^|\\\n]|\\.)+)\|", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as it is described to a model."""

    name: str
    description: str
    schema: Mapping[str, object]


class Toolbox(Protocol):
    """The tools of a session's agent; its channel is fixed when it is made."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool. Raises ToolError with a sentence the agent can act on."""
        ...


class SessionMemory(Protocol):
    """What an agent wants to have again at its next turn; stored with the end of this one."""

    async def load(self) -> bytes | None: ...

    async def save(self, memory: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessage:
    """A message to answer, as its author sent it."""

    id: str
    author: Author
    sent: datetime
    text: str
    """What its author wrote, in a caption, too; of a voice message that was read, what was said."""
    media: tuple[MediaRef, ...] = ()
    """Nothing is fetched yet; see `Turn.open`."""
    quote: Quote | None = None
    """What it replies to."""
    forward: Quote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an agent is given to answer."""

    conversation: ConversationKey
    number: int
    system: str
    """Our own static text; nothing from outside."""
    blocks: tuple[Block, ...]
    toolbox: Toolbox
    memory: SessionMemory
    folder: Path
    """The session's folder: files the agent asked for."""
    deadline: datetime
    outgoing: Path | None = None
    """Where it may put files to send with the answer; None where nothing can be sent."""
    messages: tuple[TurnMessage, ...] = ()
    """The messages to answer, oldest first: several if they belong together. `blocks` has them with context."""
    model: str = ""
    """The model that people chose here instead of the agent's own; empty if none."""

    @property
    def message(self) -> TurnMessage:
        """The message to answer; of several, the last."""
        return self.messages[-1]

    async def open(self, ref: MediaRef) -> Path:
        """Fetch media of this channel: a copy in the session's folder. Raises ToolError if it cannot be had."""
        for block in await self.toolbox.call("fetch_media", {"ref": ref.id, "as": "file"}):
            if isinstance(block, FileBlock):
                return block.path
        raise ToolError(f"{ref.id} is not available as a file")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer, as it streams."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNote:
    """A tool is being used; may be shown to a person."""

    tool: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The model accepted the turn's content: pictures in it count as shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The agent's memory was shortened: what it was given before is gone from it, all of it or a part."""

    only: tuple[str, ...] = ()
    """The refs of the media that was removed, if every turn stayed; empty means that turns were removed."""
    first: int | None = None
    """The first turn that stayed when turns were removed; None means that none did."""
    kept: tuple[str, ...] = ()
    """The refs of the media that stayed with those turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the turn has cost so far."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The model refused a picture."""

    ref: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The whole answer; the last part of every turn. An empty one is a failure, unless it is silent."""

    text: str = ""
    silent: bool = False
    """Nothing is sent; the text is the reason."""
    why: str = ""
    """Why the text is empty or incomplete, if it is, for `explain`."""


ReplyPart = TextDelta | ToolNote | Accepted | Compacted | Usage | Refused | Choice | Final


def placeholders(text: str) -> Iterator[tuple[str, str, str]]:
    """The placeholders in a text, each as kind, name and ref."""
    for kind, parts, ref in _PLACEHOLDER.findall(text):
        yield kind, _NOT_NAME.sub("", f", {parts}").removeprefix(", ") or f"the {kind.lower()}", ref


def media_names(text: str) -> dict[str, str]:
    """The names of media in placeholders and the lines of `list_media`, by ref."""
    listed = {ref: name.replace("\\", "") for ref, name in _LISTED.findall(text)}
    return listed | {ref: name for _, name, ref in placeholders(text)}


def tool_words(tool: str, arguments: Mapping[str, object], names: Mapping[str, str] = NO_NAMES) -> str:
    """A tool call in words for a person; `names` are of media, by ref."""

    def said(key: str) -> str:
        value = arguments.get(key)
        words = " ".join(str(value).split()) if isinstance(value, str | int) else ""
        return words if len(words) <= WORDS_CHARS else f"{words[: WORDS_CHARS - 1]}…"

    ref = said("ref") or said("mediaRef") or said("media_artifact_id")
    name = names.get(ref, "")
    match tool:
        case "fetch_media":
            return f"{'reading' if said('as') == 'text' else 'looking at'} {name or 'an attachment'}"
        case "list_media":
            return "listing the media of this channel"
        case "channel_context":
            return f"searching the channel for {said('intent')}" if said("intent") else "searching the channel"
        case "channel_messages" if ref:
            return f"looking at {name or 'an attachment'}"
        case "channel_messages":
            return "reading a thread" if said("thread_id") else "reading messages of this channel"
        case "send_media":
            return f"sending {name or said('path').rpartition('/')[2] or 'a file'}"
        case _:
            return f"using {' '.join(tool.replace('_', ' ').split())[:WORDS_CHARS] or 'a tool'}"
