"""Replay of tool answers: a turn that is tried again does nothing twice."""

import json
from collections import defaultdict
from collections.abc import Mapping

from belino.domain.media import Block
from belino.domain.turn import Toolbox, ToolSpec


class Replay:
    """A turn's toolbox. After `again`, the same calls get the same answers, pictures included, and reach nothing."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._told = defaultdict[str, list[tuple[Block, ...]]](list)
        self._replayed: dict[str, list[tuple[Block, ...]]] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs

    def again(self) -> None:
        """The turn begins once more."""
        self._replayed = {call: list(answers) for call, answers in self._told.items()}

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool, or answer as it did the first time."""
        call = json.dumps([name, arguments], sort_keys=True, default=str)
        if self._replayed.get(call):
            return self._replayed[call].pop(0)
        blocks = await self._toolbox.call(name, arguments)
        self._told[call].append(blocks)
        return blocks
