"""An agent of another package, found by its entry point."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from belino import Final, ReplyPart, Turn
from belino.domain.media import Block, ImageBlock, TextBlock
from journeys.brain import DRAWING, Call, Content, Wait, answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the journeys tell it."""

    flag: str


class Agent:
    """Remembers the first message that it was told."""

    remembers = True
    sees_images = True

    def __init__(self, config: Config) -> None:
        self._flag = Path(config.flag)

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        session = await turn.memory.load() or turn.message.id.encode()
        prompt = "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
        steps = answer(prompt, session.decode(), self._flag)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._result(turn, step))
        except StopIteration as end:
            said = end.value
        if said.draws and turn.outgoing is not None:
            (turn.outgoing / "drawing.png").write_bytes(DRAWING)
        await turn.memory.save(session)
        yield Final(text=said.text)

    async def _result(self, turn: Turn, step: Call | Wait) -> Content:
        if isinstance(step, Wait):
            self._flag.write_text("no token")
            await asyncio.Event().wait()
            return ()
        return [_content(block) for block in await turn.toolbox.call(step.tool, step.arguments)]


def _content(block: Block) -> dict[str, str]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageBlock):
        return {"type": "image", "mimeType": block.mime, "data": base64.b64encode(block.data).decode()}
    return {"type": "other"}
