"""What runs beside a body ends with it, and nobody's wish to stop is forgotten."""

import asyncio
from contextlib import suppress

import pytest

from belino.aio.background import beside


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
