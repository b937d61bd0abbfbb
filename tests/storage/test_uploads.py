"""Uploads go on where they stopped, and become a blob only when they are what was announced."""

import asyncio
import hashlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import UploadError
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.record import Upload, Verdict
from belino.storage.home import Home
from belino.storage.sqlite import SqliteStore, open_store
from belino.storage.uploads import NOTE_BYTES
from belino.testing.clock import FakeClock
from storage.pieces import breaking, chunks

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main", thread="a:b")


async def start(store: SqliteStore, size: int, sha256: str | None = None) -> Upload:
    return await store.start_upload(MAIN, file_name="näme.png", mime="image/png", size=size, sha256=sha256)


@given(st.binary(min_size=1, max_size=4000), st.lists(st.integers(1, 4000), max_size=6))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_bytes_sent_in_any_pieces_become_the_same_blob(store: SqliteStore, data: bytes, cuts: list[int]) -> None:
    upload = await start(store, len(data), hashlib.sha256(data).hexdigest())
    marks = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    for begin, end in pairwise(marks):
        assert upload.sha256 is None
        upload = await store.extend_upload(upload.id, begin, chunks(data[begin:end]))
        assert upload.offset == end
    assert upload.sha256 == hashlib.sha256(data).hexdigest()
    blob = await store.blob(upload.sha256)
    assert blob is not None
    assert (blob.path.read_bytes(), blob.mime) == (data, "image/png")
    assert await store.upload(upload.id) == upload


async def test_an_announced_upload_is_found_again(store: SqliteStore, clock: FakeClock) -> None:
    upload = await start(store, 10)
    assert await store.upload(upload.id) == upload
    assert (upload.conversation, upload.file_name, upload.offset, upload.created) == (MAIN, "näme.png", 0, clock.now())
    assert await store.upload("unknown") is None


async def test_what_came_before_the_client_went_away_counts(store: SqliteStore) -> None:
    upload = await start(store, 10)
    with pytest.raises(ConnectionError):
        await store.extend_upload(upload.id, 0, breaking(b"0123", b"45"))
    found = await store.upload(upload.id)
    assert found is not None
    assert found.offset == 6
    done = await store.extend_upload(upload.id, 6, chunks(b"6789"))
    assert done.sha256 == hashlib.sha256(b"0123456789").hexdigest()


async def test_an_upload_goes_on_after_a_restart(home: Home, clock: FakeClock) -> None:
    store = await open_store(home, clock=clock)
    upload = await store.extend_upload((await start(store, 10)).id, 0, chunks(b"0123"))
    await store.close()
    store = await open_store(home, clock=clock)
    assert await store.upload(upload.id) == upload
    done = await store.extend_upload(upload.id, 4, chunks(b"456789"))
    assert done.sha256 == hashlib.sha256(b"0123456789").hexdigest()
    await store.close()


@pytest.mark.slow
async def test_an_upload_goes_on_after_its_process_was_killed(home: Home, clock: FakeClock) -> None:
    store = await open_store(home, clock=clock)
    data = b"".join(bytes([number % 251]) * 1_000_000 for number in range(30))
    upload = await start(store, len(data), hashlib.sha256(data).hexdigest())
    await store.close()
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from belino.storage.home import Home\n"
        "from belino.storage.sqlite import open_store\n"
        "from belino.testing.clock import FakeClock\n"
        "async def slowly():\n"
        "    for number in range(30):\n"
        "        print(number, flush=True)\n"
        "        if number == 25:\n"
        "            sys.stdin.read()\n"
        "        yield bytes([number % 251]) * 1_000_000\n"
        "async def main():\n"
        "    store = await open_store(Home.at(Path(sys.argv[1])), clock=FakeClock())\n"
        "    await store.extend_upload(sys.argv[2], 0, slowly())\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(home.path), upload.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    while process.stdout.readline() != b"25\n":
        assert process.poll() is None
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    store = await open_store(home, clock=clock)
    found = await store.upload(upload.id)
    assert found is not None
    assert 0 < 25_000_000 - found.offset <= NOTE_BYTES + 2_000_000
    done = await store.extend_upload(upload.id, found.offset, chunks(data[found.offset :]))
    assert done.sha256 == hashlib.sha256(data).hexdigest()
    await store.close()


async def test_bytes_that_were_lost_with_their_file_are_asked_for_again(store: SqliteStore, home: Home) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    (home.blobs / "tmp" / f"upload-{upload.id}").unlink()
    found = await store.upload(upload.id)
    assert found is not None
    assert found.offset == 0
    with pytest.raises(UploadError, match="stands at 0"):
        await store.extend_upload(upload.id, 2, chunks(b"34"))
    done = await store.extend_upload(upload.id, 0, chunks(b"1234"))
    assert done.sha256 == hashlib.sha256(b"1234").hexdigest()


@pytest.mark.parametrize("offset", [-1, 1, 3, 5, 2**70])
async def test_a_wrong_offset_is_refused_and_names_the_right_one(store: SqliteStore, offset: int) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    with pytest.raises(UploadError, match=f"stands at 2, not at {offset}"):
        await store.extend_upload(upload.id, offset, chunks(b"34"))
    assert await store.upload(upload.id) == upload


async def test_a_byte_too_many_is_refused(store: SqliteStore) -> None:
    upload = await start(store, 4)
    with pytest.raises(UploadError, match="more bytes came than the 4"):
        await store.extend_upload(upload.id, 0, chunks(b"123", b"45"))
    found = await store.upload(upload.id)
    assert found is not None
    assert (found.offset, found.sha256) == (3, None)


async def test_bytes_with_another_hash_are_refused_and_gone(store: SqliteStore, home: Home) -> None:
    upload = await start(store, 4, hashlib.sha256(b"good").hexdigest())
    with pytest.raises(UploadError, match="sha256"):
        await store.extend_upload(upload.id, 0, chunks(b"evil"))
    assert await store.upload(upload.id) is None
    assert [path for path in home.blobs.rglob("*") if path.is_file()] == []
    assert await store.blob(hashlib.sha256(b"evil").hexdigest()) is None


async def test_an_empty_file_is_complete_at_once(store: SqliteStore) -> None:
    upload = await start(store, 0)
    assert upload.sha256 == hashlib.sha256(b"").hexdigest()
    with pytest.raises(UploadError, match="smaller than nothing"):
        await start(store, -1)


async def test_a_complete_upload_stays_complete(store: SqliteStore) -> None:
    done = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"1234"))
    assert await store.extend_upload(done.id, 4, chunks()) == done
    with pytest.raises(UploadError, match="stands at 4"):
        await store.extend_upload(done.id, 0, chunks(b"1234"))


async def test_two_requests_cannot_write_to_one_upload_at_once(store: SqliteStore) -> None:
    upload = await start(store, 4)
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"12"
        arrived.set()
        await go_on.wait()
        yield b"34"

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        first = group.create_task(store.extend_upload(upload.id, 0, slow()))
        await arrived.wait()
        with pytest.raises(UploadError, match="another request"):
            await store.extend_upload(upload.id, 0, chunks(b"xxxx"))
        go_on.set()
    assert first.result().sha256 == hashlib.sha256(b"1234").hexdigest()


async def test_a_dropped_upload_leaves_nothing(store: SqliteStore, home: Home) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    await store.drop_upload(upload.id)
    await store.drop_upload(upload.id)
    assert await store.upload(upload.id) is None
    assert list((home.blobs / "tmp").iterdir()) == []
    with pytest.raises(UploadError, match="no such upload"):
        await store.extend_upload(upload.id, 2, chunks(b"34"))


async def test_old_uploads_are_swept_and_what_a_message_took_stays(
    store: SqliteStore, home: Home, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    taken = await store.extend_upload((await start(store, 5)).id, 0, chunks(b"taken"))
    left = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"left"))
    await store.extend_upload((await start(store, 4)).id, 0, chunks(b"ha"))
    await store.take_in(say("1", media=(photo("1", sha256=taken.sha256),)), OBSERVE)
    clock.shift(7200)
    fresh = await start(store, 4)
    assert (await store.tidy()).total == 0  # an upload uses its bytes until it is swept
    assert await store.sweep_uploads(clock.now() - timedelta(hours=1)) == 3
    assert await store.upload(fresh.id) == fresh
    assert (await store.tidy()).total == 1
    assert left.sha256 is not None
    assert taken.sha256 is not None
    assert await store.blob(left.sha256) is None
    assert await store.blob(taken.sha256) is not None
    assert (await store.refs(None))[0].outcome is MediaOutcome.HELD
    assert list((home.blobs / "tmp").iterdir()) == []


async def test_upload_ids_cannot_be_guessed(store: SqliteStore) -> None:
    ids = {(await start(store, 1)).id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(name) == 32 for name in ids)  # 128 random bits
