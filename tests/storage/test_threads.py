"""Whose thread a message is in, what was said around it, and the truth about a whole thread."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from belino.domain.context import ThreadActivity
from belino.domain.message import Author, ConversationKey, Deletion, Message, Unsupported
from belino.domain.outcome import Standing, TurnState
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.domain.stored import ClaimedTurn, StoredMessage, TurnEnd, Verdict
from belino.storage.migrations import STEPS
from belino.storage.sqlite import migrate
from belino.storage.store import Store
from belino.testing.clock import FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="test")
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="test", answer=True)
AGENT = Author(id="me", name="belino", is_bot=True, is_agent=True)
Say = Callable[..., Message]


def place(thread: str) -> ConversationKey:
    return replace(MAIN, thread=thread)


async def one(store: Store, name: str) -> StoredMessage:
    (found,) = await store.messages(MAIN, [name])
    return found


async def root_of(store: Store, name: str) -> str | None:
    return (await one(store, name)).root


async def hear(store: Store, clock: FakeClock, *messages: Message) -> None:
    for message in messages:
        await store.take_in(replace(message, sent=clock.now()), OBSERVE)
        clock.shift(60)


async def test_a_message_in_a_thread_has_its_root_and_the_root_has_none(store: Store, say: Say) -> None:
    for name in ("1", "2"):
        await store.take_in(say(name, conversation=place("1")), OBSERVE)
    await store.take_in(say("3", conversation=place("1"), reply_to="2"), OBSERVE)
    assert [await root_of(store, name) for name in "123"] == [None, "1", "1"]


async def test_a_chain_of_replies_is_a_thread_where_there_are_none(store: Store, say: Say) -> None:
    for name, replied in (("1", None), ("2", "1"), ("3", "2"), ("4", "unknown"), ("5", "5")):
        await store.take_in(say(name, reply_to=replied), OBSERVE)
    assert [await root_of(store, name) for name in "12345"] == [None, "1", "1", "unknown", None]


async def test_replies_that_come_before_what_they_answer_find_their_root_when_it_comes(store: Store, say: Say) -> None:
    for name, replied in (("3", "2"), ("4", "3"), ("2", "1"), ("1", None)):
        await store.take_in(say(name, reply_to=replied), OBSERVE)
    assert [await root_of(store, name) for name in "1234"] == [None, "1", "1", "1"]


async def test_a_thread_of_its_own_is_not_drawn_into_the_thread_its_root_answers(store: Store, say: Say) -> None:
    await store.take_in(say("9", conversation=place("2")), OBSERVE)
    await store.take_in(say("2", reply_to="1"), OBSERVE)
    assert [await root_of(store, name) for name in "29"] == ["1", "2"]


async def test_two_messages_that_answer_each_other_do_not_go_in_circles(store: Store, say: Say) -> None:
    for name, replied in (("1", "2"), ("2", "1")):
        await store.take_in(say(name, reply_to=replied), OBSERVE)
    assert [await root_of(store, name) for name in "12"] == ["2", None]


async def test_what_cannot_be_read_is_in_its_thread_too(store: Store, clock: FakeClock) -> None:
    poll = Unsupported(conversation=place("1"), id="2", author=AGENT, sent=clock.now(), what="a poll")
    await store.take_in(poll, OBSERVE)
    assert await root_of(store, "2") == "1"


async def test_what_the_agent_says_is_in_the_thread_it_answers(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    await store.take_in(say("2", reply_to="1"), ANSWER)
    claimed = await store.claim_turn(MAIN, clock.now())
    assert isinstance(claimed, ClaimedTurn)
    parcel = Parcel(key="a", conversation=MAIN, kind=ParcelKind.TEXT, text="yes", reply_to="2")
    await store.finish_turn(claimed.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    await store.claim_parcel(MAIN, clock.now())
    sent = await store.confirm_parcel("a", Receipt(message_id="3", sent=clock.now()), AGENT)
    assert sent is not None and sent.root == "1"


async def test_the_messages_of_the_channel_itself_are_around_an_anchor_with_the_life_under_them(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await hear(store, clock, say("1"), say("2"), say("3"))
    await hear(store, clock, say("4", conversation=place("2")), say("5", conversation=place("2")))
    clock.shift(7200)
    await hear(store, clock, say("6", conversation=place("3")), say("7", channel_name="general"), say("8"))
    around = await store.around(await one(store, "7"), now=clock.now())
    assert [near.message.id for near in around.nearby] == ["1", "2", "3"]
    assert around.replies_elsewhere == 3 and around.channel_name == "general"
    fourth, sixth = (await one(store, "5")).sent, (await one(store, "6")).sent
    assert [near.activity for near in around.nearby] == [
        None,
        ThreadActivity(reply_count=2, replies_last_1h=0, last_reply_ts=fourth),
        ThreadActivity(reply_count=1, replies_last_1h=1, last_reply_ts=sixth),
    ]


async def test_around_an_anchor_in_a_thread_other_threads_are_counted_and_its_own_is_not(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await hear(store, clock, say("1"), say("2"), say("3", conversation=place("1")), say("4", conversation=place("2")))
    await hear(store, clock, say("5", conversation=place("2")), say("6"))
    around = await store.around(await one(store, "5"), now=clock.now())
    assert [near.message.id for near in around.nearby] == ["1", "2"]
    assert around.replies_elsewhere == 1


async def test_only_the_newest_before_an_anchor_are_around_it_and_none_that_is_deleted(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await hear(store, clock, *(say(str(number)) for number in range(6)))
    gone = Deletion(conversation=MAIN, id="d", message_id="3", author=None, sent=clock.now())
    await store.take_in(gone, OBSERVE)
    around = await store.around(await one(store, "5"), now=clock.now(), limit=2)
    assert [near.message.id for near in around.nearby] == ["2", "4"]


async def test_what_was_said_before_counts_as_before_however_late_it_came(
    store: Store, clock: FakeClock, say: Say
) -> None:
    early = clock.now() - timedelta(hours=1)
    await hear(store, clock, say("9", reply_to="1"))
    for name in ("1", "2"):
        await store.take_in(say(name, sent=early, reply_to="1" if name == "2" else None), OBSERVE)
    around = await store.around(await one(store, "9"), now=clock.now())
    assert [near.message.id for near in around.nearby] == ["1", "2"]
    known = await store.thread(MAIN, "1")
    assert known is not None and [reply.id for reply in known.replies] == ["2", "9"] and known.first == early


async def test_a_thread_has_its_newest_living_replies_and_the_truth_about_all(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await hear(store, clock, say("1"), *(say(f"r{number}", conversation=place("1")) for number in range(6)))
    gone = Deletion(conversation=MAIN, id="d", message_id="r0", author=None, sent=clock.now())
    await store.take_in(gone, OBSERVE)
    known = await store.thread(MAIN, "1", limit=2)
    assert known is not None and known.root is not None and known.root.id == "1"
    assert [reply.id for reply in known.replies] == ["r4", "r5"]
    assert known.total == 5 and known.first == (await one(store, "r1")).sent
    earlier = await store.thread(MAIN, "1", before=known.replies[0].seq, limit=2)
    assert earlier is not None and [reply.id for reply in earlier.replies] == ["r2", "r3"] and earlier.total == 5


async def test_a_thread_without_a_root_a_root_without_replies_and_neither(store: Store, say: Say) -> None:
    await store.take_in(say("2", conversation=place("1")), OBSERVE)
    orphans, alone = await store.thread(MAIN, "1"), await store.thread(MAIN, "2")
    assert orphans is not None and orphans.root is None and orphans.total == 1
    assert alone is not None and alone.root is not None and (alone.replies, alone.first) == ((), None)
    assert await store.thread(MAIN, "3") is None
    assert await store.thread(replace(MAIN, channel="other"), "1") is None


async def test_a_thread_of_another_channel_stays_there(store: Store, say: Say) -> None:
    other = replace(MAIN, channel="other")
    await store.take_in(say("1", conversation=other), OBSERVE)
    await store.take_in(say("2", conversation=other, reply_to="1"), OBSERVE)
    await store.take_in(say("3", reply_to="1"), OBSERVE)
    known = await store.thread(MAIN, "1")
    assert known is not None and known.root is None and [reply.id for reply in known.replies] == ["3"]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT count(*), min(sent) FROM messages WHERE channel = 1 AND root = 'x' AND deleted IS NULL", "of_root"),
        (
            "SELECT text FROM messages WHERE channel = 1 AND root = 'x' AND deleted IS NULL "
            "ORDER BY sent DESC, id DESC LIMIT 9",
            "of_root",
        ),
        (
            "SELECT text FROM messages WHERE conversation = 1 AND (sent, id) < (5, 5) AND deleted IS NULL "
            "ORDER BY sent DESC, id DESC",
            "in_time",
        ),
    ],
)
def test_threads_and_neighbours_are_found_and_ordered_by_an_index(query: str, index: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert f"messages_{index}" in plan and "TEMP B-TREE" not in plan


def test_messages_of_an_older_store_find_the_thread_they_are_in() -> None:
    def insert(connection: sqlite3.Connection, number: int, conversation: int, name: str, reply: Any) -> None:
        values = (
            number,
            1,
            conversation,
            "message",
            name,
            "a",
            "A",
            0,
            0,
            0,
            "",
            "observed",
            "observed",
            "",
            "",
            reply,
        )
        connection.execute(
            "INSERT INTO messages (id, channel, conversation, kind, platform_id, author_id, author_name, author_marks, "
            f"sent, received, text, standing, outcome, reason, trace, reply_to) VALUES ({','.join('?' * 16)})",
            values,
        )

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, STEPS[:2])
        connection.execute("INSERT INTO conversations VALUES (1, 1, '', '', 0), (2, 1, 'a', '', 0)")
        rows = (("a", 2, None), ("b", 2, None), ("c", 1, None), ("d", 1, "c"), ("e", 1, "d"), ("f", 1, "gone"))
        for number, (name, conversation, reply) in enumerate(rows):
            insert(connection, number, conversation, name, reply)
        migrate(connection)
        assert dict(connection.execute("SELECT platform_id, root FROM messages")) == {
            "a": None,
            "b": "a",
            "c": None,
            "d": "c",
            "e": "c",
            "f": "gone",
        }
