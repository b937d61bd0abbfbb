"""Files that no row lists are put aside for a week, never just deleted, and come back when a row lists them again."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import StoreError
from belino.domain.media import Blob, MediaRef
from belino.domain.message import ChatType, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Tidied, Verdict
from belino.gateway.maintenance import check_strays
from belino.storage.database import Tx
from belino.storage.deletions import note_deletion
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import START, FakeClock
from blob_files import content_of, is_here, path_of
from storage.conftest import MAIN
from storage.pieces import chunks, keep

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
HOUR, WEEK = 3600.0, 7 * 86_400.0
Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


@asynccontextmanager
async def opened(home: Home, clock: FakeClock, **choices: Any) -> AsyncIterator[Store]:
    store = await open_store(home, clock=clock, **choices)
    try:
        yield store
    finally:
        await store.close()


async def attach(store: Store, say: Say, photo: Photo, numbers: Sequence[int]) -> list[Blob]:
    """Messages with a file each, all of which are used."""
    kept = []
    for number in numbers:
        blob = await keep(store, b"file %d" % number)
        await store.take_in(say(str(number), media=(photo(str(number), sha256=blob.sha256),)), OBSERVE)
        kept.append(blob)
    return kept


def stray(home: Home, content: bytes) -> Path:
    """A file that is in its place and has no row, as a killed process leaves it."""
    name = sha256(content).hexdigest()
    place = home.blobs / name[:2] / name[2:4] / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(0o600)
    return place


def aside(home: Home) -> list[Path]:
    return sorted((home.blobs / "aside").iterdir())


async def test_a_stray_is_put_aside_after_an_hour_and_deleted_after_a_week(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    used = await attach(store, say, photo, range(9))
    place = stray(home, b"stray")
    os.utime(place, (0, 0))  # as old as a file can be: what counts is when it was put aside
    assert await store.tidy() == Tidied(strays=1)
    clock.shift(HOUR)
    assert await store.tidy(dry_run=True) == Tidied(put_aside=1)
    assert place.exists()
    assert await store.tidy() == Tidied(put_aside=1)
    (moved,) = aside(home)
    assert (moved.name, moved.read_bytes(), place.exists()) == (place.name, b"stray", False)
    assert (stat.S_IMODE(moved.stat().st_mode), stat.S_IMODE(moved.parent.stat().st_mode)) == (0o600, 0o700)
    assert (store.strays.left, store.strays.aside, store.strays.aside_bytes) == (0, 1, 5)
    clock.shift(WEEK)
    assert await store.tidy() == Tidied()
    clock.shift(1)
    assert await store.tidy() == Tidied(expired=1, freed=5)
    assert aside(home) == []
    assert all(path_of(store, blob).exists() for blob in used)


async def test_strays_stay_while_they_are_more_than_a_tenth_of_all_blobs(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await attach(store, say, photo, range(17))
    places = [stray(home, content) for content in (b"one", b"two")]
    clock.shift(HOUR)
    assert await store.tidy() == Tidied(strays=2)
    assert all(place.exists() for place in places)
    assert (store.strays.left, store.strays.files, store.strays.too_many) == (2, 19, True)
    await attach(store, say, photo, [17])  # two of twenty are a tenth, and no more
    assert await store.tidy() == Tidied(put_aside=2)


async def test_a_person_may_put_every_stray_aside(store: Store, home: Home) -> None:
    place = stray(home, b"one")
    assert await store.tidy(dry_run=True, all_strays=True) == Tidied(put_aside=1)
    assert place.exists()
    assert await store.tidy(all_strays=True) == Tidied(put_aside=1)
    assert [path.name for path in aside(home)] == [place.name]


async def test_a_file_that_is_about_to_be_deleted_is_not_put_aside(store: Store, home: Home) -> None:
    place = stray(home, b"withdrawn")
    await store._database.write(lambda tx: note_deletion(tx, (place.name,), 0))
    assert await store.tidy(all_strays=True) == Tidied()
    assert (place.exists(), aside(home)) == (True, [])
    await store.purge()
    assert not place.exists()


async def test_the_hour_counts_from_the_start_whatever_the_wall_clock_says(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await attach(store, say, photo, range(9))
    stray(home, b"stray")
    clock.turn(timedelta(days=30))
    assert await store.tidy() == Tidied(strays=1)


async def test_what_was_put_aside_long_ago_outlives_the_first_hour_of_the_next_start(
    home: Home, clock: FakeClock
) -> None:
    async with opened(home, clock) as store:
        stray(home, b"one")
        await store.tidy(all_strays=True)
        await store.open_conversation(MAIN, "Main", ChatType.DIRECT)
    clock.shift(2 * WEEK)
    async with opened(home, clock) as store:
        assert await store.tidy() == Tidied()
        clock.shift(HOUR)
        assert await store.tidy() == Tidied(expired=1, freed=3)


@pytest.mark.parametrize("reached", ["tidied", "read", "sent"])
async def test_a_blob_comes_back_when_the_right_database_lists_it_again(
    home: Home, clock: FakeClock, tmp_path: Path, say: Say, photo: Photo, reached: str
) -> None:
    async with opened(home, clock) as store:
        await attach(store, say, photo, range(3))
    shutil.copy(home.database, tmp_path / "older")
    async with opened(home, clock) as store:
        used = await attach(store, say, photo, range(3, 6))
    home.database.rename(tmp_path / "right")
    shutil.copy(tmp_path / "older", home.database)
    async with opened(home, clock) as store:
        await store.tidy(all_strays=True)
        assert len(aside(home)) == 3
    (tmp_path / "right").rename(home.database)
    async with opened(home, clock) as store:
        if reached == "tidied":
            assert await store.tidy(dry_run=True) == Tidied(brought_back=3)
            assert await store.tidy() == Tidied(brought_back=3)
        for blob in used:
            if reached == "sent":
                assert (await content_of(store, blob))[:5] == b"file "
            assert await store.blob(blob.sha256) == blob
            assert await is_here(store, blob)
        assert aside(home) == []
        assert {record.outcome for record in await store.refs(MAIN)} == {MediaOutcome.HELD}


async def test_the_same_bytes_stored_again_take_the_place_of_those_put_aside(store: Store, home: Home) -> None:
    place = stray(home, b"again")
    await store.tidy(all_strays=True)
    blob = await keep(store, b"again")
    assert (path_of(store, blob), await content_of(store, blob), aside(home)) == (place, b"again", [])


async def test_what_its_sender_deletes_goes_though_it_was_put_aside(
    store: Store, home: Home, say: Say, photo: Photo
) -> None:
    (blob,) = await attach(store, say, photo, [1])
    shutil.move(path_of(store, blob), home.blobs / "aside" / blob.sha256)
    await store.take_in(Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=START), OBSERVE)
    assert await store.purge() == (blob.sha256,)
    assert (aside(home), await store._database.read(_noted)) == ([], 0)


async def test_a_deletion_that_a_kill_cut_off_is_finished_at_once_and_leaves_no_stray(
    store: Store, home: Home, say: Say, photo: Photo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (blob,) = await attach(store, say, photo, [1])
    await store.take_in(Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=START), OBSERVE)

    async def killed(names: object) -> int:
        raise StoreError("the process ends before the file is deleted")

    with monkeypatch.context() as patch:
        patch.setattr(store._blobs, "delete", killed)
        with pytest.raises(StoreError):
            await store.purge()
    assert await is_here(store, blob)
    assert await store._database.read(_blob_rows) == 0
    assert await store.purge() == (blob.sha256,)
    assert not await is_here(store, blob)
    assert await store._database.read(_noted) == 0


def _blob_rows(connection: Tx) -> int:
    return int(connection.execute("SELECT count(*) FROM blobs").fetchone()[0])


def _noted(connection: Tx) -> int:
    return int(connection.execute("SELECT count(*) FROM blobs_forsaken").fetchone()[0])


@pytest.mark.parametrize("deletes", ["tidy", "evict"])
async def test_bytes_that_were_to_go_when_the_process_died_are_no_strays(
    store: Store, clock: FakeClock, say: Say, photo: Photo, monkeypatch: pytest.MonkeyPatch, deletes: str
) -> None:
    blob = await keep(store, b"fetched")
    if deletes == "evict":
        (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
        await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    clock.shift(2 * HOUR)

    async def killed(names: object) -> int:
        raise StoreError("the process ends before the file is deleted")

    with monkeypatch.context() as patch:
        patch.setattr(store._blobs, "delete", killed)
        with pytest.raises(StoreError):
            await (store.tidy() if deletes == "tidy" else store.evict(0))
    assert await is_here(store, blob)
    await store.purge()
    assert not await is_here(store, blob)
    assert await store.tidy() == Tidied()


async def test_bytes_that_move_in_while_strays_are_put_aside_stay_in_their_place(
    store: Store, home: Home, held_up: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    place = stray(home, b"again")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, held_up():
        moving = group.create_task(store.tidy(all_strays=True))
        while store.disk.waiting < 1:  # the writer is asked whether the stray has a row
            await asyncio.sleep(0)
        keeping = group.create_task(store.keep(chunks(b"again"), mime="a/b", limit=10))
        while store.disk.waiting < 2:
            await asyncio.sleep(0)
    assert moving.result() == Tidied()
    assert path_of(store, keeping.result()) == place
    assert (place.read_bytes(), aside(home)) == (b"again", [])


async def test_an_unmounted_blob_folder_costs_no_ref_and_doctor_says_so(
    store: Store, home: Home, say: Say, photo: Photo
) -> None:
    kept = await attach(store, say, photo, range(3))
    elsewhere = home.blobs.with_name("elsewhere")
    home.blobs.rename(elsewhere)
    home.blobs.mkdir(mode=0o700)
    assert await store.tidy() == Tidied()
    (finding,) = check_strays(store.strays)
    assert not finding.ok
    assert finding.says == "blobs/ is empty, and the database lists 3 files in it"
    home.blobs.rmdir()
    elsewhere.rename(home.blobs)
    assert await store.tidy() == Tidied()
    assert check_strays(store.strays) == ()
    assert [await store.blob(blob.sha256) for blob in kept] == kept


async def test_a_person_may_give_up_the_files_of_an_empty_blob_folder(store: Store, say: Say, photo: Photo) -> None:
    for blob in await attach(store, say, photo, range(3)):
        path_of(store, blob).unlink()
    assert await store.tidy(all_strays=True) == Tidied(lost=3)
    assert check_strays(store.strays) == ()
