"""What watchers are told."""

import asyncio

from belino.domain.message import ConversationKey
from belino.gateway.events import QUEUE, EventBus, Notice, NoticeKind, TurnNotice

WHERE = ConversationKey(platform="memory", account="default", channel="c")


async def test_every_watcher_is_told_what_happens_while_it_watches() -> None:
    notices = EventBus()
    notices.turn(WHERE, 1, "note", "nobody listens")
    async with asyncio.timeout(60), notices.subscribe() as first, notices.subscribe() as second:
        notices.turn(WHERE, 2, "note", "looking")
        for watcher in (first, second):
            told = await anext(watcher)
            assert told.payload == TurnNotice(turn=2, state="note", text="looking")
    assert not notices.watched()


async def test_a_watcher_that_falls_behind_is_told_that_it_lost_something_and_goes_on() -> None:
    notices = EventBus()
    async with asyncio.timeout(60), notices.subscribe() as watcher:
        for number in range(QUEUE + 1):
            notices.turn(WHERE, number, "note")
        assert await anext(watcher) == Notice(kind=NoticeKind.LOST)
        last = await anext(watcher)
        assert last.payload == TurnNotice(turn=QUEUE, state="note")


async def test_a_notice_reaches_only_those_who_follow_its_conversation() -> None:
    notices = EventBus()
    other = ConversationKey(platform="memory", account="default", channel="other")
    heard: list[NoticeKind] = []
    async with asyncio.timeout(60), notices.subscribe(lambda one: one == other) as elsewhere:
        with notices.listening(lambda notice: heard.append(notice.kind)):
            notices.turn(WHERE, 1, "note")
            notices.changed(WHERE)
            notices.turn(other, 2, "note")
        assert (notices.watched(WHERE), notices.watched(other)) == (False, True)
        assert (await anext(elsewhere)).payload == TurnNotice(turn=2, state="note")
        notices.lost()
        assert (await anext(elsewhere)).kind is NoticeKind.LOST
    assert heard == [NoticeKind.TURN, NoticeKind.CHANGED, NoticeKind.TURN]
