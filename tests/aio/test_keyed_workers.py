"""One worker per busy conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from belino.aio.keyed_workers import KeyedWorkers
from belino.domain.message import ConversationKey
from belino.domain.stored import Ready
from belino.testing import FakeClock, settle


def place(name: object) -> ConversationKey:
    return ConversationKey(platform="memory", account="default", channel=str(name))


class Works:
    """Steps that wait until a test lets them go on."""

    def __init__(self, width: int = 2) -> None:
        self.clock = FakeClock()
        self.lanes = KeyedWorkers(self.step, width=width, clock=self.clock)
        self.gates: dict[ConversationKey, asyncio.Event] = {}
        self.running: list[str] = []
        self.done: list[str] = []
        self.again: dict[ConversationKey, datetime] = {}

    async def step(self, conversation: ConversationKey) -> datetime | None:
        self.running.append(conversation.channel)
        try:
            if conversation in self.gates:
                await self.gates[conversation].wait()
        finally:
            self.running.remove(conversation.channel)
        self.done.append(conversation.channel)
        return self.again.pop(conversation, None)

    def hold(self, name: object) -> asyncio.Event:
        return self.gates.setdefault(place(name), asyncio.Event())

    @asynccontextmanager
    async def at_work(self, waiting: tuple[Ready, ...] = ()) -> AsyncIterator[asyncio.Task[None]]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(self.lanes.run(waiting))
            await settle()
            yield task
            task.cancel()


async def test_a_conversation_never_has_two_steps_at_once_and_none_is_forgotten() -> None:
    works = Works()
    gate = works.hold("a")
    async with works.at_work():
        for _ in range(3):
            works.lanes.wake(place("a"))
            await settle()
            assert works.running == ["a"]
        gate.set()
        await settle()
        assert works.done == ["a", "a"]


async def test_no_more_conversations_work_at_once_than_allowed_and_the_longest_woken_is_next() -> None:
    works = Works(width=2)
    for name in "abcd":
        works.hold(name)
        works.lanes.wake(place(name))
    async with works.at_work():
        assert works.running == ["a", "b"]
        works.gates[place("b")].set()
        await settle()
        assert works.running == ["a", "c"]


async def test_what_is_due_later_waits_for_its_time_without_taking_a_place() -> None:
    works = Works(width=1)
    at = works.clock.now() + timedelta(seconds=5)
    async with works.at_work((Ready(conversation=place("later"), at=at),)):
        works.lanes.wake(place("now"))
        await works.clock.advance(4.9)
        assert works.done == ["now"]
        await works.clock.advance(0.1)
        assert works.done == ["now", "later"]


async def test_a_step_that_asks_to_come_again_comes_again_at_that_time() -> None:
    works = Works()
    works.again[place("a")] = works.clock.now() + timedelta(seconds=3)
    async with works.at_work():
        works.lanes.wake(place("a"))
        await works.clock.advance(2.9)
        assert works.done == ["a"]
        await works.clock.advance(0.1)
        assert works.done == ["a", "a"]


async def test_stopping_lets_running_steps_end_and_begins_no_other() -> None:
    works = Works(width=1)
    gate = works.hold("a")
    async with works.at_work() as task:
        works.lanes.wake(place("a"))
        works.lanes.wake(place("b"))
        await settle()
        works.lanes.stop(5)
        await settle()
        gate.set()
        await settle()
        assert task.done()
        assert works.done == ["a"]


async def test_stopping_cancels_what_does_not_end_in_time() -> None:
    works = Works()
    works.hold("a")
    async with works.at_work() as task:
        works.lanes.wake(place("a"))
        await settle()
        works.lanes.stop(5)
        await works.clock.advance(4.9)
        assert not task.done()
        await works.clock.advance(0.2)
        assert task.done()
        assert not works.done
        assert not works.running


async def test_a_step_that_is_cancelled_may_wake_another_and_nothing_begins() -> None:
    works = Works()
    begun: list[str] = []

    async def step(conversation: ConversationKey) -> datetime | None:
        begun.append(conversation.channel)
        try:
            await asyncio.Event().wait()
        finally:
            works.lanes.wake(place("b"))
        return None

    works.lanes = KeyedWorkers(step, width=2, clock=works.clock)
    async with works.at_work() as task:
        works.lanes.wake(place("a"))
        await settle()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    assert begun == ["a"]
