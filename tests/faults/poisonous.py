"""An agent that ends the process: asked for P0ISON it exits, until a file named `cured` lies in its folder.

Before the file `go` lies there too, nobody is answered, and P0ISON takes effect once eleven turns run.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from belino.domain.media import TextBlock
from belino.domain.turn import Accepted, Final, ReplyPart, Turn

EXIT_CODE = 7
TOGETHER = 11
LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Where the agent looks."""

    folder: str


class Agent:
    """Answers everything but one word."""

    remembers = False
    sees_images = False

    def __init__(self, config: Config) -> None:
        self._folder = Path(config.folder)
        self._running = 0

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        self._running += 1
        try:
            told = [block.text for block in turn.blocks if isinstance(block, TextBlock)]
            poison = any("P0ISON" in text for text in told) and not (self._folder / "cured").exists()
            while not (self._folder / "go").exists():
                if poison and self._running == TOGETHER:
                    os._exit(EXIT_CODE)
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
            if poison:
                os._exit(EXIT_CODE)
            yield Final(text=f"fine in {turn.conversation.channel}")
        finally:
            self._running -= 1
