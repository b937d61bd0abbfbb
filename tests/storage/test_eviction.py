"""What makes room on the disk, what grows old, and what does neither."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.media import Blob, MediaRef
from belino.domain.message import ConversationKey, Message, Quote
from belino.domain.outcome import MediaOutcome, Standing, TurnState
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.domain.stored import ClaimedTurn, RefRecord, TurnEnd, Verdict
from belino.storage import blob_verbs
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from blob_files import is_here
from storage.pieces import chunks, keep

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="asked", answer=True)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def fetched(store: Store, message: Message, body: bytes, verdict: Verdict = OBSERVE) -> tuple[str, Blob]:
    (ref,) = (await store.take_in(message, verdict)).refs
    blob = await keep(store, body)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    return ref.id, blob


async def look(store: Store, ref: str) -> RefRecord:
    found = await store.ref(MAIN, ref)
    assert found is not None
    return found


async def claimed(store: Store, clock: FakeClock) -> ClaimedTurn:
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    return turn


async def test_nothing_goes_while_there_is_room(store: Store, say: Say, photo: Photo) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)), b"x" * 10)
    assert await store.evict(10) == 10
    assert await is_here(store, blob)


async def test_the_oldest_go_until_it_fits(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    refs = []
    for number in range(5):
        refs.append(await fetched(store, say(str(number), media=(photo(str(number)),)), bytes([number]) * 10))
        clock.shift(100)
    await store.touch(refs[0][1].sha256)
    assert await store.evict(25) == 20
    outcomes = [(await look(store, ref)).outcome for ref, _ in refs]
    gone, here = MediaOutcome.REFERENCED, MediaOutcome.HELD
    assert outcomes == [here, gone, gone, gone, here]
    assert [await is_here(store, blob) for _, blob in refs] == [outcome is here for outcome in outcomes]


async def test_bytes_two_refs_hold_go_from_both(store: Store, say: Say, photo: Photo) -> None:
    one, _ = await fetched(store, say("1", media=(photo("1"),)), b"same")
    two, blob = await fetched(store, say("2", media=(photo("2"),)), b"same")
    assert await store.evict(0) == 0
    assert {(await look(store, ref)).outcome for ref in (one, two)} == {MediaOutcome.REFERENCED}
    assert await store.blob(blob.sha256) is None


async def test_bytes_that_came_with_their_message_cannot_be_had_again_and_stay(
    store: Store, say: Say, photo: Photo
) -> None:
    blob = await keep(store, b"uploaded")
    (ref,) = (await store.take_in(say("1", media=(photo("1", sha256=blob.sha256),)), OBSERVE)).refs
    shared, other = await fetched(store, say("2", media=(photo("2"),)), b"uploaded")
    assert other.sha256 == blob.sha256
    assert await store.evict(0) == len(b"uploaded")
    assert (await look(store, ref.id)).outcome is (await look(store, shared)).outcome is MediaOutcome.HELD


async def test_what_an_undelivered_parcel_carries_stays(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    _, blob = await fetched(store, say("1", media=(photo("1"),)), b"to be sent", ANSWER)
    turn = await claimed(store, clock)
    file = OutgoingFile(name="x", mime="a/b", size=blob.size, sha256=blob.sha256)
    parcel = Parcel(conversation=MAIN, key="p-1", kind=ParcelKind.FILES, files=(file,))
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    assert await store.evict(0) == blob.size
    clock.shift(40 * 86_400)
    assert await store.expire_media(clock.now()) == 1
    await store.tidy()
    assert await is_here(store, blob)


async def test_what_a_running_turn_is_about_stays_until_it_ends(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    ref, blob = await fetched(store, say("1", media=(photo("1"),)), b"looked at", ANSWER)
    turn = await claimed(store, clock)
    assert await store.evict(0) == blob.size
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED))
    assert await store.evict(0) == 0
    assert (await look(store, ref)).outcome is MediaOutcome.REFERENCED


async def test_an_upload_no_message_took_and_bytes_nobody_uses_yet_stay(store: Store) -> None:
    upload = await store.start_upload(MAIN, file_name="x", mime="a/b", size=3, sha256=None)
    await store.extend_upload(upload.id, 0, chunks(b"abc"))
    await keep(store, b"about to be used")
    assert await store.evict(0) == 3 + 16


async def test_bytes_that_are_kept_on_purpose_stay(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    ref, blob = await fetched(store, say("1", media=(photo("1"),)), b"pinned")
    assert await store.evict(0, keep={blob.sha256}) == blob.size
    clock.shift(1)
    assert await store.expire_media(clock.now(), keep={blob.sha256}) == 0
    assert (await look(store, ref)).outcome is MediaOutcome.HELD


async def test_refs_of_every_age_expire_in_their_time_however_many(
    store: Store, clock: FakeClock, say: Say, photo: Photo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_verbs, "AT_ONCE", 2)
    refs = []
    for number in range(7):
        (ref,) = (await store.take_in(say(str(number), media=(photo(str(number)),)), OBSERVE)).refs
        refs.append(ref.id)
        clock.shift(86_400)
    await store.end_media(refs[0], MediaOutcome.TOO_LARGE, "25 MB")
    assert await store.expire_media(clock.now() - timedelta(days=2, hours=1)) == 4
    outcomes = [(await look(store, ref)).outcome for ref in refs]
    assert outcomes == [MediaOutcome.TOO_LARGE, *[MediaOutcome.EXPIRED] * 4, *[MediaOutcome.REFERENCED] * 2]
    assert refs[1] in (await look(store, refs[1])).reason
    assert len(await store.refs(MAIN)) == 7


async def test_a_picture_past_its_time_that_somebody_answers_can_be_had_again(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    picture, upload = photo("1", locator={"file_id": "old"}), photo("1", "upload")
    known, gone = (ref.id for ref in (await store.take_in(say("1", media=(picture, upload)), OBSERVE)).refs)
    clock.shift(31 * 86_400)
    assert await store.expire_media(clock.now()) == 2
    fresh = photo("1", locator={"file_id": "new"})
    await store.take_in(say("2", quote=Quote(message_id="1", media=(fresh, upload))), OBSERVE)
    again = await look(store, known)
    assert (again.outcome, again.reason, dict(again.ref.locator)) == (MediaOutcome.REFERENCED, "", {"file_id": "new"})
    assert (await look(store, gone)).outcome is MediaOutcome.EXPIRED  # its bytes were all there was of it
    assert await store.expire_media(clock.now() - timedelta(days=30)) == 0
    clock.shift(31 * 86_400)
    assert await store.expire_media(clock.now() - timedelta(days=30)) == 1


async def test_an_uploaded_file_goes_by_age_alone(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    blob = await keep(store, b"uploaded")
    (ref,) = (await store.take_in(say("1", media=(photo("1", sha256=blob.sha256),)), OBSERVE)).refs
    clock.shift(30 * 86_400)
    assert await store.evict(0) == blob.size
    assert await store.expire_media(clock.now()) == 1
    assert (await store.tidy()).total == 1
    assert (await look(store, ref.id)).outcome is MediaOutcome.EXPIRED


async def test_the_type_the_bytes_have_replaces_one_that_was_only_said(store: Store) -> None:
    upload = await store.start_upload(MAIN, file_name="x", mime="text/plain", size=3, sha256=None)
    await store.extend_upload(upload.id, 0, chunks(b"abc"))
    blob = await store.keep(chunks(b"abc"), mime=lambda: "image/png", limit=10)
    assert await store.blob(blob.sha256) == replace(blob, mime="image/png")
    upload = await store.start_upload(MAIN, file_name="x", mime="text/html", size=3, sha256=None)
    await store.extend_upload(upload.id, 0, chunks(b"abc"))
    found = await store.blob(blob.sha256)
    assert found is not None and found.mime == "image/png"
