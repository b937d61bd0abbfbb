"""What was said before, or while nobody listened: asked for once, paced, and never twice."""

import asyncio
import json

import pytest

from adapters.harness import until
from adapters.slack_harness import App, Apps, making_apps, passing, place
from belino.adapters.slack import GAP_SECONDS
from belino.adapters.slack.authors import moment
from belino.adapters.slack.history import MOST_CHANNELS, SlackCursor
from belino.domain.errors import AdapterError, RateLimited
from belino.domain.message import ConversationKey, ThreadReport
from belino.domain.reply import Parcel
from belino.testing import FakeClock, SlackPace, SlackServer, make_png
from belino.testing.faults import CannedAnswer


async def test_a_channel_is_told_by_one_call_oldest_first(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    said = [slack.say(general, ada, f"message {number}") for number in range(60)]
    slack.say(general, ada, "in a thread", thread=said[0])
    found = await app.adapter.history(place(general), limit=50)
    assert [message.text for message in found] == [f"message {number}" for number in range(10, 60)]
    assert found[0].author.name == "Ada"
    earlier = await app.adapter.history(place(general), before=found[0].id, limit=5)
    assert [message.text for message in earlier] == [f"message {number}" for number in range(5, 10)]
    assert slack.calls["conversations.history"] == 2


async def test_a_message_in_history_tells_how_often_when_and_by_whom_it_was_replied_to(
    slack: SlackServer, app: App
) -> None:
    ada, bo = slack.user("Ada"), slack.user("Bo")
    general = slack.channel("general", ada, bo)
    root = slack.say(general, ada, "who comes?")
    slack.say(general, ada, "nothing under it")
    replies = [slack.say(general, who, "me", thread=root) for who in (bo, ada, bo)]
    busy, quiet = await app.adapter.history(place(general))
    assert busy.thread_report == ThreadReport(replies=3, last=moment(replies[-1]["ts"]), participants=("Bo", "Ada"))
    assert quiet.thread_report is None
    assert slack.calls["conversations.replies"] == 0


async def test_what_was_edited_says_when(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    slack.say(general, ada, "as it was said")
    slack.edit(slack.say(general, ada, "a typo"), "no typo")
    plain, edited = await app.adapter.history(place(general))
    assert plain.edited is None
    assert edited.text == "no typo" and edited.edited is not None and edited.edited > edited.sent


async def test_a_thread_of_600_replies_is_told_by_one_call(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    root = slack.say(general, ada, "who comes?", files=[make_png(8, 8)])
    for number in range(600):
        slack.say(general, ada, f"reply {number}", thread=root)
    thread = place(general, root["ts"])
    found = await app.adapter.thread(thread)
    assert [message.text for message in found] == ["who comes?", *(f"reply {number}" for number in range(600))]
    assert slack.calls["conversations.replies"] == 1
    assert found[0].conversation.thread is None
    assert found[0].media
    assert {message.conversation for message in found[1:]} == {thread}
    assert slack.calls["file"] == 0


async def test_a_thread_nobody_knows_is_empty(slack: SlackServer, app: App) -> None:
    general = slack.channel("general", slack.user("Ada"))
    assert list(await app.adapter.thread(place(general, "1700000000.000100"))) == []
    assert list(await app.adapter.thread(place(general))) == []


async def test_an_app_that_is_given_fifteen_a_minute_is_told_how_long_to_wait(apps: Apps) -> None:
    async with SlackServer(pace=SlackPace(unlisted=True)) as slack, making_apps(slack) as make:
        ada = slack.user("Ada")
        general = slack.channel("general", ada)
        for number in range(20):
            slack.say(general, ada, f"message {number}")
        app = make()
        assert len(await app.adapter.history(place(general))) == 15
        for _ in range(3):
            with pytest.raises(RateLimited) as caught:
                await app.adapter.history(place(general))
            assert caught.value.retry_after > 30
        assert slack.calls["conversations.history"] == 2, "it is not asked again before"


async def test_what_was_said_while_nobody_listened_is_caught_up_with(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    general, random = slack.channel("general", ada), slack.channel("random", ada)
    first = apps()
    async with first.listening():
        root = slack.say(general, ada, "one")
        slack.say(random, ada, "eins")
        slack.say(general, ada, "a reply", thread=root)
        await until(lambda: len(first.texts) == 3)
    slack.deliveries.subscribed.clear()  # nothing of this is ever delivered
    slack.say(general, ada, "two")
    slack.say(general, ada, "a late reply", thread=root)
    new = slack.say(random, ada, "zwei")
    slack.say(random, ada, "a reply to zwei", thread=new)
    clock = FakeClock(slack.clock.now())
    second = apps(clock=clock)
    async with second.listening(first.cursor):
        await passing(clock, lambda: len(second.texts) == 4)
    assert sorted(second.texts) == ["a late reply", "a reply to zwei", "two", "zwei"]
    assert slack.calls["conversations.history"] == 2
    assert "missed" not in json.loads(second.cursor or "{}")


async def test_an_app_that_is_given_fifteen_a_minute_catches_up_page_by_page() -> None:
    clock = FakeClock()
    async with SlackServer(clock=clock, pace=SlackPace(unlisted=True)) as slack, making_apps(slack) as make:
        ada = slack.user("Ada")
        general = slack.channel("general", ada)
        first = make(clock=clock)
        async with first.listening():
            root = slack.say(general, ada, "one")
            slack.say(general, ada, "a reply", thread=root)
            await until(lambda: len(first.texts) == 2)
        slack.deliveries.subscribed.clear()
        for number in range(20):
            slack.say(general, ada, f"message {number}")
            slack.say(general, ada, f"reply {number}", thread=root)
        second = make(clock=clock)
        async with second.listening(first.cursor):
            await passing(clock, lambda: len(second.texts) == 40)
        assert len(set(second.texts)) == 40
        assert slack.calls["conversations.history"] + slack.calls["conversations.replies"] <= 8


async def test_a_slack_that_tells_what_is_nearest_to_the_gap_first_is_heard_to_the_end(
    slack: SlackServer, apps: Apps
) -> None:
    """Its documentation says that the newest come first; asked for no end, it has also begun with the oldest."""
    first, second = (
        {"messages": [{"type": "message", "user": "U0ADA00001", "text": t, "ts": ts}]}
        for t, ts in (
            ("one", f"{slack.clock.now().timestamp() - 9:.6f}"),
            ("two", f"{slack.clock.now().timestamp() - 8:.6f}"),
        )
    )
    more = {"has_more": True, "response_metadata": {"next_cursor": "more"}}
    for told in ({**first, **more}, second):
        slack.fail("conversations.history", CannedAnswer(status=200, body=json.dumps({"ok": True, **told}).encode()))
    clock = FakeClock(slack.clock.now())
    app = apps(clock=clock)
    async with app.listening(json.dumps({"channels": {"C0GENERAL1": f"{clock.now().timestamp() - 10:.6f}"}})):
        await passing(clock, lambda: app.texts == ["one", "two"])


@pytest.mark.parametrize("threaded", [True, False], ids=["thread", "channel"])
async def test_a_parcel_is_found_again_however_much_was_said_before_and_after_it(threaded: bool) -> None:
    clock = FakeClock()
    async with SlackServer(clock=clock, pace=SlackPace(unlisted=threaded)) as slack, making_apps(slack) as make:
        ada = slack.user("Ada")
        general = slack.channel("general", ada)
        root = slack.say(general, ada, "who comes?")
        thread = root if threaded else None

        def chatter(count: int) -> None:
            for number in range(count):
                slack.say(general, ada, f"message {number}", thread=thread)

        chatter(30)
        await clock.advance(3600)
        where = place(general, root["ts"] if threaded else None)
        parcel = Parcel(key="k", conversation=where, text="I do", created=clock.now())
        app = make(clock=clock)
        receipt = await app.adapter.send(parcel)
        chatter(300)
        found = await app.adapter.find_sent(parcel)
        assert found is not None
        assert found.message_id == receipt.message_id
        assert slack.calls["conversations.history"] + slack.calls["conversations.replies"] == 1


async def test_a_fresh_start_asks_for_nothing(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    for number in range(50):
        slack.say(slack.channel(f"channel-{number}", ada), ada, "long ago")
    async with app.listening():
        await asyncio.sleep(0)
    assert slack.calls["conversations.history"] == slack.calls["conversations.replies"] == 0


async def test_a_gap_that_was_not_filled_is_remembered_over_a_restart(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    first = apps()
    async with first.listening():
        slack.say(general, ada, "one")
        await until(lambda: first.texts == ["one"])
    slack.deliveries.subscribed.clear()
    slack.say(general, ada, "two")
    slack.deliveries.subscribed |= {"message.channels"}
    slack.fail("conversations.history", CannedAnswer(status=429, headers={"Retry-After": "600"}))
    second = apps(clock=FakeClock(slack.clock.now()))
    async with second.listening(first.cursor):
        await until(lambda: slack.calls["conversations.history"] == 1)
        slack.say(general, ada, "three")  # heard live, and after the gap
        await until(lambda: second.texts == ["three"])
    third = apps()
    async with third.listening(second.cursor):
        await until(lambda: "two" in third.texts)


async def test_a_long_break_of_the_line_is_caught_up_with(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    clock = FakeClock(slack.clock.now())
    app = apps(clock=clock)
    async with app.listening():
        slack.say(general, ada, "one")
        await until(lambda: app.texts == ["one"])
        slack.fail("apps.connections.open", CannedAnswer(status=502, body=b"<html>"), times=3)
        slack.drop_sockets()
        await until(lambda: clock.sleeping)
        slack.deliveries.subscribed.clear()
        slack.say(general, ada, "two")
        clock.shift(GAP_SECONDS)
        await passing(clock, lambda: app.texts == ["one", "two"])
    assert slack.calls["conversations.history"] == 1


def test_the_cursor_survives_anything_and_stays_small() -> None:
    assert SlackCursor.read(None) == SlackCursor.read("nonsense") == SlackCursor.read("[]") == SlackCursor()
    reached = SlackCursor()
    for number in range(MOST_CHANNELS * 2):
        where = ConversationKey(platform="slack", account="default", channel=f"C{number:010}")
        reached.note(where, f"17672688{number:02}.000100"[:17])
        reached.note(where, "untold-1")
    assert len(reached.channels) == MOST_CHANNELS
    assert SlackCursor.read(reached.write()) == reached
    assert len(reached.write()) < 10_000


def test_the_newest_message_counts_whatever_comes_later() -> None:
    reached = SlackCursor()
    where = ConversationKey(platform="slack", account="default", channel="C1")
    reached.note(where, "1767268800.000200")
    reached.note(where, "1767268800.000100")
    assert reached.channels == {"C1": "1767268800.000200"}


async def test_a_history_that_fails_is_an_error_that_may_pass(slack: SlackServer, app: App) -> None:
    slack.fail("conversations.history", CannedAnswer(status=500, body=b"?"))
    with pytest.raises(AdapterError):
        await app.adapter.history(place({"id": "C0NOWHERE"}))


async def test_names_are_asked_for_once(slack: SlackServer, app: App) -> None:
    people = [slack.user(f"Person {number}") for number in range(30)]
    general = slack.channel("general", *people)
    async with app.listening():
        for person in people * 2:
            slack.say(general, person, f"I am <@{person['id']}>")
        await until(lambda: len(app.texts) == 60)
        late = slack.user("Latecomer")
        slack.say(general, late, "me too")
        await until(lambda: len(app.texts) == 61)
    assert slack.calls["users.list"] == 1
    assert slack.calls["users.info"] == 1
    assert all(message.author.name != message.author.id for message in app.messages)
