"""What a conversation has received, and since when a file counts as new."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt
from belino.domain.stored import ClaimedTurn, EarlierFiles, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
THREAD = replace(MAIN, thread="1")
AGENT = Author(id="belino", name="belino", is_agent=True)

Say = Callable[..., Message]


async def kept(store: Store, content: bytes) -> str:
    async def pieces() -> AsyncIterator[bytes]:
        yield content

    return (await store.keep(pieces(), mime="text/plain", limit=100)).sha256


def carrying(key: str, sha256: str, *, source: str = "", where: ConversationKey = MAIN) -> Parcel:
    file = OutgoingFile(name="n.txt", mime="text/plain", size=5, sha256=sha256, source=source)
    return Parcel(key=key, conversation=where, kind=ParcelKind.FILES, files=(file,))


async def begin(store: Store, clock: FakeClock, say: Say, message: str) -> ClaimedTurn:
    await store.take_in(say(message), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    return turn


async def test_a_new_conversation_has_nothing(store: Store, say: Say) -> None:
    assert await store.earlier_files(MAIN) == EarlierFiles()
    await store.take_in(say("1"), ANSWER)
    assert await store.earlier_files(MAIN) == EarlierFiles()


async def test_what_is_sent_or_on_its_way_is_received_and_what_was_given_up_is_not(
    store: Store, clock: FakeClock
) -> None:
    hashes = {key: await kept(store, key.encode()) for key in ("sent", "lost", "doubtful", "ready")}
    await store.put_parcels([carrying(key, sha256) for key, sha256 in hashes.items()])
    for key, end in (("sent", None), ("lost", ParcelState.DEAD), ("doubtful", ParcelState.UNCERTAIN)):
        await store.claim_parcel(MAIN, clock.now())
        if end is None:
            await store.confirm_parcel(key, Receipt(message_id=key, sent=clock.now()), AGENT)
        else:
            await store.end_parcel(key, end, "refused")
    found = await store.earlier_files(MAIN)
    assert found.hashes == {hashes["sent"], hashes["doubtful"], hashes["ready"]}
    assert await store.earlier_files(THREAD) == EarlierFiles()


async def test_a_file_that_was_changed_to_fit_is_known_by_the_bytes_it_was_made_from(store: Store) -> None:
    small, large = await kept(store, b"small"), "f" * 64
    await store.put_parcels([carrying("a", small, source=large)])
    assert (await store.earlier_files(MAIN)).hashes == {small, large}


async def test_what_people_sent_is_known_by_name_in_the_channel_and_by_its_bytes_in_the_conversation(
    store: Store, say: Say, photo: Callable[..., MediaRef]
) -> None:
    sha256 = await kept(store, b"bytes")
    await store.take_in(replace(say("1"), media=(photo("1", sha256=sha256),)), OBSERVE)
    await store.take_in(replace(say("2"), conversation=THREAD), OBSERVE)
    names = frozenset({"photo.png"})
    assert await store.earlier_files(MAIN) == EarlierFiles(hashes=frozenset({sha256}), names=names)
    assert await store.earlier_files(THREAD) == EarlierFiles(names=names)


async def test_our_own_file_bears_no_name_that_people_sent(store: Store, clock: FakeClock) -> None:
    sha256 = await kept(store, b"bytes")
    await store.put_parcels([carrying("a", sha256)])
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel("a", Receipt(message_id="a", sent=clock.now()), AGENT)
    assert await store.earlier_files(MAIN) == EarlierFiles(hashes=frozenset({sha256}))


async def test_files_are_new_since_the_last_turn_that_was_answered(store: Store, clock: FakeClock, say: Say) -> None:
    answered = await begin(store, clock, say, "1")
    assert (await store.earlier_files(MAIN)).since is None
    await store.finish_turn(answered.id, TurnEnd(state=TurnState.ANSWERED))
    ended = clock.now()
    clock.shift(60)
    failed = await begin(store, clock, say, "2")
    assert (await store.earlier_files(MAIN)).since == ended
    await store.finish_turn(failed.id, TurnEnd(state=TurnState.FAILED, reason="broken"))
    clock.shift(60)
    assert (await store.earlier_files(MAIN)).since == ended


async def test_after_the_clock_was_set_back_files_of_the_running_turn_are_new(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.finish_turn((await begin(store, clock, say, "1")).id, TurnEnd(state=TurnState.ANSWERED))
    clock.turn(timedelta(hours=-1))
    await begin(store, clock, say, "2")
    assert (await store.earlier_files(MAIN)).since == clock.now()


async def test_where_earlier_turns_are_forgotten_files_are_new_since_the_running_turn_began(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.finish_turn((await begin(store, clock, say, "1")).id, TurnEnd(state=TurnState.ANSWERED))
    clock.shift(timedelta(days=40).total_seconds())
    await store.expire_messages(clock.now() - timedelta(days=30))
    await begin(store, clock, say, "2")
    assert (await store.earlier_files(MAIN)).since == clock.now()
