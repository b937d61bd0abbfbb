"""Arrivals are taken in once, and turns answer them in order."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import StoreError
from belino.domain.media import MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Edit, Message, Quote, Unsupported
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedTurn, Ready, ScreenedArrival, TurnEnd, Verdict
from belino.storage.home import Home
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from storage.engines import SQLITE_ONLY, Engine
from storage.pieces import raw

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="does not speak to the agent")
DENY = Verdict(standing=Standing.DENIED, reason="not paired")
MAIN = ConversationKey(platform="web", account="default", channel="main")
BORIS = Author(id="u-boris", name="Boris")
DONE = TurnEnd(state=TurnState.ANSWERED)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def claim(store: Store, clock: FakeClock, conversation: ConversationKey = MAIN) -> ClaimedTurn:
    turn = await store.claim_turn(conversation, clock.now())
    assert isinstance(turn, ClaimedTurn), turn
    return turn


async def test_a_message_is_known_again_even_after_a_restart(engine: Engine, say: Say) -> None:
    store = await engine.open()
    first = await store.take_in(say("1"), ANSWER)
    assert (first.outcome, first.reason) == (MessageOutcome.WAITING, "on the list")
    await store.close()
    store = await engine.open()
    second = await store.take_in(say("1", "other words"), ANSWER, cursor="9")
    assert (second.outcome, second.trace) == (MessageOutcome.DUPLICATE, first.trace)
    assert [message.text for message in await store.history(MAIN)] == ["hello"]
    assert await store.waiting_turns() == 1
    assert await store.cursor("web", "default") == "9"  # a duplicate still moves the cursor
    await store.close()


async def test_the_same_id_elsewhere_or_of_another_kind_is_no_duplicate(
    store: Store, clock: FakeClock, say: Say
) -> None:
    elsewhere = [
        MAIN,
        ConversationKey(platform="web", account="default", channel="other"),
        ConversationKey(platform="web", account="second", channel="main"),
        ConversationKey(platform="telegram", account="default", channel="main"),
    ]
    for key in elsewhere:
        assert (await store.take_in(say("1", conversation=key), ANSWER)).outcome is MessageOutcome.WAITING
    strange = Unsupported(conversation=MAIN, id="1", author=BORIS, sent=clock.now(), what="a poll")
    assert (await store.take_in(strange, OBSERVE)).outcome is MessageOutcome.UNSUPPORTED
    assert (await store.take_in(strange, OBSERVE)).outcome is MessageOutcome.DUPLICATE
    edit = Edit(conversation=MAIN, id="1", message_id="1", author=say("1").author, sent=clock.now(), text="new")
    assert (await store.take_in(edit, ANSWER)).outcome is MessageOutcome.NOTED
    assert (await store.take_in(edit, ANSWER)).outcome is MessageOutcome.DUPLICATE


async def test_a_thread_is_no_other_channel(store: Store, say: Say) -> None:
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t")
    await store.take_in(say("1"), ANSWER)
    assert (await store.take_in(say("1", conversation=thread), ANSWER)).outcome is MessageOutcome.DUPLICATE
    await store.take_in(say("2", conversation=thread), ANSWER)
    assert [message.id for message in await store.history(MAIN)] == ["1"]
    assert [message.id for message in await store.history(thread)] == ["2"]
    assert {message.id for message in await store.messages(MAIN, ["1", "2"])} == {"1", "2"}


async def test_nothing_of_a_denied_sender_is_kept_but_a_count(
    store: Store, engine: Engine, home: Home, say: Say, photo: Photo
) -> None:
    hidden = ConversationKey(platform="web", account="default", channel="SECRETCHANNEL")
    message = say(
        "SECRETID",
        "SECRETTEXT",
        conversation=hidden,
        author=Author(id="SECRETAUTHOR", name="SECRETNAME"),
        media=(photo("SECRETID", "SECRETITEM", caption="SECRETCAPTION"),),
        channel_name="SECRETTITLE",
        quote=Quote(text="SECRETQUOTE"),
    )
    edit = Edit(
        conversation=hidden, id="SECRETEDIT", message_id="SECRETID", author=BORIS, sent=START, text="SECRETTEXT"
    )
    for arrival in (message, message, edit):
        taken = await store.take_in(arrival, DENY, cursor="7")
        assert (taken.outcome, taken.reason, taken.trace) == (MessageOutcome.DENIED, "not paired", "")
    assert await store.cursor("web", "default") == "7"
    assert (await store.counts())["denied"] == 3
    dump = await engine.dump()
    assert "not paired" in dump  # the search itself works
    assert "SECRET" not in dump
    assert not any(b"SECRET" in path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    assert await store.channels() == ()


async def test_an_observed_message_is_kept_and_not_answered(store: Store, clock: FakeClock, say: Say) -> None:
    taken = await store.take_in(say("1"), OBSERVE)
    assert taken.outcome is MessageOutcome.OBSERVED
    (message,) = await store.history(MAIN)
    assert (message.outcome, message.standing, message.reason) == (
        MessageOutcome.OBSERVED,
        Standing.OBSERVED,
        "does not speak to the agent",
    )
    assert await store.claim_turn(MAIN, clock.now()) is None


async def test_what_cannot_be_read_is_told_and_not_lost(store: Store, clock: FakeClock) -> None:
    arrival = Unsupported(conversation=MAIN, id="1", author=BORIS, sent=clock.now(), what="a poll")
    taken = await store.take_in(arrival, OBSERVE)
    (message,) = await store.history(MAIN)
    assert (taken.outcome, message.outcome) == (MessageOutcome.UNSUPPORTED, MessageOutcome.UNSUPPORTED)
    assert (message.reason, message.text, message.author) == ("a poll", "", BORIS)


async def test_a_message_comes_back_as_it_was_said(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    ref = photo("1", "file-7", size=12, duration=1.5, width=3, height=4, caption="look", locator={"file_id": "7"})
    quote = Quote(author=BORIS, message_id="0", text="was", sent=START, media=(photo("0", "q"),))
    forward = Quote(text="far", media=(photo("f", "0"),))
    said = say(
        "1", "héllo\x00 wörld 🎈", media=(ref,), reply_to="0", quote=quote, forward=forward, album="a",
        channel_name="The Main", chat_type=ChatType.GROUP, author=Author(id="b", name="B", is_bot=True),
    )  # fmt: skip
    clock.shift(3)
    taken = await store.take_in(said, ANSWER)
    (message,) = await store.history(MAIN)
    assert (message.text, message.author, message.reply_to, message.album) == (said.text, said.author, "0", "a")
    assert (message.sent, message.received) == (said.sent, said.sent + timedelta(seconds=3))
    assert message.media == taken.refs
    assert taken.refs[0].id.startswith("web_")
    assert message.quote is not None
    assert (message.quote.author, message.quote.sent, message.quote.text) == (BORIS, START, "was")
    assert message.quote.media[0].id != ""
    assert message.forward is not None
    assert [found.message_id for found in message.forward.media] == ["f"]
    (channel,) = await store.channels()
    assert (channel.name, channel.chat_type, channel.media) == ("The Main", ChatType.GROUP, 3)


async def test_a_message_tells_how_far_its_turn_is(store: Store, clock: FakeClock, say: Say) -> None:
    async def outcome() -> tuple[MessageOutcome, str]:
        (message,) = await store.messages(MAIN, ["1"])
        return message.outcome, message.reason

    await store.take_in(say("1"), ANSWER)
    assert await outcome() == (MessageOutcome.WAITING, "on the list")
    turn = await claim(store, clock)
    assert await outcome() == (MessageOutcome.WORKING, "on the list")
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED, reason="the agent took too long"))
    assert await outcome() == (MessageOutcome.FAILED, "the agent took too long")


async def test_turns_of_a_conversation_are_claimed_in_order_and_one_at_a_time(
    store: Store, clock: FakeClock, say: Say
) -> None:
    for number in range(3):
        await store.take_in(say(str(number)), ANSWER)
    for number in range(3):
        turn = await claim(store, clock)
        assert ([message.id for message in turn.messages], turn.number, turn.attempt) == ([str(number)], number + 1, 1)
        assert await store.claim_turn(MAIN, clock.now()) is None
        await store.finish_turn(turn.id, DONE)
    assert await store.claim_turn(MAIN, clock.now()) is None


@SQLITE_ONLY
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_every_answered_message_gets_its_turn_in_the_order_of_its_conversation(
    engine: Engine, home: Home, clock: FakeClock, say: Say, arrivals: list[tuple[int, bool]]
) -> None:
    home.database.unlink(missing_ok=True)
    store = await engine.open()
    expected: dict[ConversationKey, list[str]] = {}
    for number, (channel, answered) in enumerate(arrivals):
        key = ConversationKey(platform="web", account="default", channel=f"c{channel}")
        await store.take_in(say(str(number), conversation=key), ANSWER if answered else OBSERVE)
        if answered:
            expected.setdefault(key, []).append(str(number))
    assert await store.waiting_turns() == sum(map(len, expected.values()))
    assert {ready.conversation for ready in await store.ready_turns()} == set(expected)
    for key, ids in expected.items():
        for number, name in enumerate(ids, 1):
            turn = await claim(store, clock, key)
            assert ([message.id for message in turn.messages], turn.number) == ([name], number)
            await store.finish_turn(turn.id, DONE)
    await store.close()


async def test_a_turn_that_died_with_its_process_waits_again_and_counts_the_attempt(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await store.take_in(say("2"), ANSWER)
    first = await claim(store, clock)
    await store.close()  # to the database a killed process looks the same: the turn is running
    store = await engine.open()
    assert await store.recover() == 1
    again = await store.claim_turn(MAIN, clock.now(), alone=True)
    assert isinstance(again, ClaimedTurn)
    assert (again.id, again.number, again.attempt) == (first.id, first.number, 2)
    assert [message.id for message in again.messages] == ["1"]
    await store.close()


async def test_a_turn_given_back_counts_as_never_claimed(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await claim(store, clock)
    await store.release_turn(turn.id)
    again = await claim(store, clock)
    assert (again.id, again.attempt) == (turn.id, 1)


async def test_a_turn_is_ended_once_whole_or_not_at_all(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await claim(store, clock)
    parcel = Parcel(key="p1", conversation=MAIN, text="hi")
    broken = Parcel(key=None, conversation=MAIN, text="no key")  # type: ignore[arg-type]  # the last thing to be written
    with pytest.raises(StoreError, match="NOT NULL"):
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel, broken), memory=b"m"))
    assert await store.parcels() == ()
    assert await store.session(MAIN) == await store.session(ConversationKey(platform="x", account="y", channel="z"))
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,), memory=b"m"))
    with pytest.raises(StoreError, match="not running"):
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED))
    assert [record.key for record in await store.parcels()] == ["p1"]
    assert (await store.session(MAIN)).turns == 1


async def test_a_turn_cannot_end_as_something_that_is_no_end(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await claim(store, clock)
    with pytest.raises(StoreError, match="cannot end as waiting"):
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.WAITING))


async def test_an_album_is_answered_together_once_its_time_has_come(store: Store, clock: FakeClock, say: Say) -> None:
    for number in range(3):
        ready = clock.now() + timedelta(seconds=1.5)
        await store.take_in(say(str(number), album="a"), ANSWER if number == 0 else OBSERVE, ready=ready)
        clock.shift(1)
    waits = await store.claim_turn(MAIN, clock.now())
    assert waits == Ready(conversation=MAIN, at=START + timedelta(seconds=3.5))
    assert await store.ready_turns() == (waits,)
    clock.shift(1)
    turn = await claim(store, clock)
    assert [message.id for message in turn.messages] == ["0", "1", "2"]
    assert {message.outcome for message in turn.messages} == {MessageOutcome.WORKING}
    assert turn.trace == turn.messages[0].trace


async def test_items_of_one_second_are_in_the_order_their_platform_counts_them(
    store: Store, clock: FakeClock, say: Say
) -> None:
    for number in ("12", "9", "100", "10"):
        await store.take_in(say(number, album="a"), ANSWER, ready=clock.now() + timedelta(seconds=1))
    clock.shift(1)
    turn = await claim(store, clock)
    assert [message.id for message in turn.messages] == ["9", "10", "12", "100"]


async def test_an_album_waits_ten_seconds_at_most_from_its_first_item(store: Store, clock: FakeClock, say: Say) -> None:
    for number in range(11):
        await store.take_in(say(str(number), album="a"), ANSWER, ready=clock.now() + timedelta(seconds=1.5))
        clock.shift(1)
    turn = await store.claim_turn(MAIN, START + timedelta(seconds=10))
    assert isinstance(turn, ClaimedTurn)
    assert len(turn.messages) == 11


async def test_how_long_an_album_waits_in_all_can_be_said(store: Store, clock: FakeClock, say: Say) -> None:
    for number in range(4):
        ready = clock.now() + timedelta(seconds=1.5)
        await store.take_in(say(str(number), album="a"), ANSWER, ready=ready, album_wait=timedelta(seconds=2))
        clock.shift(1)
    turn = await store.claim_turn(MAIN, START + timedelta(seconds=2))
    assert isinstance(turn, ClaimedTurn)
    assert [message.id for message in turn.messages] == ["0", "1", "2"]


async def test_a_late_item_of_an_album_gets_a_turn_of_its_own(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("0", album="a"), ANSWER)
    running = await claim(store, clock)
    await store.take_in(say("1", album="a"), ANSWER)  # its turn is running already
    await store.finish_turn(running.id, DONE)
    second = await claim(store, clock)
    assert [(message.id, message.album) for message in second.messages] == [("1", "a")]
    await store.take_in(say("2", album="b"), ANSWER)
    clock.shift(10.001)
    await store.take_in(say("3", album="b"), ANSWER)  # still waiting, but past ten seconds
    await store.finish_turn(second.id, DONE)
    third = await claim(store, clock)
    assert [message.id for message in third.messages] == ["2"]


async def test_somebody_elses_item_never_joins_an_album(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("0", album="a"), ANSWER)
    await store.take_in(say("1", album="a", author=BORIS), OBSERVE)
    turn = await claim(store, clock)
    assert [message.id for message in turn.messages] == ["0"]


async def test_half_a_surrogate_pair_in_an_answer_does_not_cost_the_answer(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await claim(store, clock)
    parcel = Parcel(key="p1", conversation=MAIN, text="half \ud83d a pair")
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    assert [record.text for record in await store.parcels()] == ["half ? a pair"]


@SQLITE_ONLY
async def test_an_arrival_costs_the_same_however_much_is_in_its_channel(
    store: Store, clock: FakeClock, say: Say
) -> None:
    """Counted in steps of SQLite's machine, which do not depend on the weather."""

    async def steps(name: str) -> int:
        count = 0

        def step() -> None:
            nonlocal count
            count += 1

        raw(store).set_progress_handler(step, 1)
        await store.take_in(say(name), ANSWER)
        raw(store).set_progress_handler(None, 1)
        return count

    await store.take_in(say("first"), ANSWER)
    before = await steps("before")
    async with asyncio.TaskGroup() as group:
        for number in range(1500):
            group.create_task(store.take_in(say(str(number)), ANSWER))
            edit = Edit(conversation=MAIN, id=str(number), message_id=f"x{number}", author=BORIS, sent=START, text="x")
            group.create_task(store.take_in(edit, ANSWER))
    assert await steps("after") <= before * 1.5


async def test_an_unknown_conversation_has_nothing_to_do(store: Store, clock: FakeClock) -> None:
    assert await store.claim_turn(MAIN, clock.now()) is None
    assert await store.ready_turns() == ()
    assert await store.history(MAIN) == ()
    assert await store.cursor("web", "default") is None


async def test_several_arrivals_are_taken_in_whole_or_not_at_all(store: Store, say: Say) -> None:
    judged = [ScreenedArrival(arrival=say(f"{n}"), verdict=OBSERVE, cursor=f"{n}") for n in range(3)]
    broken = replace(judged[1], arrival=say("1", 2**70))  # no column holds it
    with pytest.raises(OverflowError):
        await store.take_in_all([judged[0], broken, judged[2]])
    assert await store.history(MAIN) == ()
    assert await store.cursor("web", "default") is None
    taken = await store.take_in_all(judged)
    assert [one.outcome for one in taken] == [MessageOutcome.OBSERVED] * 3
    assert [message.id for message in await store.history(MAIN)] == ["0", "1", "2"]
    assert await store.cursor("web", "default") == "2"


async def test_half_a_surrogate_pair_among_several_is_marked_and_stored(store: Store, say: Say) -> None:
    await store.take_in_all(
        [ScreenedArrival(arrival=say(f"{n}", text), verdict=OBSERVE) for n, text in enumerate(("a", "\ud83d"))]
    )
    assert [message.text for message in await store.history(MAIN)] == ["a", "?"]
