"""What waits too long, or for somebody who lost the right to it, is held until a person says so."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from belino.config import AccessConfig
from belino.delivery.send import DeliveryConfig
from belino.domain.reply import ParcelState
from belino.testing import ForgetfulMemoryAdapter, Loss, MemoryAdapter
from delivery.post import PostHouse, words
from gateway.house import ANN, until


async def left_behind(house: PostHouse, *, sending: bool = False) -> None:
    """Leave one parcel of a turn in the outbox, ready or being sent."""
    async with house.at_work() as gateway:
        if sending:
            house.far_side.losses.append(Loss.HANG)
        else:
            house.far_side.losses.append(Loss.NOT_REACHED)
        await gateway.accept(house.say("hello", author=ANN))
        await until(lambda: gateway.counters.parcels["sending"])
        await until(lambda: sending or gateway.counters.parcels["ready"])


async def test_an_answer_older_than_a_quarter_of_an_hour_at_the_start_is_held_until_it_is_asked_for(
    tmp_path: Path,
) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    house.clock.shift(15 * 60 + 1)
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.HELD
        assert record.reason == "it had waited for more than 15 minutes when belino started"
        await house.ask(gateway, house.say("and now?"))
        assert house.shown == ["turn 2"]
        assert await gateway.retry_parcel(record.key) is not None
        await until(lambda: house.shown == ["turn 2", "turn 1"])


async def test_a_younger_answer_is_sent_at_the_start(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    house.clock.shift(14 * 60)
    async with house.at_work():
        await until(lambda: house.shown == ["turn 1"])


async def test_what_was_put_off_by_a_clock_that_was_turned_back_meanwhile_is_sent_at_the_start(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    house.clock.turn(timedelta(hours=-1))
    async with house.at_work():
        await until(lambda: house.shown == ["turn 1"])


async def test_what_a_person_asked_for_is_not_old_again_at_the_next_start(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    house.clock.shift(3600)
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        house.far_side.losses.append(Loss.NOT_REACHED)
        await gateway.retry_parcel(record.key)
        await until(lambda: gateway.counters.parcels["ready"] > 1)
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.SENT


async def test_how_old_is_too_old_is_the_operators_to_say(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    house.delivery = DeliveryConfig(hold_minutes=60)
    await left_behind(house)
    house.clock.shift(3500)
    async with house.at_work():
        await until(lambda: house.shown == ["turn 1"])


@pytest.mark.parametrize("kind", [MemoryAdapter, ForgetfulMemoryAdapter])
async def test_what_was_being_sent_long_ago_may_have_arrived_and_is_left_alone(
    tmp_path: Path, kind: type[MemoryAdapter]
) -> None:
    house = PostHouse(tmp_path / "home", kind)
    await left_behind(house, sending=True)
    house.clock.shift(3600)
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.UNCERTAIN
        assert "more than 15 minutes ago; it may have arrived" in record.reason
    assert house.shown == []


async def test_a_sender_who_was_revoked_meanwhile_gets_no_answer_until_somebody_decides(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    allowed = house.access
    house.access = AccessConfig(senders=("bob",), direct="list")
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.HELD
        assert "may no longer command the agent (not on the list for direct messages)" in record.reason
        assert await gateway.retry_parcel(record.key) is not None
        (record,) = await house.at_rest(gateway)
        assert record.state is ParcelState.HELD
    assert house.shown == []
    house.access = allowed
    async with house.at_work() as gateway:
        await gateway.retry_parcel(record.key)
        await until(lambda: house.shown == ["turn 1"])


async def test_a_sender_who_was_unpaired_meanwhile_gets_no_answer(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    house.access = AccessConfig()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("hello", author=ANN))
        await until(lambda: house.shown)
        code = house.shown[0].split("belino pair ")[1].split()[0].replace("-", "")
        assert await gateway.store.pair(code) is not None
        house.far_side.losses.append(Loss.NOT_REACHED)
        await gateway.accept(house.say("hello again", author=ANN))
        await until(lambda: gateway.counters.parcels["ready"])
        assert await gateway.store.unpair("memory", "default", "ann")
        parcels = await house.at_rest(gateway)
        assert [record.state for record in parcels] == [ParcelState.SENT, ParcelState.HELD]
        assert "(not paired)" in parcels[-1].reason
    assert len(house.shown) == 1


async def test_what_nobody_asked_for_is_sent_whoever_is_allowed(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    house.access = AccessConfig(direct="list")
    async with house.at_work() as gateway:
        await house.send(gateway, words("a", "flushed"))
        await until(lambda: house.shown == ["flushed"])


async def test_a_dropped_parcel_never_leaves_and_cannot_be_asked_for(tmp_path: Path) -> None:
    house = PostHouse(tmp_path / "home")
    await left_behind(house)
    house.clock.shift(3600)
    async with house.at_work() as gateway:
        (record,) = await house.at_rest(gateway)
        dropped = await gateway.drop_parcel(record.key)
        assert dropped is not None
        assert (dropped.state, dropped.dropped, dropped.reason) == (ParcelState.DEAD, True, "dropped by a person")
        assert await gateway.retry_parcel(record.key) is None
        assert await gateway.drop_parcel(record.key) is None
        assert await gateway.store.parcels(unsent=True) == ()
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(house.say("next"), sent=house.clock.now() + timedelta(seconds=1)))
    assert house.shown == ["turn 2"]
