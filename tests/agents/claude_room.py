"""A conversation with Claude in a test's hand: the real SDK, its real CLI, a scripted API, and no gateway."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from belino.agents.claude import Agent, Config
from belino.domain.errors import ToolError
from belino.domain.media import Block, DocumentBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.turn import Final, ReplyPart, ToolSpec, Turn
from belino.net.redact import Secret
from belino.testing.models.anthropic import MessagesServer

KEY = "sk-ant-test-0123456789"
SYSTEM = "You answer in a chat, through belino."
PATIENCE = 60.0
REF = "tg_k3v9d0q2m7xa"

T = TypeVar("T")


class Memory:
    """What the store would keep; a turn that fails is not kept."""

    def __init__(self) -> None:
        self.kept: bytes | None = None
        self.saved: bytes | None = None

    async def load(self) -> bytes | None:
        return self.kept

    async def save(self, memory: bytes) -> None:
        self.saved = memory


class Box:
    """A toolbox of one tool, which answers as a test says."""

    def __init__(self, *results: tuple[Block, ...] | str) -> None:
        schema = {"type": "object", "properties": {"ref": {"type": "string"}}, "required": ["ref"]}
        self.specs = (ToolSpec(name="fetch_media", description="Fetch a media item.", schema=schema),)
        self.results = list(results)
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        self.calls.append((name, dict(arguments)))
        result = self.results.pop(0) if self.results else (TextBlock(text="nothing there"),)
        if isinstance(result, str):
            raise ToolError(result)
        return result


def picture(data: bytes, *, ref: str = REF, mime: str = "image/png") -> ImageBlock:
    return ImageBlock(mime=mime, data=data, ref=ref, sha256=sha256(data).hexdigest())


def document(data: bytes, *, ref: str = REF) -> DocumentBlock:
    return DocumentBlock(
        mime="application/pdf", data=data, ref=ref, sha256=sha256(data).hexdigest(), tokens=100, pages=1
    )


@dataclass(slots=True, kw_only=True)
class Room:
    """One conversation; `say` runs a turn the way the gateway does, and keeps its memory if it was answered."""

    path: Path
    agent: Agent
    channel: str = "main"
    memory: Memory = field(default_factory=Memory)
    number: int = 0
    model: str = ""
    """What people chose."""

    @property
    def folder(self) -> Path:
        folder = self.path / self.channel / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def turn(self, *blocks: Block | str, box: Box | None = None) -> Turn:
        self.number += 1
        return Turn(
            conversation=ConversationKey(platform="web", account="default", channel=self.channel),
            number=self.number,
            system=SYSTEM,
            blocks=tuple(TextBlock(text=block) if isinstance(block, str) else block for block in blocks),
            toolbox=box or Box(),
            memory=self.memory,
            folder=self.folder,
            deadline=datetime.now(UTC) + timedelta(minutes=1),
            model=self.model,
        )

    async def parts(self, *blocks: Block | str, box: Box | None = None) -> AsyncIterator[ReplyPart]:
        """A turn's parts; like the gateway it stops listening at the Final."""
        turn = self.turn(*blocks, box=box)
        async with aclosing(cast("Any", self.agent.run_turn(turn))) as parts:
            async for part in parts:
                if isinstance(part, Final):
                    self.memory.kept = self.memory.saved
                yield part
                if isinstance(part, Final):
                    return

    async def say(self, *blocks: Block | str, box: Box | None = None) -> list[ReplyPart]:
        return [part async for part in self.parts(*blocks, box=box)]


def settings(server: MessagesServer, **more: Any) -> Config:
    return Config(
        **{"api_key": Secret("KEY", KEY), "base_url": server.url, "model": "claude-sonnet-4-5", "retries": 0, **more}
    )


@asynccontextmanager
async def settled(path: Path, server: MessagesServer, **more: Any) -> AsyncIterator[Callable[..., Room]]:
    """An agent, and rooms to speak with it in; closed at the end."""
    agent = Agent(settings(server, **more))

    def room(channel: str = "main", memory: Memory | None = None) -> Room:
        return Room(path=path, agent=agent, channel=channel, memory=memory or Memory())

    try:
        async with asyncio.timeout(PATIENCE):
            yield room
    finally:
        await agent.close()


def final(parts: list[ReplyPart]) -> str:
    assert isinstance(parts[-1], Final)
    return parts[-1].text


def only(kind: type[T], parts: list[ReplyPart]) -> list[T]:
    return [part for part in parts if isinstance(part, kind)]
