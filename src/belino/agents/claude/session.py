"""Session of one conversation with the CLI: start or resume, ask, end."""

import asyncio
import importlib
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from belino.agents.claude.child import Child, command, environment
from belino.agents.claude.config import Config
from belino.agents.claude.listen import CliListener, SessionLost
from belino.agents.claude.wire import RESULT_CHARS, SERVER, message_content, tool_content
from belino.domain.errors import AgentError, ToolError
from belino.domain.media import Block, DocumentBlock, ImageBlock, MediaBlock, TextBlock
from belino.domain.turn import ReplyPart, Toolbox, ToolSpec, Turn, media_names

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient, SdkMcpTool, Transport

START_SECONDS = 60.0
SYSTEM_FILE = "system.md"
NAMES_KEPT = 1000
LOST = ("No conversation found", "No message found")
LAST_CALL = "[This was the last tool call of this turn. Answer now with what you have.]"
NO_MORE_CALLS = "this turn has no tool calls left; answer now with what you have"
NO_TURN = "there is no turn any more; the tool does nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A position in the CLI's transcript of a conversation: the agent's whole memory."""

    session: str
    message: str
    spent: float = 0.0

    @classmethod
    def read(cls, memory: bytes | None) -> "Mark | None":
        """A stored mark; None if there is none, or it cannot be read."""
        try:
            saved = json.loads(memory or b"{}")
            return cls(session=str(saved["session"]), message=str(saved["message"]), spent=float(saved["spent"]))
        except (ValueError, TypeError, KeyError):
            return None

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class CliSession:
    """A running CLI. It serves its own conversation's toolbox, and only during a turn."""

    def __init__(self, config: Config, turn: Turn, mark: Mark | None) -> None:
        self.mark = mark
        self.system = turn.system
        self.specs = turn.toolbox.specs
        self._config = config
        self._chosen = turn.model
        self._folder = turn.folder
        self._own = own_folder(turn.folder)
        self._toolbox: Toolbox | None = None
        self._refused: Mapping[str, str] = {}
        self._unaccepted: list[MediaBlock] = []
        self._names: dict[str, str] = {}
        self._child: Child | None = None
        self._client: ClaudeSDKClient | None = None

    @property
    def pid(self) -> int | None:
        """The process id, while it runs."""
        return self._child.pid if self._child else None

    def fits(self, turn: Turn, mark: Mark | None) -> bool:
        """Whether this session can continue with this turn."""
        known = (self.mark, self.system, self.specs, self._chosen)
        wanted = (mark, turn.system, turn.toolbox.specs, turn.model)
        return self.pid is not None and mark is not None and known == wanted

    async def open(self) -> None:
        """Start the CLI. SessionLost if it no longer knows the conversation."""
        # The first import takes a second; the thread keeps the event loop free.
        await asyncio.to_thread(importlib.import_module, "claude_agent_sdk")
        from claude_agent_sdk import ClaudeSDKError

        await asyncio.to_thread(self._tidy)
        self._client = self._connected_to(self._start())
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._client.connect()
        except TimeoutError:
            raise AgentError(f"Claude's process did not start within {START_SECONDS:.0f} seconds") from None
        except ClaudeSDKError as error:
            if self.mark is not None and any(words in str(error) for words in LOST):
                raise SessionLost("the conversation's transcript is gone") from None
            raise AgentError(f"Claude's process cannot be started ({type(error).__name__})") from None

    async def answer(self, turn: Turn, refused: Mapping[str, str]) -> AsyncGenerator[ReplyPart]:
        """The turn's parts, up to the Final; `refused` is media not to show, by ref."""
        from claude_agent_sdk import ClaudeSDKError

        assert self._client is not None and self._child is not None
        self._child.steps = 0
        self._toolbox, self._refused = turn.toolbox, refused
        shown = [block for block in turn.blocks if isinstance(block, ImageBlock | DocumentBlock)]
        self._unaccepted[:] = [block for block in shown if block.ref not in refused]
        self._learn_names(turn.blocks)
        listener = CliListener(turn.blocks, self._unaccepted, self._names)
        listener.spent_before = self.mark.spent if self.mark else 0.0
        try:
            await self._client.query(_only(message_content(turn.blocks, refused)))
            async with aclosing(cast("Any", self._client.receive_messages())) as messages:
                async for message in messages:
                    for part in listener.hear(message):
                        if listener.session and listener.message:
                            self.mark = Mark(session=listener.session, message=listener.message, spent=listener.spent)
                        yield part
                    if listener.session:
                        return
        except ClaudeSDKError as error:
            raise AgentError(f"Claude's process broke off ({type(error).__name__})") from None
        finally:
            self._toolbox = None
        raise AgentError("Claude's process ended in the middle of its turn")

    def let_go(self) -> None:
        """Ask the process to exit, without waiting for it; `close` cleans up."""
        if self._child is not None:
            self._child.let_go()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.disconnect()

    def _start(self) -> Child:
        words = command(
            self._config,
            system_file=self._own / SYSTEM_FILE,
            tools=[spec.name for spec in self.specs],
            resume=self.mark.session if self.mark else "",
            message=self.mark.message if self.mark else "",
        )
        self._child = Child(words, environment(self._config, self._own), self._folder)
        return self._child

    def _connected_to(self, child: Child) -> "ClaudeSDKClient":
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server

        server = create_sdk_mcp_server(SERVER, tools=[self._tool(spec) for spec in self.specs])
        # User text is delivered verbatim: no @path in it is opened, no /command is run.
        options = ClaudeAgentOptions(mcp_servers={SERVER: server}, verbatim_prompts=True)
        return ClaudeSDKClient(options, transport=cast("Transport", child))

    def _tool(self, spec: ToolSpec) -> "SdkMcpTool[Any]":
        from claude_agent_sdk import SdkMcpTool, ToolAnnotations

        return SdkMcpTool(
            name=spec.name,
            description=spec.description,
            input_schema={"properties": {}, **spec.schema},
            handler=partial(self._call, spec.name),
            annotations=ToolAnnotations(maxResultSizeChars=2 * RESULT_CHARS),
        )

    async def _call(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        steps = self._child.steps if self._child else 0
        if self._toolbox is None or steps > self._config.max_steps:
            text = NO_TURN if self._toolbox is None else NO_MORE_CALLS
            return {"content": [{"type": "text", "text": text}], "is_error": True}
        try:
            blocks = await self._toolbox.call(name, arguments)
        except ToolError as error:
            return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
        self._unaccepted += [b for b in blocks if isinstance(b, ImageBlock) and b.ref not in self._refused]
        self._learn_names(blocks)
        last = [TextBlock(text=LAST_CALL)] if steps == self._config.max_steps else []
        return {"content": tool_content([*blocks, *last], self._refused)}

    def _learn_names(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if isinstance(block, TextBlock):
                self._names.update(media_names(block.text))
        while len(self._names) > NAMES_KEPT:
            del self._names[next(iter(self._names))]

    def _tidy(self) -> None:
        """Prepare the folder; delete transcripts without a mark, which are from failed or copied turns."""
        for leftover in (self._own / "tmp", self._own / ".cache", self._own / "claude" / "backups"):
            shutil.rmtree(leftover, ignore_errors=True)
        for entry in (self._own / "claude" / "projects").glob("*/*"):
            if self.mark is not None and entry.stem == self.mark.session:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        for folder in (self._own, self._own / "tmp"):
            folder.mkdir(mode=0o700, exist_ok=True)
        words = f"{self.system}\n\n{self._config.instructions}".strip()
        (self._own / SYSTEM_FILE).write_text(words, encoding="utf-8")


def own_folder(folder: Path) -> Path:
    """The agent's private folder, next to the session's: its transcripts can be neither fetched nor sent."""
    return folder.parent / "agent"


async def _only(content: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}
