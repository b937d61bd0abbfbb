"""What was taken back is gone everywhere, and what others still use stays."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from belino.domain.media import Blob, DocumentText, DocumentUnit, MediaRef, Part
from belino.domain.message import ConversationKey, Deletion, Edit, Message, Quote
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.domain.stored import Verdict
from belino.storage.home import Home
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from blob_files import content_of, is_here
from storage.conftest import ANNA, MAIN
from storage.engines import Engine
from storage.pieces import keep

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
OTHER = ConversationKey(platform="web", account="default", channel="other")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def fetched(store: Store, message: Message, body: bytes = b"a picture") -> tuple[str, Blob]:
    (ref,) = (await store.take_in(message, OBSERVE)).refs
    blob = await keep(store, body)
    assert await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    return ref.id, blob


def deletion(message_id: str, where: ConversationKey = MAIN) -> Deletion:
    return Deletion(conversation=where, id=f"d{message_id}", message_id=message_id, author=None, sent=START)


async def test_a_deleted_picture_is_gone_with_all_that_was_made_of_it(
    store: Store, engine: Engine, say: Say, photo: Photo
) -> None:
    ref, blob = await fetched(store, say("1", media=(photo("1", file_id="known"),)))
    record = await store.find_ref(ref)
    assert record is not None
    assert await store.blob_of_file("web", "default", "known") == blob
    page = DocumentText(unit=DocumentUnit.PAGE, total=1, parts=(Part(number=1, text="secret"),))
    await store.keep_reading(blob.sha256, "pdf", page)
    thumb = await store.keep_rendition(blob.sha256, "thumb", b"small", "image/png")
    await store.keep_print(blob.sha256, b"12345678")
    await store.take_in(deletion("1"), OBSERVE)
    assert await store.find_ref(ref) is None
    assert await store.ref_by_public_name(record.public_name) is None
    assert await store.taken_back() == 3  # its copies, its bytes, what they were made into
    assert set(await store.purge()) == {blob.sha256, thumb.sha256}
    assert not await is_here(store, blob)
    assert not await is_here(store, thumb)
    assert await store.blob(blob.sha256) is None
    assert await store.blob_of_file("web", "default", "known") is None
    assert await store.reading(blob.sha256, "pdf") is None
    assert await store.prints(MAIN) == ()
    dump = await engine.dump()
    assert blob.sha256 not in dump
    assert "secret" not in dump


async def test_bytes_that_another_channel_holds_stay_there(store: Store, say: Say, photo: Photo) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)))
    there, same = await fetched(store, say("1", conversation=OTHER, media=(photo("1", channel_id="other"),)))
    assert same == blob
    await store.take_in(deletion("1"), OBSERVE)
    assert await store.purge() == ()
    assert await store.blob(blob.sha256) is not None
    assert await store.ref(OTHER, there) is not None
    await store.take_in(deletion("1", OTHER), OBSERVE)
    assert await store.purge() == (blob.sha256,)


async def test_a_ref_of_a_deleted_message_is_told_from_one_that_never_was_but_only_in_its_channel(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    await store.take_in(say("9", conversation=OTHER), OBSERVE)
    assert await store.gone_since(MAIN, ref.id) is None
    await store.take_in(deletion("1"), OBSERVE)
    assert await store.gone_since(MAIN, ref.id) == clock.now()
    assert await store.gone_since(OTHER, ref.id) is None
    (copies,) = await store.copied()
    assert (MAIN in copies.conversations, copies.refs) == (True, (ref.id,))
    await store.forget_gone(clock.now() + timedelta(days=1))
    assert await store.gone_since(MAIN, ref.id) is not None  # its copies were not looked for yet
    await store.copies_removed(copies.refs)
    assert await store.copied() == ()
    await store.forget_gone(clock.now() + timedelta(days=1))
    assert await store.gone_since(MAIN, ref.id) is None


async def test_a_deleted_picture_goes_from_messages_that_quote_it_and_no_quote_brings_it_back(
    store: Store, say: Say, photo: Photo
) -> None:
    ref, blob = await fetched(store, say("1", media=(photo("1"),)))
    quote = Quote(author=ANNA, message_id="1", text="look", sent=START, media=(photo("1"),))
    await store.take_in(say("2", quote=quote), OBSERVE)
    await store.take_in(deletion("1"), OBSERVE)
    await store.take_in(say("3", quote=quote), OBSERVE)
    assert await store.find_ref(ref) is None
    assert await store.refs(MAIN) == ()
    for message in await store.messages(MAIN, ["2", "3"]):
        assert message.quote is not None
        assert message.quote.media == ()
    assert await store.purge() == (blob.sha256,)


async def test_an_edit_that_takes_a_picture_away_takes_its_bytes_and_one_that_brings_it_back_is_believed(
    store: Store, say: Say, photo: Photo
) -> None:
    ref, blob = await fetched(store, say("1", media=(photo("1", "a"),)))
    for number, item in enumerate("ba", 1):
        edit = Edit(
            conversation=MAIN,
            id=f"e{number}",
            message_id="1",
            author=ANNA,
            sent=START + timedelta(seconds=number),
            text="this one",
            media=(photo("1", item),),
        )
        await store.take_in(edit, OBSERVE)
        assert (await store.gone_since(MAIN, ref) is None) == (item == "a")
        assert (await store.find_ref(ref) is None) == (item == "b")
        assert await store.purge() == ((blob.sha256,) if item == "b" else ())


async def test_bytes_fetched_for_a_ref_that_was_deleted_meanwhile_are_nobodys(
    store: Store, say: Say, photo: Photo
) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    blob = await keep(store, b"on its way")
    await store.take_in(deletion("1"), OBSERVE)
    assert not await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    assert await store.purge() == (blob.sha256,)
    assert not await is_here(store, blob)


async def test_what_a_turn_reads_right_now_has_half_a_minute(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)))
    await store.take_in(deletion("1"), OBSERVE)
    assert await store.purge(keep={blob.sha256}) == ()
    assert await is_here(store, blob)
    clock.shift(30)
    assert await store.purge(keep={blob.sha256}) == (blob.sha256,)


async def test_what_an_undelivered_parcel_carries_goes_once_it_is_delivered(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)))
    file = OutgoingFile(name="a.png", mime="image/png", size=blob.size, sha256=blob.sha256)
    await store.put_parcels((Parcel(key="p", conversation=MAIN, files=(file,)),))
    await store.take_in(deletion("1"), OBSERVE)
    assert await store.purge() == ()
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel("p", Receipt(message_id="s", sent=clock.now()), ANNA)
    sent = (await store.messages(MAIN, ["s"]))[0]
    assert sent.media  # what was sent holds the same bytes now, by a ref of its own
    assert await store.purge() == ()
    await store.take_in(deletion("s"), OBSERVE)
    assert await store.purge() == (blob.sha256,)


async def test_bytes_that_are_purged_while_the_same_ones_move_in_are_there_afterwards(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)))
    await store.take_in(deletion("1"), OBSERVE)
    clock.shift(1)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        purging = group.create_task(store.purge())
        keeping = group.create_task(keep(store, b"a picture"))
    assert purging.result() in ((), (blob.sha256,))
    assert await content_of(store, keeping.result()) == b"a picture"
    assert await store.blob(blob.sha256) is not None


async def test_what_was_deleted_just_before_a_crash_goes_after_it(engine: Engine, say: Say, photo: Photo) -> None:
    store = await engine.open()
    try:
        _, blob = await fetched(store, say("1", media=(photo("1"),)))
        await store.take_in(deletion("1"), OBSERVE)
    finally:
        await store.close()
    again = await engine.open()
    try:
        assert await again.purge() == (blob.sha256,)
        assert not await is_here(store, blob)
    finally:
        await again.close()


@pytest.mark.parametrize("first", ["deletion", "message"])
async def test_in_whatever_order_they_come_a_deleted_upload_leaves_no_bytes(
    store: Store, say: Say, photo: Photo, first: str
) -> None:
    blob = await keep(store, b"uploaded")
    message = say("1", media=(photo("1", sha256=blob.sha256),))
    for arrival in (message, deletion("1")) if first == "message" else (deletion("1"), message):
        await store.take_in(arrival, OBSERVE)
    assert await store.purge() == (blob.sha256,)
    assert not await is_here(store, blob)


async def test_deleted_words_do_not_lie_on_in_the_database_file(engine: Engine, home: Home, say: Say) -> None:
    store = await engine.open()
    try:
        for number in range(50):
            await store.take_in(say(str(number), f"the canary of message {number}"), OBSERVE)
        for number in range(50):
            await store.take_in(deletion(str(number)), OBSERVE)
    finally:
        await store.close()
    assert b"the canary" not in b"".join(path.read_bytes() for path in home.path.glob("belino.db*"))
