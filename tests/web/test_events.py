"""Which events a socket is sent, and what sending them costs."""

import asyncio
from typing import Any

import pytest

from belino.domain.message import ChatType, ConversationKey
from belino.domain.stored import Grant, GrantKind
from belino.gateway.events import Notice, NoticeKind
from belino.testing import FakeClock
from belino.web import events
from belino.web.auth import Visitor
from belino.web.events import LOST, QUEUED_CHARS, QUEUED_FRAMES, Subscription
from belino.web.wire import message_json

MAIN = "web:default:main"
OTHER = ConversationKey(platform="web", account="default", channel="other")


async def answered(chat: Any) -> dict[str, Any]:
    while True:
        event = await chat.event("message")
        if event["message"]["author"]["is_agent"]:
            return dict(event["message"])


async def both(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)


def conversations_of(chat: Any) -> set[str]:
    return {event["conversation"] for event in chat.events if event["event"] in ("message", "turn", "parcel")}


async def test_a_page_that_follows_one_conversation_gets_its_events_and_an_overview_of_the_rest(site: Any) -> None:
    await both(site)
    async with site.socket(await site.browser()) as page, site.socket() as speaker:
        assert (await page.call("chat.follow", conversations=[str(OTHER)]))["payload"] == {
            "conversations": [str(OTHER)]
        }
        await speaker.call("chat.send", conversation=MAIN, message="hello there")
        reply = await answered(speaker)
        rows: list[dict[str, Any]] = []
        while not any(row["answered"] for row in rows):
            rows += (await page.event("overview"))["conversations"]
        assert {row["conversation"] for row in rows} == {MAIN}
        assert (rows[-1]["last"], rows[-1]["last_text"]) == (reply["sent"], reply["text"][:200])
        assert (rows[-1]["last_author"], rows[-1]["has_media"]) == (reply["author"]["name"], False)
        await page.call("chat.send", conversation=str(OTHER), message="and here")
        await answered(page)
        assert conversations_of(page) == {str(OTHER)}


async def test_the_overview_tells_where_turns_and_parcels_stand(site: Any) -> None:
    await both(site)
    async with site.socket(await site.browser()) as page, site.socket() as speaker:
        await page.call("chat.follow", conversations=[str(OTHER)])
        await speaker.call("chat.send", conversation=MAIN, message="hello there")
        states: dict[int, str] = {}
        parcels: dict[str, str] = {}
        while "answered" not in states.values() or "sent" not in parcels.values():
            told = await page.event("overview")
            states |= {one["turn"]: one["state"] for row in told["conversations"] for one in row["turns"]}
            parcels |= {one["key"]: one["state"] for one in told["parcels"]}
        assert "writing" not in states.values()


async def test_a_token_follows_within_its_own_conversation_and_gets_no_overview(site: Any) -> None:
    await both(site)
    async with site.socket(await site.token(OTHER)) as theirs, site.socket() as speaker:
        assert (await theirs.call("chat.follow", conversations=[MAIN]))["error"]["code"] == "not_found"
        assert (await theirs.call("chat.follow", conversations=[str(OTHER)]))["ok"]
        await speaker.call("chat.follow", conversations=[MAIN])
        await speaker.call("chat.send", conversation=MAIN, message="private")
        await speaker.event("overview")
        await theirs.call("chat.send", conversation=str(OTHER), message="mine")
        await answered(theirs)
        assert {event["event"] for event in theirs.events} <= {"hello", "message", "turn", "parcel"}
        assert conversations_of(theirs) == {str(OTHER)}


@pytest.mark.parametrize("wrong", ["web:default:main", [7], ["nowhere"], [MAIN] * 33])
async def test_what_is_no_list_of_conversations_is_not_followed(site: Any, wrong: object) -> None:
    async with site.socket() as chat:
        assert (await chat.call("chat.follow", conversations=wrong))["error"]["code"] == "bad_request"
        await chat.call("chat.send", conversation=MAIN, message="still heard")
        await answered(chat)


async def test_an_event_is_read_and_encoded_once_for_all_sockets_that_get_it(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    async def counted(store: Any, message: Any) -> Any:
        made.append(f"{message.id} {message.outcome}")
        return await message_json(store, message)

    monkeypatch.setattr("belino.web.events.message_json", counted)
    async with site.socket() as first, site.socket() as second, site.socket(await site.browser()) as third:
        await site.ask("POST", "/api/messages", json={"conversation": MAIN, "message": "hello", "id": "m1"})
        for chat in (first, second, third):
            await answered(chat)
        told = [event for event in first.events if event["event"] == "message"]
        assert len(made) == len(told)


async def test_a_conversation_that_no_socket_follows_is_not_read_for_events(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await both(site)
    published: list[str] = []
    monkeypatch.setattr("belino.web.events.message_json", lambda *_: pytest.fail("an event was made for no socket"))
    with site.gateway.notices.listening(lambda notice: published.append(notice.kind)):
        async with site.socket(await site.token(OTHER)):
            assert site.gateway.notices.watched(OTHER)
            assert not site.gateway.notices.watched(ConversationKey.parse(MAIN))
            await site.ask("POST", "/api/messages", json={"conversation": MAIN, "message": "hello"})
            async with asyncio.timeout(60):
                while "parcel" not in published:
                    await asyncio.sleep(0)
    assert "changed" in published


async def test_open_sockets_do_not_read_their_login_again(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    check = site.gateway.store.check

    async def counted(secret: str) -> Grant | None:
        read.append(secret)
        grant: Grant | None = await check(secret)
        return grant

    monkeypatch.setattr(site.gateway.store, "check", counted)
    browser = await site.browser()
    async with site.socket(browser), site.socket(browser) as chat:
        for _ in range(3):
            await chat.call("chat.send", conversation=MAIN, message="hello")
            await answered(chat)
        assert (await site.ask("GET", "/api/me", headers=browser))[0] == 200
    assert len(read) == 1


async def test_a_change_in_more_conversations_than_an_overview_lists_makes_pages_reload(site: Any) -> None:
    collected = events.Overview(site.gateway.store, FakeClock(), pages=lambda: 1)
    for number in range(events.MOST_CHANGES + 1):
        key = ConversationKey(platform="web", account="default", channel=str(number))
        collected.note(Notice(kind=NoticeKind.CHANGED, conversation=key))
    assert (await collected.take())["event"] == "lost"
    assert await collected.take() == {"type": "event", "event": "overview", "conversations": [], "parcels": []}


@pytest.mark.parametrize(("pages", "seconds"), [(1, 1), (200, 4)])
async def test_with_many_pages_an_overview_is_sent_less_often(site: Any, pages: int, seconds: int) -> None:
    clock = FakeClock()
    collected = events.Overview(site.gateway.store, clock, pages=lambda: pages)
    waiting = asyncio.create_task(collected.settled())
    collected.note(Notice(kind=NoticeKind.CHANGED, conversation=OTHER))
    await clock.advance(seconds - 0.5)
    assert not waiting.done()
    await clock.advance(1)
    assert waiting.done()


def subscription() -> Subscription:
    clock = FakeClock()
    grant = Grant(id="g", kind=GrantKind.PROGRAM, conversation=None, note="", created=clock.now(), expires=None)
    return Subscription(Visitor(grant=grant, secret="s"))


async def test_a_socket_too_far_behind_loses_its_queue_and_is_told_so() -> None:
    behind = subscription()
    for number in range(QUEUED_FRAMES + 1):
        behind.put(str(number))
    assert [await behind.next(), await behind.next()] == [LOST, str(QUEUED_FRAMES)]


async def test_a_socket_does_not_hold_more_characters_than_it_may() -> None:
    behind = subscription()
    large = "x" * (QUEUED_CHARS // 4)
    for _ in range(6):
        behind.put(large)
    assert await behind.next() == LOST
    assert await behind.next() == large
