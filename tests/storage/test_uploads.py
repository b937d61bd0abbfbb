"""Uploads go on where they stopped, and become a blob only when they are what was announced."""

import asyncio
import hashlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import OverDailyLimit, UploadError, UploadsFull
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Upload, UploadLimits, Verdict
from belino.gateway.maintenance import FINISHED_KEPT, UNFINISHED_KEPT
from belino.storage.home import Home
from belino.storage.store import Store
from belino.storage.uploads import NOTE_BYTES
from belino.testing.clock import FakeClock
from blob_files import all_names, content_of
from storage.engines import Engine
from storage.pieces import breaking, chunks

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main", thread="a:b")
MIB = 1024 * 1024
LIMITS = UploadLimits(channel_bytes_per_day=MIB, total_bytes=16 * MIB)


async def start(store: Store, size: int, sha256: str | None = None) -> Upload:
    return await store.start_upload(MAIN, file_name="näme.png", mime="image/png", size=size, sha256=sha256)


@given(st.binary(min_size=1, max_size=4000), st.lists(st.integers(1, 4000), max_size=6))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_bytes_sent_in_any_pieces_become_the_same_blob(store: Store, data: bytes, cuts: list[int]) -> None:
    upload = await start(store, len(data), hashlib.sha256(data).hexdigest())
    marks = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    for begin, end in pairwise(marks):
        assert upload.sha256 is None
        upload = await store.extend_upload(upload.id, begin, chunks(data[begin:end]))
        assert upload.offset == end
    assert upload.sha256 == hashlib.sha256(data).hexdigest()
    blob = await store.blob(upload.sha256)
    assert blob is not None
    assert (await content_of(store, blob), blob.mime) == (data, "image/png")
    assert await store.upload(upload.id) == upload


async def test_an_announced_upload_is_found_again(store: Store, clock: FakeClock) -> None:
    upload = await start(store, 10)
    assert await store.upload(upload.id) == upload
    assert (upload.conversation, upload.file_name, upload.offset, upload.created) == (MAIN, "näme.png", 0, clock.now())
    assert await store.upload("unknown") is None


async def test_what_came_before_the_client_went_away_counts(store: Store) -> None:
    upload = await start(store, 10)
    with pytest.raises(ConnectionError):
        await store.extend_upload(upload.id, 0, breaking(b"0123", b"45"))
    found = await store.upload(upload.id)
    assert found is not None
    assert found.offset == 6
    done = await store.extend_upload(upload.id, 6, chunks(b"6789"))
    assert done.sha256 == hashlib.sha256(b"0123456789").hexdigest()


async def test_an_upload_goes_on_after_a_restart(engine: Engine) -> None:
    store = await engine.open()
    upload = await store.extend_upload((await start(store, 10)).id, 0, chunks(b"0123"))
    await store.close()
    store = await engine.open()
    assert await store.upload(upload.id) == upload
    done = await store.extend_upload(upload.id, 4, chunks(b"456789"))
    assert done.sha256 == hashlib.sha256(b"0123456789").hexdigest()
    await store.close()


@pytest.mark.slow
async def test_an_upload_goes_on_after_its_process_was_killed(engine: Engine, home: Home, clock: FakeClock) -> None:
    store = await engine.open()
    data = b"".join(bytes([number % 251]) * 1_000_000 for number in range(30))
    upload = await start(store, len(data), hashlib.sha256(data).hexdigest())
    await store.close()
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from belino.storage.home import Home\n"
        "from belino.storage.store import open_store\n"
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
    store = await engine.open()
    found = await store.upload(upload.id)
    assert found is not None
    assert 0 < 25_000_000 - found.offset <= NOTE_BYTES + 2_000_000
    done = await store.extend_upload(upload.id, found.offset, chunks(data[found.offset :]))
    assert done.sha256 == hashlib.sha256(data).hexdigest()
    await store.close()


async def test_bytes_that_were_lost_with_their_file_are_asked_for_again(store: Store) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    (store.scratch / f"upload-{upload.id}").unlink()
    found = await store.upload(upload.id)
    assert found is not None
    assert found.offset == 0
    with pytest.raises(UploadError, match="stands at 0"):
        await store.extend_upload(upload.id, 2, chunks(b"34"))
    done = await store.extend_upload(upload.id, 0, chunks(b"1234"))
    assert done.sha256 == hashlib.sha256(b"1234").hexdigest()


@pytest.mark.parametrize("offset", [-1, 1, 3, 5, 2**70])
async def test_a_wrong_offset_is_refused_and_names_the_right_one(store: Store, offset: int) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    with pytest.raises(UploadError, match=f"stands at 2, not at {offset}"):
        await store.extend_upload(upload.id, offset, chunks(b"34"))
    assert await store.upload(upload.id) == upload


async def test_a_byte_too_many_is_refused(store: Store) -> None:
    upload = await start(store, 4)
    with pytest.raises(UploadError, match="more bytes came than the 4"):
        await store.extend_upload(upload.id, 0, chunks(b"123", b"45"))
    found = await store.upload(upload.id)
    assert found is not None
    assert (found.offset, found.sha256) == (3, None)


async def test_bytes_with_another_hash_are_refused_and_gone(store: Store) -> None:
    upload = await start(store, 4, hashlib.sha256(b"good").hexdigest())
    with pytest.raises(UploadError, match="sha256"):
        await store.extend_upload(upload.id, 0, chunks(b"evil"))
    assert await store.upload(upload.id) is None
    assert await all_names(store) == []
    assert await store.blob(hashlib.sha256(b"evil").hexdigest()) is None


async def test_an_empty_file_is_complete_at_once(store: Store) -> None:
    upload = await start(store, 0)
    assert upload.sha256 == hashlib.sha256(b"").hexdigest()
    with pytest.raises(UploadError, match="smaller than nothing"):
        await start(store, -1)


async def test_a_complete_upload_stays_complete(store: Store) -> None:
    done = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"1234"))
    assert await store.extend_upload(done.id, 4, chunks()) == done
    with pytest.raises(UploadError, match="stands at 4"):
        await store.extend_upload(done.id, 0, chunks(b"1234"))


async def test_two_requests_cannot_write_to_one_upload_at_once(store: Store) -> None:
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


async def test_a_dropped_upload_leaves_nothing(store: Store) -> None:
    upload = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    await store.drop_upload(upload.id)
    await store.drop_upload(upload.id)
    assert await store.upload(upload.id) is None
    assert list(store.scratch.iterdir()) == []
    with pytest.raises(UploadError, match="no such upload"):
        await store.extend_upload(upload.id, 2, chunks(b"34"))


async def swept(store: Store, clock: FakeClock) -> int:
    """What the gateway's sweep forgets now."""
    return await store.sweep_uploads(
        finished_before=clock.now() - FINISHED_KEPT, begun_before=clock.now() - UNFINISHED_KEPT
    )


async def test_old_uploads_are_swept_and_what_a_message_took_stays(
    store: Store, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    taken = await store.extend_upload((await start(store, 5)).id, 0, chunks(b"taken"))
    left = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"left"))
    await store.extend_upload((await start(store, 4)).id, 0, chunks(b"ha"))
    await store.take_in(say("1", media=(photo("1", sha256=taken.sha256),)), OBSERVE)
    clock.shift(25 * 3600)
    fresh = await start(store, 4)
    assert (await store.tidy()).total == 0  # an upload uses its bytes until it is swept
    assert await swept(store, clock) == 3
    assert await store.upload(fresh.id) == fresh
    assert (await store.tidy()).total == 1
    assert left.sha256 is not None
    assert taken.sha256 is not None
    assert await store.blob(left.sha256) is None
    assert await store.blob(taken.sha256) is not None
    assert (await store.refs(None))[0].outcome is MediaOutcome.HELD
    assert list(store.scratch.iterdir()) == []


async def finish(store: Store, size: int, fill: bytes = b"x", limits: UploadLimits | None = LIMITS) -> Upload:
    """A finished upload of this size."""
    begun = await store.start_upload(MAIN, file_name="a", mime="a/b", size=size, sha256=None, limits=limits)
    return await store.extend_upload(begun.id, 0, chunks(fill * size))


def room_left(spent: int) -> str:
    return f"has {MIB - spent} left of {MIB}"


async def test_what_is_announced_counts_to_the_channels_day_before_a_byte_comes(store: Store) -> None:
    await finish(store, MIB // 2)
    await store.start_upload(MAIN, file_name="a", mime="a/b", size=MIB // 4, sha256=None, limits=LIMITS)
    with pytest.raises(OverDailyLimit, match=room_left(3 * MIB // 4)) as refused:
        await store.start_upload(MAIN, file_name="a", mime="a/b", size=MIB // 4 + 1, sha256=None, limits=LIMITS)
    assert refused.value.limit == MIB
    await store.start_upload(MAIN, file_name="a", mime="a/b", size=MIB // 4, sha256=None, limits=LIMITS)
    other = ConversationKey(platform="web", account="default", channel="other")
    await store.start_upload(other, file_name="a", mime="a/b", size=MIB, sha256=None, limits=LIMITS)


async def test_uploads_begun_at_once_cannot_share_the_same_room(
    store: Store, held_up: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    wish: dict[str, Any] = {"file_name": "a", "mime": "a/b", "size": MIB // 4, "sha256": None, "limits": LIMITS}
    async with held_up():
        begun = [asyncio.create_task(store.start_upload(MAIN, **wish)) for _ in range(20)]
        await asyncio.sleep(0)
    ended = await asyncio.gather(*begun, return_exceptions=True)
    assert [type(one) for one in ended] == [Upload] * 4 + [OverDailyLimit] * 16


async def test_bytes_that_came_count_for_a_day_though_they_were_deleted(store: Store, clock: FakeClock) -> None:
    for number in range(4):
        done = await finish(store, MIB // 4, fill=bytes([number]))
        await store.drop_upload(done.id)
    with pytest.raises(OverDailyLimit, match=room_left(MIB)):
        await finish(store, 1)
    clock.shift(24 * 3600 - 1)
    with pytest.raises(OverDailyLimit):
        await finish(store, 1)
    clock.shift(2)
    await finish(store, MIB)


async def test_of_an_upload_that_is_given_up_only_the_bytes_that_came_count(store: Store) -> None:
    begun = await store.start_upload(MAIN, file_name="a", mime="a/b", size=MIB, sha256=None, limits=LIMITS)
    await store.extend_upload(begun.id, 0, chunks(b"x" * 1000))
    await store.drop_upload(begun.id)
    with pytest.raises(OverDailyLimit, match=room_left(1000)):
        await finish(store, MIB)
    await finish(store, MIB - 1000)


async def test_bytes_with_another_hash_than_announced_count_to_the_day(store: Store) -> None:
    wish: dict[str, Any] = {"file_name": "a", "mime": "a/b", "size": 1000, "sha256": "0" * 64, "limits": LIMITS}
    begun = await store.start_upload(MAIN, **wish)
    with pytest.raises(UploadError):
        await store.extend_upload(begun.id, 0, chunks(b"x" * 1000))
    with pytest.raises(OverDailyLimit, match=room_left(1000)):
        await finish(store, MIB)


async def test_a_message_that_attaches_an_upload_does_not_count_it_twice(
    store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    done = await finish(store, MIB - 1)
    await store.take_in(say("1", media=(photo("1", sha256=done.sha256),)), OBSERVE)
    await store.drop_upload(done.id)
    await finish(store, 1)
    with pytest.raises(OverDailyLimit, match=room_left(MIB)):
        await finish(store, 1)


async def test_fetches_and_uploads_share_the_channels_day(store: Store, clock: FakeClock) -> None:
    await store.note_fetched(MAIN, MIB // 2)
    await store.start_upload(MAIN, file_name="a", mime="a/b", size=100, sha256=None, limits=LIMITS)
    assert await store.bytes_fetched(MAIN, clock.now()) == MIB // 2 + 100
    with pytest.raises(OverDailyLimit, match=room_left(MIB // 2 + 100)):
        await finish(store, MIB // 2)


async def test_a_clock_that_was_turned_back_does_not_close_a_channel_for_longer_than_a_day(
    store: Store, clock: FakeClock
) -> None:
    await finish(store, MIB)
    clock.turn(timedelta(days=-365))
    with pytest.raises(OverDailyLimit):
        await finish(store, 1)
    clock.shift(25 * 3600)
    await finish(store, 1)


async def test_all_uploads_that_no_message_took_stay_within_their_total(
    store: Store, home: Home, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    limits = UploadLimits(channel_bytes_per_day=8 * MIB, total_bytes=2 * MIB)
    taken = await finish(store, MIB, b"t", limits)
    given_up = await finish(store, MIB // 2, b"g", limits)
    begun = await store.start_upload(MAIN, file_name="a", mime="a/b", size=MIB // 2, sha256=None, limits=limits)
    with pytest.raises(UploadsFull, match=f"0 are left of the {2 * MIB}"):
        await finish(store, 1, b"n", limits)
    await store.take_in(say("1", media=(photo("1", sha256=taken.sha256),)), OBSERVE)
    await store.drop_upload(taken.id)  # it belongs to the message now
    await finish(store, MIB, b"a", limits)
    await store.drop_upload(given_up.id)
    with pytest.raises(UploadsFull):  # its bytes are still on disk
        await finish(store, 1, b"n", limits)
    await store.purge()
    await finish(store, MIB // 2, b"b", limits)
    await store.drop_upload(begun.id)
    await finish(store, MIB // 2, b"c", limits)
    clock.shift(3601)
    assert await swept(store, clock) == 3
    assert len(await store.purge()) == 3
    await finish(store, 2 * MIB, b"d", limits)
    held = sum(path.stat().st_size for path in home.blobs.rglob("*") if path.is_file())
    assert held == limits.total_bytes + MIB  # with what the message took


async def test_a_finished_upload_waits_an_hour_and_an_unfinished_one_a_day(store: Store, clock: FakeClock) -> None:
    late = await start(store, 4)
    left = await start(store, 4)
    clock.shift(20 * 3600)
    late = await store.extend_upload(late.id, 0, chunks(b"late"))
    clock.shift(3600)
    assert await swept(store, clock) == 0
    clock.shift(1)
    assert await swept(store, clock) == 1
    assert await store.upload(late.id) is None
    assert await store.upload(left.id) == left
    assert await store.purge() == (late.sha256,)
    assert await all_names(store) == []
    clock.shift(4 * 3600)
    assert await swept(store, clock) == 1


async def test_an_upload_whose_id_no_client_knows_ends_with_its_process(engine: Engine, clock: FakeClock) -> None:
    store = await engine.open()
    kept = await store.extend_upload((await start(store, 4)).id, 0, chunks(b"12"))
    wish: dict[str, Any] = {"file_name": "a", "mime": "a/b", "size": 4, "sha256": None, "resumable": False}
    half = await store.extend_upload((await store.start_upload(MAIN, **wish)).id, 0, chunks(b"ha"))
    whole = await store.extend_upload((await store.start_upload(MAIN, **wish)).id, 0, chunks(b"full"))
    await store.close()
    store = await engine.open()
    assert await store.upload(half.id) is None
    assert await store.upload(whole.id) is None
    assert await store.upload(kept.id) == kept
    assert [path.name for path in store.scratch.iterdir()] == [f"upload-{kept.id}"]
    assert (await store.counts())["uploads_open"] == 1
    assert await store.purge() == (whole.sha256,)
    assert await store.bytes_fetched(MAIN, clock.now()) == 4 + 2 + 4  # one is open, of the others counts what came
    await store.close()


async def test_upload_ids_cannot_be_guessed(store: Store) -> None:
    ids = {(await start(store, 1)).id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(name) == 32 for name in ids)  # 128 random bits
