"""Scripted agent: it answers each turn with the next line of a test's script."""

from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from belino.domain.media import Block, ImageBlock, TextBlock
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, ToolNote, Turn, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Call a tool of the turn's own toolbox; the results are in `ScriptedAgent.answers`."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)


ScriptLine = str | ToolCall | Exception | ReplyPart
"""One step: answer with a text, call a tool, raise, or yield a part as it is."""


class ScriptedAgent:
    """Answers each turn with the next line, or list of lines, of its script; afterwards it echoes the turn's number.

    A turn ends with a Final: a text is one; a script line without any gets an empty one. Its inputs are recorded in
    `turns`; with `remembers=False` it starts every turn without a memory.
    """

    def __init__(
        self, *script: ScriptLine | list[ScriptLine], remembers: bool = True, sees_images: bool = True
    ) -> None:
        self.remembers = remembers
        self.sees_images = sees_images
        self.script = deque(line if isinstance(line, list) else [line] for line in script)
        self.turns: list[Turn] = []
        self.answers: list[tuple[Block, ...]] = []

    def told(self, number: int = -1) -> str:
        """All text of a turn's prompt, in order; of the last turn by default."""
        return "\n".join(block.text for block in self.turns[number].blocks if isinstance(block, TextBlock))

    def pictures(self, number: int = -1) -> list[ImageBlock]:
        """The pictures of a turn's prompt."""
        return [block for block in self.turns[number].blocks if isinstance(block, ImageBlock)]

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Play the next lines of the script."""
        self.turns.append(turn)
        lines: list[ScriptLine] = self.script.popleft() if self.script else [f"turn {turn.number}"]
        yield Accepted()
        for line in lines:
            match line:
                case Exception():
                    raise line
                case ToolCall(name=name, arguments=arguments):
                    yield ToolNote(tool=name, text=f"calls {name}")
                    self.answers.append(await turn.toolbox.call(name, arguments))
                case str(text):
                    yield TextDelta(text=text)
                    yield Usage(input_tokens=1, output_tokens=1)
                    yield Final(text=text)
                    return
                case Final():
                    yield line
                    return
                case _:
                    yield line
        yield Final(text="")
