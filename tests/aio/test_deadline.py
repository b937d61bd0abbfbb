"""A time limit on a clock in a test's hand, and what runs beside a body and ends with it."""

import asyncio
from contextlib import suppress

import pytest

from belino.aio.deadline import beside, deadline, ring
from belino.testing import FakeClock, settle


async def test_a_body_that_hangs_is_ended_when_the_time_is_up_and_not_before() -> None:
    clock = FakeClock()

    async def hang() -> None:
        async with deadline(clock, 10):
            await asyncio.Event().wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(_ends_with(TimeoutError, hang))
        await clock.advance(9.9)
        assert not task.done()
        await clock.advance(0.1)
        assert task.done()


async def test_an_error_of_the_body_comes_out_as_it_is_and_leaves_no_timer() -> None:
    clock = FakeClock()
    with pytest.raises(ValueError, match="mine"):
        async with deadline(clock, 10):
            raise ValueError("mine")
    await settle()
    assert clock.sleeping == 0


async def test_a_body_can_be_ended_early() -> None:
    with pytest.raises(TimeoutError):
        async with deadline(FakeClock(), 10) as scope:
            ring(scope)
            await asyncio.Event().wait()


async def test_cancelling_from_outside_stays_a_cancellation() -> None:
    async def hang() -> None:
        async with deadline(FakeClock(), 10):
            await asyncio.Event().wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(hang())
        await settle()
        task.cancel()
    assert task.cancelled()


async def test_work_ends_with_its_body() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with beside(work()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_what_the_body_raises_is_raised_as_it_is() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(KeyError):
        async with beside(work()):
            raise KeyError("body")


async def test_who_is_cancelled_while_a_failed_body_ends_is_cancelled() -> None:
    ending, may_end = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        ending.set()
        await may_end.wait()

    async def fails() -> None:
        async with beside(slow_to_end()):
            await asyncio.sleep(0)
            raise ConnectionResetError("gone")

    failing = asyncio.ensure_future(fails())
    await ending.wait()
    failing.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await failing


async def _ends_with(kind: type[BaseException], body: object) -> None:
    with pytest.raises(kind):
        await body()  # type: ignore[operator]
