"""One writer: grouped, honest about what is on disk, and not ended by anybody's mistake."""

import asyncio
import resource
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import StoreError, StoreFull
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.ports import Taken
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage.database import Tx
from belino.storage.home import Home
from belino.storage.sqlite import WAITING_WRITES
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from storage.pieces import raw

HeldUp = Callable[[], AbstractAsyncContextManager[None]]

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)


def stored_ids(home: Home) -> list[str]:
    """What another program sees: only what is committed."""
    with closing(sqlite3.connect(f"{home.database.as_uri()}?mode=ro", uri=True)) as connection:
        return [row[0] for row in connection.execute("SELECT platform_id FROM messages ORDER BY id")]


async def test_what_take_in_returned_for_is_committed(store: Store, home: Home, say: Callable[..., Message]) -> None:
    for number in range(20):
        await store.take_in(say(str(number)), ANSWER)
        assert stored_ids(home)[-1] == str(number)


async def test_what_queued_during_a_commit_is_committed_together_and_only_then_told(
    store: Store, home: Home, say: Callable[..., Message], held_up: HeldUp
) -> None:
    seen: list[list[str]] = []
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    async def offer(number: int) -> None:
        await store.take_in(say(str(number)), ANSWER)
        seen.append(stored_ids(home))

    raw(store).set_trace_callback(count)
    async with asyncio.TaskGroup() as group, held_up():
        for number in range(100):
            group.create_task(offer(number))
        await asyncio.sleep(0)
    raw(store).set_trace_callback(None)
    assert commits <= 3  # what held the writer up, the batch, and whoever came a moment later
    assert all(len(ids) == 100 for ids in seen)
    assert seen[0] == [str(number) for number in range(100)]


@given(bad=st.sets(st.integers(0, 19)))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_work_that_fails_takes_nobody_along_and_leaves_nothing(
    store: Store, say: Callable[..., Message], held_up: HeldUp, bad: set[int]
) -> None:
    run = len(await store.history(say("x").conversation, limit=10_000))

    def work(number: int) -> Callable[[Tx], int]:
        def write(connection: Tx) -> int:
            connection.execute(
                "INSERT INTO denied VALUES ('test', ?, ?, 1)", (f"{run}-{len(bad)}-{sorted(bad)}", str(number))
            )
            if number in bad:
                raise LookupError(number)
            return number

        return write

    async def offer(number: int) -> object:
        try:
            return await store._database.write(work(number))
        except LookupError as error:
            return error.args[0], "failed"

    await store._database.write(lambda connection: connection.execute("DELETE FROM denied").rowcount)
    async with asyncio.TaskGroup() as group, held_up():
        offered = [group.create_task(offer(number)) for number in range(20)]
        await asyncio.sleep(0)
    assert [task.result() for task in offered] == [(n, "failed") if n in bad else n for n in range(20)]
    kept = await store._database.read(lambda connection: connection.execute("SELECT reason FROM denied").fetchall())
    assert {int(row[0]) for row in kept} == set(range(20)) - bad


async def test_messages_around_a_failed_write_keep_their_order_and_numbers(
    store: Store, say: Callable[..., Message], held_up: HeldUp
) -> None:
    def fail(connection: Tx) -> None:
        raise LookupError

    async with asyncio.TaskGroup() as group, held_up():
        taken = [group.create_task(store.take_in(say(str(number)), ANSWER)) for number in range(5)]
        failing = asyncio.get_running_loop().create_task(store._database.write(fail))
        taken += [group.create_task(store.take_in(say(str(number)), ANSWER)) for number in range(5, 10)]
        await asyncio.sleep(0)
    with pytest.raises(LookupError):
        await failing
    history = await store.history(say("x").conversation)
    assert [(message.seq, message.id) for message in history] == [(n + 1, str(n)) for n in range(10)]
    assert [task.result().trace for task in taken] == [message.trace for message in history]


async def test_a_place_that_went_with_a_failed_write_is_made_anew_for_the_next(
    store: Store, clock: FakeClock, say: Callable[..., Message], held_up: HeldUp
) -> None:
    new = ConversationKey(platform="web", account="default", channel="new")
    await store.take_in(say("1"), ANSWER)
    turn = await store.claim_turn(say("1").conversation, clock.now())
    assert isinstance(turn, ClaimedTurn)
    good = Parcel(key="p", conversation=new, text="hi")
    broken = Parcel(key=None, conversation=new)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group, held_up():
        end = store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(good, broken)))
        failing = asyncio.get_running_loop().create_task(end)
        await asyncio.sleep(0)
        group.create_task(store.take_in(say("2", conversation=new), ANSWER))
        await asyncio.sleep(0)
    with pytest.raises(StoreError):
        await failing
    assert [message.id for message in await store.history(new)] == ["2"]


async def test_a_cancelled_offer_may_be_stored_and_harms_nobody(
    store: Store, say: Callable[..., Message], held_up: HeldUp
) -> None:
    async with held_up():
        offered = asyncio.get_running_loop().create_task(store.take_in(say("1"), ANSWER))
        await asyncio.sleep(0)
        offered.cancel()
    with pytest.raises(asyncio.CancelledError):
        await offered
    again = await store.take_in(say("1"), ANSWER)
    assert again.outcome is MessageOutcome.DUPLICATE


async def test_more_writes_than_may_wait_are_held_back_and_all_arrive(
    store: Store, say: Callable[..., Message], held_up: HeldUp
) -> None:
    many = WAITING_WRITES + 200
    async with asyncio.TaskGroup() as group, held_up():
        for number in range(many):
            group.create_task(store.take_in(say(str(number)), ANSWER))
        await asyncio.sleep(0)
        assert store.disk.waiting <= WAITING_WRITES
    assert (await store.counts())["messages"] == many


async def test_closing_finishes_what_was_offered(home: Home, clock: FakeClock, say: Callable[..., Message]) -> None:
    store = await open_store(home, clock=clock)
    offered = [asyncio.get_running_loop().create_task(store.take_in(say(str(n)), ANSWER)) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert {(await task).outcome for task in offered} == {MessageOutcome.WAITING}
    assert len(stored_ids(home)) == 50


async def _offer_until_full(store: Store, say: Callable[..., Message]) -> tuple[set[str], set[str]]:
    """Offer in waves; which ids were acknowledged, and which were refused for want of room."""
    acknowledged, refused = set[str](), set[str]()
    for wave in range(100):
        ids = [f"{wave}-{number}" for number in range(20)]
        answers = await asyncio.gather(
            *(store.take_in(say(name, "x" * 2_000), ANSWER) for name in ids), return_exceptions=True
        )
        for name, answer in zip(ids, answers, strict=True):
            assert isinstance(answer, Taken | StoreFull), answer
            (acknowledged if isinstance(answer, Taken) else refused).add(name)
        if refused:
            return acknowledged, refused
    raise AssertionError("the disk never filled up")


async def _assert_honest_and_recovered(
    store: Store, home: Home, say: Callable[..., Message], acknowledged: set[str], refused: set[str]
) -> None:
    assert set(stored_ids(home)) == acknowledged
    for name in sorted(refused):
        assert (await store.take_in(say(name), ANSWER)).outcome is MessageOutcome.WAITING
    assert set(stored_ids(home)) == acknowledged | refused
    seqs = [message.seq for message in await store.history(say("x").conversation, limit=10_000)]
    assert seqs == sorted(set(seqs))


async def test_a_disk_that_fills_up_refuses_and_works_again_once_there_is_room(
    store: Store, home: Home, say: Callable[..., Message]
) -> None:
    await store.take_in(say("first"), ANSWER)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))  # Python ignores SIGXFSZ: a write fails instead
    try:
        acknowledged, refused = await _offer_until_full(store, say)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await _assert_honest_and_recovered(store, home, say, acknowledged | {"first"}, refused)


async def test_a_database_at_its_size_limit_refuses_and_works_again_once_that_is_raised(
    store: Store, home: Home, say: Callable[..., Message]
) -> None:
    await store._database.write(lambda connection: connection.execute("PRAGMA max_page_count = 120").fetchone()[0])
    acknowledged, refused = await _offer_until_full(store, say)
    await store._database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone()[0])
    await _assert_honest_and_recovered(store, home, say, acknowledged, refused)
