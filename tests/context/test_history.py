"""Platforms are asked for the past once, at a pace, and what they do not tell is said."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from belino.context.history import REPLIES_MOST, History, Marks
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import StoredMessage, Verdict
from belino.net.rest import PaceConfig
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing import FakeClock, FakeContext, MemoryAdapter
from belino.testing.memory import Config, MemoryPlatform

TEAM, OTHER = (ConversationKey(platform="memory", account="default", channel=name) for name in ("team", "other"))
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
ANA = Author(id="7", name="Ana")


class Past:
    """A platform with a past, a store, and who asks."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.platform = MemoryPlatform()
        self.counts: Counter[str] = Counter()
        self.adapter = MemoryAdapter(Config(far_side=self.platform), FakeContext(account="default", clock=clock))
        self.history = self.asker()

    def asker(self, adapter: Any = None, **more: Any) -> History:
        values: dict[str, Any] = {"config": PaceConfig(), "clock": self.clock, "counts": self.counts, **more}
        history = History(self.store, {("memory", "default"): adapter or self.adapter}, **values)
        history.listens("memory", "default")
        return history

    def said(self, id: str, *, minutes: float = 60, where: ConversationKey = TEAM, **more: object) -> None:  # noqa: A002
        """Something was said before anybody listened."""
        sent = self.clock.now() - timedelta(minutes=minutes)
        update = {"id": id, "channel": where.channel, "date": sent.timestamp(), "text": f"said {id}", **more}
        self.platform.past.append({"from": {"id": 7, "name": "Ana"}, "direct": False, **update})

    async def heard(self, id: str, *, where: ConversationKey = TEAM, **more: Any) -> StoredMessage:  # noqa: A002
        message = Message(conversation=where, id=id, author=ANA, sent=self.clock.now(), text=f"heard {id}", **more)
        await self.store.take_in(message, OBSERVE)
        self.clock.shift(1)
        (stored,) = await self.store.messages(where.whole_channel, [id])
        return stored

    async def kept(self, where: ConversationKey = TEAM) -> list[str]:
        return [message.id for message in await self.store.history(where)]


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    clock = FakeClock()
    store = await open_store(Home.at(tmp_path / "home"), clock=clock)
    yield Past(store, clock)
    await store.close()


async def test_a_channel_is_asked_for_once_and_then_never_while_its_account_listens(past: Past) -> None:
    past.said("1")
    past.said("2", minutes=50)
    past.said("3", where=OTHER)
    for _ in range(5):
        assert await past.history.channel(TEAM) == ""
        past.clock.shift(7 * 3600)
    assert await past.kept() == ["1", "2"] and past.platform.asked == [str(TEAM)]
    assert await past.kept(OTHER) == []
    await past.history.channel(OTHER)
    assert past.platform.asked == [str(TEAM), str(OTHER)] and past.counts["calls"] == 2


async def test_many_who_ask_at_once_make_one_call(past: Past) -> None:
    past.said("1")
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(past.history.channel(TEAM))
            group.create_task(past.history.thread(TEAM, "1"))
    assert sorted(past.platform.asked) == [str(TEAM), f"{TEAM}:1"]


async def test_a_failed_call_is_told_and_made_again_later_ever_less_often(past: Past) -> None:
    past.said("1")
    past.platform.refusals += [(500, {}), (500, {})]
    assert "could not be asked" in await past.history.channel(TEAM)
    assert "asked again later" in await past.history.channel(TEAM)
    past.clock.shift(61)
    assert "could not be asked" in await past.history.channel(TEAM)
    past.clock.shift(61)
    assert "asked again later" in await past.history.channel(TEAM)
    past.clock.shift(60)
    assert await past.history.channel(TEAM) == ""
    assert len(past.platform.asked) == 3 and past.counts["failures"] == 2 and await past.kept() == ["1"]


async def test_an_account_that_listens_anew_is_asked_anew(past: Past) -> None:
    await past.history.channel(TEAM)
    past.said("1")
    past.history.listens("memory", "another")
    await past.history.channel(TEAM)
    assert await past.kept() == []
    past.history.listens("memory", "default")
    past.platform.refusals.append((500, {}))
    assert await past.history.channel(TEAM) != ""
    past.history.listens("memory", "default")
    assert await past.history.channel(TEAM) == ""
    assert await past.kept() == ["1"] and len(past.platform.asked) == 3


async def test_a_thread_that_began_while_we_listened_needs_no_call_however_old(past: Past) -> None:
    await past.heard("1")
    past.clock.shift(86_400)
    assert await past.history.thread(TEAM, "1") == ""
    assert past.platform.asked == [] and past.counts["thread_hits"] == 1


async def test_a_thread_that_was_heard_before_a_silence_is_asked_for_unless_the_account_is_told_what_it_missed(
    past: Past,
) -> None:
    await past.heard("1")
    past.history.listens("memory", "default")
    await past.history.thread(TEAM, "1")
    assert past.platform.asked == [f"{TEAM}:1"]
    await past.store.take_in(
        Message(conversation=TEAM, id="2", author=ANA, sent=past.clock.now()), OBSERVE, cursor="17"
    )
    past.history.listens("memory", "default")
    await past.history.thread(TEAM, "2")
    assert len(past.platform.asked) == 1


async def test_an_old_thread_is_asked_for_once_kept_by_live_arrivals_and_again_after_five_minutes(past: Past) -> None:
    past.said("1")
    past.said("2", thread="1", minutes=50)
    assert await past.history.thread(TEAM, "1") == ""
    await past.heard("3", where=ConversationKey(platform="memory", account="default", channel="team", thread="1"))
    past.clock.shift(290)
    assert await past.history.thread(TEAM, "1") == ""
    whole = await past.store.thread(TEAM, "1")
    assert whole is not None and whole.root is not None and [reply.id for reply in whole.replies] == ["2", "3"]
    assert len(past.platform.asked) == 1 and past.counts["thread_hits"] == 1
    past.clock.shift(20)
    await past.history.thread(TEAM, "1")
    assert len(past.platform.asked) == 2 and past.counts["thread_misses"] == 2


async def test_a_thread_nobody_knows_is_not_asked_for_again_at_once(past: Past) -> None:
    for _ in range(3):
        assert await past.history.thread(TEAM, "404") == ""
    assert len(past.platform.asked) == 1


async def test_a_message_of_another_channel_is_never_asked_for(past: Past) -> None:
    await past.heard("secret", where=OTHER)
    assert await past.history.thread(TEAM, "secret") == ""
    assert past.platform.asked == []


async def test_a_turn_asks_for_its_channel_and_for_the_beginning_of_an_old_thread_once_in_six_hours(past: Past) -> None:
    past.said("1")
    thread = ConversationKey(platform="memory", account="default", channel="team", thread="1")
    anchor = await past.heard("2", where=thread)
    for _ in range(5):
        assert await past.history.before_turn(anchor) == ""
        past.clock.shift(3600)
    assert past.platform.asked == [str(TEAM), f"{TEAM}:1"]
    assert (past.counts["starter_misses"], past.counts["starter_hits"]) == (1, 4)
    past.clock.shift(2 * 3600)
    await past.history.before_turn(anchor)
    assert len(past.platform.asked) == 3


async def test_a_turn_that_answers_a_reply_needs_no_call_for_a_root_that_is_kept(past: Past) -> None:
    past.said("1")
    anchor = await past.heard("2", reply_to="1")
    await past.history.before_turn(anchor)
    assert past.platform.asked == [str(TEAM)]
    await past.history.before_turn(await past.heard("3", reply_to="0"))
    assert past.platform.asked == [str(TEAM), f"{TEAM}:0"]


async def test_a_platform_that_asks_for_patience_gets_it_and_the_reader_a_note(past: Past) -> None:
    past.platform.refusals.append((429, {"Retry-After": "600"}))
    assert (
        await past.history.thread(TEAM, "1") == "The platform may not be asked for 10 minutes; this is what is stored."
    )
    past.clock.shift(30)
    assert "may not be asked for 10 minutes" in await past.history.thread(TEAM, "2")
    assert len(past.platform.asked) == 1 and past.counts["limited"] == 2
    past.clock.shift(570)
    assert await past.history.thread(TEAM, "2") == ""


async def test_calls_beyond_the_pace_wait_for_their_turn(past: Past) -> None:
    history = past.asker(config=PaceConfig(calls_per_minute=2))
    await history.channel(TEAM)
    await history.channel(OTHER)
    past.clock.shift(40)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(history.thread(TEAM, "1"))
        while not past.clock.sleeping:
            await asyncio.sleep(0)
        assert len(past.platform.asked) == 2
        await past.clock.advance(20)
    assert waiting.result() == "" and past.counts["waits"] == 1 and len(past.platform.asked) == 3


async def test_degraded_answers_come_from_what_is_stored_if_it_is_not_too_old(past: Past) -> None:
    history = past.asker(config=PaceConfig(calls_per_minute=1, overflow="degrade", stale_minutes=10))
    past.said("1")
    await history.thread(TEAM, "1")
    past.clock.shift(6 * 60)
    await history.channel(TEAM)
    assert await history.thread(TEAM, "1") == (
        "The platform was not asked again, to spare its limits; this is as of 6 minutes ago."
    )
    assert past.counts["degraded"] == 1 and len(past.platform.asked) == 2
    past.clock.shift(5 * 60)
    await history.channel(OTHER)
    past.clock.shift(40)
    async with asyncio.TaskGroup() as group:
        too_old = group.create_task(history.thread(TEAM, "1"))
        while not past.clock.sleeping:
            await asyncio.sleep(0)
        await past.clock.advance(20)
    assert too_old.result() == "" and len(past.platform.asked) == 4


class Liar(MemoryAdapter):
    """Hands out what it was not asked for, or dies in its own way."""

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        if channel == OTHER:
            raise KeyError("a bug")
        return [Message(conversation=OTHER, id="x", author=ANA, sent=self._context.clock.now(), text="foreign")]


async def test_what_belongs_to_another_channel_is_not_kept_and_a_broken_adapter_is_no_more_than_a_note(
    past: Past,
) -> None:
    history = past.asker(Liar(Config(), FakeContext(account="default", clock=past.clock)))
    await history.channel(TEAM)
    assert await past.kept(OTHER) == [] and await past.kept() == []
    assert "could not be asked" in await history.channel(OTHER)


async def test_messages_past_their_time_or_too_long_are_not_brought_back(past: Past) -> None:
    past.said("1", minutes=3 * 1440)
    past.said("2", minutes=60, text="x" * 101)
    past.said("3", minutes=60, text="x" * 100)
    await past.asker(keeps=timedelta(days=2), text_chars=100).channel(TEAM)
    assert await past.kept() == ["3"]


async def test_a_platform_without_history_is_never_asked(past: Past) -> None:
    history = past.asker(object())
    anchor = await past.heard("1", reply_to="0")
    assert (await history.channel(TEAM), await history.thread(TEAM, "9"), await history.before_turn(anchor)) == (
        "",
        "",
        "",
    )
    assert not past.counts


async def test_recalled_messages_are_marked_as_such(past: Past) -> None:
    past.said("1")
    await past.history.channel(TEAM)
    (message,) = await past.store.history(TEAM)
    assert message.outcome is MessageOutcome.RECALLED


def test_marks_are_few_and_the_oldest_go_first() -> None:
    marks = Marks(FakeClock(), seconds=300, most=REPLIES_MOST)
    keys = [ConversationKey(platform="memory", account="default", channel=str(number)) for number in range(600)]
    for key in keys:
        marks.set(key)
    marks.set(keys[100])
    marks.set(keys[0])
    assert len(marks) == REPLIES_MOST
    assert [marks.fresh(keys[at]) for at in (0, 99, 100, 101, 102, 599)] == [True, False, True, False, True, True]
