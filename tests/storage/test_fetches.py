"""Bytes that came for a channel."""

from datetime import timedelta

from belino.domain.message import ConversationKey
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")


async def test_bytes_count_to_their_channel_and_for_their_time(store: Store, clock: FakeClock) -> None:
    await store.note_fetched(MAIN, 10)
    clock.shift(100)
    await store.note_fetched(MAIN, 5)
    await store.note_fetched(OTHER, 3)
    assert await store.bytes_fetched(MAIN, START) == 15
    assert await store.bytes_fetched(MAIN, START + timedelta(seconds=50)) == 5
    assert await store.bytes_fetched(OTHER, START) == 3


async def test_what_nobody_asks_for_any_more_is_not_kept(store: Store, clock: FakeClock) -> None:
    await store.note_fetched(MAIN, 10)
    clock.shift(8 * 24 * 3600)
    await store.note_fetched(MAIN, 5)
    assert await store.bytes_fetched(MAIN, START) == 5


async def test_a_clock_that_was_turned_back_makes_bytes_neither_forgotten_nor_counted_for_longer(
    store: Store, clock: FakeClock
) -> None:
    day = timedelta(days=1)
    await store.note_fetched(MAIN, 10)
    clock.turn(-365 * day)
    assert await store.bytes_fetched(MAIN, clock.now() - day) == 10
    clock.shift(23 * 3600)
    assert await store.bytes_fetched(MAIN, clock.now() - day) == 10
    clock.shift(2 * 3600)
    assert await store.bytes_fetched(MAIN, clock.now() - day) == 0
