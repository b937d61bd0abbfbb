"""What was seen, and what of it was fetched."""

from collections.abc import AsyncIterator, Callable

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Unfetched, Verdict
from belino.storage.store import Store

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def kept(store: Store, content: bytes) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    return (await store.keep(chunks(), mime="image/png", limit=1000)).sha256


async def test_media_is_counted_by_what_nobody_fetched(store: Store, say: Say, photo: Photo) -> None:
    alike = [photo("1", str(item), size=100, width=40, height=30) for item in range(3)]
    voice = photo("2", "v", kind=MediaKind.VOICE, mime="audio/ogg", size=7)
    taken = await store.take_in(say("1", media=tuple(alike)), OBSERVE)
    await store.take_in(say("2", media=(voice,)), OBSERVE)
    sha256 = await kept(store, b"x" * 90)
    blob = await store.blob(sha256)
    assert blob is not None
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    (tally,) = await store.media_tallies()
    assert (tally.messages, tally.seen, tally.fetched, tally.fetched_bytes) == (2, 4, 1, 90)
    assert set(tally.unfetched) == {
        Unfetched(kind=MediaKind.IMAGE, mime="image/png", width=40, height=30, items=2, size=200),
        Unfetched(kind=MediaKind.VOICE, mime="audio/ogg", width=None, height=None, items=1, size=7),
    }


async def test_bytes_that_came_along_were_neither_saved_nor_fetched(store: Store, say: Say, photo: Photo) -> None:
    await store.take_in(say("1", media=(photo("1", sha256=await kept(store, b"x"), size=1),)), OBSERVE)
    (tally,) = await store.media_tallies()
    assert (tally.messages, tally.seen, tally.fetched, tally.unfetched) == (1, 0, 0, ())
