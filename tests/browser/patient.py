"""An agent that answers when a test says so: it waits until a file is there.

`please fail` makes it fail as long as that file is empty.
Asked to `think aloud` it begins to write before that.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from belino.domain.errors import AgentError
from belino.domain.media import TextBlock
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, ToolNote, Turn

LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Where the patient agent looks."""

    go: str


class Agent:
    """Takes its time."""

    remembers = False
    sees_images = False

    def __init__(self, config: Config) -> None:
        self._go = Path(config.go)

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        yield ToolNote(tool="patience", text="looking at photo.jpg")
        texts = [block.text for block in turn.blocks if isinstance(block, TextBlock)]
        asked = "\n".join(text for text in texts if text.startswith("<<<message "))
        if "think aloud" in asked:
            for piece in ("**Let me** ", "think… 😀 ", "aloud"):
                yield TextDelta(text=piece)
            yield ToolNote(tool="patience", text="looking at photo.jpg")
        while not self._go.exists():
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        if "please fail" in asked and not self._go.read_text():
            raise AgentError("the agent lost its patience")
        yield Final(text=f"answer {turn.number}")
