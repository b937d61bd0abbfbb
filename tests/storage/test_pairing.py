"""Who asked to be let in by direct message, and who was."""

from datetime import timedelta

import pytest

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.storage.access import LIFETIME, TRIES, WAITING_AT_MOST
from belino.storage.store import Store
from belino.testing.clock import FakeClock

AGENT = Author(id="agent", name="belino", is_bot=True, is_agent=True)


def told(sender: str, *, account: str = "default") -> Parcel:
    where = ConversationKey(platform="memory", account=account, channel=f"dm-{sender}")
    return Parcel(key=f"pairing-{account}-{sender}", conversation=where, text="your code", trace="t")


async def ask(store: Store, sender: str, code: str, *, account: str = "default") -> bool:
    author = Author(id=sender, name=sender.title())
    parcel = told(sender, account=account)
    parcel = Parcel(key=f"{parcel.key}-{code}", conversation=parcel.conversation, text=parcel.text, trace="t")
    return await store.ask_pairing(author, parcel, code)


async def test_a_code_pairs_the_one_it_was_given_to_once(store: Store) -> None:
    assert await ask(store, "eve", "AAAA") and await ask(store, "bob", "BBBB")
    paired = await store.pair("BBBB")
    assert paired is not None and (paired.who, paired.name, paired.is_paired) == ("memory:default:bob", "Bob", True)
    assert await store.is_paired("memory", "default", "bob")
    assert not await store.is_paired("memory", "default", "eve")
    assert await store.pair("BBBB") is None


async def test_a_pairing_counts_for_its_own_account_and_platform_only(store: Store) -> None:
    await ask(store, "eve", "AAAA")
    await store.pair("AAAA")
    assert not await store.is_paired("memory", "work", "eve")
    assert not await store.is_paired("other", "default", "eve")


async def test_a_code_ends_after_ten_minutes(store: Store, clock: FakeClock) -> None:
    assert timedelta(minutes=10) == LIFETIME
    await ask(store, "eve", "AAAA")
    clock.shift(LIFETIME.total_seconds())
    assert await store.pair("AAAA") is None
    assert await store.pairings() == ()


async def test_after_five_wrong_codes_no_waiting_code_opens_anything(store: Store) -> None:
    await ask(store, "eve", "AAAA")
    for guess in range(TRIES):
        assert await store.pair(f"WRONG{guess}") is None
    assert TRIES == 5 and await store.pair("AAAA") is None
    (waiting,) = await store.pairings()
    assert waiting.tries_left == 0 and not waiting.is_paired


async def test_four_wrong_codes_are_forgiven(store: Store) -> None:
    await ask(store, "eve", "AAAA")
    for guess in range(TRIES - 1):
        await store.pair(f"WRONG{guess}")
    assert await store.pair("AAAA") is not None


async def test_a_sender_is_told_once_while_the_code_lives_and_again_afterwards(store: Store, clock: FakeClock) -> None:
    assert await ask(store, "eve", "AAAA")
    assert not await ask(store, "eve", "BBBB")
    assert await store.pair("BBBB") is None
    clock.shift(LIFETIME.total_seconds())
    assert await ask(store, "eve", "CCCC")


async def test_no_more_than_three_of_an_account_wait_at_once(store: Store) -> None:
    asked = [await ask(store, f"s{number}", f"CODE{number}") for number in range(5)]
    assert asked == [True] * WAITING_AT_MOST + [False] * 2
    assert await ask(store, "s9", "CODE9", account="work")
    assert len(await store.parcels()) == WAITING_AT_MOST + 1


async def test_a_revoked_pairing_is_gone_and_a_refused_code_opens_nothing(store: Store) -> None:
    await ask(store, "eve", "AAAA")
    await store.pair("AAAA")
    assert await store.unpair("memory", "default", "eve")
    assert not await store.is_paired("memory", "default", "eve")
    assert not await store.unpair("memory", "default", "eve")
    assert await ask(store, "bob", "BBBB")
    assert await store.unpair("memory", "default", "bob")
    assert await store.pair("BBBB") is None
    assert not await ask(store, "bob", "CCCC")


async def test_what_a_stranger_is_told_makes_no_message_and_no_conversation(store: Store, clock: FakeClock) -> None:
    await ask(store, "eve", "AAAA")
    where = told("eve").conversation
    claimed = await store.claim_parcel(where, clock.now())
    assert claimed is not None and hasattr(claimed, "parcel")
    receipt = Receipt(message_id="m1", sent=clock.now())
    assert await store.confirm_parcel(claimed.parcel.key, receipt, AGENT) is None
    assert await store.confirm_parcel(claimed.parcel.key, receipt, AGENT) is None
    (parcel,) = await store.parcels()
    assert parcel.state is ParcelState.SENT
    assert await store.history(where) == ()
    assert await store.conversations() == () and await store.channels() == ()


async def test_strangers_nobody_approved_leave_nothing_behind(store: Store, clock: FakeClock) -> None:
    await ask(store, "eve", "AAAA")
    claimed = await store.claim_parcel(told("eve").conversation, clock.now())
    assert claimed is not None and hasattr(claimed, "parcel")
    await store.confirm_parcel(claimed.parcel.key, Receipt(message_id="m1", sent=clock.now()), AGENT)
    clock.shift(LIFETIME.total_seconds() + 1)
    await ask(store, "bob", "BBBB")
    assert [pairing.sender_id for pairing in await store.pairings()] == ["bob"]
    assert [parcel.conversation.channel for parcel in await store.parcels()] == ["dm-bob"]


@pytest.mark.parametrize("name", ["half a pair \ud83d", "null \0 byte"])
async def test_a_name_that_is_no_text_is_kept_with_a_mark(store: Store, name: str) -> None:
    assert await store.ask_pairing(Author(id="eve", name=name), told("eve"), "AAAA")
    assert len(await store.pairings()) == 1
