"""Messages of one sender that belong together are answered in one turn, and a second copy of one completes it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.joining import Joining
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Edit, Message, Quote
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedParcel, ClaimedTurn, Ready, ScreenedArrival, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True, sender_may_command=True)
OVERHEARD = Verdict(standing=Standing.OBSERVED, reason="the agent was not addressed", sender_may_command=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="not on the channel's list")
MAIN = ConversationKey(platform="web", account="default", channel="main")
BORIS = Author(id="u-boris", name="Boris")
LINE = Joining(is_line=True)
HALF = timedelta(milliseconds=500)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def claim(store: Store, clock: FakeClock) -> ClaimedTurn:
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn), turn
    return turn


def ids(turn: ClaimedTurn) -> list[str]:
    return [message.id for message in turn.messages]


async def test_lines_that_come_before_their_turn_is_claimed_are_one_turn(
    store: Store, clock: FakeClock, say: Say
) -> None:
    for number in ("1", "2", "3"):
        taken = await store.take_in(say(number), ANSWER, joining=LINE)
        assert taken.outcome is MessageOutcome.WAITING
        clock.shift(60)
    turn = await claim(store, clock)
    assert ids(turn) == ["1", "2", "3"]
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, reason="nothing to say"))
    assert await store.claim_turn(MAIN, clock.now()) is None
    assert {message.outcome for message in await store.history(MAIN)} == {MessageOutcome.ANSWERED}
    assert (await store.audit()).is_balanced


async def test_another_sender_begins_a_turn_of_their_own_and_the_order_stays(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    await store.take_in(say("2", author=BORIS), ANSWER, joining=LINE)
    await store.take_in(say("3"), ANSWER, joining=LINE)
    found = []
    while isinstance(turn := await store.claim_turn(MAIN, clock.now()), ClaimedTurn):
        found.append(ids(turn))
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    assert found == [["1"], ["2"], ["3"]]


async def test_what_comes_while_a_turn_runs_is_queued_unless_it_came_together(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    running = await claim(store, clock)
    await store.take_in(say("2"), ANSWER, joining=LINE)
    together = [ScreenedArrival(arrival=say(number), verdict=ANSWER, joining=LINE) for number in ("3", "4")]
    await store.take_in_all(together)
    await store.finish_turn(running.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    second = await claim(store, clock)
    await store.finish_turn(second.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    assert (ids(second), ids(await claim(store, clock))) == (["2"], ["3", "4"])


async def test_joined_while_busy_all_senders_are_in_the_next_turn(store: Store, clock: FakeClock, say: Say) -> None:
    busy = replace(LINE, while_busy="join")
    await store.take_in(say("1"), ANSWER, joining=busy)
    running = await claim(store, clock)
    await store.take_in(say("2"), ANSWER, joining=busy)
    await store.take_in(say("3", author=BORIS), ANSWER, joining=busy)
    await store.finish_turn(running.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    turn = await claim(store, clock)
    assert [(message.id, message.author.id) for message in turn.messages] == [("2", "u-anna"), ("3", "u-boris")]
    parcel = Parcel(key="p1", conversation=MAIN, text="both")
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    claimed = await store.claim_parcel(MAIN, clock.now())
    assert isinstance(claimed, ClaimedParcel)
    assert [asker.author.id for asker in claimed.askers] == ["u-anna", "u-boris"]


async def test_a_piece_that_fills_the_limit_waits_for_the_next(store: Store, clock: FakeClock, say: Say) -> None:
    full = Joining(is_line=True, fills=True)
    await store.take_in(say("1"), ANSWER, joining=full)
    assert await store.claim_turn(MAIN, clock.now()) == Ready(conversation=MAIN, at=clock.now() + HALF)
    clock.shift(0.4)
    await store.take_in(say("2"), OVERHEARD, joining=Joining(is_line=False, fills=True))
    assert await store.claim_turn(MAIN, clock.now()) == Ready(conversation=MAIN, at=clock.now() + HALF)
    clock.shift(0.4)
    await store.take_in(say("3"), OVERHEARD, joining=Joining(is_line=False))
    assert ids(await claim(store, clock)) == ["1", "2", "3"]


async def test_pieces_are_waited_for_three_seconds_at_most(store: Store, clock: FakeClock, say: Say) -> None:
    begun = clock.now()
    for number in range(7):
        await store.take_in(say(str(number)), ANSWER, joining=Joining(is_line=True, fills=True))
        clock.shift(0.45)
    assert len((await claim(store, clock)).messages) == 7
    assert clock.now() - begun < timedelta(seconds=3.2)


async def test_what_is_not_addressed_joins_only_by_its_content(store: Store, clock: FakeClock, say: Say) -> None:
    aside = Joining(is_line=False)
    await store.take_in(say("1"), ANSWER, joining=LINE)
    assert (await store.take_in(say("2"), OVERHEARD, joining=aside)).outcome is MessageOutcome.OBSERVED
    forward = replace(aside, is_forward=True)
    quote = Quote(text="look")
    assert (await store.take_in(say("3", forward=quote), OVERHEARD, joining=forward)).turn is not None
    clock.shift(1.6)
    assert (await store.take_in(say("4", forward=quote), OVERHEARD, joining=forward)).turn is None
    assert ids(await claim(store, clock)) == ["1", "3"]


@pytest.mark.parametrize("author", ["u-anna", "u-boris"])
async def test_a_sender_who_may_not_command_never_joins(store: Store, clock: FakeClock, say: Say, author: str) -> None:
    await store.take_in(say("1"), ANSWER, joining=Joining(is_line=True, fills=True))
    other = say("2", author=Author(id=author, name="Other"), forward=Quote(text="obey"))
    taken = await store.take_in(other, OBSERVE, joining=Joining(is_line=False, is_forward=True, while_busy="join"))
    assert taken.outcome is MessageOutcome.OBSERVED
    clock.shift(1)
    assert ids(await claim(store, clock)) == ["1"]


async def test_nothing_joins_across_an_edit_or_a_command(store: Store, clock: FakeClock, say: Say) -> None:
    first = say("1")
    await store.take_in(first, ANSWER, joining=LINE)
    edit = Edit(conversation=MAIN, id="e", message_id="1", author=first.author, sent=clock.now(), text="changed")
    await store.take_in(edit, ANSWER)
    await store.take_in(say("2"), ANSWER, joining=LINE)
    await store.take_in(say("3", "/model other"), OVERHEARD)
    await store.take_in(say("4"), ANSWER, joining=LINE)
    found = []
    while isinstance(turn := await store.claim_turn(MAIN, clock.now()), ClaimedTurn):
        found.append(ids(turn))
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    assert found == [["1"], ["2"], ["4"]]


async def test_a_forward_puts_a_running_turn_back_once_and_its_answer_is_not_kept(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    running = await claim(store, clock)
    forward = Joining(is_line=True, is_forward=True, restarts=running.id)
    clock.shift(1.5)
    taken = await store.take_in(say("2", forward=Quote(text="look")), ANSWER, joining=forward)
    assert taken.turn == running.id
    parcel = Parcel(key="p1", conversation=MAIN, text="too early")
    assert not await store.finish_turn(running.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    assert await store.parcels() == ()
    assert isinstance(await store.claim_turn(MAIN, clock.now()), Ready)
    clock.shift(0.5)
    again = await claim(store, clock)
    assert (again.id, ids(again), again.attempt) == (running.id, ["1", "2"], 1)
    third = await store.take_in(say("3", forward=Quote(text="more")), ANSWER, joining=forward)
    assert third.turn != running.id
    assert await store.finish_turn(again.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    assert (await store.audit()).is_balanced


@pytest.mark.parametrize("case", ["late", "a plain line", "another turn"])
async def test_a_running_turn_is_left_alone(store: Store, clock: FakeClock, say: Say, case: str) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    running = await claim(store, clock)
    clock.shift(1.501 if case == "late" else 0)
    joining = Joining(
        is_line=True, is_forward=case != "a plain line", restarts=None if case == "another turn" else running.id
    )
    taken = await store.take_in(say("2"), ANSWER, joining=joining)
    assert taken.turn != running.id
    assert await store.finish_turn(running.id, TurnEnd(state=TurnState.FAILED, reason="a test"))


async def test_a_turn_answers_fifty_messages_at_most(store: Store, clock: FakeClock, say: Say) -> None:
    lines = [ScreenedArrival(arrival=say(str(number)), verdict=ANSWER, joining=LINE) for number in range(60)]
    await store.take_in_all(lines)
    first = await claim(store, clock)
    await store.finish_turn(first.id, TurnEnd(state=TurnState.FAILED, reason="a test"))
    assert (len(first.messages), len((await claim(store, clock)).messages)) == (50, 10)


async def test_the_next_piece_of_a_text_may_come_after_a_restart(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER, joining=Joining(is_line=True, fills=True))
    clock.shift(3600)
    await store.recover("", clock.now())
    assert isinstance(await store.claim_turn(MAIN, clock.now()), Ready)
    await store.take_in(say("2"), ANSWER, joining=LINE)
    assert ids(await claim(store, clock)) == ["1", "2"]


async def test_explain_says_what_joined_and_why(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    await store.take_in(say("2"), ANSWER, joining=LINE)
    for message_id in ("1", "2"):
        story = await store.story(MAIN, message_id)
        assert story is not None
        joined = [(step.subject, step.reason) for step in story.steps if step.outcome == "joined"]
        assert joined == [("message 2", "it came before the turn began")]


async def test_a_second_copy_adds_its_files_once_and_the_waiting_turn_has_them(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await store.take_in(say("1"), ANSWER)
    whole = say("1", "hello and more", media=(photo("1", "a"), photo("1", "b")), forward=Quote(text="quoted"))
    taken = await store.take_in(whole, ANSWER)
    assert (taken.outcome, taken.completes, taken.reason) == (
        MessageOutcome.DUPLICATE,
        True,
        "completes it: text, a forward, 2 files",
    )
    assert not (await store.take_in(whole, ANSWER)).completes
    (message,) = (await claim(store, clock)).messages
    assert (len(message.media), message.text, message.forward) == (2, "hello and more", Quote(text="quoted"))
    assert (await store.audit()).is_balanced


async def test_files_that_come_after_the_answer_are_there_for_the_next_question(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await claim(store, clock)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, reason="nothing to say"))
    taken = await store.take_in(say("1", media=(photo("1", "a"),)), ANSWER)
    assert (taken.completes, taken.turn) == (True, None)
    (record,) = await store.unclaimed_refs(MAIN, "u-anna", since=clock.now() - timedelta(minutes=1), limit=5)
    assert record.ref.item == "a"
    assert await store.waiting_turns() == 0


async def test_files_that_come_while_nothing_is_seen_of_the_turn_start_it_again(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await store.take_in(say("1"), ANSWER, joining=LINE)
    running = await claim(store, clock)
    joining = Joining(is_line=True, restarts=running.id)
    taken = await store.take_in(say("1", media=(photo("1", "a"),)), ANSWER, joining=joining)
    assert taken.turn == running.id
    (message,) = (await claim(store, clock)).messages
    assert [ref.item for ref in message.media] == ["a"]


async def test_a_second_copy_may_say_that_the_agent_is_addressed(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), OVERHEARD)
    taken = await store.take_in(say("1"), ANSWER)
    assert (taken.completes, taken.turn is not None) == (True, True)
    assert not (await store.take_in(say("1"), ANSWER)).completes
    turn = await claim(store, clock)
    assert (ids(turn), turn.messages[0].standing) == (["1"], Standing.MAY_COMMAND)
    assert (await store.audit()).is_balanced


async def test_a_second_copy_never_promotes_an_observed_sender_nor_an_old_message(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), OBSERVE)
    await store.take_in(say("2"), OVERHEARD)
    assert not (await store.take_in(say("1"), ANSWER)).completes
    clock.shift(61)
    assert not (await store.take_in(say("2"), ANSWER)).completes
    assert await store.waiting_turns() == 0


async def test_a_second_copy_brings_back_nothing_that_was_edited_or_deleted(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    first = say("1", media=(photo("1", "a"),))
    await store.take_in(first, ANSWER)
    edit = Edit(conversation=MAIN, id="e", message_id="1", author=first.author, sent=clock.now(), text="hell")
    await store.take_in(edit, ANSWER)
    assert not (await store.take_in(say("1", media=(photo("1", "b"),)), ANSWER)).completes
    (message,) = await store.history(MAIN)
    assert (message.text, [ref.item for ref in message.media]) == ("hell", ["a"])
