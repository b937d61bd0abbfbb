"""Answers on their way out, through the whole gateway."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from belino.aio.retry import recheck_after
from belino.delivery.send import FIRST_WAIT, PATIENCE_GROWS, TRIES
from belino.domain.errors import (
    AdapterError,
    NothingToEdit,
    RateLimited,
    ScopeError,
    StoreFull,
    Unauthorized,
    Undeliverable,
    WindowClosed,
    Withheld,
)
from belino.domain.limits import Limits, Once
from belino.domain.message import Author
from belino.domain.ports import ReopensWindows
from belino.domain.reply import CALL_SECONDS as SEND_SECONDS
from belino.domain.reply import Parcel, ParcelKind, ParcelState, Receipt
from belino.domain.stored import ParcelRecord, StoredMessage
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent
from gateway.house import House, until


async def parcel(gateway: Gateway, state: ParcelState) -> ParcelRecord:
    """The only parcel, once it is in this state."""
    await until(lambda: gateway.counters.parcels[state])
    (record,) = await gateway.store.parcels()
    assert record.state is state
    return record


async def test_a_platform_that_asks_to_wait_is_given_exactly_that_time(house: House) -> None:
    house.prepare().refusals.append(RateLimited("too fast", retry_after=42.5))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        record = await parcel(gateway, ParcelState.READY)
        assert (record.ready - house.clock.now()).total_seconds() == 42.5
        await house.clock.asleep(42.5)
        await house.clock.advance(42.4)
        assert len(house.wire.offered) == 1
        await house.clock.advance(0.2)
        await until(lambda: house.wire.texts() == ["turn 1"])


@pytest.mark.parametrize("why", [RateLimited("too fast", retry_after=42.5), Unauthorized("who are you?")], ids=str)
async def test_a_clock_that_is_turned_back_has_no_answer_wait_for_it_to_come_round(
    house: House, why: AdapterError
) -> None:
    house.prepare().refusals.append(why)
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await parcel(gateway, ParcelState.READY)
        wait = recheck_after(1) if isinstance(why, Unauthorized) else 42.5
        await house.clock.asleep(wait)
        house.clock.turn(timedelta(hours=-1))
        await house.clock.advance(wait - 0.1)
        assert len(house.wire.offered) == 1
        await house.clock.advance(0.2)
        await until(lambda: house.wire.texts() == ["turn 1"])


async def test_being_asked_to_wait_ever_so_often_does_not_lose_an_answer(house: House) -> None:
    house.prepare().refusals.extend(RateLimited("too fast", retry_after=1) for _ in range(3 * TRIES))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        for times in range(3 * TRIES):
            await until(lambda: gateway.counters.parcels["ready"] == times + 1)  # noqa: B023 - awaited in its round
            await house.clock.wake(1)
        await until(lambda: house.wire.texts() == ["turn 1"])


async def test_a_platform_that_asks_for_no_time_again_and_again_is_given_some(house: House) -> None:
    house.prepare().refusals.extend(RateLimited("too fast", retry_after=0) for _ in range(20))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: len(house.wire.offered) == 2)
        await house.clock.asleep(PATIENCE_GROWS)
        record = await parcel(gateway, ParcelState.READY)
        assert (record.ready - house.clock.now()).total_seconds() == PATIENCE_GROWS
        for times in range(1, 20):
            await house.clock.asleep(PATIENCE_GROWS * times)
            assert len(house.wire.offered) == times + 1
            await house.clock.wake(PATIENCE_GROWS * times)
        await until(lambda: house.wire.texts() == ["turn 1"])


async def test_a_platform_that_fails_is_tried_six_times_ever_more_patiently_and_then_given_up_with_the_reason(
    house: House,
) -> None:
    house.prepare().refusals.extend(AdapterError("the platform answered with status 502") for _ in range(20))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        waits: list[float] = []
        for times in range(TRIES - 1):
            await until(lambda: gateway.counters.parcels["ready"] == times + 1)  # noqa: B023 - awaited in its round
            (record,) = await gateway.store.parcels()
            waits.append((record.ready - house.clock.now()).total_seconds())
            await house.clock.wake(waits[-1])
        record = await parcel(gateway, ParcelState.DEAD)
        assert "status 502" in record.reason
        assert "6 tries" in record.reason
        assert len(house.wire.offered) == TRIES
    assert all(0 <= wait <= FIRST_WAIT * 2**turn for turn, wait in enumerate(waits))
    dice = Random(1)
    assert waits == pytest.approx([dice.uniform(0, FIRST_WAIT * 2**turn) for turn in range(TRIES - 1)], abs=0.01)


async def test_what_was_to_change_a_message_that_is_gone_is_said_in_one_of_its_own(house: House) -> None:
    house.prepare().refusals.append(NothingToEdit("the message that was to be changed is gone"))
    async with house.at_work() as gateway:
        where = house.say().conversation
        final = Parcel(key="p", conversation=where, kind=ParcelKind.EDIT, text="the answer", edits="4711")
        await gateway.store.put_parcels([final])
        gateway._sender.wake(where)
        record = await parcel(gateway, ParcelState.SENT)
    assert [offered.kind for offered in house.wire.offered] == [ParcelKind.EDIT, ParcelKind.TEXT]
    assert house.wire.texts() == ["the answer"]
    assert (record.kind, record.reason) == (ParcelKind.TEXT, "")


async def test_what_the_platform_will_never_take_is_given_up_at_once_and_the_next_answer_goes_out(house: House) -> None:
    house.prepare().refusals.append(Undeliverable("the person has blocked us"))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        record = await parcel(gateway, ParcelState.DEAD)
        assert record.reason == "the person has blocked us"
        assert record.attempts == 1
        await gateway.accept(house.say("again"))
        await until(lambda: house.wire.texts() == ["turn 2"])


async def test_what_the_platform_takes_later_is_held_for_a_person_and_the_next_answer_goes_out(house: House) -> None:
    house.prepare().refusals.append(Withheld("the person has not written for a day"))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        record = await parcel(gateway, ParcelState.HELD)
        assert (record.reason, record.attempts) == ("the person has not written for a day", 1)
        await gateway.accept(house.say("again"))
        await until(lambda: house.wire.texts() == ["turn 2"])
        await gateway.retry_parcel(record.key)
        await until(lambda: house.wire.texts() == ["turn 2", "turn 1"])


async def test_what_waits_for_a_person_to_write_goes_once_they_have_before_the_answer_to_it(house: House) -> None:
    house.prepare().refusals.append(WindowClosed("the person has not written for a day"))
    async with house.at_work() as gateway:
        accept = gateway._intake.for_account("memory", "default")
        assert isinstance(accept, ReopensWindows)
        await gateway.accept(house.say())
        record = await parcel(gateway, ParcelState.HELD)
        await accept.reopen(record.conversation)
        await until(lambda: house.wire.texts() == ["turn 1"])
        with pytest.raises(ScopeError):
            await accept.reopen(replace(record.conversation, account="another"))


async def test_refused_credentials_hold_an_answer_up_and_do_not_lose_it(house: House) -> None:
    house.prepare().refusals.extend(Unauthorized("the platform refused our credentials") for _ in range(2 * TRIES))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        for times in range(2 * TRIES):
            await until(lambda: gateway.counters.parcels["ready"] == times + 1)  # noqa: B023 - awaited in its round
            await house.clock.wake(recheck_after(times + 1))
        await until(lambda: house.wire.texts() == ["turn 1"])


async def test_an_adapter_that_breaks_fails_its_parcel_and_tells_no_secret(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.prepare().refusals.append(ValueError("bot123:secret"))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        assert (await parcel(gateway, ParcelState.READY)).reason == "ValueError"
    assert "secret" not in caplog.text


async def test_a_call_that_hangs_in_one_conversation_delays_no_other(house: House) -> None:
    house.prepare().hung.add("a")
    async with house.at_work() as gateway:
        await gateway.accept(house.say(channel="a"))
        await until(lambda: house.wire.offered)
        for number in range(5):
            await gateway.accept(house.say(channel="b"))
            await until(lambda: len(house.wire.texts("b")) == number + 1)  # noqa: B023 - awaited in its round
        assert house.wire.texts("a") == []


async def test_a_call_that_hangs_is_ended_and_tried_again_under_the_same_key(house: House) -> None:
    house.prepare().hung.add("dm")
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: house.wire.offered)
        await house.clock.advance(SEND_SECONDS)
        record = await parcel(gateway, ParcelState.READY)
        assert "did not answer within 60 seconds" in record.reason
        house.wire.hung.clear()
        await house.clock.asleep((record.ready - house.clock.now()).total_seconds())
        await house.clock.advance(FIRST_WAIT)
        await until(lambda: house.wire.texts() == ["turn 1"])
    assert len({parcel.key for parcel in house.wire.offered}) == 1


async def test_a_call_that_hangs_where_nothing_tells_duplicates_is_flagged_uncertain_and_not_repeated(
    house: House,
) -> None:
    wire = house.prepare()
    wire.limits = Limits(text_chars=4096, once=Once.UNCERTAIN)
    wire.hung.add("dm")
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: house.wire.offered)
        await house.clock.advance(SEND_SECONDS)
        assert "may have arrived" in (await parcel(gateway, ParcelState.UNCERTAIN)).reason
    assert len(wire.offered) == 1


async def cut_off_while_sending(house: House, once: Once) -> None:
    """Leave one parcel behind that was being sent when the process died."""
    wire = house.prepare()
    wire.limits = Limits(text_chars=4096, once=once)
    wire.hung.add("dm")
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: wire.offered)
    wire.hung.clear()


async def test_cut_off_while_sending_a_platform_that_knows_our_key_is_offered_the_same_again(house: House) -> None:
    await cut_off_while_sending(house, Once.KEY)
    async with house.at_work():
        await until(lambda: house.wire.texts() == ["turn 1"])
    assert len({parcel.key for parcel in house.wire.offered}) == 1


async def test_cut_off_while_sending_where_nothing_tells_duplicates_the_parcel_is_uncertain(house: House) -> None:
    await cut_off_while_sending(house, Once.UNCERTAIN)
    async with house.at_work() as gateway:
        assert "may have arrived" in (await parcel(gateway, ParcelState.UNCERTAIN)).reason
    assert len(house.wire.offered) == 1


@pytest.mark.parametrize("arrived", [True, False])
async def test_cut_off_while_sending_where_we_can_look_we_look_first(house: House, arrived: bool) -> None:
    await cut_off_while_sending(house, Once.READ_BACK)

    async def find_sent(parcel: Parcel) -> Receipt | None:
        return Receipt(message_id="found", sent=house.clock.now()) if arrived else None

    house.wire.find_sent = find_sent  # type: ignore[attr-defined]
    async with house.at_work() as gateway:
        record = await parcel(gateway, ParcelState.SENT)
        assert (record.message_id == "found") is arrived
    assert len(house.wire.offered) == (1 if arrived else 2)


async def test_a_full_disk_after_sending_delays_the_receipt_and_sends_nothing_twice(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    async with house.at_work() as gateway:
        confirm = gateway.store.confirm_parcel

        async def full(key: str, receipt: Receipt, author: Author, *, reason: str = "") -> StoredMessage | None:
            nonlocal refused
            refused += 1
            if refused <= 2:
                raise StoreFull("the disk is full")
            return await confirm(key, receipt, author, reason=reason)

        monkeypatch.setattr(gateway.store, "confirm_parcel", full)
        await gateway.accept(house.say())
        await until(lambda: refused and gateway.troubles())
        await house.clock.advance(60)
        await parcel(gateway, ParcelState.SENT)
    assert len(house.wire.offered) == 1


async def test_a_long_answer_leaves_in_parts_in_order_and_is_told_as_messages_of_the_agent(house: House) -> None:
    text = "\n\n".join(f"Paragraph {number} " + "word " * 100 + "end." for number in range(30))
    house.agent = ScriptedAgent(text)
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: "\n\n".join(house.wire.texts()) == text)
        await until(lambda: gateway.counters.parcels["sent"] == len(house.wire.seen))
        said = [message for message in await house.history(gateway) if message.author.is_agent]
        assert [message.text for message in said] == house.wire.texts()
        assert len({message.trace for message in said}) == 1
        assert said[0].author.name == "belino"
    assert len(said) > 3


async def test_an_answer_for_an_account_that_is_gone_waits_for_it_to_come_back(house: House) -> None:
    house.prepare().hung.add("dm")
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: house.wire.offered)
    wire = house.wire
    wire.hung.clear()
    house.accounts = ("other",)
    async with house.at_work() as gateway:
        assert "no adapter" in (await parcel(gateway, ParcelState.READY)).reason
    house.accounts = ("default",)
    house.clock.shift(600)
    async with house.at_work():
        await until(lambda: wire.texts() == ["turn 1"])
