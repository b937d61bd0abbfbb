"""A model in the whole house: from a message with a picture to its answer, and what the next turn knows of it."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm_room import KEY, WIRES
from belino.config import AgentConfig, Config
from belino.domain.outcome import MessageOutcome
from belino.testing import make_png
from belino.testing.models import ModelAnswer, ModelFailure, ModelRequest, ModelServer, ModelToolCall
from belino.testing.models.openai import images
from gateway.house import House, until

pytestmark = pytest.mark.slow

CHAT = WIRES["chat"]
PHOTO = make_png(31, 17)


class ModelHouse(House):
    """A house whose agent is the configured one."""

    def __init__(self, path: Path, server: ModelServer) -> None:
        super().__init__(path)
        self.agent = None  # type: ignore[assignment]
        self.server = server

    def config(self) -> Config:
        return replace(super().config(), agent=AgentConfig(kind="llm", options=CHAT.config(self.server)))


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with CHAT.server(key=KEY) as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, server: ModelServer) -> ModelHouse:
    house = ModelHouse(tmp_path / "home", server)
    house.prepare()._far_side.files["f1"] = PHOTO
    return house


def looks(asked: ModelRequest) -> ModelAnswer:
    """A model that fetches the first picture it reads of, and tells when it was given something."""
    last = json.dumps(asked.body["messages"][-1])
    if "fetch it" not in last:
        return ModelAnswer(text="I looked.")
    found = re.search(r"ref:(memory_[a-z0-9]{12})", asked.raw.decode())
    assert found
    return ModelAnswer(calls=(ModelToolCall(tool="fetch_media", arguments={"ref": found[1]}),))


async def test_a_picture_goes_from_the_platform_to_the_model_once(house: ModelHouse, server: ModelServer) -> None:
    server.script = looks
    message = house.say("fetch it")
    async with house.at_work() as gateway:
        await gateway.accept(replace(message, media=(house.picture(message),)))
        await until(lambda: len(house.wire.seen) == 1)
        await gateway.accept(house.say("fetch it again"))
        await until(lambda: len(house.wire.seen) == 2)
        session = await gateway.store.session(message.conversation)
        told = await house.history(gateway)
    assert house.wire.texts() == ["I looked.", "I looked."]
    assert [len(images(asked.body)) for asked in server.asked] == [0, 1, 1, 1]
    assert images(server.asked[1].body) == [PHOTO]
    assert "was shown to you at turn 1" in server.asked[3].raw.decode()
    assert [entry.content_hash for entry in session.manifest]
    assert KEY not in repr(told) + repr(session)
    assert KEY.encode() not in (house.home.path / "belino.db").read_bytes()


async def test_a_gateway_started_again_goes_on_with_the_conversation(house: ModelHouse, server: ModelServer) -> None:
    server.script = [ModelAnswer(text="Your name is Ann."), ModelAnswer(text="Ann.")]
    for text in ("I am Ann", "who am I?"):
        async with house.at_work() as gateway:
            count = len(house.wire.seen)
            await gateway.accept(house.say(text))
            await until(lambda: len(house.wire.seen) > count)  # noqa: B023 - the block ends before the loop goes on
    assert "Your name is Ann." in server.asked[1].raw.decode()


async def test_a_provider_that_fails_ends_in_words_and_leaves_the_memory_as_it_was(
    house: ModelHouse, server: ModelServer
) -> None:
    server.script = [ModelFailure(status=400, kind="bad", message=f"no such thing as {KEY}"), ModelAnswer(text="hello")]
    async with house.at_work() as gateway:
        await gateway.accept(house.say("hi"))
        await until(lambda: len(house.wire.seen) == 1)
        assert (await gateway.store.session(house.say().conversation)).memory is None
        (first, *_) = await house.history(gateway)
        await gateway.accept(house.say("hi again"))
        await until(lambda: len(house.wire.seen) == 2)
    assert first.outcome is MessageOutcome.FAILED
    assert "refused the request: no such thing as" in house.wire.texts()[0]
    assert KEY not in house.wire.texts()[0]
    assert house.wire.texts()[1] == "hello"
