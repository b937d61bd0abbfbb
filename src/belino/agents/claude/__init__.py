"""Claude, through the Claude Agent SDK: one process per live conversation, ended when idle, resumed by id."""

import asyncio
import json
import logging
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from belino.agents.claude.child import CLOSING_SECONDS, find_cli
from belino.agents.claude.config import DOCUMENTS, SETUP, Config, check_api, hosts
from belino.agents.claude.listen import MediaRefusedByModel, SessionLost
from belino.agents.claude.session import CliSession, Mark
from belino.domain.errors import MemoryLost
from belino.domain.media import AcceptedMedia, Block
from belino.domain.message import ConversationKey
from belino.domain.outcome import Finding
from belino.domain.turn import Final, Refused, ReplyPart, Toolbox, ToolNote, ToolSpec, Turn

__all__ = ["SETUP", "Agent", "Config", "hosts"]

log = logging.getLogger(__name__)


class Agent:
    """Answers with Claude. Its memory is in the CLI's transcripts; belino stores only the position in them."""

    remembers = True
    sees_images = True

    def __init__(self, config: Config) -> None:
        find_cli()
        self._config = config
        self.model = config.model
        # The SDK drops documents from tool results: they go with the prompt.
        self.accepts = AcceptedMedia(documents=DOCUMENTS, in_results=False, files=config.read_files)
        self._live: OrderedDict[ConversationKey, CliSession] = OrderedDict()
        """Processes that wait for their next turn, the longest waiting first."""
        self._timers: dict[ConversationKey, asyncio.TimerHandle] = {}
        self._ended: list[CliSession] = []
        """Asked to end, and not yet seen to have ended."""
        self._room = asyncio.Semaphore(config.max_live)
        self._running = 0

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Answer; if the API refuses media, leave it out and retry the turn once."""
        if self._room.locked():
            yield ToolNote(tool="", text="waiting until another conversation is answered")
        async with self._room:
            mark = Mark.read(await turn.memory.load())
            replay = Replay(turn.toolbox)
            turn = replace(turn, toolbox=replay)
            try:
                async with aclosing(self._answer(turn, mark, {})) as parts:
                    async for part in parts:
                        yield part
                return
            except MediaRefusedByModel as error:
                refused = {block.ref: error.why for block in error.media}
            replay.again()
            for ref, why in refused.items():
                yield Refused(ref=ref, why=why)
            if not refused:
                # It is in the conversation's history, and would be refused again at every turn.
                raise MemoryLost("the model refuses a picture or document that it was shown before")
            async with aclosing(self._answer(turn, mark, refused)) as parts:
                async for part in parts:
                    yield part

    def why_not(self, model: str) -> str:
        """Why another model cannot answer; the API itself refuses a name that it does not know."""
        return "a name must not begin with a dash" if model.startswith("-") else ""

    async def check(self) -> Sequence[Finding]:
        """Check that the key is valid and the API is reachable; the extra is already known to be installed."""
        return await check_api(self._config)

    async def close(self) -> None:
        """End every process."""
        for conversation in list(self._live):
            self._let_go(conversation)
        await self._see_off()

    async def _answer(self, turn: Turn, mark: Mark | None, refused: Mapping[str, str]) -> AsyncGenerator[ReplyPart]:
        """One attempt; only an answer keeps the process alive, else the next attempt resumes from the last answer."""
        session = self._waiting(turn, mark)
        answered = False
        self._running += 1
        try:
            if session is None:
                await self._make_room()
                session = CliSession(replace(self._config, model=turn.model or self.model), turn, mark)
                try:
                    await session.open()
                except SessionLost:
                    raise MemoryLost("the transcript of this conversation is gone") from None
            async with aclosing(session.answer(turn, refused)) as parts:
                async for part in parts:
                    if isinstance(part, Final) and session.mark is not None:
                        await turn.memory.save(session.mark.to_bytes())
                        self._keep(turn.conversation, session)
                        answered = True
                    yield part
        finally:
            self._running -= 1
            if session is not None and not answered:
                session.kill()
                await session.close()

    def _waiting(self, turn: Turn, mark: Mark | None) -> CliSession | None:
        """The conversation's live session, if it is at the stored position."""
        session = self._live.get(turn.conversation)
        if session is not None and not session.fits(turn, mark):
            self._let_go(turn.conversation)
            return None
        if session is not None:
            del self._live[turn.conversation]
            self._timers.pop(turn.conversation).cancel()
        return session

    def _keep(self, conversation: ConversationKey, session: CliSession) -> None:
        loop = asyncio.get_running_loop()
        self._live[conversation] = session
        self._timers[conversation] = loop.call_later(self._config.idle_seconds, self._let_go, conversation)

    def _let_go(self, conversation: ConversationKey) -> None:
        self._timers.pop(conversation).cancel()
        session = self._live.pop(conversation)
        session.let_go()
        asyncio.get_running_loop().call_later(CLOSING_SECONDS, session.kill)
        self._ended.append(session)

    async def _make_room(self) -> None:
        """End waiting processes over the limit; the semaphore limits the running ones."""
        while self._live and len(self._live) + self._running > self._config.max_live:
            self._let_go(next(iter(self._live)))
        await self._see_off()

    async def _see_off(self) -> None:
        while self._ended:
            await self._ended.pop().close()


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
