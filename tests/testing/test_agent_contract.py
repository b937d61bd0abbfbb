"""The contract of an agent passes good agents, and tells bad ones what is wrong."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.agents.demo import Agent as DemoAgent
from belino.agents.demo import Config as DemoConfig
from belino.domain.ports import Agent
from belino.domain.turn import Final, ReplyPart, TextDelta, Turn
from belino.testing import AgentTrial, check_agent


class Endless:
    """Never says Final."""

    remembers = False
    sees_images = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield TextDelta(text="and so on")


class Stubborn:
    """Does not end when it is stopped, but answers."""

    remembers = False
    sees_images = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        if turn.message.text == "wait":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield Final(text="I go on")
                return
        yield Final(text="yes")


class Absent(Stubborn):
    """Says that it remembers, and saves nothing."""

    remembers = True


async def test_the_demo_agent_keeps_the_contract(tmp_path: Path) -> None:
    checked = await check_agent(AgentTrial(make=lambda: DemoAgent(DemoConfig()), folder=tmp_path))
    assert "a turn ends with one Final" in checked


@pytest.mark.parametrize(
    ("agent", "advice"),
    [(Endless(), "must be Final"), (Stubborn(), "must end at once"), (Absent(), "must save something")],
    ids=["endless", "stubborn", "absent"],
)
async def test_an_agent_that_breaks_a_promise_is_told_which(tmp_path: Path, agent: Agent, advice: str) -> None:
    with pytest.raises(AssertionError, match=advice):
        await check_agent(AgentTrial(make=lambda: agent, folder=tmp_path, slow="wait"))
