"""The contract of an agent passes good agents, and tells bad ones what is wrong."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.agents.channel import Agent as ChannelAgent
from belino.agents.channel import Config as ChannelConfig
from belino.agents.demo import Agent as DemoAgent
from belino.agents.demo import Config as DemoConfig
from belino.domain.ports import Agent
from belino.domain.turn import Final, ReplyPart, TextDelta, Turn
from belino.net.redact import Secret
from belino.testing import AgentTrial, check_agent
from belino.testing.models import ModelAnswer, ModelFailure, ModelHang, ModelReply, ModelRequest
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.openai import OpenAIServer

KEY = "sk-ant-test-0123456789"


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


ALL = 6
"""How many checks there are."""


def scripted(asked: ModelRequest) -> ModelReply:
    """A model that waits, fails or answers, as the last message says."""
    last = json.dumps(asked.body["messages"][-1])
    if "wait" in last:
        return ModelHang(text="Let me think")
    return (
        ModelFailure(status=400, kind="invalid_request_error", message="no")
        if "fail" in last
        else ModelAnswer(text="yes")
    )


async def test_the_agent_llm_keeps_the_contract(tmp_path: Path) -> None:
    from belino.agents.llm import Agent as LlmAgent
    from belino.agents.llm import Config as LlmConfig

    async with OpenAIServer(scripted, key=KEY) as server:
        config = LlmConfig(
            model="openai:gpt-5-mini", api="chat", api_key=Secret("KEY", KEY), base_url=f"{server.url}/v1"
        )
        trial = AgentTrial(make=lambda: LlmAgent(config), folder=tmp_path, slow="wait", failing="fail")
        assert len(await check_agent(trial)) == ALL


@pytest.mark.slow
async def test_the_agent_claude_keeps_the_contract(tmp_path: Path) -> None:
    from belino.agents.claude import Agent as ClaudeAgent
    from belino.agents.claude import Config as ClaudeConfig

    async with MessagesServer(scripted, key=KEY) as server:
        config = ClaudeConfig(api_key=Secret("KEY", KEY), base_url=server.url, model="claude-sonnet-4-5", retries=0)
        trial = AgentTrial(make=lambda: ClaudeAgent(config), folder=tmp_path, slow="wait", failing="fail")
        assert len(await check_agent(trial)) == ALL


async def test_the_agent_channel_keeps_the_contract(tmp_path: Path) -> None:
    """A turn that is passed on ends at once, and cannot fail."""
    await check_agent(AgentTrial(make=lambda: ChannelAgent(ChannelConfig()), folder=tmp_path))


@pytest.mark.parametrize(
    ("agent", "advice"),
    [(Endless(), "must be Final"), (Stubborn(), "must end at once"), (Absent(), "must save something")],
    ids=["endless", "stubborn", "absent"],
)
async def test_an_agent_that_breaks_a_promise_is_told_which(tmp_path: Path, agent: Agent, advice: str) -> None:
    with pytest.raises(AssertionError, match=advice):
        await check_agent(AgentTrial(make=lambda: agent, folder=tmp_path, slow="wait"))
