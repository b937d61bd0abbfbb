"""Replay of tool answers: a turn that is retried does nothing twice."""

import json
from collections import defaultdict
from collections.abc import Mapping

from belino.domain.media import Block
from belino.domain.turn import Toolbox, ToolSpec


class Replay:
    """A turn's toolbox. After `again`, the same calls get the same answers, pictures included, and run nothing."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._told = defaultdict[str, list[tuple[Block, ...]]](list)
        self._replayed: dict[str, list[tuple[Block, ...]]] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs

    def again(self) -> None:
        """Start the turn again."""
        self._replayed = {call: list(answers) for call, answers in self._told.items()}

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool, or return its first answer."""
        call = json.dumps([name, arguments], sort_keys=True, default=str)
        if self._replayed.get(call):
            return self._replayed[call].pop(0)
        blocks = await self._toolbox.call(name, arguments)
        self._told[call].append(blocks)
        return blocks
