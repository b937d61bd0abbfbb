"""Killed while an answer grows on Telegram: whatever is cut off, there is one message, and it becomes the answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, TelegramServer
from belino.testing.faults import Hang, Reset
from belino.testing.models import ModelAnswer, ModelHang
from belino.testing.models.openai import OpenAIServer
from faults import looking
from journeys.busy_group import BusyGroup
from journeys.busy_place import until
from journeys.writing import KEY, writer

pytestmark = pytest.mark.slow

BEGINNING, WHOLE = "Once upon a time", "Once upon a time there was a bot."


class Story:
    """Ann, who asks for a story; a model that tells one; and a gateway between them that is killed."""

    def __init__(self, group: BusyGroup, model: OpenAIServer, process: GatewayProcess) -> None:
        self.group, self.model, self.process = group, model, process

    async def begin(self) -> int:
        """Ask; the number of the message that shows the beginning, once its receipt is on disk and the model waits."""
        self.model.script = lambda _: ModelHang(text=BEGINNING)
        self.group.server.say(self.group.ann, self.group.ann, "tell me a story")
        await until(lambda: self.group.answers() == [f"{BEGINNING} …"])
        await asyncio.to_thread(looking.until, lambda: self.states() == ["sent"], "the draft has no receipt")
        return int(self.group.server.sent[0]["message_id"])

    async def kill(self, *, then: ModelAnswer | ModelHang) -> None:
        await asyncio.to_thread(self.process.kill)
        self.model.script = lambda _: then
        await asyncio.to_thread(self.process.start)

    def parcels(self) -> list[dict[str, Any]]:
        parcels: list[dict[str, Any]] = self.process.call("GET", "/api/outbox?limit=50")[1]["parcels"]
        return parcels[::-1]

    def states(self) -> list[str]:
        return [parcel["state"] for parcel in self.parcels()]

    async def ends(self) -> None:
        """Wait for the answer, and see that nothing else is there or told."""
        await asyncio.to_thread(looking.until, lambda: self.states() == ["sent", "sent"], "the answer is not confirmed")
        assert self.group.answers() == [WHOLE]
        assert [(parcel["kind"], parcel["reason"]) for parcel in self.parcels()] == [("draft", ""), ("edit", "")]
        where = str(self.group.channel(self.group.ann))
        history = await asyncio.to_thread(looking.history, self.process, where)
        assert [message["text"] for message in history] == ["tell me a story", WHOLE]


@asynccontextmanager
async def story(path: Path) -> AsyncIterator[Story]:
    async with TelegramServer() as server, OpenAIServer(key=KEY) as model:
        server.unknown_methods.add("sendmessagedraft")  # a draft is a message where there are no previews
        group = BusyGroup(server, path / "home")
        async with group.process(writer(model), MODEL_KEY=KEY) as process:
            yield Story(group, model, process)


async def test_killed_while_an_answer_is_written_its_draft_becomes_the_answer(tmp_path: Path) -> None:
    async with story(tmp_path) as told:
        draft = await told.begin()
        await told.kill(then=ModelHang(text=f"{BEGINNING} there was"))
        await until(lambda: told.group.answers() == [f"{BEGINNING} there was …"])
        await told.kill(then=ModelAnswer(text=WHOLE))
        await told.ends()
        assert [message["message_id"] for message in told.group.server.sent] == [draft]


@pytest.mark.parametrize("fault", [Hang(), Reset(done=True)], ids=["never carried out", "carried out, never answered"])
async def test_killed_while_the_draft_is_changed_for_good_it_is_changed_again(
    tmp_path: Path, fault: Hang | Reset
) -> None:
    async with story(tmp_path) as told:
        draft = await told.begin()
        told.group.server.fail("editMessageText", fault)
        before = told.group.server.calls["editMessageText"]
        await told.kill(then=ModelAnswer(text=WHOLE))
        await until(lambda: told.group.server.calls["editMessageText"] > before)
        await told.kill(then=ModelAnswer(text="nobody asks for this"))
        await told.ends()
        assert [message["message_id"] for message in told.group.server.sent] == [draft]
