"""Logins held in memory end when they are revoked or expire."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from belino.domain.stored import Grant, GrantKind
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing import FakeClock
from belino.web.grants import CACHED, Grants


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "home"), clock=clock)
    yield store
    await store.close()


async def test_a_grant_is_read_once_and_forgotten_when_it_is_revoked(store: Store, clock: FakeClock) -> None:
    grants = Grants(store, clock)
    grant, secret = await store.grant(GrantKind.PROGRAM)
    assert await grants.check(secret) == grant
    assert await grants.check("another") is None
    assert await grants.revoke(grant.id)
    assert await grants.check(secret) is None
    assert not await grants.revoke(grant.id)


async def test_a_grant_revoked_while_it_is_read_is_not_remembered(store: Store, clock: FakeClock) -> None:
    grant, secret = await store.grant(GrantKind.PROGRAM)
    read, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def check(self, secret: str) -> Grant | None:
            found = await store.check(secret)
            read.set()
            await go_on.wait()
            return found

        async def revoke(self, grant_id: str) -> bool:
            return await store.revoke(grant_id)

    grants = Grants(Slow(), clock)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(grants.check(secret))
        await read.wait()
        await grants.revoke(grant.id)
        go_on.set()
    assert await grants.check(secret) is None


async def test_a_grant_in_memory_expires_on_time(store: Store, clock: FakeClock) -> None:
    grants = Grants(store, clock)
    grant, secret = await store.grant(GrantKind.PROGRAM, lifetime=timedelta(hours=1))
    other, _ = await store.grant(GrantKind.PROGRAM)
    assert await grants.check(secret) == grant
    expiring = asyncio.create_task(grants.expire())
    with grants.hold(grant) as ended, grants.hold(other) as never:
        await clock.advance(3599)
        assert not ended.is_set()
        await clock.advance(2)
        assert ended.is_set()
        assert not never.is_set()
    assert await grants.check(secret) is None
    expiring.cancel()


async def test_a_wall_clock_set_forward_ends_what_has_expired_by_it(store: Store, clock: FakeClock) -> None:
    grants = Grants(store, clock)
    grant, _ = await store.grant(GrantKind.PROGRAM, lifetime=timedelta(hours=1))
    expiring = asyncio.create_task(grants.expire())
    with grants.hold(grant) as ended:
        await clock.advance(1)
        clock.turn(timedelta(hours=2))
        await clock.advance(1)
        assert ended.is_set()
    expiring.cancel()


async def test_every_socket_of_a_revoked_grant_is_notified_and_a_later_one_too(store: Store, clock: FakeClock) -> None:
    grants = Grants(store, clock)
    grant, _ = await store.grant(GrantKind.PROGRAM)
    with grants.hold(grant) as first, grants.hold(grant) as second:
        await grants.revoke(grant.id)
        with grants.hold(grant) as third:
            assert first.is_set() and second.is_set() and third.is_set()


async def test_memory_for_grants_is_bounded(store: Store, clock: FakeClock) -> None:
    made = Grant(id="g", kind=GrantKind.PROGRAM, conversation=None, note="", created=clock.now(), expires=None)
    reads: list[str] = []

    class Anybody:
        async def check(self, secret: str) -> Grant | None:
            reads.append(secret)
            return made

        async def revoke(self, grant_id: str) -> bool:
            return True

    grants = Grants(Anybody(), clock)
    for number in range(CACHED + 1):
        await grants.check(str(number))
    await grants.check(str(CACHED))
    assert len(reads) == CACHED + 1
    await grants.check("0")
    assert len(reads) == CACHED + 2
