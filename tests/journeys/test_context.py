"""Asked in a busy group, an agent knows what was said there, and pays for it once."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from belino.agents import demo
from belino.domain.media import TextBlock
from belino.domain.turn import Turn
from belino.gateway.explain import explain
from belino.testing import TelegramServer, make_jpeg
from belino.testing.file_server import FakeUpload
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import told, until

pytestmark = pytest.mark.slow

ASKED = "what does a.txt say?"


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[BusyGroup]:
    async with TelegramServer() as server:
        yield BusyGroup(server, tmp_path / "home")


def part(turn: Turn, kind: str) -> str:
    """One of the things a turn tells, by the name on its markers."""
    texts = [block.text for block in turn.blocks if isinstance(block, TextBlock)]
    return "\n".join(text for text in texts if text.startswith(f"<<<{kind} "))


async def chatter(group: BusyGroup, gateway: Any, *lines: str) -> list[dict[str, Any]]:
    """Bob and Ann talk to each other, until all of it is taken in."""
    before = (await gateway.store.counts())["messages"]
    said = [group.server.say(group.chat, (group.ann, group.bob)[number % 2], text) for number, text in enumerate(lines)]
    await group.stored(gateway, before + len(lines))
    return said


async def test_the_group_is_told_once_then_what_was_missed_and_nothing_is_fetched(group: BusyGroup) -> None:
    server, agent = group.server, group.agent
    async with group.gateway() as gateway:
        talk = await chatter(group, gateway, *(f"remark {number} about the hut" for number in range(30)))
        asked = server.say(group.chat, group.ann, f"{BOT} what is this about?")
        await until(lambda: len(group.answers()) == 1)
        server.edit(talk[-1], "remark 29 about the lake")
        await chatter(group, gateway, "bring bread", "and cheese")
        server.say(group.chat, group.ann, f"{BOT} what shall I bring?")
        await until(lambda: len(group.answers()) == 2)
        server.say(group.chat, group.ann, f"{BOT} thanks")
        await until(lambda: len(group.answers()) == 3)
        story = await explain(gateway.store, f"{group.channel()}/{asked['message_id']}")
    first, second, third = agent.turns
    assert len(re.findall(r"remark \d+ about the hut", part(first, "channel"))) == 20
    assert "remark 10 " in part(first, "channel") and "remark 9 " not in part(first, "channel")
    assert part(second, "channel") == "" and "remark 28" not in told(second)
    news = part(second, "meanwhile")
    assert "bring bread" in news and "and cheese" in news and "remark 29 about the lake" in news
    assert len(third.blocks) == 1 and "thanks" in told(third)
    (attached,) = [step.reason for step in story.steps if step.outcome == "context attached"]
    assert re.fullmatch(r"\d+ tokens: 20 messages before it, 10 left out", attached)
    assert group.downloads == 0


async def test_a_chain_of_replies_is_a_thread_and_its_picture_comes_along(group: BusyGroup) -> None:
    server = group.server
    async with group.gateway() as gateway:
        await chatter(group, gateway, "good morning")
        photo = server.say(group.chat, group.bob, photo=make_jpeg(64, 48), caption="which hut is it?")
        reply = server.say(group.chat, group.ann, "the northern one", reply_to=photo)
        await chatter(group, gateway, "who has the keys?")
        server.say(group.chat, group.ann, f"{BOT} is she right?", reply_to=reply)
        await until(lambda: len(group.answers()) == 1)
        (turn,) = group.agent.turns
    thread = part(turn, "thread")
    assert "the northern one" in thread and "which hut is it?" in thread and "[Image: " in thread
    assert "who has the keys?" not in thread and "who has the keys?" in part(turn, "channel")


async def test_the_demo_agent_finds_what_was_said_in_a_busy_group(group: BusyGroup) -> None:
    lines = [f"remark {number} about the weather" for number in range(40)]
    lines[5] = "the keys are under the blue stone"
    async with group.gateway(demo.Agent(demo.Config())) as gateway:
        await chatter(group, gateway, *lines)
        group.server.say(group.chat, group.ann, f"{BOT} find the keys")
        await until(lambda: len(group.answers()) == 1)
        group.server.say(group.chat, group.ann, f"{BOT} what was said about submarines?")
        await until(lambda: len(group.answers()) == 2)
        group.server.say(group.chat, group.ann, f"{BOT} what were you told?")
        await until(lambda: len(group.answers()) == 3)
    found, nothing, about = group.answers()
    assert "I searched this channel for “the keys”" in found and "under the blue stone" in found
    assert "no model" in found
    assert "I searched this channel for “submarines”" in nothing and "keyword:submarines" not in nothing
    assert "Besides your message I was told this, " in about and "remark 39 about the weather" in about


async def test_the_question_on_a_photo_is_the_message_and_the_demo_agent_answers_it(group: BusyGroup) -> None:
    async with group.gateway(demo.Agent(demo.Config())) as gateway:
        group.server.say(group.ann, group.ann, document=FakeUpload(content=b"Hello notes", name="a.txt"), caption=ASKED)
        await until(lambda: len(group.answers()) == 1)
        asked, *_ = await gateway.store.history(group.channel(group.ann))
    assert asked.text == ASKED
    (answer,) = group.answers()
    assert "You sent me 5 words and 1 attachment" in answer and "Hello notes" in answer


async def test_a_caption_is_told_as_the_text_of_its_message(group: BusyGroup) -> None:
    async with group.gateway():
        group.server.say(group.ann, group.ann, photo=make_jpeg(64, 48), caption="What is in this image?")
        await until(lambda: len(group.answers()) == 1)
    (turn,) = group.agent.turns
    lines = part(turn, "message").splitlines()
    assert lines[lines.index("text:") + 1] == "What is in this image?"
    assert re.search(r"^prices: tg_\w{12} image ~\d+$", told(turn), re.MULTILINE)
