"""A state folder without its database or key is refused with the options, and what lies in it stays."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from belino.domain.errors import StoreDamaged, StoreError, StoreIncomplete
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Edit, Message
from belino.domain.outcome import Standing
from belino.domain.stored import GrantKind, ScreenedArrival, Tidied, Verdict
from belino.storage.home import Home
from belino.storage.sqlite import migrate
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from storage.pieces import keep

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
FILES = 8
OPTIONS = r"belino restore DIR.*belino doctor --repair.*belino serve --start-empty"
Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


@pytest.fixture
async def filled(home: Home, clock: FakeClock, say: Say, photo: Photo) -> Home:
    """Eight messages with a file each, and nobody at work."""
    store = await open_store(home, clock=clock)
    for number in range(FILES):
        blob = await keep(store, b"file %d" % number)
        await store.take_in(say(str(number), media=(photo(str(number), sha256=blob.sha256),)), OBSERVE)
    await store.close()
    return home


def lying(home: Home) -> int:
    return len(list(home.blobs.glob("??/??/*")))


def remove(home: Home) -> None:
    home.database.unlink()


def empty(home: Home) -> None:
    os.truncate(home.database, 0)


def without_rows(home: Home) -> None:
    home.database.unlink()
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        migrate(connection)


@pytest.mark.parametrize(
    ("change", "says"), [(remove, "is missing"), (empty, "is empty"), (without_rows, "has no rows")]
)
async def test_a_database_that_is_missing_or_empty_beside_media_is_refused(
    filled: Home, clock: FakeClock, change: Callable[[Home], None], says: str
) -> None:
    change(filled)
    before = filled.database.read_bytes() if filled.database.exists() else None
    for _ in range(2):
        with pytest.raises(StoreIncomplete, match=rf"belino\.db {says}, but .*blobs holds 8 media files.*{OPTIONS}"):
            await open_store(filled, clock=clock)
    assert lying(filled) == FILES
    if change is not without_rows:  # SQLite has read that one
        assert (filled.database.read_bytes() if filled.database.exists() else None) == before


async def test_media_that_was_put_aside_counts_as_media(filled: Home, clock: FakeClock) -> None:
    for path in list(filled.blobs.glob("??/??/*")):
        path.rename(filled.blobs / "aside" / path.name)
    remove(filled)
    with pytest.raises(StoreIncomplete, match="8 media files"):
        await open_store(filled, clock=clock)


@pytest.mark.parametrize("change", [remove, empty, without_rows])
async def test_it_starts_empty_when_told_to_and_keeps_the_files(
    filled: Home, clock: FakeClock, say: Say, change: Callable[[Home], None]
) -> None:
    change(filled)
    store = await open_store(filled, clock=clock, start_empty=True)
    await store.take_in(say("new"), OBSERVE)
    for _ in range(3):
        assert await store.tidy() == Tidied(strays=FILES)
        clock.shift(3600)
    await store.close()
    store = await open_store(filled, clock=clock)  # what is in use is not asked about again
    await store.close()
    assert lying(filled) == FILES


async def test_starting_empty_keeps_the_write_ahead_log_of_a_lost_database(
    home: Home, clock: FakeClock, say: Say, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = await open_store(home, clock=clock)
    await store.take_in(say("1"), OBSERVE)
    other = Home.at(tmp_path_factory.mktemp("other"))
    shutil.copy(home.path / "belino.db-wal", other.path / "belino.db-wal")
    await store.close()
    log = (other.path / "belino.db-wal").read_bytes()
    with pytest.raises(StoreIncomplete, match=OPTIONS):
        await open_store(other, clock=clock)
    await (await open_store(other, clock=clock, start_empty=True)).close()
    (kept,) = other.path.glob("belino.db-wal.before-*")
    assert kept.read_bytes() == log


async def test_an_older_copy_of_the_database_costs_no_file(
    filled: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    with closing(sqlite3.connect(filled.database)) as connection:  # as it was after the third of eight
        connection.execute("DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM blobs LIMIT 3)")
        connection.execute("DELETE FROM blob_uses WHERE sha256 NOT IN (SELECT sha256 FROM blobs)")
        connection.commit()
    for path in filled.blobs.glob("??/??/*"):
        os.utime(path, (clock.now().timestamp() - 3 * 86_400,) * 2)
    store = await open_store(filled, clock=clock)
    try:
        for _ in range(3):
            assert await store.tidy() == Tidied(strays=5)
            clock.shift(3600)
    finally:
        await store.close()
    assert lying(filled) == FILES


async def test_a_file_that_is_no_database_names_the_remedies_and_stays(filled: Home, clock: FakeClock) -> None:
    filled.database.write_bytes(b"not a database, " * 1000)
    with pytest.raises(StoreDamaged, match=r"file is not a database.*belino doctor --repair.*belino restore DIR"):
        await open_store(filled, clock=clock)
    assert filled.database.read_bytes() == b"not a database, " * 1000


async def test_a_lost_key_is_not_replaced(filled: Home, clock: FakeClock) -> None:
    filled.key_file.unlink()
    for _ in range(2):
        with pytest.raises(StoreIncomplete, match=r"key is missing.*a backup.*belino restore DIR.*--new-key.*tokens"):
            await open_store(filled, clock=clock)
    assert not filled.key_file.exists()


async def test_a_new_key_ends_what_the_old_one_opened_and_keeps_the_rest(
    filled: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    store = await open_store(filled, clock=clock)
    _, secret = await store.grant(GrantKind.PROGRAM, note="a program")
    sealed = photo("sealed", sealed={"media_key": "secret"})
    await store.take_in(say("sealed", "apples and pears", media=(sealed,)), OBSERVE)
    early = photo("later", sealed={"media_key": "secret"})
    await store.take_in(
        Edit(conversation=MAIN, id="e", message_id="later", author=Author(id="u-anna", name="Anna"), sent=clock.now(),
             text="edited before it came", media=(early,)), OBSERVE,
    )  # fmt: skip
    await store.take_in_all([ScreenedArrival(arrival=say(f"s{n}"), verdict=OBSERVE) for n in range(300)])
    await store.index_ahead()
    assert await rows(store, "search_segments") > 0
    await store.close()
    filled.key_file.unlink()
    store = await open_store(filled, clock=clock, new_key=True)
    try:
        assert await store.check(secret) is None
        assert await rows(store, "grants") == await rows(store, "search_segments") == 0
        records = {record.ref.message_id: record for record in await store.refs(MAIN)}
        assert records["sealed"].ref.sealed == {}
        assert len(records) == FILES + 1
        assert await store.index_ahead() == 1  # the words of the channel are hashed again, with the new key
        await store.take_in(say("later", "first"), OBSERVE)  # the edit that waited for it holds nothing sealed
        assert (await store.history(MAIN))[-1].text == "edited before it came"
        assert await store.tidy() == Tidied()
    finally:
        await store.close()
    await (await open_store(filled, clock=clock)).close()


async def rows(store: Store, table: str) -> int:
    query = f"SELECT count(*) FROM {table}"
    return await store._database.read(lambda connection: int(connection.execute(query).fetchone()[0]))


async def test_the_other_choices_change_nothing_where_nothing_is_missing(filled: Home, clock: FakeClock) -> None:
    key = filled.key_file.read_bytes()
    store = await open_store(filled, clock=clock, start_empty=True, new_key=True)
    try:
        assert len(await store.history(MAIN)) == FILES
    finally:
        await store.close()
    assert filled.key_file.read_bytes() == key


async def test_an_error_of_the_store_that_is_no_damage_names_no_restore(home: Home, clock: FakeClock) -> None:
    home.database.mkdir()
    with pytest.raises(StoreError) as refused:
        await open_store(home, clock=clock)
    assert "restore" not in str(refused.value)
