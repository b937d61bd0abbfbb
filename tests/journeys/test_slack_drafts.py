"""An answer that grows on Slack while it is written: one message, whatever is cut off and however long it gets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, SlackServer
from belino.testing.models import ModelAnswer, ModelHang
from belino.testing.models.openai import OpenAIServer
from faults import looking
from journeys.busy_place import until
from journeys.busy_workspace import BusyWorkspace
from journeys.writing import KEY, writer

pytestmark = pytest.mark.slow

BEGINNING, WHOLE = "Once upon a time", "Once upon a time there was an app."


class Story:
    """Ann, who asks for a story; a model that tells one; and a gateway between them that is killed."""

    def __init__(self, crew: BusyWorkspace, model: OpenAIServer, process: GatewayProcess) -> None:
        self.crew, self.model, self.process = crew, model, process

    async def begin(self, *, thread: bool = False) -> None:
        """Ask, in a thread or not, and wait until the beginning is shown and its receipt on disk."""
        self.model.script = lambda _: ModelHang(text=BEGINNING)
        await until(self.crew.is_heard)
        slack, ann = self.crew.slack, self.crew.ann
        before = {"thread": slack.compose(slack.dm(ann), ann, "hello")} if thread else {}
        slack.say(ann, ann, "tell me a story", **before)
        await until(lambda: self.shown() == [BEGINNING if thread else f"{BEGINNING} …"])
        await asyncio.to_thread(looking.until, lambda: self.states() == ["sent"], "the draft has no receipt")

    async def kill(self, *, then: ModelAnswer) -> None:
        await asyncio.to_thread(self.process.kill)
        self.model.script = lambda _: then
        await asyncio.to_thread(self.process.start)

    def shown(self) -> list[str]:
        """What Ann sees of the app now."""
        kept = self.crew.slack.messages[self.crew.slack.dm(self.crew.ann)["id"]].values()
        return [message["text"] for message in kept if message.get("bot_id")]

    def states(self) -> list[str]:
        parcels: list[dict[str, Any]] = self.process.call("GET", "/api/outbox?limit=50")[1]["parcels"]
        return [parcel["state"] for parcel in parcels]


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    async with SlackServer() as slack, OpenAIServer(key=KEY) as model:
        crew = BusyWorkspace(slack, tmp_path / "home")
        async with crew.process(writer(model), MODEL_KEY=KEY) as process:
            yield Story(crew, model, process)


async def test_killed_while_an_answer_is_written_its_draft_becomes_the_answer(story: Story) -> None:
    await story.begin()
    await story.kill(then=ModelAnswer(text=WHOLE))
    await until(lambda: story.shown() == [WHOLE])
    await asyncio.to_thread(looking.until, lambda: story.states() == ["sent", "sent"], "the answer is not confirmed")
    assert story.crew.slack.calls["chat.postMessage"] == 1


async def test_an_answer_that_outgrows_its_draft_is_a_message_of_its_own_and_the_draft_goes(story: Story) -> None:
    long = " ".join(f"word{number}" for number in range(700))
    await story.begin()
    await story.kill(then=ModelAnswer(text=long))
    await until(lambda: story.shown() == [long])
    await asyncio.to_thread(looking.until, lambda: story.states() == ["sent", "sent"], "the answer is not confirmed")


async def test_killed_while_an_answer_is_streamed_its_stream_becomes_the_answer(story: Story) -> None:
    await story.begin(thread=True)
    assert len(story.crew.slack.streaming) == 1
    await story.kill(then=ModelAnswer(text=WHOLE))
    await until(lambda: story.shown() == [WHOLE])
    await asyncio.to_thread(looking.until, lambda: story.states() == ["sent", "sent"], "the answer is not confirmed")
    assert story.crew.slack.streaming == [] and story.crew.slack.calls["chat.postMessage"] == 0
