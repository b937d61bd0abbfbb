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


async def test_files_and_folders_that_a_killed_process_left_unfinished_are_gone_after_the_next_start(
    home: Home, clock: FakeClock
) -> None:
    store = await open_store(home, clock=clock)
    folder, elsewhere = store.scratch / "cli-1" / "output", home.path / "elsewhere"
    await store.close()
    for path in (folder, elsewhere):
        path.mkdir(parents=True)
        (path / "words.txt").write_text("said")
    (folder.parent / "attachment.wav").write_bytes(b"RIFF")
    (store.scratch / "material-1").write_bytes(b"fLaC")
    (store.scratch / "link").symlink_to(elsewhere)
    store = await open_store(home, clock=clock)
    assert [*store.scratch.iterdir()] == []
    assert (elsewhere / "words.txt").exists(), "a link is not followed"
    await store.close()


@pytest.mark.parametrize("url", ["postgresql://db/belino", "sqlite://host/path", "sqlite:", "folder"])
async def test_a_url_without_an_engine_is_refused_and_the_known_ones_are_named(url: str, clock: FakeClock) -> None:
    with pytest.raises(ConfigError, match="sqlite:///path/to/folder"):
        await open_store(url, clock=clock)
