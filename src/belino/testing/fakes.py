"""Fakes for tests of adapters and agents: an adapter's context, and an agent that answers by a script."""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, Block, ImageBlock, TextBlock
from belino.domain.message import SERVER, Arrival
from belino.domain.places import Moved
from belino.domain.ports import Clock, HttpClient, Known
from belino.domain.reply import OutgoingFile
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, ToolNote, Turn, Usage
from belino.media.jail import lend_below, open_below
from belino.net.rest import FileBody
from belino.testing.clock import FakeClock


class FakeContext:
    """An AdapterContext that records what was published; give it an HTTP client if the adapter calls its platform.

    `belino.net.client.Client(hosts=["127.0.0.1:PORT"])` and a server on loopback are better than any mock.
    """

    def __init__(
        self,
        *,
        account: str = "default",
        clock: Clock | None = None,
        http: HttpClient | None = None,
        folder: Path | None = None,
    ) -> None:
        self.account = account
        self.clock: Clock = clock or FakeClock()
        self.published: list[OutgoingFile] = []
        self.reported: list[tuple[object, Mapping[str, object], Sequence[Arrival]]] = []
        self.problems: dict[str, str] = {}
        """What the adapter reports as not working now, by part."""
        self.moves: list[Moved] = []
        """The moves of channels that the adapter reported, or that a test set."""
        self.named: set[str] = set()
        """The channels and `server:ID`s that the access rules name."""
        self.senders: list[str] = []
        """The ids of senders who may write directly."""
        self._http = http
        self._folder = folder

    def keeps(self, folder: Path) -> None:
        """Keep the session of the account in this folder from now on."""
        self._folder = folder

    @property
    def http(self) -> HttpClient:
        assert self._http is not None, "this adapter calls its platform: use FakeContext(http=…)"
        return self._http

    @property
    def places(self) -> "FakeContext":
        return self

    async def moved(self, move: Moved) -> None:
        if move not in self.moves:
            self.moves.append(move)

    def now(self, channel: str) -> str:
        return next((move.new for move in reversed(self.moves) if move.old == channel), channel)

    def names(self, channel: str, server: str = "") -> bool:
        return bool(self.named & {channel, f"{SERVER}{server}", "*"})

    def people(self) -> tuple[str, ...]:
        return tuple(self.senders)

    async def publish(self, file: OutgoingFile) -> str:
        self.published.append(file)
        return f"https://belino.test/published/{file.sha256}"

    async def publish_preview(self, file: OutgoingFile) -> str:
        return f"https://belino.test/published/{file.sha256}/preview"

    def open_below(self, folder: Path, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return open_below(folder, path)

    def folder(self) -> Path:
        assert self._folder is not None, "this adapter keeps a session: use FakeContext(folder=…)"
        return self._folder

    def lend(self, folder: Path, file: OutgoingFile) -> AbstractAsyncContextManager[Path]:
        return lend_below(folder, file.name, FileBody(file).chunks())

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        self.reported.append((payload, known(), arrivals))

    def report(self, part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False) -> None:
        if problem:
            self.problems[part] = problem
        else:
            self.problems.pop(part, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Call a tool of the turn's own toolbox; the results are in `ScriptedAgent.answers`."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)


ScriptLine = str | ToolCall | Exception | ReplyPart
"""One step: answer with a text, call a tool, raise, or yield a part as it is."""


class ScriptedAgent:
    """Answers each turn with the next line, or list of lines, of its script; afterwards it echoes the turn's number.

    A turn ends with a Final: a text is one; a script line without any gets a silent one. Its inputs are recorded in
    `turns`; with `remembers=False` it starts every turn without a memory.
    """

    def __init__(
        self,
        *script: ScriptLine | list[ScriptLine],
        remembers: bool = True,
        sees_images: bool = True,
        accepts: AcceptedMedia = TEXT_AND_PICTURES,
    ) -> None:
        self.remembers = remembers
        self.sees_images = sees_images
        self.accepts = accepts
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
        yield Final(text="", silent=True)
