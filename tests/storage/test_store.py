"""A store is opened by its folder or by a URL."""

import pytest

from belino.domain.errors import ConfigError
from belino.domain.message import ChatType, ConversationKey
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing.clock import FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")


async def test_a_url_opens_the_same_store_as_its_folder(home: Home, clock: FakeClock) -> None:
    store = await open_store(f"sqlite://{home.path}", clock=clock)
    await store.open_conversation(MAIN, "Main", ChatType.DIRECT)
    await store.close()
    store = await open_store(home, clock=clock)
    assert [found.conversation for found in await store.conversations()] == [MAIN]
    await store.close()


@pytest.mark.parametrize("url", ["postgresql://db/belino", "sqlite://host/path", "sqlite:", "folder"])
async def test_a_url_without_an_engine_is_refused_and_the_known_ones_are_named(url: str, clock: FakeClock) -> None:
    with pytest.raises(ConfigError, match="sqlite:///path/to/folder"):
        await open_store(url, clock=clock)
