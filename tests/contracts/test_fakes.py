"""The fakes that are shipped for plugin authors do what they say."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from belino.domain.media import Block, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.turn import Final, TextDelta, ToolNote, ToolSpec, Turn
from belino.media.image.header import image_size
from belino.testing import (
    START,
    FakeClock,
    FakeContext,
    ScriptedAgent,
    ToolCall,
    make_gif,
    make_jpeg,
    make_pdf,
    make_png,
    make_wav,
    make_webp,
)


async def test_a_sleeper_wakes_when_its_time_has_come_and_not_before() -> None:
    clock = FakeClock()
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2, 1):
            group.create_task(sleeper(seconds))
        await clock.advance(0.5)
        assert (woken, clock.sleeping) == ([], 4)
        await clock.advance(1.5)
        assert woken == [1, 1, 2]
        await clock.advance(10)
    assert woken == [1, 1, 2, 3]
    assert clock.now() == START + timedelta(seconds=12)


async def test_a_sleeper_that_sleeps_again_is_woken_within_the_same_advance() -> None:
    clock = FakeClock()
    ticks: list[float] = []

    async def ticker() -> None:
        for _ in range(5):
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        group.create_task(ticker())
        await clock.advance(5)
    assert ticks == [1, 2, 3, 4, 5]


async def test_a_sleep_that_begins_late_is_waited_for_and_no_other_is_taken_for_it() -> None:
    clock = FakeClock()
    slow = asyncio.Event()

    async def late() -> None:
        await slow.wait()
        await clock.sleep(5)

    async with asyncio.TaskGroup() as group:
        group.create_task(clock.sleep(60))
        group.create_task(late())
        waiting = group.create_task(clock.asleep(5))
        await clock.advance(0)
        assert not waiting.done()
        slow.set()
        await waiting
        await clock.advance(5)
        await clock.asleep(55)
        await clock.advance(55)


async def test_a_cancelled_sleeper_leaves_the_clock_alone() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as group:
        sleeper = group.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        sleeper.cancel()
    assert clock.sleeping == 0
    await clock.advance(2)


async def test_a_sleep_of_nothing_lets_others_run() -> None:
    async with asyncio.timeout(60):
        await FakeClock().sleep(0)


@pytest.mark.parametrize(
    ("make", "mime"),
    [(make_png, "image/png"), (make_jpeg, "image/jpeg"), (make_gif, "image/gif"), (make_webp, "image/webp")],
)
@pytest.mark.parametrize("size", [(1, 1), (37, 19), (640, 480)])
def test_a_picture_has_the_size_it_was_made_with(
    make: Callable[[int, int], bytes], mime: str, size: tuple[int, int]
) -> None:
    assert image_size(make(*size)) == (mime, *size)


def test_a_turned_photo_says_so() -> None:
    assert image_size(make_jpeg(40, 20, orientation=6)) == ("image/jpeg", 20, 40)


def test_sounds_and_documents_begin_as_theirs_do() -> None:
    assert make_wav(0.5)[:4] == b"RIFF"
    assert make_pdf("a (b)").startswith(b"%PDF-1.4")
    assert b"(a \\(b\\)) Tj" in make_pdf("a (b)")


class OneTool:
    """A toolbox of one tool that says what it was asked."""

    specs: tuple[ToolSpec, ...] = ()

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        return (TextBlock(text=f"{name} {dict(arguments)}"),)


class NoMemory:
    """Forgets."""

    async def load(self) -> bytes | None:
        return None

    async def save(self, memory: bytes) -> None: ...


def turn(number: int = 1) -> Turn:
    return Turn(
        conversation=ConversationKey(platform="memory", account="default", channel="c"),
        number=number,
        system="",
        blocks=(),
        toolbox=OneTool(),
        memory=NoMemory(),
        folder=Path(),
        deadline=START,
    )


async def test_a_scripted_agent_plays_its_script_and_then_echoes() -> None:
    agent = ScriptedAgent("one", [ToolCall(name="look", arguments={"a": 1}), "two"], [TextDelta(text="half")])
    assert [part async for part in agent.run_turn(turn())][-1] == Final(text="one")
    second = [part async for part in agent.run_turn(turn(2))]
    assert any(isinstance(part, ToolNote) and part.tool == "look" for part in second)
    assert second[-1] == Final(text="two")
    assert agent.answers == [(TextBlock(text="look {'a': 1}"),)]
    assert [part async for part in agent.run_turn(turn(3))][-1] == Final(silent=True)
    assert [part async for part in agent.run_turn(turn(4))][-1] == Final(text="turn 4")
    assert [played.number for played in agent.turns] == [1, 2, 3, 4]


async def test_a_scripted_agent_raises_what_it_is_told_to() -> None:
    with pytest.raises(ValueError, match="as told"):
        async for _ in ScriptedAgent(ValueError("as told")).run_turn(turn()):
            pass


async def test_a_context_without_http_says_how_to_get_some() -> None:
    with pytest.raises(AssertionError, match=r"FakeContext\(http=…\)"):
        _ = FakeContext().http
