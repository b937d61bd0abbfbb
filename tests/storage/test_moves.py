"""Moves in the store: stored once, found by either id, and never for a channel of no interest."""

import pytest

from belino.domain.message import ConversationKey
from belino.domain.places import Moved
from belino.storage.store import Store

ACCOUNT = ("telegram", "default")
MOVE = Moved(old="-40", new="-1009")


async def test_a_move_is_stored_once(store: Store) -> None:
    assert await store.move_channel(ACCOUNT, MOVE, is_listed=True) == MOVE
    assert await store.move_channel(ACCOUNT, MOVE, is_listed=True) is None
    assert await store.moved_channels() == ((ACCOUNT, MOVE),)


async def test_a_channel_that_moves_again_keeps_its_first_id_and_never_moves_back_to_it(store: Store) -> None:
    await store.move_channel(ACCOUNT, MOVE, is_listed=True)
    again = await store.move_channel(ACCOUNT, Moved(old="-1009", new="-1010"), is_listed=True)
    assert again == Moved(old="-40", new="-1010")
    assert await store.move_channel(ACCOUNT, Moved(old="-1010", new="-40"), is_listed=True) is None


@pytest.mark.parametrize("known", [True, False])
async def test_only_a_channel_that_is_known_or_listed_moves(store: Store, known: bool) -> None:
    if known:
        channel = ConversationKey(platform="telegram", account="default", channel="-40")
        assert await store.ask_group(channel, "Harbour", None) is not None
    assert (await store.move_channel(ACCOUNT, MOVE, is_listed=False) is not None) is known
