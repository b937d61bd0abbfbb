"""Bytes that came from elsewhere than the platform."""

from datetime import timedelta

from belino.domain.message import ConversationKey
from belino.storage.sqlite import SqliteStore
from belino.testing.clock import START, FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")


async def test_bytes_from_elsewhere_count_to_their_channel_and_for_their_time(
    store: SqliteStore, clock: FakeClock
) -> None:
    await store.note_fetched(MAIN, 10)
    clock.shift(100)
    await store.note_fetched(MAIN, 5)
    await store.note_fetched(OTHER, 3)
    assert await store.bytes_fetched(MAIN, START) == 15
    assert await store.bytes_fetched(MAIN, START + timedelta(seconds=50)) == 5
    assert await store.bytes_fetched(OTHER, START) == 3


async def test_what_nobody_asks_for_any_more_is_not_kept(store: SqliteStore, clock: FakeClock) -> None:
    await store.note_fetched(MAIN, 10)
    clock.shift(8 * 24 * 3600)
    await store.note_fetched(MAIN, 5)
    assert await store.bytes_fetched(MAIN, START) == 5
