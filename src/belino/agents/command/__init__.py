"""Command agent: any local program answers, one process per turn, with belino's tools over MCP."""

import asyncio
import codecs
import json
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from belino.agents.command.config import Config, check_program, fill, fill_word, uses
from belino.agents.command.dialects import DIALECTS
from belino.agents.command.process import BROKEN, Process, environment
from belino.domain.errors import AgentError, MemoryLost
from belino.domain.media import AcceptedMedia, TextBlock
from belino.domain.outcome import Finding
from belino.domain.turn import Accepted, Compacted, Final, ReplyPart, TextDelta, ToolAddress, ToolNote, Turn, Usage
from belino.net.agent_events import AgentFault, AgentSaid, AgentSession
from belino.net.redact import redact

__all__ = ["Agent", "Config"]

OWN_FOLDER = "command"
REASON_CHARS = 300
ELSEWHERE = "(Files of the chat are in the folder that the environment variable BELINO_FILES names.)"

# Colours and cursor movements of a terminal.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Agent:
    """Answers with what a program writes. Its memory is the program's own, by a session id, or none."""

    calls_over_mcp = True

    def __init__(self, config: Config) -> None:
        self._config = config
        self._program = config.program
        self.remembers = uses((*self._program.command, *self._program.resume), "session")
        self.sees_images = config.sees_images
        # The prompt is text: pictures come with the results of tools, files are in its folder.
        self.accepts = AcceptedMedia(in_prompt=False)
        self._room = asyncio.Semaphore(config.max_running)

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Run the program once."""
        if self._room.locked():
            yield ToolNote(tool="", text="waiting until another conversation is answered")
        async with self._room:
            memory = await turn.memory.load() if self.remembers else None
            with turn.tools_at() as address:
                async with aclosing(self._answer(turn, memory, address)) as parts:
                    async for part in parts:
                        yield part

    async def check(self) -> Sequence[Finding]:
        """Check that the program is there; of a preset, also its version and login."""
        return await check_program(self._config)

    async def _answer(self, turn: Turn, memory: bytes | None, address: ToolAddress | None) -> AsyncGenerator[ReplyPart]:
        config, program, known = self._config, self._program, _session(memory)
        session = known or str(uuid.uuid4())
        own = await asyncio.to_thread(_own_folder, turn.folder, config.preset, address)
        template = program.resume if known and program.resume else program.command
        values = _values(turn, session, own, address)
        prompt = values["prompt"] if uses(template, "system") else f"{turn.system}\n{values['prompt']}"
        if config.folder:
            prompt = f"{prompt}\n\n{ELSEWHERE}"
        values["prompt"] = prompt
        words = fill(template, values, config.arguments)
        env = environment((*program.environment, *config.environment), self._variables(turn, values, address), own)
        on_input = b"" if uses(template, "prompt") else prompt.encode()
        loop = asyncio.get_running_loop()
        until = loop.time() + config.timeout_seconds if config.timeout_seconds else None
        # An id of ours counts only if the program was given it.
        own_id = session if known or uses(template, "session") else ""
        before = _spent(memory) if program.sums_session else Usage()
        answer = Answer(own_id, before, adds_usage=program.adds_usage, from_last_tool=bool(config.preset))
        try:
            async with Process(words, env, Path(config.folder or turn.folder), on_input) as process:
                async with aclosing(self._listen(process, until)) as said:
                    async for each in said:
                        for part in answer.take(each):
                            yield part
                self._judge(await process.ended(until), process.errors, answer, resumed=bool(known))
        except TimeoutError:
            raise AgentError(f"the program did not finish within {config.timeout_seconds} seconds") from None
        if answer.session:
            spent = {"spent": answer.spent} if program.sums_session else {}
            await turn.memory.save(json.dumps({"session": answer.session, **spent}).encode())
        yield Accepted()
        yield answer.final()

    async def _listen(self, process: Process, until: float | None) -> AsyncGenerator[AgentSaid]:
        """What the program says, as it comes."""
        if not self._program.dialect:
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            async for piece in process.pieces(until):
                if text := decoder.decode(piece):
                    yield TextDelta(text=_ESCAPES.sub("", text))
            return
        read = DIALECTS[self._program.dialect]
        async for line in process.lines(until):
            try:
                event = json.loads(line)
                said = list(read(event)) if isinstance(event, Mapping) else []
            except ValueError as error:
                if self._config.preset:
                    continue  # a notice between its events
                raise AgentError(
                    f"the program wrote a line that is no event: {str(error)[:200]}", says=BROKEN
                ) from None
            for each in said:
                yield each

    def _judge(self, code: int, errors: str, answer: "Answer", *, resumed: bool) -> None:
        """Raise an error unless the program ended well."""
        lost = self._program.session_lost
        why = f"{errors} {answer.fault}".strip()
        if (code or answer.fault) and resumed and lost and re.search(lost, why, re.IGNORECASE):
            raise MemoryLost("the program's session of this conversation is gone")
        if answer.fault:
            raise AgentError(f"the program says: {redact(answer.fault)[:REASON_CHARS]}", says=BROKEN)
        if code:
            raise AgentError(f"the program ended with status {code}: {errors or 'it does not say why'}", says=BROKEN)

    def _variables(self, turn: Turn, values: Mapping[str, str], address: ToolAddress | None) -> dict[str, str]:
        tools = {"BELINO_MCP_URL": address.url, "BELINO_MCP_TOKEN": address.token} if address else {}
        secret = {**values, "mcp_token": address.token if address else ""}
        settings = {name: fill_word(value, secret) for name, value in self._program.settings.items()}
        return {
            **(settings if address else {}),
            **tools,
            "BELINO_CONVERSATION": str(turn.conversation),
            "BELINO_FILES": values["files"],
            "BELINO_OUTGOING": values["outgoing"],
        }


class Answer:
    """What the program said so far, and what of it is the answer."""

    def __init__(self, session: str, before: Usage, *, adds_usage: bool, from_last_tool: bool) -> None:
        """`before` is the usage of earlier turns that the program counts in."""
        self.session = session
        """Empty if the program has none."""
        self.fault = ""
        self._adds_usage = adds_usage
        self._from_last_tool = from_last_tool
        self._before, self._usage, self._total = before, Usage(), before
        self._texts: list[str] = []
        self._since = 0
        """Where the text after the last tool begins."""
        self._final: Final | None = None
        self._accepted = False

    def take(self, said: AgentSaid) -> Iterator[ReplyPart]:
        """The parts of the reply that it makes known; the last one comes with `final`."""
        if not self._accepted:
            self._accepted = True
            yield Accepted()
        match said:
            case AgentSession():
                self.session = said.id or self.session
            case AgentFault():
                self.fault = said.why
            case Final():
                self._final = said
            case Usage():
                self._total = said
                self._usage = _sum(self._usage, said) if self._adds_usage else _less(said, self._before)
                yield self._usage
            case ToolNote():
                self._since = len(self._texts)
                yield said
            case TextDelta():
                self._texts.append(said.text)
                yield said
            case Compacted():
                yield said

    @property
    def spent(self) -> tuple[int, int]:
        """What the program says that it has used, for the next turn."""
        return self._total.input_tokens, self._total.output_tokens

    def final(self) -> Final:
        """The whole answer: as the program says, else its text; of a preset, the text after its last tool."""
        if self._final is not None and (self._final.text or self._final.silent):
            return self._final
        last = "".join(self._texts[self._since :]).strip() if self._from_last_tool else ""
        return Final(text=last or "".join(self._texts).strip())


def _sum(before: Usage, more: Usage) -> Usage:
    return Usage(
        input_tokens=before.input_tokens + more.input_tokens, output_tokens=before.output_tokens + more.output_tokens
    )


def _less(said: Usage, before: Usage) -> Usage:
    """What a turn used; a count that begins again is taken as it is."""
    if said.input_tokens < before.input_tokens or said.output_tokens < before.output_tokens:
        return said
    own = said.input_tokens - before.input_tokens, said.output_tokens - before.output_tokens
    return replace(said, input_tokens=own[0], output_tokens=own[1])


def _spent(memory: bytes | None) -> Usage:
    """What the session used before; nothing if that is not known."""
    try:
        saved = json.loads(memory or b"{}")
    except ValueError:
        return Usage()
    match saved:
        case {"spent": [int(given), int(taken)]}:
            return Usage(input_tokens=given, output_tokens=taken)
    return Usage()


def _values(turn: Turn, session: str, own: Path, address: ToolAddress | None) -> dict[str, str]:
    told = "\n\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
    return {
        "prompt": told.replace("\0", ""),
        "system": turn.system,
        "session": session,
        "mcp_config": str(own / "mcp.json"),
        "mcp_url": address.url if address else "",
        "files": str(turn.folder),
        "outgoing": str(turn.outgoing or ""),
    }


def _session(memory: bytes | None) -> str:
    """The saved session id; empty if there is none, or it cannot be read."""
    try:
        saved = json.loads(memory or b"{}")
    except ValueError:
        return ""
    found = saved.get("session", "") if isinstance(saved, dict) else ""
    # In an argument of its own it must not be read as an option.
    return found if isinstance(found, str) and not found.startswith("-") else ""


def _own_folder(files: Path, preset: str, address: ToolAddress | None) -> Path:
    """The private folder beside the session's, with mcp.json: where the tools are, for this turn only."""
    own = files.parent / OWN_FOLDER
    own.mkdir(mode=0o700, exist_ok=True)
    file = own / "mcp.json"
    file.unlink(missing_ok=True)
    servers: dict[str, object] = {}
    if address is not None:
        headers = {"Authorization": f"Bearer {address.token}"}
        where = {"httpUrl": address.url, "trust": True} if preset == "gemini" else {"type": "http", "url": address.url}
        servers["belino"] = {**where, "headers": headers}
    file.touch(mode=0o600)
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return own
