"""Adapters that die and come back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import cast

import pytest

from belino.domain.errors import AdapterError, ListeningRefused, RateLimited, Unauthorized, Unreached
from belino.domain.ports import Accept, Adapter
from belino.gateway.health import AdapterHealth
from belino.gateway.supervise import (
    CONNECT_SECONDS,
    HEALTHY_SECONDS,
    UNREACHED_SECONDS,
    keep_running,
)
from belino.storage.inbox import InboxVerbs
from belino.testing import FakeClock, FakeContext, MemoryAdapter, settle
from belino.testing.memory import Config


class Cursors:
    """The one verb of the inbox that supervision uses."""

    def __init__(self) -> None:
        self.position = 0

    async def cursor(self, platform: str, account: str) -> str | None:
        return str(self.position)


class Mortal(MemoryAdapter):
    """Dies of the next error in its list, or when a test says so."""

    def __init__(self, clock: FakeClock, *deaths: Exception) -> None:
        super().__init__(Config(), FakeContext(clock=clock))
        self.deaths = list(deaths)
        self.cursors: list[str | None] = []
        self.die = asyncio.Event()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        self.cursors.append(cursor)
        if self.deaths:
            raise self.deaths.pop(0)
        await self.die.wait()
        self.die.clear()
        raise AdapterError("the socket broke")


class Late(Mortal):
    """Is let in when a test says so."""

    def __init__(self, clock: FakeClock, *deaths: Exception) -> None:
        super().__init__(clock, *deaths)
        self.let_in = asyncio.Event()

    async def connected(self) -> None:
        await self.let_in.wait()


class Highest(Random):
    """Dice that always show the most, so that every wait is the ceiling."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Ward:
    """One adapter under supervision."""

    def __init__(self, *deaths: Exception, kind: type[Mortal] = Mortal) -> None:
        self.clock = FakeClock()
        self.inbox = Cursors()
        self.adapter = kind(self.clock, *deaths)
        self.health: list[AdapterHealth] = []
        self.nudged = asyncio.Event()

    @asynccontextmanager
    async def supervised(self) -> AsyncIterator[None]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(
                keep_running(
                    cast("Adapter", self.adapter),
                    "default",
                    cast("Accept", None),
                    inbox=cast("InboxVerbs", self.inbox),
                    clock=self.clock,
                    rng=Highest(),
                    report=self.health.append,
                    nudged=self.nudged,
                )
            )
            await settle()
            yield
            task.cancel()

    @property
    def runs(self) -> int:
        return len(self.adapter.cursors)


async def test_an_adapter_that_dies_is_restarted_and_waits_twice_as_long_each_time() -> None:
    ward = Ward(*[AdapterError("the socket broke")] * 3)
    async with ward.supervised():
        for wait, runs in ((1, 1), (2, 2), (4, 3)):
            await ward.clock.advance(wait - 0.1)
            assert ward.runs == runs
            await ward.clock.advance(0.1)
            assert ward.runs == runs + 1
        assert ward.health[-1].state == "running"
        assert ward.health[-1].restarts == 3


async def test_a_healthy_minute_forgives_earlier_failures() -> None:
    ward = Ward(*[AdapterError("the socket broke")] * 3)
    async with ward.supervised():
        await ward.clock.advance(1 + 2 + 4)
        await ward.clock.advance(HEALTHY_SECONDS)
        ward.adapter.die.set()
        await ward.clock.advance(0.9)
        assert ward.runs == 4
        await ward.clock.advance(0.1)
        assert ward.runs == 5


async def test_a_platform_that_was_out_of_reach_for_long_is_found_soon_after_its_return() -> None:
    ward = Ward(*[Unreached("nobody is there")] * 8)
    async with ward.supervised():
        await ward.clock.advance(1 + 2 + 4 + 8 + 16)
        for runs in (6, 7, 8):
            assert ward.runs == runs
            await ward.clock.advance(UNREACHED_SECONDS)
        assert ward.health[-1].state == "running"


async def test_each_restart_goes_on_from_the_cursor_the_store_has_then() -> None:
    ward = Ward(AdapterError("the socket broke"))
    async with ward.supervised():
        ward.inbox.position = 7
        await ward.clock.advance(1)
        assert ward.adapter.cursors == ["0", "7"]


@pytest.mark.parametrize(
    ("error", "state", "waits"),
    [
        (Unauthorized("the platform refused our credentials"), "unauthorized", (5, 15, 60, 300, 300)),
        (ListeningRefused("another program listens"), "impaired", (5, 15, 60, 60, 60)),
    ],
    ids=["unauthorized", "conflict"],
)
async def test_an_adapter_that_is_refused_is_checked_again_soon_and_later_ever_more_rarely(
    error: AdapterError, state: str, waits: tuple[float, ...]
) -> None:
    ward = Ward(*[error] * len(waits))
    async with ward.supervised():
        for runs, wait in enumerate(waits, 1):
            assert (ward.health[-1].state, ward.health[-1].reason) == (state, str(error))
            await ward.clock.advance(wait - 0.1)
            assert ward.runs == runs
            await ward.clock.advance(0.1)
            assert ward.runs == runs + 1
        assert ward.health[-1].state == "running"


async def test_a_single_refusal_after_a_long_outage_is_checked_again_after_five_seconds() -> None:
    ward = Ward(*[Unreached("nobody is there")] * 6, Unauthorized("who are you?"))
    async with ward.supervised():
        await ward.clock.advance(1 + 2 + 4 + 8 + 16 + UNREACHED_SECONDS)
        assert (ward.runs, ward.health[-1].reason) == (7, "who are you?")
        await ward.clock.advance(5)
        assert ward.health[-1].state == "running"


async def test_a_healthy_minute_forgives_earlier_refusals() -> None:
    ward = Ward(*[Unauthorized("who are you?")] * 3)
    async with ward.supervised():
        await ward.clock.advance(5 + 15 + 60)
        await ward.clock.advance(HEALTHY_SECONDS)
        ward.adapter.deaths = [Unauthorized("who are you?")]
        ward.adapter.die.set()
        await ward.clock.advance(1)
        assert (ward.runs, ward.health[-1].reason) == (5, "who are you?")
        await ward.clock.advance(5)
        assert ward.health[-1].state == "running"


async def test_a_success_elsewhere_on_the_account_has_a_first_refusal_checked_at_once_and_a_second_one_not() -> None:
    ward = Ward(*[Unauthorized("who are you?")] * 2)
    async with ward.supervised():
        ward.nudged.set()
        await settle()
        assert ward.runs == 2
        ward.nudged.set()
        await settle()
        assert ward.runs == 2
        await ward.clock.advance(15)
        assert ward.health[-1].state == "running"


async def test_a_platform_that_asks_to_wait_is_given_exactly_that_time() -> None:
    ward = Ward(RateLimited("wait", retry_after=42))
    async with ward.supervised():
        await ward.clock.advance(41.9)
        assert ward.runs == 1
        await ward.clock.advance(0.1)
        assert ward.runs == 2


async def test_a_platform_that_asks_for_no_time_is_not_called_without_a_pause() -> None:
    ward = Ward(RateLimited("wait", retry_after=0))
    async with ward.supervised():
        await ward.clock.advance(0.9)
        assert ward.runs == 1
        await ward.clock.advance(0.1)
        assert ward.runs == 2


@pytest.mark.parametrize("error", [ValueError("bot123:secret"), KeyError("bot123:secret")])
async def test_what_a_library_throws_is_told_by_its_type_only(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ward = Ward(error)
    async with ward.supervised():
        assert ward.health[-1].reason == type(error).__name__
    assert "secret" not in caplog.text
    assert f"{type(error).__name__} at test_supervise.py" in caplog.text


async def test_an_adapter_that_returns_by_itself_is_restarted_too() -> None:
    ward = Ward()

    async def at_once(accept: Accept, cursor: str | None) -> None:
        ward.adapter.cursors.append(cursor)

    run: Callable[[Accept, str | None], object] = at_once
    ward.adapter.run = run  # type: ignore[assignment,method-assign]
    async with ward.supervised():
        await ward.clock.advance(1)
        assert ward.runs == 2
        assert ward.health[1].reason == "it stopped listening by itself"


async def test_an_adapter_that_connects_is_running_only_once_its_platform_has_let_it_in() -> None:
    ward = Ward(kind=Late)
    async with ward.supervised():
        assert [health.state for health in ward.health] == ["starting"]
        assert isinstance(ward.adapter, Late)
        ward.adapter.let_in.set()
        await settle()
        assert [health.state for health in ward.health] == ["starting", "running"]


async def test_a_platform_that_takes_long_to_let_an_adapter_in_is_told_of() -> None:
    ward = Ward(kind=Late)
    async with ward.supervised():
        await ward.clock.advance(CONNECT_SECONDS - 0.1)
        assert ward.health[-1].reason == ""
        await ward.clock.advance(0.1)
        assert (ward.health[-1].state, "did not accept the connection" in ward.health[-1].reason) == ("starting", True)
        assert isinstance(ward.adapter, Late)
        ward.adapter.let_in.set()
        await settle()
        assert (ward.health[-1].state, ward.health[-1].reason) == ("running", "")


async def test_an_adapter_that_dies_before_it_is_let_in_keeps_its_reason_while_it_tries_again() -> None:
    ward = Ward(AdapterError("the socket broke"), kind=Late)
    async with ward.supervised():
        assert (ward.health[-1].state, ward.health[-1].reason) == ("restarting", "the socket broke")
        await ward.clock.advance(1)
        assert (ward.health[-1].state, ward.health[-1].reason) == ("starting", "the socket broke")


@pytest.mark.parametrize("kind", [Mortal, Late])
async def test_an_adapter_that_runs_again_shows_how_often_it_failed_and_no_longer_why(kind: type[Mortal]) -> None:
    ward = Ward(AdapterError("the socket broke"), kind=kind)
    async with ward.supervised():
        assert ward.health[-1].reason == "the socket broke"
        if isinstance(ward.adapter, Late):
            ward.adapter.let_in.set()
        await ward.clock.advance(1)
        last = ward.health[-1]
        assert (last.state, last.reason, last.restarts) == ("running", "", 1)
