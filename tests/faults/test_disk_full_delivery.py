"""The disk is full at any one write of a delivery, or for a while: nothing is lost, doubled or forgotten."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import StoreFull
from belino.domain.reply import ParcelState
from belino.gateway.gateway import Gateway
from belino.storage.database import Tx
from belino.testing import ForgetfulMemoryAdapter, MemoryAdapter, ReadableMemoryAdapter
from delivery.post import PostHouse, file_parcel, words
from faults.looking import SOAK
from gateway.house import PATIENCE

KINDS = {"key": MemoryAdapter, "read-back": ReadableMemoryAdapter, "neither": ForgetfulMemoryAdapter}
WRITES = 30 if SOAK else 9
"""An answer with a file and words takes eight."""


class FullDisk:
    """Refuses some of the writes of a store, by their number."""

    def __init__(self, gateway: Gateway, *, first: int, times: int) -> None:
        self._write: Callable[..., Any] = gateway.store._database.write
        self._full = range(first, first + times)
        self.count = 0
        self.refused = 0

    async def __call__(self, work: Callable[[Tx], Any]) -> Any:
        self.count += 1
        if self.count in self._full:
            self.refused += 1
            raise StoreFull("the disk is full; nothing was stored, free some space and offer it again")
        return await self._write(work)


async def settled(house: PostHouse, gateway: Gateway) -> list[ParcelState]:
    async with asyncio.timeout(PATIENCE):
        # What is committed can be read before who wrote it has heard so, and forgets its trouble.
        while len(house.shown) < 2 or (await gateway.store.counts())["parcels_sent"] < 2 or gateway.troubles():
            await asyncio.sleep(0.005)  # a thread that opens the file must not lose against the clock's deadlines
            await house.clock.advance(1)
    return [record.state for record in (await gateway.store.parcels())[::-1]]


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_disk_that_is_full_at_any_write_of_a_delivery_loses_and_doubles_nothing(
    tmp_path: Path, kind: str, times: int
) -> None:
    refused = 0
    for first in range(1, WRITES + 1):
        house = PostHouse(tmp_path / f"home-{first}", KINDS[kind])
        async with house.at_work() as gateway:
            parcels = [await file_parcel(gateway, "a"), words("b")]
            await gateway.store.put_parcels(parcels)
            disk = FullDisk(gateway, first=first, times=times)
            gateway.store._database.write = disk  # type: ignore[method-assign]
            gateway._sender.wake(parcels[0].conversation)
            assert await settled(house, gateway) == [ParcelState.SENT] * 2, f"full at write {first}"
            refused += disk.refused
            said = [message.id for message in await house.history(gateway)]
            assert len(said) == len(set(said)) == 2
        assert house.shown == ["report.pdf", "words"], f"full at write {first}"
    assert refused >= 4 * times
