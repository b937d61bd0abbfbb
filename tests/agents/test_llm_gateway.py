"""A model in the whole house: from a message with a picture to its answer, and what the next turn knows of it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.llm_room import KEY, WIRES
from belino.config import AgentConfig, Config
from belino.context.budget import ContextConfig
from belino.domain.outcome import MessageOutcome
from belino.testing import GatewayProcess, make_png
from belino.testing.models import ModelAnswer, ModelFailure, ModelRequest, ModelServer, ModelToolCall
from belino.testing.models.openai import OpenAIServer, images
from belino.turns.prompt import LEFT_OUT, RECOVERY
from gateway.house import BOB, House, until

pytestmark = pytest.mark.slow

CHAT = WIRES["chat"]
PHOTO = make_png(31, 17)


class ModelHouse(House):
    """A house whose agent is the configured one."""

    def __init__(self, path: Path, server: ModelServer) -> None:
        super().__init__(path)
        self.agent = None  # type: ignore[assignment]
        self.server = server
        self.options: dict[str, Any] = {}

    def config(self) -> Config:
        return replace(
            super().config(), agent=AgentConfig(kind="llm", options=CHAT.config(self.server, **self.options))
        )


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with CHAT.server(key=KEY) as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, server: ModelServer) -> ModelHouse:
    house = ModelHouse(tmp_path / "home", server)
    house.context = ContextConfig(attach_media="never")
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
    assert "refused the request: no such thing as" in first.reason and KEY not in first.reason
    assert "refused this request" in house.wire.texts()[0] and "no such thing" not in house.wire.texts()[0]
    assert house.wire.texts()[1] == "hello"


async def test_the_story_of_a_turn_has_its_calls_and_what_went_wrong_with_them(
    house: ModelHouse, server: ModelServer
) -> None:
    calls = (
        ModelToolCall(tool="list_media", broken='{"limit": 5'),
        ModelToolCall(tool="bash", arguments={"command": "ls"}),
        ModelToolCall(tool="fetch_media", arguments={"ref": "tg_000000000000"}),
        ModelToolCall(tool="list_media", arguments={"limit": 5, "kind": "image"}),
    )
    server.script = [ModelAnswer(calls=calls), ModelAnswer(text="done")]
    async with house.at_work() as gateway:
        message = house.say("hi")
        await gateway.accept(message)
        await until(lambda: house.wire.seen)
        story = await gateway.store.story(message.conversation, message.id)
    assert story is not None
    told = [(step.subject, step.outcome, step.reason.partition(":")[0]) for step in story.steps]
    assert [each for each in told if each[0] in ("list_media", "bash", "fetch_media")] == [
        ("list_media", "broken call", "the arguments are not a JSON object"),
        ("bash", "unknown tool", "there is no such tool"),
        ("fetch_media", "refused", "ref=tg_000000000000"),
        ("list_media", "done", "limit=5, kind=image"),
    ]


async def test_every_request_has_the_channel_although_the_memory_is_too_small_for_it(
    house: ModelHouse, server: ModelServer
) -> None:
    house.options = {"history_tokens": 3000}
    house.wire.limits = replace(house.wire.limits, split_chars=None)
    async with house.at_work() as gateway:
        await gateway.accept(house.say("the ferry leaves at nine", author=BOB, channel="team", addressed=False))
        for number in range(1, 6):
            long = f"question {number} " + "about the voyage " * 600
            await house.ask(gateway, house.say(long, author=BOB, channel="team"))
    requests = [asked.raw.decode() for asked in server.asked]
    assert len(requests) == 5
    assert all("the ferry leaves at nine" in request and "<<<channel" in request for request in requests)
    assert [LEFT_OUT in request for request in requests] == [False, False, *[True] * 3]


async def test_a_channel_that_is_attached_again_is_not_counted_besides(house: ModelHouse, server: ModelServer) -> None:
    house.options = {"history_tokens": 3000}
    house.wire.limits = replace(house.wire.limits, split_chars=None)
    async with house.at_work() as gateway:
        root = house.say("the plan", author=BOB, channel="team", addressed=False)
        await gateway.accept(root)
        thread = replace(root.conversation, thread=root.id)
        for number in range(1, 6):
            await gateway.accept(house.say(f"news {number}", author=BOB, channel="team", addressed=False))
            long = f"question {number} " + "about the voyage " * 600
            await house.ask(gateway, house.say(long, author=BOB, channel="team", conversation=thread))
    last = [json.dumps(asked.body["messages"][-1]) for asked in server.asked]
    attached = ["<<<channel" in text for text in last]
    assert len(last) == 5 and attached[0] and any(attached[1:]) and not all(attached)
    assert ["said in the channel itself" in text for text in last] == [not each for each in attached]


async def test_pictures_whose_turns_left_the_memory_come_back_with_the_next_message(
    house: ModelHouse, server: ModelServer
) -> None:
    house.wire.limits = replace(house.wire.limits, split_chars=None)
    house.options = {"history_tokens": 4000}
    server.script = looks
    message = house.say("fetch it")
    async with house.at_work() as gateway:
        await gateway.accept(replace(message, media=(house.picture(message),)))
        await until(lambda: len(house.wire.seen) == 1)
        for number in range(2, 6):
            await house.ask(gateway, house.say(f"{number} " + "about the voyage " * 600))
        session = await gateway.store.session(message.conversation)
    bodies = [asked.body for asked in server.asked]
    recovered = [number for number, body in enumerate(bodies) if RECOVERY.format(1) in json.dumps(body)]
    assert recovered and all(images(body) == [PHOTO] for body in bodies[1:])
    assert [entry.included_at_turn for entry in session.manifest] == [1]


async def test_a_picture_that_is_the_question_costs_one_request(house: ModelHouse, server: ModelServer) -> None:
    house.context = ContextConfig()
    message = house.say("what is this?")
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message),)))
        session = await gateway.store.session(message.conversation)
    assert [images(asked.body) for asked in server.asked] == [[PHOTO]]
    assert [entry.included_at_turn for entry in session.manifest] == [1]


async def logged(gateway: GatewayProcess, words: str) -> str:
    """The log, once it has these words."""
    while words not in (log := await asyncio.to_thread(gateway.log)):
        await asyncio.sleep(0.05)
    return log


async def test_the_first_turn_after_a_start_loads_nothing_heavy_any_more(tmp_path: Path) -> None:
    async with OpenAIServer(lambda _: ModelAnswer(text="hello")) as server:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        base = f'kind = "llm"\nmodel = "openai:gpt-4o"\napi = "chat"\nbase_url = "{server.url}/v1"\n'
        (home / "belino.toml").write_text(f"[server]\nport = 0\n[agent]\n{base}")
        with GatewayProcess(home, environment={"PYTHONPROFILEIMPORTTIME": "1"}) as gateway:
            async with asyncio.timeout(90):
                await logged(gateway, "belino.gateway.understanding")
                said = {"conversation": "web:default:main", "message": "hi"}
                assert (await asyncio.to_thread(gateway.call, "POST", "/api/messages", said))[0] == 200
                log = await logged(gateway, "turn 1 in web:default:main is answered")
    turn = log.partition("turn 1 in web:default:main begins")[2].partition("is answered")[0]
    imports = [line.rpartition("|")[2].strip() for line in turn.splitlines() if line.startswith("import time:")]
    assert [name for name in imports if name.startswith("belino.") or name == "genai_prices.data"] == []
