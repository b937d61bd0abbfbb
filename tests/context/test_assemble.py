"""The structured context of a turn, from a real store."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from belino.context.budget import ContextConfig
from belino.context.prompt import context_blocks, costs
from belino.context.snapshot import assemble, context_json
from belino.domain.message import Author, ConversationKey, Message, Reaction
from belino.domain.outcome import Standing
from belino.domain.stored import StoredMessage, Verdict
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from context.talk import CHANNEL, FENCE

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="test")
CONFIG = ContextConfig()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "state"), clock=FakeClock())
    yield store
    await store.close()


async def hear(store: Store, number: int, text: str = "hello", **more: object) -> StoredMessage:
    said = Message(
        conversation=CHANNEL,
        id=f"m{number}",
        author=Author(id=f"u{number % 3}", name=f"Person {number % 3}"),
        sent=FakeClock().now() + timedelta(minutes=number),
        text=text,
        channel_name="general",
    )
    said = replace(said, **more)  # type: ignore[arg-type]
    await store.take_in(said, OBSERVE)
    (stored,) = await store.messages(CHANNEL, [said.id])
    return stored


def thread_place(root: str) -> ConversationKey:
    return replace(CHANNEL, thread=root)


async def test_a_message_alone_in_its_channel_has_a_snapshot_and_no_thread(store: Store) -> None:
    anchor = await hear(store, 1)
    context = await assemble(store, [anchor], CONFIG, now=FakeClock().now())
    assert context.thread is None and context.snapshot.adjacent == () and context.answers == ("m1",)
    assert context.snapshot.channel_name == "general"
    assert len(context_blocks(context, fence=FENCE)) == 1


async def test_a_reply_is_told_with_its_thread_and_the_channel_before_it(store: Store) -> None:
    await hear(store, 1, "the plan")
    await hear(store, 2, "something else")
    await hear(store, 3, "looks good", conversation=thread_place("m1"))
    anchor = await hear(store, 4, "does it?", conversation=thread_place("m1"))
    context = await assemble(store, [anchor], CONFIG, now=FakeClock().now())
    assert context.thread is not None and context.thread.root is not None
    assert (context.thread.thread_id, context.thread.root.text) == ("m1", "the plan")
    assert [reply.message_id for reply in context.thread.replies] == ["m3", "m4"]
    assert [message.message_id for message in context.snapshot.adjacent] == ["m1", "m2"]
    assert context.snapshot.anchor.thread_id == "m1"


async def test_an_anchor_with_replies_is_the_root_of_its_thread(store: Store) -> None:
    anchor = await hear(store, 1, "a question")
    await hear(store, 2, "an answer", reply_to="m1")
    context = await assemble(store, [anchor], CONFIG, now=FakeClock().now())
    assert context.thread is not None and context.thread.thread_id == "m1"
    assert "(root, observed, the message to answer)" not in context_blocks(context, fence=FENCE)[1].text
    assert "(root, the message to answer)" in context_blocks(context, fence=FENCE)[1].text


async def test_the_items_of_an_album_are_one_anchor_and_not_around_themselves(store: Store) -> None:
    await hear(store, 1)
    items = [await hear(store, number, f"item {number}", album="a") for number in (3, 2)]
    context = await assemble(store, items, CONFIG, now=FakeClock().now())
    assert context.answers == ("m2", "m3") and context.snapshot.anchor.text == "item 2\nitem 3"
    assert [message.message_id for message in context.snapshot.adjacent] == ["m1"]


@pytest.mark.parametrize("count", [1, 20, 601])
async def test_a_long_thread_is_told_truly_however_short_its_replies_are(store: Store, count: int) -> None:
    await hear(store, 0, "go")
    async with asyncio.TaskGroup() as group:
        for number in range(1, count + 1):
            group.create_task(hear(store, number, "k", conversation=thread_place("m0")))
    (anchor,) = await store.messages(CHANNEL, [f"m{count}"])
    config = ContextConfig(thread_tokens=5000)
    context = await assemble(store, [anchor], config, now=FakeClock().now())
    assert context.thread is not None
    truncation = context.thread.truncation
    assert truncation.total_replies == count
    told = [reply.message_id for reply in context.thread.replies]
    assert told == [f"m{number}" for number in range(count - len(told) + 1, count + 1)]
    if count == 601:
        # More fit than are usually read at once.
        assert 5000 // 30 + 2 < len(told) < 601 and truncation.omitted_range_ts is not None
        assert truncation.omitted_range_ts[1] == FakeClock().now() + timedelta(minutes=count - len(told))
    else:
        assert len(told) == count and truncation.omitted_range_ts is None


async def test_the_same_store_and_clock_give_the_same_bytes(store: Store) -> None:
    for number in range(30):
        anchor = await hear(store, number, f"message {number}", reply_to="m3" if number > 20 else None)
    first, second = [await assemble(store, [anchor], CONFIG, now=FakeClock().now()) for _ in range(2)]
    assert context_blocks(first, fence=FENCE) == context_blocks(second, fence=FENCE)
    assert context_json(first) == context_json(second)


async def test_every_part_has_its_price_and_the_reasons_for_what_is_missing(store: Store) -> None:
    for number in range(30):
        await hear(store, number, f"message {number} " + "word " * 30)
        await hear(store, 100 + number, "reply " * 30, conversation=thread_place("m9"))
    (anchor,) = await store.messages(CHANNEL, ["m129"])
    config = ContextConfig(snapshot_tokens=300, thread_tokens=500)
    parts = costs(await assemble(store, [anchor], config, now=FakeClock().now()), config)
    assert [part.part for part in parts] == ["instructions", "channel", "thread"]
    channel, thread = parts[1:]
    assert channel.told + channel.left_out == 30 and 250 < channel.tokens < 400
    assert channel.why == (
        "10 earlier ones are over context.snapshot_messages = 20",
        f"the oldest {channel.left_out - 10} did not fit into context.snapshot_tokens = 300",
    )
    assert thread.told + thread.left_out == 31 and 500 < thread.tokens < 700
    assert thread.why[0] == f"the oldest {thread.left_out} replies did not fit into context.thread_tokens = 500"


async def test_nothing_that_came_after_a_message_is_in_the_context_of_that_time(store: Store) -> None:
    await hear(store, 1, "the plan")
    await hear(store, 2, "fine", conversation=thread_place("m1"))
    anchor = await hear(store, 3, "and now?")
    before = await assemble(store, [anchor], CONFIG, now=anchor.sent, until=anchor.sent)
    await hear(store, 4, "later", conversation=thread_place("m1"))
    await hear(store, 5, "later", conversation=thread_place("m3"))
    await hear(store, 6, "later")
    bo = Author(id="u-bo", name="Bo")
    sent = anchor.sent + timedelta(minutes=9)
    await store.take_in(
        Reaction(conversation=CHANNEL, id="r", message_id="m1", author=bo, sent=sent, emoji="👀"), OBSERVE
    )
    after = await assemble(store, [anchor], CONFIG, now=anchor.sent, until=anchor.sent)
    assert context_json(after) == context_json(before)
    assert "👀 1" in str(context_json(await assemble(store, [anchor], CONFIG, now=sent)))


@pytest.mark.parametrize("limit", [0, 4, 30])
async def test_all_messages_before_the_anchor_are_shown_or_counted(store: Store, limit: int) -> None:
    for number in range(1, 10):
        await hear(store, number)
    anchor = await hear(store, 10)
    context = await assemble(store, [anchor], ContextConfig(snapshot_messages=limit), now=FakeClock().now())
    assert (len(context.snapshot.adjacent), context.snapshot.before) == (min(limit, 9), 9)
