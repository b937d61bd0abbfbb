"""Waiting: an account's pace, back-off with full jitter, and what platforms ask for."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest

from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, RateLimited
from belino.net.pace import LONGEST_WAIT, QUEUE_SECONDS, Pace, retry_after
from belino.testing.clock import FakeClock

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (10_000, 60.0)]
)
def test_the_wait_lies_anywhere_under_a_ceiling_that_doubles_up_to_a_minute(attempt: int, ceiling: float) -> None:
    waits = [backoff(attempt, rng=Random(seed)) for seed in range(500)]
    assert 0 <= min(waits) < ceiling * 0.05
    assert ceiling * 0.95 < max(waits) <= ceiling


def test_the_same_dice_give_the_same_wait() -> None:
    assert backoff(3, first=1, most=9, rng=Random(7)) == backoff(3, first=1, most=9, rng=Random(7))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("99999999", LONGEST_WAIT),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-AFTER": value}, now=NOW) == seconds


@pytest.mark.parametrize("ahead", [-3600, 0, 90, 86_400])
def test_a_date_to_wait_for_is_a_date_of_the_platforms_clock(ahead: int) -> None:
    theirs = NOW + timedelta(seconds=ahead)
    dates = {"Date": theirs, "Retry-After": theirs + timedelta(seconds=30)}
    headers = {name: format_datetime(date, usegmt=True) for name, date in dates.items()}
    assert retry_after(headers, now=NOW) == 30


def test_a_missing_header_asks_for_nothing() -> None:
    assert retry_after({"Date": "7"}, now=NOW) is None


class Phone:
    """Notes when it was called."""

    def __init__(self, calls_per_minute: int) -> None:
        self.clock = FakeClock()
        self.pace = Pace(calls_per_minute, self.clock)
        self.made: list[float] = []
        self.refused = 0

    async def ring(self) -> None:
        try:
            await self.pace.call(self._ring)
        except RateLimited:
            self.refused += 1

    async def _ring(self) -> None:
        self.made.append(self.clock.monotonic())


async def test_a_minute_holds_so_many_calls_and_the_next_ones_wait_for_it_in_order() -> None:
    phone = Phone(3)
    for _ in range(3):
        await phone.ring()
        await phone.clock.advance(15)
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(phone.ring())
        await phone.clock.advance(60)
    assert phone.made == [0, 15, 30, 60, 75]


async def test_who_would_wait_too_long_is_told_so_at_once_and_takes_nobodys_turn() -> None:
    phone = Phone(1)
    await phone.ring()
    for _ in range(100):
        await phone.ring()
    assert (phone.made, phone.refused, phone.pace.wait) == ([0], 100, 60)
    await phone.clock.advance(60 - QUEUE_SECONDS)
    async with asyncio.TaskGroup() as group:
        group.create_task(phone.ring())
        await phone.clock.advance(QUEUE_SECONDS)
    assert phone.made == [0, 60]


async def test_a_platform_that_asks_for_patience_is_not_called_until_then() -> None:
    phone = Phone(5)

    async def refuse() -> None:
        raise RateLimited("slow down", retry_after=20)

    with pytest.raises(RateLimited, match="slow down"):
        await phone.pace.call(refuse)
    async with asyncio.TaskGroup() as group:
        group.create_task(phone.ring())
        await phone.clock.advance(19)
        assert phone.made == []
        await phone.clock.advance(1)
    assert phone.made == [20]


async def test_a_call_that_waited_is_not_made_if_the_platform_asked_for_patience_meanwhile() -> None:
    phone = Phone(1)
    waiting, refused = asyncio.Event(), asyncio.Event()

    async def refuse_later() -> None:
        waiting.set()
        await refused.wait()
        raise RateLimited("slow down", retry_after=100)

    async def first() -> None:
        with pytest.raises(RateLimited):
            await phone.pace.call(refuse_later)

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        await waiting.wait()
        await phone.clock.advance(50)
        group.create_task(phone.ring())
        await phone.clock.advance(1)
        refused.set()
        await phone.clock.advance(20)
    assert (phone.made, phone.refused) == ([], 1)
    assert phone.pace.wait == 80


async def test_a_caller_that_goes_away_while_it_waits_leaves_its_turn_to_others() -> None:
    phone = Phone(1)
    await phone.ring()
    await phone.clock.advance(50)
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(phone.ring())
        await phone.clock.advance(1)
        gone.cancel()
        await phone.clock.advance(0)
        group.create_task(phone.ring())
        await phone.clock.advance(9)
    assert phone.made == [0, 60]


async def test_other_failures_do_not_close_the_line() -> None:
    phone = Phone(2)

    async def fail() -> None:
        raise AdapterError("no answer")

    with pytest.raises(AdapterError):
        await phone.pace.call(fail)
    assert phone.pace.wait == 0
