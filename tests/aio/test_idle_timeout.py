"""Many waits in a row, one timer."""

import asyncio

import pytest

from belino.aio.idle_timeout import IdleTimeout

LONG = 60.0


async def test_a_wait_that_lasts_too_long_is_a_timeout_and_the_task_goes_on() -> None:
    patience = IdleTimeout()
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError), patience.of(0.01):
            await asyncio.Event().wait()
        task = asyncio.current_task()
        assert patience.is_over and task is not None and task.cancelling() == 0
        with patience.of(LONG):
            await asyncio.sleep(0)
    assert not patience.is_over
    patience.close()


async def test_a_timer_set_for_an_earlier_wait_does_not_end_a_later_one() -> None:
    patience, loop = IdleTimeout(), asyncio.get_running_loop()
    with patience.of(0.01):
        pass
    rung = loop.create_future()
    loop.call_later(0.05, rung.set_result, None)
    async with asyncio.timeout(60):
        with patience.of(LONG):
            await rung
    patience.close()


async def test_a_shorter_wait_after_a_longer_one_ends_in_its_own_time() -> None:
    patience = IdleTimeout()
    with patience.of(LONG):
        pass
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError), patience.of(0.01):
            await asyncio.Event().wait()
    patience.close()


async def test_who_is_cancelled_by_others_while_waiting_is_cancelled() -> None:
    patience, waits = IdleTimeout(), asyncio.Event()

    async def wait() -> None:
        with patience.of(LONG):
            waits.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(wait())
        await waits.wait()
        task.cancel()
    assert task.cancelled() and not patience.is_over
    patience.close()


async def test_who_is_cancelled_by_others_as_the_time_runs_out_hears_of_it() -> None:
    patience = IdleTimeout()

    async def wait() -> None:
        task = asyncio.current_task()
        assert task is not None
        with patience.of(0.01):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                task.cancel()
                raise

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(wait())
    assert task.cancelled()
    patience.close()


async def test_after_the_last_wait_nothing_rings() -> None:
    patience, loop = IdleTimeout(), asyncio.get_running_loop()
    with patience.of(0.01):
        pass
    patience.close()
    rung = loop.create_future()
    loop.call_later(0.03, rung.set_result, None)
    async with asyncio.timeout(60):
        await rung
    assert not patience.is_over
