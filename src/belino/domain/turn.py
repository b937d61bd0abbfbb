"""One turn: message in, reply out, and what the agent may use on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from belino.domain.media import Block
from belino.domain.message import ConversationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told about it."""

    name: str
    description: str
    schema: Mapping[str, object]


class Toolbox(Protocol):
    """What a session's agent may call; the channel it sees is fixed when it is made."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool. Raises ToolError with a sentence the agent can act on."""
        ...


class SessionMemory(Protocol):
    """What an agent wants to find again at its next turn; saved with the end of this one."""

    async def load(self) -> bytes | None: ...

    async def save(self, memory: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an agent is given to answer."""

    conversation: ConversationKey
    number: int
    system: str
    """Our own static text; nothing that came from outside."""
    blocks: tuple[Block, ...]
    toolbox: Toolbox
    memory: SessionMemory
    folder: Path
    """The session's folder: files the agent asked for."""
    deadline: datetime
    outgoing: Path | None = None
    """Where it may put files that go out with the answer; None where nothing can be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer, as it is written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNote:
    """A tool is being used; a person may be shown it."""

    tool: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The model took the turn's content: pictures in it count as shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The agent's memory was shortened: pictures shown before are gone from it."""

    only: tuple[str, ...] = ()
    """The refs that went, where the rest of the memory stayed as it was; empty means all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the turn has cost so far."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The model would not take a picture."""

    ref: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The whole answer; the last part of every turn."""

    text: str


ReplyPart = TextDelta | ToolNote | Accepted | Compacted | Usage | Refused | Final
