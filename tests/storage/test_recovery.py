"""A crash is attributed to the turn that ran alone, and a failed turn runs again when a person asks."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta

import pytest

from belino.domain.message import ConversationKey, Deletion, Message
from belino.domain.outcome import MessageOutcome, Stage, Standing, TurnState
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedTurn, Ready, TurnEnd, Verdict
from belino.storage.home import Home
from belino.storage.migrations import STEPS
from belino.storage.sqlite import migrate
from belino.storage.store import Store
from belino.storage.turns import wait_seconds
from belino.testing.clock import START, FakeClock
from storage.engines import SQLITE_ONLY, Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
MAIN, SIDE, THIRD = (ConversationKey(platform="web", account="default", channel=name) for name in ("main", "s", "t"))
FAILED = TurnEnd(state=TurnState.FAILED, reason="the model is gone")

Say = Callable[..., Message]


async def begin(store: Store, clock: FakeClock, where: ConversationKey, *, alone: bool = False) -> ClaimedTurn:
    turn = await store.claim_turn(where, clock.now(), alone=alone)
    assert isinstance(turn, ClaimedTurn), turn
    return turn


async def crash(store: Store, engine: Engine, clock: FakeClock) -> Store:
    """The next process opens the folder and recovers; to the database a killed process looks like a closed one."""
    await store.close()
    store = await engine.open()
    await store.recover(begun=clock.now())
    return store


async def told(store: Store, where: ConversationKey, message_id: str) -> Sequence[tuple[str, str]]:
    story = await store.story(where, message_id)
    assert story is not None
    return [(step.outcome, step.reason) for step in story.steps if step.stage is Stage.TURN]


async def test_a_turn_that_ran_alone_is_a_suspect_and_its_interruption_is_counted(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await store.take_in(say("2", conversation=SIDE), ANSWER)  # it only waits: it did not run
    await begin(store, clock, MAIN)
    store = await crash(store, engine, clock)
    again = await begin(store, clock, MAIN, alone=True)
    assert (again.suspect, again.interruptions, again.attempt) == (True, 1, 2)
    other = await begin(store, clock, SIDE)
    assert (other.suspect, other.interruptions) == (False, 0)
    assert ("interrupted", "belino stopped while it ran alone; counted, 1 of 3") in await told(store, MAIN, "1")
    await store.close()


async def test_turns_that_ran_side_by_side_are_suspects_and_nothing_is_counted(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    for number, where in enumerate((MAIN, SIDE, THIRD)):
        await store.take_in(say(str(number), conversation=where), ANSWER)
        await begin(store, clock, where)
    store = await crash(store, engine, clock)
    for where in (MAIN, SIDE, THIRD):
        again = await begin(store, clock, where, alone=True)
        assert (again.suspect, again.interruptions) == (True, 0)
        await store.finish_turn(again.id, TurnEnd(state=TurnState.ANSWERED))
    beside = ("interrupted", "belino stopped while it ran beside 2 other turns; not counted")
    assert beside in await told(store, SIDE, "1")
    await store.close()


async def test_a_suspect_is_only_claimed_by_a_caller_that_lets_nothing_else_run(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await begin(store, clock, MAIN)
    store = await crash(store, engine, clock)
    due = Ready(conversation=MAIN, at=clock.now(), alone=True)
    assert await store.claim_turn(MAIN, clock.now()) == due
    assert await store.ready_turns() == (due,)
    assert await store.waiting_turns() == 1
    await begin(store, clock, MAIN, alone=True)
    await store.close()


async def test_the_suspect_most_likely_to_crash_again_is_listed_last(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    for number, where in enumerate((MAIN, SIDE)):
        await store.take_in(say(str(number), conversation=where), ANSWER)
        await begin(store, clock, where)
    store = await crash(store, engine, clock)
    await begin(store, clock, MAIN, alone=True)
    store = await crash(store, engine, clock)
    assert [ready.conversation for ready in await store.ready_turns()] == [SIDE, MAIN]
    await store.close()


async def test_from_the_second_counted_interruption_on_a_turn_waits_until_the_process_has_been_up_for_a_while(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await begin(store, clock, MAIN)
    store = await crash(store, engine, clock)
    await begin(store, clock, MAIN, alone=True)  # the first rerun waits for nothing
    store = await crash(store, engine, clock)
    assert await store.claim_turn(MAIN, clock.now(), alone=True) == Ready(
        conversation=MAIN, at=clock.now() + timedelta(seconds=20), alone=True
    )
    clock.shift(15)
    store = await crash(store, engine, clock)  # it did not run: nothing is counted, and the wait begins again
    clock.shift(15)
    assert isinstance(await store.claim_turn(MAIN, clock.now(), alone=True), Ready)
    clock.shift(5)
    assert (await begin(store, clock, MAIN, alone=True)).interruptions == 2
    store = await crash(store, engine, clock)
    assert (await begin(store, clock, MAIN, alone=True)).interruptions == 3, "it is due at once, to be given up"
    store = await crash(store, engine, clock)
    assert (await begin(store, clock, MAIN, alone=True)).interruptions == 3, "nothing runs then, so nothing is counted"
    assert ("waits", "runs again when belino has been up for 20 s") in await told(store, MAIN, "1")
    await store.close()


@pytest.mark.parametrize(
    ("interruptions", "limit", "seconds"),
    [(0, 3, 0), (1, 3, 0), (2, 3, 20), (3, 3, 0), (3, 9, 40), (4, 9, 80), (1, 1, 0), (500, 1_000, 3_600)],
)
def test_the_wait_doubles_with_each_counted_interruption_up_to_an_hour(
    interruptions: int, limit: int, seconds: int
) -> None:
    assert wait_seconds(interruptions, limit=limit) == seconds


async def test_a_turn_given_back_at_a_stop_is_no_suspect_and_a_suspect_stays_one(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await store.release_turn((await begin(store, clock, MAIN)).id)
    store = await crash(store, engine, clock)
    turn = await begin(store, clock, MAIN)
    assert (turn.suspect, turn.interruptions) == (False, 0)
    store = await crash(store, engine, clock)
    await store.release_turn((await begin(store, clock, MAIN, alone=True)).id)
    store = await crash(store, engine, clock)
    turn = await begin(store, clock, MAIN, alone=True)
    assert (turn.suspect, turn.interruptions) == (True, 1)
    await store.close()


@SQLITE_ONLY
async def test_turns_of_an_older_state_folder_begin_with_nothing_counted(
    engine: Engine, home: Home, clock: FakeClock, say: Say
) -> None:
    home.key_file.write_bytes(bytes(32))
    home.key_file.chmod(0o600)
    with closing(sqlite3.connect(home.database)) as connection:
        migrate(connection, STEPS[:12])
        connection.executescript(
            """
            INSERT INTO channels (id, platform, account, channel, name, chat_type)
            VALUES (1, 'web', 'default', 'main', '', 'direct');
            INSERT INTO conversations (id, channel, thread, name, created) VALUES (1, 1, '', '', 1);
            INSERT INTO messages (id, channel, conversation, kind, platform_id, author_id, author_name, author_marks,
                sent, received, text, standing, outcome, reason, trace, turn)
            VALUES (1 << 40 | 1, 1, 1, 'message', 'm', 'a', 'A', 0, 1, 1, 'hi', 'may_command', 'waiting', '', 't', 1);
            INSERT INTO turns (id, channel, conversation, number, message, author_id, trace, state, reason, attempt,
                created, ready, started, input_tokens, output_tokens)
            VALUES (1, 1, 1, 1, 1 << 40 | 1, 'a', 't', 'running', '', 3, 1, 1, 1, 0, 0);
            """
        )
    store = await engine.open()
    assert await store.recover(begun=clock.now()) == 1
    turn = await begin(store, clock, MAIN, alone=True)
    assert (turn.attempt, turn.interruptions, turn.retries) == (4, 1, 0)
    await store.close()


async def fail(store: Store, clock: FakeClock, *parcels: Parcel) -> ClaimedTurn:
    turn = await begin(store, clock, MAIN)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED, reason=FAILED.reason, parcels=parcels))
    return turn


async def test_a_failed_turn_waits_again_when_a_person_asks_and_its_story_keeps_the_failure(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER)
    failed = await fail(store, clock, Parcel(key="sorry", conversation=MAIN, text="Sorry"))
    clock.shift(60)
    (message,) = await store.retry_turn(MAIN, "1")
    assert (message.id, message.outcome, message.reason) == ("1", MessageOutcome.WAITING, "on the list")
    clock.shift(1)
    again = await begin(store, clock, MAIN)
    assert (again.id, again.attempt, again.interruptions, again.retries) == (failed.id, 1, 0, 1)
    await store.finish_turn(again.id, TurnEnd(state=TurnState.ANSWERED))
    outcomes = await told(store, MAIN, "1")
    assert outcomes == [
        ("waiting", ""),
        ("failed", FAILED.reason),
        ("retried", "by a person"),
        ("running", "attempt 1"),
        ("answered", ""),
    ]
    assert [parcel.text for parcel in await store.parcels()] == ["Sorry"], "what was said stays"


async def test_a_retried_turn_runs_before_later_ones_that_wait_and_after_those_that_were_answered(
    store: Store, clock: FakeClock, say: Say
) -> None:
    for name in ("1", "2", "3"):
        await store.take_in(say(name), ANSWER)
    await fail(store, clock)
    second = await begin(store, clock, MAIN)
    await store.retry_turn(MAIN, "1")
    assert await store.claim_turn(MAIN, clock.now()) is None, "one turn at a time in a conversation"
    await store.finish_turn(second.id, TurnEnd(state=TurnState.ANSWERED))
    order = []
    for _ in range(2):
        turn = await begin(store, clock, MAIN)
        order.append(turn.messages[0].id)
        await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED))
    assert order == ["1", "3"]


async def test_only_a_failed_turn_of_a_message_that_is_still_there_is_retried(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1"), ANSWER)
    assert await store.retry_turn(MAIN, "1") == ()  # it waits
    turn = await begin(store, clock, MAIN)
    assert await store.retry_turn(MAIN, "1") == ()  # it runs
    await store.finish_turn(turn.id, FAILED)
    assert await store.retry_turn(SIDE, "1") == ()  # no message of that channel
    assert await store.retry_turn(MAIN, "unknown") == ()
    gone = Deletion(conversation=MAIN, id="d", message_id="1", author=say("1").author, sent=START)
    await store.take_in(gone, ANSWER)
    assert await store.retry_turn(MAIN, "1") == ()
    assert await store.waiting_turns() == 0


async def test_an_album_is_retried_as_a_whole_whichever_item_is_named(store: Store, clock: FakeClock, say: Say) -> None:
    for name in ("1", "2"):
        await store.take_in(say(name, album="a"), ANSWER, ready=clock.now() + timedelta(seconds=1))
    clock.shift(2)
    await fail(store, clock)
    assert [message.id for message in await store.retry_turn(MAIN, "2")] == ["1", "2"]
    again = await begin(store, clock, MAIN)
    assert [message.id for message in again.messages] == ["1", "2"]


async def test_a_turn_given_up_for_crashes_runs_alone_when_it_is_retried(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await store.take_in(say("1"), ANSWER)
    await begin(store, clock, MAIN)
    store = await crash(store, engine, clock)
    await store.finish_turn((await begin(store, clock, MAIN, alone=True)).id, FAILED)
    await store.retry_turn(MAIN, "1")
    assert isinstance(await store.claim_turn(MAIN, clock.now()), Ready)
    turn = await begin(store, clock, MAIN, alone=True)
    assert (turn.interruptions, turn.retries) == (0, 1)
    await store.close()


async def test_only_the_turns_of_the_owner_that_crashed_wait_again(store: Store, clock: FakeClock, say: Say) -> None:
    for owner, channel in (("one", "a"), ("two", "b"), ("", "c")):
        message = say(channel, conversation=ConversationKey(platform="web", account="default", channel=channel))
        await store.take_in(message, ANSWER)
        claimed = await store.claim_turn(message.conversation, clock.now(), owner=owner)
        assert isinstance(claimed, ClaimedTurn)
        assert claimed.fence == 1
    # A turn without an owner was claimed by a version that had none.
    assert await store.recover("one") == 2
    assert {ready.conversation.channel for ready in await store.ready_turns()} == {"a", "c"}
    again = await store.claim_turn(
        ConversationKey(platform="web", account="default", channel="a"), clock.now(), owner="one", alone=True
    )
    assert isinstance(again, ClaimedTurn)
    assert again.fence == 2
    assert await store.recover("two") == 1
