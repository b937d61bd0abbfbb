"""Bytes are whole or not there, kept once, and kept while anything uses them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import MediaNotFound, MediaRefused, MediaTooLarge
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Verdict
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from blob_files import all_names, content_of, is_here
from storage.pieces import breaking, chunks

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")


@given(st.lists(st.binary(max_size=3000), max_size=20))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_bytes_lie_under_their_own_hash_however_they_come(store: Store, pieces: list[bytes]) -> None:
    blob = await store.keep(chunks(*pieces), mime="image/png", limit=100_000)
    whole = b"".join(pieces)
    assert (blob.sha256, blob.size) == (hashlib.sha256(whole).hexdigest(), len(whole))
    assert await content_of(store, blob) == whole
    assert await store.blob(blob.sha256) == blob


async def test_many_megabytes_are_kept_in_pieces(store: Store) -> None:
    piece = bytes(range(256)) * 4096
    blob = await store.keep(chunks(*[piece] * 5, b"end"), mime="a/b", limit=100_000_000)
    assert blob.size == 5 * len(piece) + 3
    assert await content_of(store, blob) == piece * 5 + b"end"


async def test_the_same_bytes_are_kept_once(store: Store) -> None:
    first = await store.keep(chunks(b"same"), mime="image/png", limit=10)
    await store.keep(chunks(b"sa", b"me"), mime="image/jpeg", limit=10)
    assert await all_names(store) == [first.sha256]
    assert (await store.counts())["blobs"] == 1


async def test_bytes_of_a_refused_type_are_never_to_be_seen(store: Store) -> None:
    def refuse() -> str:
        raise MediaRefused("a web page")

    with pytest.raises(MediaRefused):
        await store.keep(chunks(b"<html>"), mime=refuse, limit=10)
    assert await all_names(store) == []


async def test_a_blob_is_opened_as_a_file_that_stays_readable_though_it_is_deleted(store: Store) -> None:
    blob = await store.keep(chunks(b"x" * 100), mime="a/b", limit=100)
    async with store.local(blob.sha256) as path:
        file = path.open("rb")
    with file:
        await store._blobs.delete((blob.sha256,))
        assert file.read() == b"x" * 100


async def test_a_byte_over_the_limit_is_refused_and_nothing_stays(store: Store) -> None:
    assert (await store.keep(chunks(b"12345"), mime="a/b", limit=5)).size == 5
    with pytest.raises(MediaTooLarge) as refused:
        await store.keep(chunks(b"123", b"456"), mime="a/b", limit=5)
    assert refused.value.limit == 5
    assert len(await all_names(store)) == 1


async def test_a_stream_that_breaks_leaves_nothing(store: Store) -> None:
    with pytest.raises(ConnectionError):
        await store.keep(breaking(b"x" * 2_000_000), mime="a/b", limit=10_000_000)
    assert await all_names(store) == []
    assert (await store.counts())["blobs"] == 0


async def test_a_cancelled_keep_leaves_nothing(store: Store) -> None:
    arrived = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"x" * 2_000_000
        arrived.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        keeping = group.create_task(store.keep(stalled(), mime="a/b", limit=10_000_000))
        await arrived.wait()
        keeping.cancel()
    assert await all_names(store) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../key", "a" * 63, "A" * 64, "a" * 64 + "/x", "g" * 64, "a" * 64 + "\n"]
)
async def test_only_a_hash_names_a_blob(store: Store, name: str) -> None:
    assert await store.blob(name) is None
    with pytest.raises(MediaNotFound):
        async with store.local(name):
            raise AssertionError("it was found")


async def test_a_blob_whose_file_is_gone_is_not_held(store: Store) -> None:
    blob = await store.keep(chunks(b"x"), mime="a/b", limit=10)
    await store._blobs.delete((blob.sha256,))
    assert await store.blob(blob.sha256) is None
    with pytest.raises(MediaNotFound):
        async with store.local(blob.sha256):
            raise AssertionError("it was found")


async def test_a_held_blob_goes_out_as_chunks(store: Store) -> None:
    blob = await store.keep(chunks(b"x" * 3_000_000), mime="a/b", limit=10_000_000)
    for _ in range(2):  # a parcel that is sent again reads them again
        assert await content_of(store, blob) == b"x" * 3_000_000


async def test_bytes_stay_while_anything_uses_them(
    store: Store, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    shared = await store.keep(chunks(b"shared"), mime="a/b", limit=10)
    loose = await store.keep(chunks(b"loose"), mime="a/b", limit=10)
    for number in "12":
        (ref,) = (await store.take_in(say(number, media=(photo(number),)), OBSERVE)).refs
        await store.end_media(ref.id, MediaOutcome.HELD, blob=shared)
    assert (await store.tidy()).total == 0  # just kept: somebody may be about to use it
    clock.shift(3601)
    assert (await store.tidy()).total == 1
    assert (await store.blob(loose.sha256), await is_here(store, loose)) == (None, False)
    await store.take_in(Deletion(conversation=MAIN, id="d1", message_id="1", author=None, sent=START), OBSERVE)
    assert (await store.tidy()).total == 0
    assert await store.blob(shared.sha256) is not None
    await store.take_in(Deletion(conversation=MAIN, id="d2", message_id="2", author=None, sent=START), OBSERVE)
    assert (await store.tidy()).total == 1
    assert not await is_here(store, shared)


async def test_bytes_dropped_while_the_same_ones_move_in_are_there_afterwards(
    store: Store, clock: FakeClock, held_up: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    blob = await store.keep(chunks(b"again"), mime="a/b", limit=10)
    clock.shift(3601)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, held_up():
        dropping = group.create_task(store.tidy())
        await asyncio.sleep(0)
        keeping = group.create_task(store.keep(chunks(b"again"), mime="a/b", limit=10))
        while store.disk.waiting < 2:  # the new file is in its place, its row is on the way
            await asyncio.sleep(0)
    assert dropping.result().unused == 1
    assert keeping.result() == blob
    held = await store.blob(blob.sha256)
    assert held is not None
    assert await content_of(store, held) == b"again"


async def test_a_ref_that_holds_other_bytes_lets_go_of_the_first(
    store: Store, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    one, two = [await store.keep(chunks(data), mime="a/b", limit=10) for data in (b"one", b"two")]
    (ref,) = (await store.take_in(say("1", media=(photo("1", sha256=one.sha256),)), OBSERVE)).refs
    await store.end_media(ref.id, MediaOutcome.HELD, blob=two)
    clock.shift(3601)
    assert (await store.tidy()).total == 1
    assert await store.blob(one.sha256) is None
    assert await store.blob(two.sha256) is not None
