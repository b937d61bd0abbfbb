"""Bytes on disk are believed once they were looked at, and never when they changed."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from belino.domain.media import Blob, MediaRef
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Tidied, Verdict
from belino.storage import disk
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import is_here, path_of
from storage.pieces import chunks

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


def flip(path: Path, at: int = 3, *, secretly: bool = False) -> None:
    """Turn one bit over; a disk that does so on its own leaves the file's time as it was."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    if secretly:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file whose bytes were really read to be hashed."""
    seen: list[Path] = []
    look = disk._look

    def counted(place: Path) -> tuple[str, tuple[int, int, int]] | None:
        seen.append(place)
        return look(place)

    monkeypatch.setattr(disk, "_look", counted)
    return seen


async def kept(store: Store, body: bytes = b"good bytes") -> Blob:
    return await store.keep(chunks(body), mime="a/b", limit=1000)


async def test_what_we_wrote_ourselves_costs_no_look_and_after_a_start_one(
    home: Home, clock: FakeClock, looks: list[Path]
) -> None:
    store = await open_store(home, clock=clock)
    blob = await kept(store)
    assert await store.blob(blob.sha256) == blob
    await store.close()
    assert looks == []
    store = await open_store(home, clock=clock)
    try:
        for _ in range(3):
            assert await store.blob(blob.sha256) == blob
        assert looks == [path_of(store, blob)]
        clock.shift(86_401)
        assert await store.blob(blob.sha256) == blob
        assert len(looks) == 2
    finally:
        await store.close()


@pytest.mark.parametrize("place", [0, 4, 9])
async def test_a_flipped_bit_is_found_and_the_ref_is_a_promise_again(
    store: Store, say: Say, photo: Photo, place: int
) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    blob = await kept(store)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    flip(path_of(store, blob), place)
    assert await store.blob(blob.sha256) is None
    assert not await is_here(store, blob)
    assert store.damaged == 1
    record = await store.find_ref(ref.id)
    assert record is not None
    assert (record.outcome, "damaged" in record.reason) == (MediaOutcome.REFERENCED, True)
    assert await kept(store) == blob
    assert await store.blob(blob.sha256) == blob


async def test_a_bit_that_turned_without_a_trace_is_found_within_a_day(store: Store, clock: FakeClock) -> None:
    blob = await kept(store)
    flip(path_of(store, blob), secretly=True)
    assert await store.blob(blob.sha256) == blob
    clock.shift(86_401)
    assert await store.blob(blob.sha256) is None


async def test_an_upload_that_is_damaged_cannot_be_had_again_and_says_so(store: Store, say: Say, photo: Photo) -> None:
    blob = await kept(store)
    (ref,) = (await store.take_in(say("1", media=(photo("1", sha256=blob.sha256),)), OBSERVE)).refs
    flip(path_of(store, blob))
    assert await store.blob(blob.sha256) is None
    record = await store.find_ref(ref.id)
    assert record is not None
    assert (record.outcome, record.reason) == (
        MediaOutcome.NOT_FOUND,
        "its bytes were damaged on disk, and only its sender has them",
    )


async def test_a_damaged_rendition_is_made_again(store: Store, say: Say, photo: Photo) -> None:
    blob = await kept(store)
    await store.take_in(say("1", media=(photo("1", sha256=blob.sha256),)), OBSERVE)
    small = await store.keep_rendition(blob.sha256, "thumb", b"small one", "image/png")
    flip(path_of(store, small))
    assert await store.rendition(blob.sha256, "thumb") is None
    assert await store.keep_rendition(blob.sha256, "thumb", b"small one", "image/png") == small
    assert await store.rendition(blob.sha256, "thumb") == small


async def test_bytes_that_are_missing_are_noticed_and_their_refs_fetched_again(
    store: Store, say: Say, photo: Photo
) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    other = await kept(store, b"another file, which is there")
    await store.take_in(say("2", media=(photo("2", sha256=other.sha256),)), OBSERVE)
    blob = await kept(store)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    path_of(store, blob).unlink()
    assert await store.tidy(dry_run=True) == Tidied(lost=1)
    assert await store.tidy() == Tidied(lost=1)
    assert await store.tidy() == Tidied()
    record = await store.find_ref(ref.id)
    assert record is not None
    assert record.outcome is MediaOutcome.REFERENCED


async def test_files_that_nobody_finishes_go_and_those_of_uploads_and_of_just_now_stay(
    store: Store, home: Home, clock: FakeClock
) -> None:
    upload = await store.start_upload(MAIN, file_name="a", mime="a/b", size=10, sha256=None)
    await store.extend_upload(upload.id, 0, chunks(b"abc"))
    old, fresh = home.blobs / "tmp" / "keep-old", home.blobs / "tmp" / "keep-fresh"
    for path in (old, fresh):
        path.write_bytes(b"half")
    at = clock.now().timestamp()
    for path in (home.blobs / "tmp").iterdir():
        os.utime(path, (at, at) if path == fresh else (at - 3601, at - 3601))
    assert await store.tidy() == Tidied(unfinished=1, freed=4)
    assert sorted(path.name for path in (home.blobs / "tmp").iterdir()) == ["keep-fresh", f"upload-{upload.id}"]


async def test_a_whole_database_is_found_whole_and_a_damaged_one_is_not(home: Home, clock: FakeClock) -> None:
    store = await open_store(home, clock=clock)
    try:
        assert await store.check_database() == ""
    finally:
        await store.close()
    with closing(sqlite3.connect(home.database)) as connection:  # a page that is not read at the start
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'prints'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with home.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    store = await open_store(home, clock=clock)
    try:
        assert await store.check_database()
    finally:
        await store.close()
