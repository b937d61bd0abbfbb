"""Contract of an agent: what every agent promises about a turn, checked with questions that you bring."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from belino.domain.errors import AgentError, MemoryLost, ToolError
from belino.domain.media import Block, TextBlock
from belino.domain.message import Author, ConversationKey
from belino.domain.ports import Agent, Closes
from belino.domain.turn import Final, ReplyPart, ToolAddress, ToolSpec, Turn, TurnMessage
from belino.testing.clock import START

WAIT_SECONDS = 10.0
BROKEN_MEMORY = b"\xff not a memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTrial:
    """Your agent, and what to ask it. A missing question skips the checks that need it."""

    make: Callable[[], Agent]
    folder: Path
    """An empty folder for the sessions' files."""
    ask: str = "hello"
    """A question that it answers with text."""
    slow: str = ""
    """One that it works on until it is stopped."""
    failing: str = ""
    """One at which it fails."""
    tools_at: Callable[[], AbstractContextManager[ToolAddress | None]] = nullcontext


async def check_agent(trial: AgentTrial) -> tuple[str, ...]:
    """Run all checks that the trial allows and return their names; raises AssertionError with advice."""
    checks: dict[str, Callable[[AgentTrial], Awaitable[None]]] = {
        "a turn ends with one Final": check_a_turn_ends_with_one_final,
        "conversations do not mix": check_conversations_do_not_mix,
        "memory survives a restart": check_memory_survives_a_restart,
        "a broken memory is no failure": check_a_broken_memory_is_no_failure,
    }
    if trial.slow:
        checks["stopping is prompt"] = check_stopping_is_prompt
    if trial.failing:
        checks["a failure is an AgentError"] = check_a_failure_is_an_agent_error
    for name, check in checks.items():
        try:
            async with asyncio.timeout(WAIT_SECONDS * 3):
                await check(trial)
        except TimeoutError:
            raise AssertionError(f"{name}: not finished within {WAIT_SECONDS * 3:g} s") from None
    return tuple(checks)


async def check_a_turn_ends_with_one_final(trial: AgentTrial) -> None:
    """The last part is Final, there is no other, and it has text."""
    parts = await _asked(trial, trial.ask)
    finals = [part for part in parts if isinstance(part, Final)]
    assert parts and parts[-1:] == finals, "the last part of a turn, and only that, must be Final"
    assert finals[0].text.strip() or finals[0].silent, "Final has no text; an agent that says nothing is `silent`"


async def check_conversations_do_not_mix(trial: AgentTrial) -> None:
    """Two conversations are answered at the same time, each in its own folder."""
    agent = trial.make()
    try:
        async with asyncio.TaskGroup() as group:
            for channel in ("one", "two"):
                group.create_task(_run(agent, make_turn(trial, trial.ask, channel=channel)))
    finally:
        await _close(agent)


async def check_memory_survives_a_restart(trial: AgentTrial) -> None:
    """A second instance goes on with what the first saved. One that only passes messages on has nothing to save."""
    memory = HeldMemory()
    *_, last = await _asked(trial, trial.ask, memory=memory)
    is_silent = isinstance(last, Final) and last.silent
    if trial.make().remembers and not is_silent:
        assert memory.held is not None, "an agent that remembers must save something with turn.memory"
    await _asked(trial, trial.ask, memory=memory, number=2)


async def check_a_broken_memory_is_no_failure(trial: AgentTrial) -> None:
    """A memory that cannot be read means a new beginning, or MemoryLost."""
    try:
        await _asked(trial, trial.ask, memory=HeldMemory(BROKEN_MEMORY))
    except MemoryLost:
        return


async def check_stopping_is_prompt(trial: AgentTrial) -> None:
    """A cancelled turn ends at once and saves nothing."""
    agent, memory = trial.make(), HeldMemory()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(agent, make_turn(trial, trial.slow, memory=memory)))
        ended_before, _ = await asyncio.wait({task}, timeout=1.0)
        task.cancel()
        ended, _ = await asyncio.wait({task}, timeout=WAIT_SECONDS)
    assert not ended_before, f"{trial.slow!r} must keep the agent busy until it is stopped"
    assert ended and task.cancelled(), "a cancelled turn must end at once, with CancelledError"
    assert memory.held is None, "a turn that did not end must not save its memory"
    await _close(agent)


async def check_a_failure_is_an_agent_error(trial: AgentTrial) -> None:
    """A failure is an AgentError with a reason."""
    try:
        await _asked(trial, trial.failing)
    except AgentError as error:
        assert str(error).strip(), "an AgentError needs a sentence about what failed"
        return
    raise AssertionError(f"{trial.failing!r} must raise an AgentError")


class HeldMemory:
    """A session's memory in this process."""

    def __init__(self, held: bytes | None = None) -> None:
        self.held = held

    async def load(self) -> bytes | None:
        return self.held

    async def save(self, memory: bytes) -> None:
        self.held = memory


class NoTools:
    """A toolbox without tools."""

    specs: tuple[ToolSpec, ...] = ()

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        raise ToolError(f"there is no tool {name}")


def make_turn(
    trial: AgentTrial, text: str, *, channel: str = "main", memory: HeldMemory | None = None, number: int = 1
) -> Turn:
    """A turn of a person's message."""
    folder, outgoing = trial.folder / channel / "incoming", trial.folder / channel / "outgoing" / "pending"
    folder.mkdir(parents=True, exist_ok=True)
    outgoing.mkdir(parents=True, exist_ok=True)
    asked = TurnMessage(id=f"m{number}", author=Author(id="ann", name="Ann"), sent=START, text=text)
    return Turn(
        conversation=ConversationKey(platform="memory", account="default", channel=channel),
        number=number,
        system="You answer in a chat.",
        blocks=(TextBlock(text=text),),
        toolbox=NoTools(),
        memory=memory or HeldMemory(),
        folder=folder,
        outgoing=outgoing,
        deadline=START + timedelta(hours=1),
        messages=(asked,),
        tools_at=trial.tools_at,
    )


async def _asked(trial: AgentTrial, text: str, *, memory: HeldMemory | None = None, number: int = 1) -> list[ReplyPart]:
    agent = trial.make()
    try:
        return await _run(agent, make_turn(trial, text, memory=memory, number=number))
    finally:
        await _close(agent)


async def _run(agent: Agent, turn: Turn) -> list[ReplyPart]:
    parts = agent.run_turn(turn)
    try:
        return [part async for part in parts]
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


async def _close(agent: Agent) -> None:
    if isinstance(agent, Closes):
        await agent.close()
