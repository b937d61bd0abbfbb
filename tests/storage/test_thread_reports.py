"""What a platform reports about a thread counts, together with what is stored of it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from belino.domain.context import ThreadActivity
from belino.domain.message import ConversationKey, Deletion, Message, ThreadReport, Unsupported
from belino.domain.outcome import Standing
from belino.domain.search import SearchIntent, SearchQuery
from belino.domain.stored import StoredMessage, ThreadSlice, Verdict
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from storage.conftest import ANNA, MAIN

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="")
THREAD = replace(MAIN, thread="1")
HOUR = timedelta(hours=1)
Say = Callable[..., Message]


def root(say: Say, replies: int, last: datetime | None, **more: object) -> Message:
    report = ThreadReport(replies=replies, last=last, participants=("Bo", "Cleo"))
    return say("1", "who comes along?", sent=START - 9 * HOUR, thread_report=report, **more)


async def activity(store: Store, clock: FakeClock, until: datetime | None = None) -> ThreadActivity | None:
    anchor = await store.messages(MAIN, ["9"])
    around = await store.around(anchor[0], now=clock.now(), until=until)
    return around.nearby[0].activity


async def the_thread(store: Store) -> ThreadSlice:
    found = await store.thread(MAIN, "1")
    assert found is not None
    return found


async def test_a_thread_of_which_nothing_is_stored_counts_as_its_platform_says(
    store: Store, say: Say, clock: FakeClock
) -> None:
    await store.take_history(MAIN, [root(say, 3, START - 2 * HOUR)])
    await store.take_in(say("9"), OBSERVE)
    assert await activity(store, clock) == ThreadActivity(
        reply_count=3, replies_last_1h=0, last_reply_ts=START - 2 * HOUR
    )
    thread = await the_thread(store)
    assert (thread.total, thread.stored, thread.replies) == (3, 0, ())


async def test_replies_of_the_last_hour_are_not_known_if_only_the_platform_has_them(
    store: Store, say: Say, clock: FakeClock
) -> None:
    await store.take_history(MAIN, [root(say, 3, START - HOUR / 2)])
    await store.take_in(say("9"), OBSERVE)
    assert await activity(store, clock) == ThreadActivity(
        reply_count=3, replies_last_1h=None, last_reply_ts=START - HOUR / 2
    )


async def test_replies_that_come_after_the_report_are_added_and_earlier_ones_are_among_it(
    store: Store, say: Say, clock: FakeClock
) -> None:
    await store.take_history(MAIN, [root(say, 3, START - HOUR), say("2", conversation=THREAD, sent=START - 2 * HOUR)])
    await store.take_in(say("3", conversation=THREAD), OBSERVE)
    await store.take_in(say("9"), OBSERVE)
    thread = await the_thread(store)
    assert (thread.total, thread.stored) == (4, 2)
    told = await activity(store, clock)
    assert told is not None and (told.reply_count, told.last_reply_ts) == (4, START)


async def test_a_report_that_names_no_last_reply_counts_until_it_was_made(
    store: Store, say: Say, clock: FakeClock
) -> None:
    await store.take_history(MAIN, [root(say, 2, None)])
    await store.take_in(say("3", conversation=THREAD, sent=START + HOUR), OBSERVE)
    assert (await the_thread(store)).total == 3


async def test_a_later_report_replaces_the_one_before_also_of_a_message_that_arrived_live(
    store: Store, say: Say
) -> None:
    await store.take_in(root(say, 2, START), OBSERVE)
    await store.take_history(MAIN, [root(say, 5, START)])
    assert (await the_thread(store)).total == 5


async def test_a_reply_that_is_deleted_no_longer_counts(store: Store, say: Say, clock: FakeClock) -> None:
    await store.take_history(MAIN, [root(say, 3, START), say("2", conversation=THREAD, sent=START - HOUR)])
    for name in ("d1", "d2"):
        gone = Deletion(conversation=THREAD, id=name, message_id="2", author=None, sent=clock.now())
        await store.take_in(gone, OBSERVE)
    assert (await the_thread(store)).total == 2


async def test_a_thread_that_is_stored_whole_is_counted_from_the_store(store: Store, say: Say) -> None:
    await store.take_history(MAIN, [root(say, 3, START)])
    whole = [root(say, 3, START), say("2", conversation=THREAD)]  # one of the three cannot be read
    await store.take_history(THREAD, whole, whole_thread="1")
    assert (await the_thread(store)).total == 1


async def test_a_report_from_later_does_not_count_for_an_earlier_time(store: Store, say: Say, clock: FakeClock) -> None:
    await store.take_history(MAIN, [root(say, 3, START), say("2", conversation=THREAD, sent=START - 2 * HOUR)])
    await store.take_in(say("9"), OBSERVE)
    told = await activity(store, clock, until=START - HOUR)
    assert told is not None and told.reply_count == 1
    before = await store.thread(MAIN, "1", until=START - 3 * HOUR)
    assert before is not None and (before.total, before.replies) == (0, ())


async def test_a_report_goes_with_its_message(store: Store, say: Say, clock: FakeClock) -> None:
    await store.take_history(MAIN, [root(say, 3, START)])
    assert await store.expire_messages(clock.now() + HOUR) == 1
    assert await store.thread(MAIN, "1") is None


async def test_a_search_result_tells_the_thread_as_its_platform_does(store: Store, say: Say) -> None:
    await store.take_history(MAIN, [root(say, 3, START), say("2", conversation=THREAD, sent=START - HOUR)])
    (hit, *_) = (await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="comes along"),)))).hits
    assert hit.message.id == "1" and hit.thread is not None
    assert (hit.thread.reply_count, hit.thread.last_reply_ts) == (3, START)
    assert hit.thread.participant_names == ("Anna", "Bo", "Cleo")


async def test_a_notice_in_a_thread_is_no_reply(store: Store, say: Say, clock: FakeClock) -> None:
    await store.take_in(say("1"), OBSERVE)
    opened = Unsupported(
        conversation=THREAD, id="n", author=ANNA, sent=clock.now(), what="a thread was opened", is_notice=True
    )
    await store.take_in(opened, OBSERVE)
    await store.take_in(say("2", conversation=THREAD), OBSERVE)
    thread = await the_thread(store)
    assert [reply.id for reply in thread.replies] == ["2"] and thread.total == 1


async def test_a_direct_message_has_the_name_of_its_person_where_the_platform_has_none(
    store: Store, say: Say, clock: FakeClock
) -> None:
    await store.take_in(say("1"), OBSERVE)
    anchor: StoredMessage
    (anchor,) = await store.messages(MAIN, ["1"])
    assert (await store.around(anchor, now=clock.now())).channel_name == "Anna"
    assert [channel.name for channel in await store.channels()] == ["Anna"]
    assert [conversation.name for conversation in await store.conversations()] == ["Anna"]
    elsewhere = ConversationKey(platform="web", account="default", channel="two")
    await store.take_in(say("2", conversation=elsewhere, channel_name="Two"), OBSERVE)
    assert {channel.name for channel in await store.channels()} == {"Anna", "Two"}
