"""Who may send, in which order, and what a parcel remembers of its past."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import (
    LEASE_MARGIN_SECONDS,
    Doubt,
    OutgoingFile,
    Parcel,
    ParcelKind,
    ParcelState,
    Receipt,
    call_seconds,
    lease_seconds,
)
from belino.domain.stored import ClaimedParcel, Ready
from belino.storage.outbox import PASSED_AFTER
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

MAIN = ConversationKey(platform="web", account="default", channel="main")
AGENT = Author(id="belino", name="belino", is_agent=True)
MINUTE = timedelta(minutes=1)


def words(key: str) -> Parcel:
    return Parcel(key=key, conversation=MAIN, text=key, trace="t")


async def paper(store: Store, key: str) -> Parcel:
    async def chunks() -> AsyncIterator[bytes]:
        yield key.encode()

    blob = await store.keep(chunks(), mime="text/plain", limit=100)
    file = OutgoingFile(name=f"{key}.txt", mime="text/plain", size=blob.size, sha256=blob.sha256)
    return Parcel(key=key, conversation=MAIN, kind=ParcelKind.FILES, files=(file,), trace="t")


async def claim(store: Store, clock: FakeClock, owner: str = "me") -> ClaimedParcel:
    claimed = await store.claim_parcel(MAIN, clock.now(), owner=owner)
    assert isinstance(claimed, ClaimedParcel), claimed
    return claimed


async def test_while_somebodys_lease_lasts_nobody_else_claims_in_the_conversation(
    store: Store, clock: FakeClock
) -> None:
    await store.put_parcels([words("a")])
    first = await claim(store, clock, "one")
    ends = clock.now() + timedelta(seconds=lease_seconds(0))
    assert await store.claim_parcel(MAIN, clock.now(), owner="two") == Ready(conversation=MAIN, at=ends)
    clock.shift(lease_seconds(0))
    second = await claim(store, clock, "two")
    assert (second.parcel.key, second.doubt, second.failures) == ("a", Doubt.UNANSWERED, 1)
    assert second.fence > first.fence


async def test_who_lost_the_lease_is_no_longer_listened_to_but_for_a_receipt(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([words("a")])
    zombie = await claim(store, clock, "one")
    clock.shift(lease_seconds(0))
    await claim(store, clock, "two")
    assert not await store.delay_parcel("a", clock.now(), "late", fence=zombie.fence)
    assert not await store.end_parcel("a", ParcelState.DEAD, "late", fence=zombie.fence)
    record = await store.parcel("a")
    assert record is not None
    assert (record.state, record.reason) == (ParcelState.SENDING, "")
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    record = await store.parcel("a")
    assert record is not None
    assert record.state is ParcelState.SENT


def test_a_lease_is_longer_than_any_call_that_may_begin_within_it() -> None:
    for size in (0, 1, 50_000_000, 2_000_000_000):
        assert lease_seconds(size) == call_seconds(size) + LEASE_MARGIN_SECONDS


async def test_after_a_start_no_lease_of_an_earlier_run_counts(engine: Engine, clock: FakeClock) -> None:
    store = await engine.open()
    await store.put_parcels([words("a")])
    await claim(store, clock, "before")
    await store.close()
    store = await engine.open()
    assert await store.recover_parcels(clock.now() - 15 * MINUTE, held="old", uncertain="cut off") == 0
    assert (await claim(store, clock, "now")).doubt is Doubt.UNANSWERED
    await store.close()


async def test_what_is_old_at_a_start_is_held_or_uncertain_and_the_young_is_not(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([words("cut"), words("old")])
    await claim(store, clock)
    clock.shift(900)
    await store.put_parcels([words("young")])
    clock.shift(1)
    assert await store.recover_parcels(clock.now() - 15 * MINUTE, held="late", uncertain="cut off") == 2
    told = {record.key: (record.state, record.reason) for record in await store.parcels()}
    assert told == {
        "cut": (ParcelState.UNCERTAIN, "cut off"),
        "old": (ParcelState.HELD, "late"),
        "young": (ParcelState.READY, ""),
    }


async def test_patience_is_the_conversations_and_outlives_a_restart(engine: Engine, clock: FakeClock) -> None:
    store = await engine.open()
    await store.put_parcels([await paper(store, "a")])
    claimed = await claim(store, clock)
    until = clock.now() + 10 * MINUTE
    assert await store.delay_parcel("a", until, "too fast", fence=claimed.fence, patience=True)
    await store.put_parcels([words("b")])
    await store.close()
    store = await engine.open()
    clock.shift(PASSED_AFTER / 1e6)
    await store.recover_parcels(clock.now() - 15 * MINUTE, held="", uncertain="")
    assert await store.claim_parcel(MAIN, clock.now(), owner="new") == Ready(conversation=MAIN, at=until)
    await store.close()


async def test_what_is_behind_a_file_passes_it_a_minute_after_its_first_try(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([await paper(store, "a"), await paper(store, "b"), words("c")])
    begun = clock.now()
    await claim(store, clock)
    await store.delay_parcel("a", begun + 5 * MINUTE, "down", failed=True)
    assert await store.claim_parcel(MAIN, clock.now(), owner="me") == Ready(conversation=MAIN, at=begun + MINUTE)
    clock.shift(60)
    assert (await claim(store, clock)).parcel.key == "b"
    await store.delay_parcel("b", begun + 3 * MINUTE, "down", failed=True)
    assert await store.claim_parcel(MAIN, clock.now(), owner="me") == Ready(conversation=MAIN, at=begun + 2 * MINUTE)
    clock.shift(60)
    assert (await claim(store, clock)).parcel.key == "c"
    await store.confirm_parcel("c", Receipt(message_id="c", sent=clock.now()), AGENT)
    assert await store.claim_parcel(MAIN, clock.now(), owner="me") == Ready(conversation=MAIN, at=begun + 3 * MINUTE)


async def test_words_that_wait_for_their_next_try_are_not_passed(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([words("a"), words("b")])
    await claim(store, clock)
    later = clock.now() + 5 * MINUTE
    await store.delay_parcel("a", later, "down", failed=True)
    clock.shift(120)
    assert await store.claim_parcel(MAIN, clock.now(), owner="me") == Ready(conversation=MAIN, at=later)


async def test_failures_and_doubt_are_kept_until_a_person_asks_which_forgets_only_the_failures(
    store: Store, clock: FakeClock
) -> None:
    await store.put_parcels([words("a")])
    await claim(store, clock)
    await store.delay_parcel("a", clock.now(), "no answer", failed=True, doubt=Doubt.UNANSWERED)
    again = await claim(store, clock)
    assert (again.failures, again.doubt, again.insisted) == (1, Doubt.UNANSWERED, False)
    await store.end_parcel("a", ParcelState.UNCERTAIN, "no answer", doubt=Doubt.AGAIN)
    asked = await store.retry_parcel("a")
    assert asked is not None
    assert (asked.state, asked.reason) == (ParcelState.READY, "")
    third = await claim(store, clock)
    assert (third.failures, third.doubt, third.insisted) == (0, Doubt.AGAIN, True)
    # Asked for once: should we die now, it is not sent a third time unasked.
    assert not (await claim(store, clock)).insisted


async def test_what_waits_for_a_person_to_write_is_sent_in_its_order_and_what_may_have_arrived_is_not(
    store: Store, clock: FakeClock
) -> None:
    await store.put_parcels([words(key) for key in "abcd"])
    for key, closed, doubt in (("a", 1, 0), ("b", 1, 2), ("c", 0, 0), ("d", 1, 0)):
        claimed = await claim(store, clock)
        assert claimed.parcel.key == key
        await store.end_parcel(key, ParcelState.HELD, "later", doubt=Doubt(doubt), window_closed=bool(closed))
    assert await store.reopen_parcels(replace(MAIN, channel="elsewhere")) == ()
    assert await store.reopen_parcels(MAIN) == (MAIN,)
    assert await store.reopen_parcels(MAIN) == ()
    assert [(each.key, each.state) for each in reversed(await store.parcels())] == [
        ("a", ParcelState.READY), ("b", ParcelState.HELD), ("c", ParcelState.HELD), ("d", ParcelState.READY)
    ]  # fmt: skip
    for key in "ad":
        assert ((claimed := await claim(store, clock)).parcel.key, claimed.insisted) == (key, False)
        await store.end_parcel(key, ParcelState.HELD, "an access rule changed")
    assert await store.reopen_parcels(MAIN) == (), "held for another reason since"


@pytest.mark.parametrize("state", [ParcelState.SENT, ParcelState.SENDING])
async def test_what_is_sent_or_being_sent_is_neither_asked_for_nor_dropped(
    store: Store, clock: FakeClock, state: ParcelState
) -> None:
    await store.put_parcels([words("a")])
    await claim(store, clock)
    if state is ParcelState.SENT:
        await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert await store.retry_parcel("a") is None
    assert await store.drop_parcel("a") is None
    assert await store.retry_parcel("unknown") is None
    record = await store.parcel("a")
    assert record is not None
    assert record.state is state


async def test_the_bytes_of_a_dead_parcel_are_kept_until_it_is_dropped(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([await paper(store, "a")])
    await claim(store, clock)
    await store.end_parcel("a", ParcelState.DEAD, "refused")
    clock.shift(7200)
    assert (await store.tidy()).total == 0
    assert await store.retry_parcel("a") is not None
    assert (await claim(store, clock)).parcel.files[0].name == "a.txt"
    await store.end_parcel("a", ParcelState.DEAD, "refused again")
    assert await store.drop_parcel("a") is not None
    assert (await store.tidy()).total == 1


async def test_the_notice_of_a_dead_file_is_put_behind_what_waits_and_only_once(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([await paper(store, "a"), words("b")])
    for _ in range(2):
        await claim(store, clock)
        assert await store.end_parcel("a", ParcelState.DEAD, "refused", notices=[words("a-notice")])
        assert await store.retry_parcel("a") is not None
    await claim(store, clock)
    await store.end_parcel("a", ParcelState.DEAD, "refused", notices=[words("a-notice")])
    assert [record.key for record in await store.parcels()] == ["a-notice", "b", "a"]
    assert (await claim(store, clock)).parcel.key == "b"


async def test_listings_tell_what_waits_for_a_person_and_show_what_a_parcel_carries(
    store: Store, clock: FakeClock
) -> None:
    elsewhere = ConversationKey(platform="web", account="default", channel="elsewhere")
    await store.put_parcels([await paper(store, "a"), words("b"), words("c")])
    await store.put_parcels([Parcel(key="d", conversation=elsewhere, text="d")])
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    await store.drop_parcel("b")
    assert [record.key for record in await store.parcels(unsent=True)] == ["d", "c"]
    assert [record.key for record in await store.parcels(conversation=MAIN)] == ["c", "b", "a"]
    assert [record.key for record in await store.parcels(conversation=MAIN, unsent=True)] == ["c"]
    nowhere = ConversationKey(platform="web", account="default", channel="nowhere")
    assert await store.parcels(conversation=nowhere) == ()
    record = await store.parcel("a")
    assert record is not None
    assert [(file.name, file.size) for file in record.files] == [("a.txt", 1)]
    assert await store.parcel("unknown") is None
