"""A model agent in a test's hand: every wire format, a toolbox of one tool, a memory that is only bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pydantic_ai.models.openai  # noqa: F401 - seconds of CPU, spent before any test waits for something

from belino.agents.llm import Agent, Config
from belino.domain.errors import ToolError
from belino.domain.media import Block, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.turn import ReplyPart, ToolSpec, Turn
from belino.net.redact import Secret
from belino.testing import make_png
from belino.testing.models import (
    ModelAnswer,
    ModelFailure,
    ModelRequest,
    ModelServer,
    ModelToolCall,
    anthropic,
    gemini,
    openai,
)
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.gemini import GeminiServer
from belino.testing.models.openai import OpenAIServer

KEY = "canary-key-0123456789"
SYSTEM = "You answer in a chat."
REF = "web_k3v9d0q2m7xa"
OTHER_REF = "web_aaaaaaaaaaaa"
PNG = make_png(12, 9)
OTHER_PNG = make_png(7, 5)
PATIENCE = 60.0
BROKEN = b"no picture at all"
SEEN = ModelAnswer(text="I see a cat.")
LOOKS = ModelAnswer(text="Let me look.", calls=(ModelToolCall(tool="fetch_media", arguments={"ref": REF}),))
PHOTO = f"[Image: photo.jpg, 1KB, image/png, ref:{REF}] what is this?"

FETCH = ToolSpec(
    name="fetch_media",
    description="Get one media item.",
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {"ref": {"type": "string"}, "as": {"type": "string", "enum": ["auto", "file"]}},
        "required": ["ref"],
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One provider on one wire format."""

    model: str
    server: type[ModelServer]
    path: str
    images: Callable[[Mapping[str, Any]], list[bytes]]
    refusal: ModelFailure
    """How this provider says that it will not take a picture, without saying which."""
    more: Mapping[str, Any] = field(default_factory=dict)

    def config(self, server: ModelServer, **more: Any) -> Config:
        given = {"model": self.model, "base_url": server.url + self.path, **self.more, **more}
        return Config(**{"api_key": Secret("KEY", KEY), **given})

    @asynccontextmanager
    async def agent(self, server: ModelServer, **more: Any) -> AsyncIterator[Agent]:
        """An agent at this server, closed with the block."""
        agent = Agent(self.config(server, **more))
        try:
            yield agent
        finally:
            await agent.close()


_BAD_OPENAI = ModelFailure(status=400, kind="invalid_image_format", message=openai.UNSUPPORTED)
WIRES = {
    "anthropic": Wire(
        model="anthropic:claude-haiku-5-5",
        server=MessagesServer,
        path="",
        images=anthropic.images,
        refusal=ModelFailure(status=400, kind="invalid_request_error", message="Could not process image"),
    ),
    "chat": Wire(
        model="openai:gpt-5-mini",
        server=OpenAIServer,
        path="/v1",
        images=openai.images,
        refusal=_BAD_OPENAI,
        more={"api": "chat"},
    ),
    "responses": Wire(
        model="openai:gpt-5-mini",
        server=OpenAIServer,
        path="/v1",
        images=openai.images,
        refusal=ModelFailure(status=200, kind="invalid_image", message="The image data you provided is not valid."),
        more={"api": "responses"},
    ),
    "gemini": Wire(
        model="google:gemini-2.5-flash",
        server=GeminiServer,
        path="",
        images=gemini.images,
        refusal=ModelFailure(status=400, message="Unable to process input image."),
    ),
    "groq": Wire(
        model="groq:meta-llama/llama-4-scout-17b-16e-instruct",
        server=OpenAIServer,
        path="/v1",
        images=openai.images,
        refusal=ModelFailure(status=400, kind="invalid_request_error", message="invalid image data"),
    ),
    "ollama": Wire(
        model="ollama:llava",
        server=OpenAIServer,
        path="/v1",
        images=openai.images,
        refusal=ModelFailure(status=500, kind="api_error", message="Failed to load image or audio file"),
    ),
}


class Shelf:
    """A toolbox of pictures by ref."""

    specs = (FETCH,)

    def __init__(self, shelved: Mapping[str, bytes] | None = None) -> None:
        self.shelved = {REF: PNG, OTHER_REF: OTHER_PNG} if shelved is None else shelved
        self.calls: list[Mapping[str, object]] = []

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        self.calls.append(arguments)
        ref = str(arguments.get("ref"))
        if ref not in self.shelved:
            raise ToolError("there is no such media in this channel; list_media shows what there is")
        return TextBlock(text="photo.jpg, as asked."), picture(ref, self.shelved[ref])


class Memory:
    """A session's memory, and nothing else."""

    def __init__(self) -> None:
        self.held: bytes | None = None

    async def load(self) -> bytes | None:
        return self.held

    async def save(self, memory: bytes) -> None:
        self.held = memory


def picture(ref: str = REF, data: bytes = PNG, *, mime: str = "image/png") -> ImageBlock:
    return ImageBlock(mime=mime, data=data, ref=ref, sha256=f"sha of {ref}")


def turn(
    *blocks: Block | str,
    memory: Memory | None = None,
    number: int = 1,
    toolbox: Shelf | None = None,
    channel: str = "main",
    seconds: float = 60.0,
) -> Turn:
    return Turn(
        conversation=ConversationKey(platform="web", account="default", channel=channel),
        number=number,
        system=SYSTEM,
        blocks=tuple(TextBlock(text=block) if isinstance(block, str) else block for block in blocks),
        toolbox=toolbox or Shelf(),
        memory=memory or Memory(),
        folder=Path("/nowhere"),
        deadline=datetime.now(UTC) + timedelta(seconds=seconds),
    )


async def played(agent: Agent, asked: Turn) -> list[ReplyPart]:
    """Every part of a turn."""
    async with asyncio.timeout(PATIENCE):
        return [part async for part in agent.run_turn(asked)]


def messages_in(asked: ModelRequest) -> list[str]:
    """The messages of a request, each as text."""
    body = asked.body
    listed = body.get("messages") or body.get("contents") or body.get("input") or []
    return [json.dumps(message) for message in listed]
