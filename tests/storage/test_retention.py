"""Messages past their time go with all that is theirs; what somebody is at work on, and who we know, stays."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Edit, Message, Quote, Reaction
from belino.domain.outcome import MessageOutcome, Stage, Standing, Step, TurnState
from belino.domain.reply import OutgoingFile, Parcel, ParcelState, Receipt
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage import retention
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANNA = Author(id="u-anna", name="Anna")
AGENT = Author(id="belino", name="belino", is_agent=True)
DAY = timedelta(days=1)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def some(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


async def claim(store: Store, clock: FakeClock) -> ClaimedTurn:
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn), turn
    return turn


async def answer(store: Store, clock: FakeClock, *parcels: Parcel) -> ClaimedTurn:
    turn = await claim(store, clock)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=parcels))
    return turn


async def deliver(store: Store, clock: FakeClock, key: str) -> None:
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel(key, Receipt(message_id=f"m-{key}", sent=clock.now()), AGENT)


def text(key: str, words: str = "hi", **more: object) -> Parcel:
    return Parcel(key=key, conversation=MAIN, text=words, **more)  # type: ignore[arg-type]


def edit(message_id: str, clock: FakeClock, words: str = "otherwise", **more: object) -> Edit:
    values: dict[str, object] = {"conversation": MAIN, "id": f"{message_id}@1", "message_id": message_id}
    return Edit(**{**values, "author": ANNA, "sent": clock.now(), "text": words, **more})  # type: ignore[arg-type]


def reaction(message_id: str, clock: FakeClock) -> Reaction:
    return Reaction(
        conversation=MAIN, id=f"r-{message_id}", message_id=message_id, author=ANNA, sent=clock.now(), emoji="👍"
    )


async def test_an_aged_message_leaves_nothing_behind(
    store: Store, engine: Engine, clock: FakeClock, say: Say, photo: Photo
) -> None:
    pdf = OutgoingFile(
        name="SECRET.pdf",
        mime="application/pdf",
        size=3,
        sha256=(await store.keep(some(b"pdf"), mime="application/pdf", limit=10)).sha256,
        chunks=lambda: some(b"pdf"),
    )
    blob = await store.keep(some(b"png"), mime="image/png", limit=10)
    picture = photo("SECRET1", file_name="SECRET.png", caption="SECRET caption", sha256=blob.sha256)
    quote = Quote(text="SECRET quote", author=Author(id="SECRETID", name="SECRETNAME"), media=(photo("SECRET0"),))
    asked = await store.take_in(
        say("SECRET1", "SECRET words", author=Author(id="SECRETID", name="SECRETNAME"), media=(picture,), quote=quote),
        ANSWER,
    )
    await store.take_in(reaction("SECRET1", clock), OBSERVE)
    await store.take_in(edit("SECRET1", clock, "SECRET edit", author=Author(id="SECRETID", name="SECRET")), ANSWER)
    await store.note(asked.trace, Step(at=clock.now(), stage=Stage.MEDIA, outcome="SECRET", subject="SECRET"))
    await answer(store, clock, text("a", "SECRET answer"), text("b", "SECRET file", files=(pdf,)))
    await deliver(store, clock, "a")
    await store.claim_parcel(MAIN, clock.now())
    await store.end_parcel("b", ParcelState.DEAD, "SECRET reason")
    assert "SECRET" in await engine.dump()

    clock.shift(DAY.total_seconds())
    await store.take_in(say("young"), OBSERVE)
    assert await store.expire_messages(clock.now()) == 2  # the question and the answer
    assert "SECRET" not in await engine.dump()
    assert [message.id for message in await store.history(MAIN)] == ["young"]
    clock.shift(DAY.total_seconds())
    assert (await store.tidy()).total == 2  # nothing uses their bytes any more
    assert await store.expire_messages(clock.now() - DAY) == 0


async def test_a_message_stored_at_that_very_moment_stays(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    assert await store.expire_messages(clock.now()) == 0
    clock.shift(0.001)
    assert await store.expire_messages(clock.now()) == 1


async def test_what_a_turn_is_at_work_on_stays_until_it_is_done(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("waits"), ANSWER)
    clock.shift(1)
    assert await store.expire_messages(clock.now()) == 0
    turn = await claim(store, clock)
    assert await store.expire_messages(clock.now()) == 0
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(text("a"),)))
    assert await store.expire_messages(clock.now()) == 0
    await store.claim_parcel(MAIN, clock.now())
    assert await store.expire_messages(clock.now()) == 0
    await store.end_parcel("a", ParcelState.HELD, "somebody must look")
    assert await store.expire_messages(clock.now()) == 0
    await store.end_parcel("a", ParcelState.DEAD, "refused")
    assert await store.expire_messages(clock.now()) == 1
    assert await store.parcels() == ()


async def test_messages_behind_one_that_stays_go(store: Store, clock: FakeClock, say: Say) -> None:
    for number in range(5):
        await store.take_in(say(str(number)), ANSWER if number == 1 else OBSERVE)
    clock.shift(1)
    assert await store.expire_messages(clock.now()) == 4
    assert [message.id for message in await store.history(MAIN)] == ["1"]


async def test_many_go_in_small_pieces_from_every_channel(
    store: Store, clock: FakeClock, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 3)
    for number in range(8):
        for where in (MAIN, OTHER):
            await store.take_in(say(str(number), conversation=where), OBSERVE)
        await store.take_in(reaction(f"never came {number}", clock), OBSERVE)
    clock.shift(1)
    for where in (MAIN, OTHER):
        await store.take_in(say("young", conversation=where), OBSERVE)
    assert await store.expire_messages(clock.now()) == 16
    for where in (MAIN, OTHER):
        assert [message.id for message in await store.history(where)] == ["young"]


async def test_no_number_is_given_out_twice(engine: Engine, clock: FakeClock, say: Say) -> None:
    store = await engine.open()
    old = await store.take_in(say("1"), ANSWER)
    await store.take_in(edit("1", clock), ANSWER)
    turn = await answer(store, clock)
    clock.shift(1)
    assert await store.expire_messages(clock.now()) == 1
    await store.close()
    store = await engine.open()  # what the writer remembered is gone with it
    new = await store.take_in(say("2"), ANSWER)
    assert new.trace > old.trace
    assert (await store.history(MAIN))[0].seq == 2
    assert (await claim(store, clock)).number == turn.number + 1
    await store.take_in(edit("2", clock), ANSWER)
    await store.close()
    assert await engine.rows("SELECT number FROM changes") == [(2,)]


async def test_an_aged_message_that_comes_again_is_new(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    clock.shift(1)
    assert (await store.take_in(say("1"), OBSERVE)).outcome is MessageOutcome.DUPLICATE
    await store.expire_messages(clock.now())
    assert (await store.take_in(say("1"), OBSERVE)).outcome is MessageOutcome.OBSERVED


async def test_a_picture_that_a_younger_message_quotes_stays(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    blob = await store.keep(some(b"png"), mime="image/png", limit=10)
    picture = photo("1", sha256=blob.sha256)
    taken = await store.take_in(say("1", media=(picture,)), OBSERVE)
    clock.shift(DAY.total_seconds())
    await store.take_in(say("2", quote=Quote(message_id="1", text="", media=(picture,))), OBSERVE)
    assert await store.expire_messages(clock.now()) == 1
    record = await store.ref(MAIN, taken.refs[0].id)
    assert record is not None
    assert record.ref.sha256 == blob.sha256
    assert (await store.tidy()).total == 0


async def test_an_edit_of_a_message_that_never_came_goes_by_its_age(
    store: Store, engine: Engine, clock: FakeClock
) -> None:
    await store.take_in(edit("never", clock, "SECRET"), ANSWER)
    clock.shift(1)
    await store.take_in(edit("not yet", clock, "PATIENT"), ANSWER)
    assert await store.expire_messages(clock.now()) == 0
    assert "SECRET" not in await engine.dump()
    assert "PATIENT" in await engine.dump()


async def test_who_we_know_and_what_agents_remember_stays(store: Store, clock: FakeClock, say: Say) -> None:
    await store.ask_pairing(ANNA, text("pairing-1"), "CODE")
    await store.pair("CODE")
    await store.take_in(say("1", channel_name="The team"), ANSWER)
    turn = await claim(store, clock)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, memory=b"we spoke"))
    clock.shift(1)
    assert await store.expire_messages(clock.now()) == 1
    assert (await store.session(MAIN)).memory == b"we spoke"
    assert [summary.name for summary in await store.conversations()] == ["The team"]
    assert await store.is_paired("web", "default", ANNA.id)


async def test_an_answer_outlives_its_question_and_tells_its_own_story(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER)
    await answer(store, clock, text("a", "an answer"))
    clock.shift(1)
    await deliver(store, clock, "a")
    assert await store.expire_messages(clock.now()) == 1
    story = await store.story(MAIN, "m-a")
    assert story is not None
    assert (story.message.text, story.message.outcome) == ("an answer", MessageOutcome.ANSWERED)
    assert story.parcels == ()


async def test_the_rest_of_an_album_keeps_its_turn(store: Store, clock: FakeClock, say: Say) -> None:
    later = clock.now() + timedelta(seconds=5)
    await store.take_in(say("1", album="al"), ANSWER, ready=later)
    clock.shift(1)
    await store.take_in(say("2", album="al"), ANSWER, ready=later)
    cut = clock.now()
    clock.shift(10)
    await answer(store, clock, text("a", "both seen"))
    await deliver(store, clock, "a")
    assert await store.expire_messages(cut) == 1
    (rest, sent) = await store.history(MAIN)
    assert (rest.id, rest.outcome) == ("2", MessageOutcome.ANSWERED)
    story = await store.story(MAIN, sent.id)
    assert story is not None
    assert [parcel.key for parcel in story.parcels] == ["a"]
    assert await store.expire_messages(clock.now()) == 1
    assert (await store.counts())["turns_answered"] == 0
