"""Claude in the whole house: a real gateway, its own toolbox and store, the real CLI, a scripted API."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from agents.claude_room import settings
from belino.config import AgentConfig, Config
from belino.domain.outcome import MessageOutcome
from belino.gateway.gateway import Gateway
from belino.testing.files import make_png
from belino.testing.models import ModelAnswer, ModelHang, ModelReply, ModelRequest, ModelToolCall
from belino.testing.models.anthropic import MessagesServer, images, texts
from gateway.house import House

pytestmark = pytest.mark.slow

PATIENCE = 60.0


class ClaudeHouse(House):
    """A house whose configuration says kind = "claude"."""

    def __init__(self, path: Path, server: MessagesServer) -> None:
        super().__init__(path)
        self._server = server

    def config(self) -> Config:
        return replace(super().config(), agent=AgentConfig(kind="claude", options=settings(self._server)))

    def gateway(self) -> Gateway:
        return Gateway(self.config(), self.home, clock=self.clock, make_adapter=self.make_adapter)


async def so(condition: Callable[[], object]) -> None:
    """Wait for a process of its own, which needs real time."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_picture_goes_from_the_platform_to_the_model_and_the_answer_back(tmp_path: Path) -> None:
    content = make_png(48, 32)

    def script(asked: ModelRequest) -> ModelReply:
        words = texts(asked.body)
        if images(asked.body):
            return ModelAnswer(text="A blue square.")
        ref = words.partition("ref:")[2].partition("]")[0]
        return ModelAnswer(calls=(ModelToolCall(tool="mcp__belino__fetch_media", arguments={"ref": ref}),))

    async with MessagesServer(script) as server:
        house = ClaudeHouse(tmp_path / "home", server)
        house.prepare()._far_side.files["f1"] = content
        async with house.at_work() as gateway:
            message = house.say("what is this?")
            await gateway.accept(replace(message, media=(house.picture(message),)))
            await so(lambda: house.wire.texts())
            assert house.wire.texts() == ["A blue square."]
            session = await gateway.store.session(message.conversation)
            assert [entry.content_hash for entry in session.manifest] == [sha256(content).hexdigest()]
            assert session.memory
    assert images(server.asked[-1].body) == [content]


async def test_a_restarted_gateway_goes_on_and_tells_trouble(tmp_path: Path) -> None:
    async with MessagesServer([ModelAnswer(text="Hello Ann.")]) as server:
        house = ClaudeHouse(tmp_path / "home", server)
        async with house.at_work() as gateway:
            await gateway.accept(house.say("I am Ann"))
            await so(lambda: len(house.wire.texts()) == 1)
        server.script = [ModelAnswer(text="You are Ann.")]
        async with house.at_work() as gateway:
            await gateway.accept(house.say("who am I?"))
            await so(lambda: len(house.wire.texts()) == 2)
            server.key = "changed"
            await gateway.accept(house.say("still there?"))
            await so(lambda: len(house.wire.texts()) == 3)
    assert "I am Ann" in texts(server.asked[1].body)
    assert house.wire.texts()[:2] == ["Hello Ann.", "You are Ann."]
    assert house.wire.texts()[2].startswith("Sorry, I could not answer that: the agent is not set up correctly")


async def test_an_abort_ends_the_turn_and_the_next_message_is_answered(tmp_path: Path) -> None:
    async with MessagesServer([ModelHang(text="Well")]) as server:
        house = ClaudeHouse(tmp_path / "home", server)
        async with house.at_work() as gateway:
            message = house.say("a long story, please")
            await gateway.accept(message)
            await so(lambda: server.asked)
            assert await gateway.abort(message.conversation)
            await so(server.gone.is_set)
            await gateway.accept(house.say("a short one, then"))
            await so(lambda: house.wire.texts())
            (aborted, *_) = await house.history(gateway)
    assert aborted.outcome is MessageOutcome.ABORTED
    told = texts(server.asked[-1].body)
    assert house.wire.texts() == ["ok"] and told.count("<<<message ") == 1 and "Well" not in told
