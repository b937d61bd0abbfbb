"""Agents that hang, flood or ignore their cancellation: each turn ends in one visible outcome, and others go on."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from belino.delivery.collect import FILES_AT_MOST
from belino.domain.errors import ToolError
from belino.domain.limits import FileLimit, Limits, Once, SendAs
from belino.domain.message import ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.turn import Accepted, Compacted, Final, ReplyPart, TextDelta, ToolNote, Turn, Usage
from belino.testing import ScriptedAgent, settle
from belino.tools.toolbox import CALLS_AT_MOST
from belino.turns.runner import CANCEL_SECONDS
from gateway.house import House, until

DM = ConversationKey(platform="memory", account="default", channel="dm")
TOO_LONG = "the agent's answer is over 200000 characters"
PIECE = "x" * 10_000


class Misbehaving:
    """Does one thing in the channel `dm`, and answers everybody else."""

    remembers = True
    sees_images = False

    def __init__(self, run: Callable[[Turn], AsyncIterator[ReplyPart]]) -> None:
        self.running = asyncio.Event()
        self._run = run

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        if turn.conversation.channel != "dm":
            yield Final(text="I am well")
            return
        self.running.set()
        async for part in self._run(turn):
            yield part


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "home")


async def endless_words(_turn: Turn) -> AsyncIterator[ReplyPart]:
    while True:
        yield TextDelta(text=PIECE)


async def huge_answer(_turn: Turn) -> AsyncIterator[ReplyPart]:
    yield Final(text="x" * 50_000_000)


@pytest.mark.parametrize("flood", [endless_words, huge_answer])
async def test_an_answer_without_end_fails_its_turn_with_the_limit_and_the_remedy(
    house: House, flood: Callable[[Turn], AsyncIterator[ReplyPart]]
) -> None:
    house.agent = Misbehaving(flood)
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await house.ask(gateway, house.say(channel="team"))
        assert gateway.counters.turns == {TurnState.FAILED: 1, TurnState.ANSWERED: 1}
        (notice,) = await gateway.owners.notices()
        assert TOO_LONG in notice.text and "sessions.max_reply_chars" in notice.text
    (told, well) = house.wire.texts()
    assert told == "Sorry, I could not answer that: my answer became too long to send; ask for less, or for a file."
    assert well == "I am well"


async def endless_notes(_turn: Turn) -> AsyncIterator[ReplyPart]:
    while True:
        yield ToolNote(tool="look", text="looking " * 1_000_000)


async def endless_nothing(_turn: Turn) -> AsyncIterator[ReplyPart]:
    while True:
        for part in (Accepted(), Usage(input_tokens=1), Compacted(), TextDelta(text="")):
            yield part


@pytest.mark.parametrize("flood", [endless_notes, endless_nothing])
async def test_parts_without_end_and_without_a_pause_end_at_the_deadline_and_starve_no_one(
    house: House, flood: Callable[[Turn], AsyncIterator[ReplyPart]]
) -> None:
    agent = house.agent = Misbehaving(flood)
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await agent.running.wait()
        await gateway.accept(house.say(channel="team"))
        await until(lambda: house.wire.texts("team"))
        await house.clock.advance(house.sessions.turn_seconds)
        await until(lambda: house.wire.texts("dm"))
    assert house.wire.texts("dm") == ["Sorry, I could not answer that: the agent did not finish within 600 seconds."]


async def test_an_agent_that_ignores_its_cancellation_is_left_behind_and_its_turn_ends(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    enough = asyncio.Event()

    async def stubborn(_turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        yield Final(text="too late")

    agent = house.agent = Misbehaving(stubborn)
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await agent.running.wait()
        await house.clock.advance(house.sessions.turn_seconds)
        await settle()
        await house.clock.advance(CANCEL_SECONDS)
        await until(lambda: house.wire.texts("dm"))
        assert "did not finish within 600 seconds" in house.wire.texts("dm")[0]
        house.agent = ScriptedAgent("not asked")
        await house.ask(gateway, house.say(channel="team"))
        enough.set()
        await settle()
    assert "ignores its cancellation" in caplog.text
    assert house.wire.texts("team") == ["I am well"]
    assert "too late" not in house.wire.texts()


async def test_ten_thousand_tool_calls_are_refused_from_the_limit_on_and_the_turn_is_answered(house: House) -> None:
    refused: list[str] = []

    async def busy(turn: Turn) -> AsyncIterator[ReplyPart]:
        for _ in range(10_000):
            try:
                await turn.toolbox.call("list_media", {})
            except ToolError as error:
                refused.append(str(error))
        yield Final(text="done")

    house.agent = Misbehaving(busy)
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        story = await gateway.store.story(DM, "m1")
    assert len(refused) == 10_000 - CALLS_AT_MOST
    assert re.search(r"1000 tool calls, which is the limit; answer", refused[0])
    assert story is not None
    assert house.wire.texts() == ["done"]


async def test_ten_thousand_files_offered_at_once_go_out_a_bounded_number_at_a_time(house: House) -> None:
    async def generous(turn: Turn) -> AsyncIterator[ReplyPart]:
        assert turn.outgoing is not None
        for number in range(10_000):
            file = turn.outgoing / f"{number:05}.txt"
            file.write_text(str(number), encoding="ascii")
            os.utime(file, (1_000_000_000, 1_000_000_000))
        yield Final(text="here they are")

    house.agent = Misbehaving(generous)
    wire = house.prepare()
    wire.limits = Limits(text_chars=4096, once=Once.KEY, files={SendAs.DOCUMENT: FileLimit(max_bytes=1_000)})
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert gateway.counters.turns == {TurnState.ANSWERED: 1}
        story = await gateway.store.story(DM, "m1")
    assert sum(len(parcel.files) for parcel in wire.seen) == FILES_AT_MOST
    assert wire.texts()[-1] == "here they are"
    assert story is not None
    assert any(step.outcome == "left in pending" for step in story.steps)
