"""A message with a timer is stored no longer than that, with all that was made of it, and also after a restart."""

from collections.abc import Callable
from datetime import timedelta

from belino.domain.media import MediaRef
from belino.domain.message import Author, Message, Quote
from belino.domain.outcome import MediaOutcome, Standing, TurnState
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.stored import TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.conftest import ANNA, MAIN
from storage.engines import Engine
from storage.pieces import keep

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
AGENT = Author(id="belino", name="belino", is_agent=True)
HOUR = timedelta(hours=1)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def test_a_message_is_gone_with_its_timer_and_so_is_all_that_was_made_of_it(
    store: Store, engine: Engine, clock: FakeClock, say: Say, photo: Photo
) -> None:
    quote = Quote(author=ANNA, text="SECRET quote")
    message = say("1", "SECRET words", media=(photo("1", caption="SECRET"),), quote=quote, expires=clock.now() + HOUR)
    (ref,) = (await store.take_in(message, OBSERVE)).refs
    blob = await keep(store, b"a picture")
    assert await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    await store.keep_print(blob.sha256, b"12345678")
    await store.take_in(say("2", "stays"), OBSERVE)
    assert await store.expire_timed() == clock.now() + HOUR
    clock.shift(HOUR.total_seconds())
    assert await store.expire_timed() is None
    assert await store.purge() == (blob.sha256,)
    assert "SECRET" not in await engine.dump()
    assert await store.find_ref(ref.id) is None
    first, second = await store.history(MAIN)
    assert (first.text, first.deleted is None, second.text, second.deleted) == ("", False, "stays", None)


async def test_a_timer_goes_on_while_belino_does_not_run(engine: Engine, clock: FakeClock, say: Say) -> None:
    store = await engine.open()
    await store.take_in(say("1", "SECRET", expires=clock.now() + HOUR), OBSERVE)
    await store.close()
    clock.shift(2 * HOUR.total_seconds())
    store = await engine.open()
    assert await store.expire_timed() is None
    assert "SECRET" not in await engine.dump()
    await store.close()


async def test_a_question_whose_timer_ended_is_not_answered_and_no_turn_sees_it(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1", "too late", expires=clock.now() + HOUR), ANSWER)
    await store.take_in(say("2", "in time"), ANSWER)
    clock.shift(HOUR.total_seconds())
    turn = await store.claim_turn(MAIN, clock.now())
    assert [message.text for message in getattr(turn, "messages", ())] == ["in time"]
    (gone, _) = await store.history(MAIN)
    assert gone.reason == "deleted before it was answered"


async def test_an_answer_with_a_timer_leaves_the_outbox_too(
    store: Store, engine: Engine, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1", "question"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    parcel = Parcel(key="a", conversation=MAIN, text="SECRET **answer**", plain="SECRET answer")
    await store.finish_turn(getattr(turn, "id", 0), TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    await store.claim_parcel(MAIN, clock.now())
    receipt = Receipt(message_id="m1", sent=clock.now(), expires=clock.now() + HOUR)
    await store.confirm_parcel("a", receipt, AGENT)
    assert await store.expire_timed() == clock.now() + HOUR
    clock.shift(HOUR.total_seconds())
    assert await store.expire_timed() is None
    assert "SECRET" not in await engine.dump()
    record = await store.parcel("a")
    assert record is not None and record.state is ParcelState.SENT


async def test_a_second_copy_brings_nothing_back(store: Store, engine: Engine, clock: FakeClock, say: Say) -> None:
    message = say("1", "SECRET", expires=clock.now() + HOUR)
    await store.take_in(message, OBSERVE)
    clock.shift(HOUR.total_seconds())
    await store.expire_timed()
    await store.take_in(message, OBSERVE)
    assert "SECRET" not in await engine.dump()
