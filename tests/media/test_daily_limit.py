"""What a channel may still fetch today, however many ask at once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from belino.domain.errors import OverDailyLimit
from belino.domain.message import ConversationKey
from belino.media.daily_limit import DailyLimits
from tools.town import HERE, Town


async def body(size: int) -> AsyncIterator[bytes]:
    yield bytes(size)


async def spend(allowances: DailyLimits, size: int, begun: asyncio.Event, end: asyncio.Event) -> None:
    async with allowances.take(HERE) as meter:
        begun.set()
        await end.wait()
        async for _ in meter.chunks(body(size)):
            pass


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_fetch_that_ends_while_the_next_looks_up_what_is_left_is_not_overlooked(
    town: Town, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    allowances = DailyLimits(town.store, town.clock, a_day=15, a_fetch=10)
    begun, end, looked, told = (asyncio.Event() for _ in range(4))
    bytes_fetched = type(town.store).bytes_fetched

    async def slowly(store: Any, channel: ConversationKey, since: datetime) -> int:
        size = await bytes_fetched(store, channel, since)
        if begun.is_set():
            looked.set()
            await told.wait()
        return size

    monkeypatch.setattr(type(town.store), "bytes_fetched", slowly)
    async with asyncio.timeout(10):
        first = asyncio.create_task(spend(allowances, 10, begun, end))
        await begun.wait()
        second = asyncio.create_task(spend(allowances, 10, asyncio.Event(), end))
        await looked.wait()
        end.set()
        while not await bytes_fetched(town.store, HERE, town.clock.now()):
            await asyncio.sleep(0)
        for _ in range(10):  # what the first had set aside is free again
            await asyncio.sleep(0)
        if is_cancelled:
            first.cancel()
        told.set()
        await asyncio.wait([first])
        with pytest.raises(OverDailyLimit):
            await second
