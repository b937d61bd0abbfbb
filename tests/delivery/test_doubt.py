"""What a platform may do to a parcel, in each class of delivery: shown once, or flagged."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from belino.delivery.send import PERHAPS_TWICE, DeliveryConfig
from belino.domain.errors import RateLimited
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.testing import (
    ForgetfulMemoryAdapter,
    Loss,
    MemoryAdapter,
    ReadableMemoryAdapter,
)
from delivery.post import DM, PostHouse, words
from gateway.house import until

pytestmark = pytest.mark.slow

Break = Callable[[PostHouse], None]

TELL = {"key": MemoryAdapter, "read-back": ReadableMemoryAdapter}
BELIEVED: dict[str, Break] = {
    "429": lambda house: house.far_side.refusals.append((429, {"Retry-After": "7"})),
    "not reached": lambda house: house.far_side.losses.append(Loss.NOT_REACHED),
    "401": lambda house: house.far_side.refusals.append((401, {})),
}
FAILED: dict[str, Break] = {"500": lambda house: house.far_side.refusals.append((500, {}))}
OPEN: dict[str, Break] = {
    loss.value: lambda house, loss=loss: house.far_side.losses.append(loss)  # type: ignore[misc]
    for loss in (Loss.RESET, Loss.HANG, Loss.ANSWER_LOST, Loss.ANSWER_GARBLED)
}
ARRIVED = {Loss.ANSWER_LOST, Loss.ANSWER_GARBLED}
EVERY = BELIEVED | FAILED | OPEN


async def after(house: PostHouse, *breaks: Break) -> tuple[ParcelState, str]:
    """What becomes of two parcels when this goes wrong with the first; the second always goes out."""
    async with house.at_work() as gateway:
        for one in breaks:
            one(house)
        await house.send(gateway, words("a", "first"), words("b", "second"))
        first, second = await house.at_rest(gateway)
    assert second.state is ParcelState.SENT
    assert house.shown[-1] == "second"
    return first.state, first.reason


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", TELL)
async def test_where_duplicates_can_be_told_whatever_happens_it_is_shown_once(
    tmp_path: Path, kind: str, name: str
) -> None:
    house = PostHouse(tmp_path / "home", TELL[kind])
    assert await after(house, EVERY[name]) == (ParcelState.SENT, "")
    assert house.shown == ["first", "second"]


@pytest.mark.parametrize("kind", TELL)
async def test_where_duplicates_can_be_told_one_trouble_after_another_changes_nothing(
    tmp_path: Path, kind: str
) -> None:
    house = PostHouse(tmp_path / "home", TELL[kind])
    assert await after(house, *EVERY.values()) != (ParcelState.DEAD, "")
    assert house.shown == ["first", "second"]


@pytest.mark.parametrize("name", BELIEVED)
async def test_where_nothing_tells_what_surely_did_not_arrive_is_sent_again_without_a_flag(
    tmp_path: Path, name: str
) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    assert await after(house, BELIEVED[name]) == (ParcelState.SENT, "")
    assert house.shown == ["first", "second"]


async def test_where_nothing_tells_a_platform_that_says_it_failed_is_believed_and_the_parcel_flagged(
    tmp_path: Path,
) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    assert await after(house, FAILED["500"]) == (ParcelState.SENT, PERHAPS_TWICE)


@pytest.mark.parametrize("name", OPEN)
async def test_where_nothing_tells_a_lost_answer_leaves_the_parcel_uncertain_and_unrepeated(
    tmp_path: Path, name: str
) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    state, reason = await after(house, OPEN[name])
    assert state is ParcelState.UNCERTAIN
    assert reason.endswith("; it may have arrived")
    assert house.shown == (["first", "second"] if name in ARRIVED else ["second"])


@pytest.mark.parametrize("name", OPEN)
async def test_by_policy_it_is_sent_once_more_and_flagged(tmp_path: Path, name: str) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    house.delivery = DeliveryConfig(uncertain="resend")
    assert await after(house, OPEN[name]) == (ParcelState.SENT, PERHAPS_TWICE)
    assert house.shown == (["first", "first", "second"] if name in ARRIVED else ["first", "second"])


async def test_by_policy_it_is_sent_once_more_and_no_more(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    house.delivery = DeliveryConfig(uncertain="resend")
    state, _ = await after(house, OPEN["answer lost"], OPEN["answer lost"])
    assert state is ParcelState.UNCERTAIN
    assert house.shown == ["first", "first", "second"]


async def test_an_uncertain_parcel_that_a_person_asks_for_is_sent_and_flagged(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home", ForgetfulMemoryAdapter)
    async with house.at_work() as gateway:
        house.far_side.losses.append(Loss.ANSWER_LOST)
        await house.send(gateway, words("a", "first"))
        await house.at_rest(gateway)
        assert await gateway.retry_parcel("a") is not None
        (record,) = await house.at_rest(gateway)
        assert (record.state, record.reason) == (ParcelState.SENT, PERHAPS_TWICE)
    assert house.shown == ["first", "first"]


async def test_that_it_may_have_arrived_is_remembered_across_a_restart(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home", ReadableMemoryAdapter)
    async with house.at_work() as gateway:
        house.far_side.losses.append(Loss.ANSWER_LOST)
        await house.send(gateway, words("a", "first"))
        await until(lambda: gateway.counters.parcels["ready"])
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.SENT
    assert house.shown == ["first"]


class Strict(MemoryAdapter):
    """Asks for patience at the first call in a channel, and counts who has none."""

    waits: ClassVar[dict[str, float]] = {}
    allowed: ClassVar[dict[str, float]] = {}
    early: ClassVar[list[str]] = []

    async def send(self, parcel: Parcel) -> Receipt:
        channel, now = parcel.conversation.channel, self._context.clock.monotonic()
        if channel not in self.allowed:
            self.allowed[channel] = now + self.waits[channel]
            raise RateLimited("too fast", retry_after=self.waits[channel])
        if now < self.allowed[channel]:
            self.early.append(channel)
        return await super().send(parcel)


@pytest.mark.slow
async def test_of_a_thousand_calls_that_are_asked_to_wait_none_is_made_too_early(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home", Strict)
    rng = Random(20261115)
    for number in range(1000):
        Strict.waits[f"c{number}"] = rng.choice([rng.uniform(0.001, 0.01), rng.uniform(0.01, 2), rng.uniform(2, 90)])
    async with house.at_work() as gateway:
        for channel in Strict.waits:
            where = replace(DM, channel=channel)
            parcels = [replace(words(f"{channel}-{turn}"), conversation=where) for turn in range(2)]
            await gateway.store.put_parcels(parcels)
            gateway._sender.wake(where)
        while len(house.far_side.sent) < 2000:
            await house.clock.advance(rng.uniform(0, 0.5))
            await gateway.store.note("")
    assert len(Strict.allowed) == 1000
    assert Strict.early == []


async def test_a_wall_clock_that_is_put_forward_is_no_reason_to_be_early(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    async with house.at_work() as gateway:
        house.far_side.refusals.append((429, {"Retry-After": "60"}))
        await house.send(gateway, words("a"))
        await until(lambda: gateway.counters.parcels["ready"])
        await house.clock.asleep(60)
        house.clock._start += timedelta(hours=1)
        gateway._sender.wake(DM)
        await house.clock.advance(59.9)
        assert house.shown == []
        await house.clock.advance(0.2)
        await until(lambda: house.shown)


class ShortMemoryAdapter(MemoryAdapter):
    """A platform that knows a key for a minute, and can be looked at."""

    limits = replace(MemoryAdapter.limits, key_seconds=60.0)
    looked: ClassVar[list[str]] = []

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        assert parcel.created is not None
        self.looked.append(parcel.key)
        return None


@pytest.mark.parametrize(("waited", "looked"), [(10, []), (600, ["a"])])
async def test_a_key_that_the_platform_may_have_forgotten_is_looked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: int, looked: list[str]
) -> None:
    monkeypatch.setattr(ShortMemoryAdapter, "looked", [])
    house = PostHouse(tmp_path / "home", ShortMemoryAdapter)
    async with house.at_work() as gateway:
        house.far_side.losses.append(Loss.RESET)
        house.far_side.refusals.append((429, {"Retry-After": str(waited)}))
        await house.send(gateway, words("a", "first"))
        (first,) = await house.at_rest(gateway)
    assert (first.state, ShortMemoryAdapter.looked) == (ParcelState.SENT, looked)
