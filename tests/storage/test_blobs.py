"""What every engine of blobs promises."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.domain.errors import MediaNotFound, MediaRefused, MediaTooLarge
from belino.storage.blobs import PREFIXES, Blobs, BlobState
from belino.storage.folder import BlobFolder
from belino.testing.clock import FakeClock
from storage.pieces import breaking, chunks

NAME = hashlib.sha256(b"some bytes").hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.fixture(params=["folder"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Blobs:
    engines: dict[str, Blobs] = {"folder": BlobFolder(tmp_path / "blobs", clock)}
    return engines[request.param]


async def put(blobs: Blobs, *pieces: bytes) -> str:
    async with blobs.put(chunks(*pieces), limit=10_000_000) as stored:
        return stored.sha256


async def names(blobs: Blobs) -> dict[str, int]:
    return {name: size for prefix in PREFIXES for name, size in (await blobs.list(prefix)).items()}


async def content(blobs: Blobs, name: str) -> bytes:
    return b"".join([piece async for piece in blobs.stream(name)])


async def test_bytes_are_put_under_their_hash_and_read_back_as_a_stream_and_as_a_file(blobs: Blobs) -> None:
    async with blobs.put(chunks(b"some", b" ", b"bytes"), limit=10) as stored:
        assert (stored.sha256, stored.size) == (NAME, 10)
        assert await names(blobs) == {NAME: 10}
    assert await blobs.check(NAME) is BlobState.HELD
    assert await content(blobs, NAME) == b"some bytes"
    async with blobs.local(NAME) as path:
        assert path.read_bytes() == b"some bytes"


async def test_a_stream_comes_in_pieces_also_if_it_is_long(blobs: Blobs) -> None:
    name = await put(blobs, *[b"x" * 700_000] * 5)
    pieces = [piece async for piece in blobs.stream(name)]
    assert len(pieces) > 1 and sum(map(len, pieces)) == 3_500_000


@pytest.mark.parametrize("size", [6, 3_000_000])
async def test_past_the_limit_nothing_is_to_be_seen(blobs: Blobs, size: int) -> None:
    with pytest.raises(MediaTooLarge):
        async with blobs.put(chunks(b"x" * size), limit=5):
            raise AssertionError("it was stored")
    assert await names(blobs) == {} and not list(blobs.scratch.iterdir())


async def test_of_a_stream_that_breaks_nothing_is_to_be_seen(blobs: Blobs) -> None:
    with pytest.raises(ConnectionError):
        async with blobs.put(breaking(b"x" * 3_000_000), limit=10_000_000):
            raise AssertionError("it was stored")
    assert await names(blobs) == {} and not list(blobs.scratch.iterdir())


async def test_bytes_that_are_refused_once_they_are_complete_are_never_to_be_seen(blobs: Blobs) -> None:
    async def watched() -> AsyncIterator[bytes]:
        yield b"some "
        yield b"bytes"
        came.append("all")

    def refuse() -> None:
        assert came == ["all"]
        raise MediaRefused("a web page")

    came: list[str] = []
    with pytest.raises(MediaRefused):
        async with blobs.put(watched(), limit=10, complete=refuse):
            raise AssertionError("it was stored")
    assert await names(blobs) == {} and not list(blobs.scratch.iterdir())


async def test_nothing_is_to_be_seen_while_bytes_still_come(blobs: Blobs) -> None:
    seen: list[dict[str, int]] = []

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1_000_000
            seen.append(await names(blobs))

    await put(blobs, b"some bytes")
    async with blobs.put(slowly(), limit=10_000_000):
        pass
    assert seen == [{NAME: 10}] * 3


async def test_a_complete_local_file_is_adopted_and_its_old_name_is_gone(blobs: Blobs) -> None:
    upload = blobs.scratch / "upload"
    upload.write_bytes(b"some bytes")
    async with blobs.adopt(upload, NAME):
        assert await names(blobs) == {NAME: 10} and not upload.exists()
    assert await blobs.check(NAME) is BlobState.HELD


async def test_what_settles_is_neither_deleted_nor_set_aside(blobs: Blobs, clock: FakeClock) -> None:
    async with blobs.put(chunks(b"some bytes"), limit=10):
        assert blobs.is_settling(NAME) and blobs.is_moving(NAME)
        assert await blobs.delete((NAME,)) == 0
        assert await blobs.set_aside((NAME,), now=clock.now()) == ()
        assert await content(blobs, NAME) == b"some bytes"
    assert not blobs.is_settling(NAME) and not blobs.is_moving(NAME)


async def test_the_same_bytes_settle_until_the_last_of_them_is_recorded(blobs: Blobs) -> None:
    async with blobs.put(chunks(b"some bytes"), limit=10):
        await put(blobs, b"some bytes")
        assert blobs.is_settling(NAME)
    assert await blobs.delete((NAME,)) == 10


async def test_a_block_that_fails_leaves_bytes_that_can_be_deleted(blobs: Blobs) -> None:
    with pytest.raises(RuntimeError):
        async with blobs.put(chunks(b"some bytes"), limit=10):
            raise RuntimeError("the row was not written")
    assert not blobs.is_settling(NAME)
    assert await blobs.delete((NAME,)) == 10
    assert await names(blobs) == {}


async def test_what_is_deleted_is_gone_and_a_second_time_frees_nothing(blobs: Blobs) -> None:
    await put(blobs, b"some bytes")
    await put(blobs, b"other")
    assert await blobs.delete((NAME, "0" * 64)) == 10
    assert await names(blobs) == {OTHER: 5}
    assert await blobs.check(NAME) is BlobState.MISSING
    with pytest.raises(MediaNotFound):
        await content(blobs, NAME)
    assert await blobs.delete((NAME,)) == 0


async def test_damage_is_found(blobs: Blobs) -> None:
    await put(blobs, b"some bytes")
    async with blobs.local(NAME) as path:
        path.chmod(0o600)
        path.write_bytes(b"same bytes")
    assert await blobs.check(NAME) is BlobState.DAMAGED


@pytest.mark.parametrize(
    "name", ["", "..", "../../key", "a" * 63, "A" * 64, "a" * 64 + "/x", "g" * 64, "a" * 64 + "\n"]
)
async def test_only_a_hash_is_a_name(blobs: Blobs, name: str) -> None:
    with pytest.raises(MediaNotFound):
        await blobs.check(name)
    with pytest.raises(MediaNotFound):
        await content(blobs, name)
    with pytest.raises(MediaNotFound):
        async with blobs.local(name):
            raise AssertionError("it was found")


async def test_what_is_set_aside_is_not_listed_and_comes_back(blobs: Blobs, clock: FakeClock) -> None:
    await put(blobs, b"some bytes")
    assert await blobs.set_aside((NAME, OTHER), now=clock.now()) == (NAME,)
    assert await names(blobs) == {}
    (aside,) = (await blobs.list_aside()).items()
    assert (aside[0], aside[1].size, aside[1].since) == (NAME, 10, clock.now().timestamp())
    await blobs.restore((NAME, OTHER))
    assert await names(blobs) == {NAME: 10} and not await blobs.list_aside()


@pytest.mark.parametrize("reached", ["checked", "sent"])
async def test_what_is_set_aside_comes_back_once_it_is_needed(blobs: Blobs, clock: FakeClock, reached: str) -> None:
    await put(blobs, b"some bytes")
    await blobs.set_aside((NAME,), now=clock.now())
    if reached == "checked":
        assert await blobs.check(NAME) is BlobState.HELD
    else:
        assert await content(blobs, NAME) == b"some bytes"
    assert await names(blobs) == {NAME: 10} and not await blobs.list_aside()


@pytest.mark.parametrize("way", ["put again", "deleted", "deleted aside"])
async def test_nothing_stays_aside_longer_than_it_has_to(blobs: Blobs, clock: FakeClock, way: str) -> None:
    await put(blobs, b"some bytes")
    await blobs.set_aside((NAME,), now=clock.now())
    match way:
        case "put again":
            await put(blobs, b"some bytes")
        case "deleted":
            await blobs.delete((NAME,))
        case _:
            await blobs.delete_aside((NAME,))
    assert not await blobs.list_aside()
    assert await names(blobs) == ({NAME: 10} if way == "put again" else {})
