"""Slack as other people write it: less is said than Slack says, and things happen that its own servers seldom do."""

from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from adapters.harness import until
from adapters.slack_stranger import BOT_TOKEN, visiting
from belino.domain.errors import AddressRefused, MediaRefused, Unanswered, Unauthorized, Undeliverable
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel
from belino.net.clock import SystemClock

REF = MediaRef(
    platform="slack", account="default", channel_id="C0GENERAL1", message_id="1700000000.000100", item="F0BOAT0001",
    kind=MediaKind.IMAGE, mime="image/png", created=datetime(2026, 1, 2, tzinfo=UTC), locator={"file": "F0BOAT0001"},
)  # fmt: skip


def envelope(text: str, *, number: int = 1) -> dict[str, Any]:
    event = {"type": "message", "channel": "D0DIRECT01", "user": "U0ADA00001", "ts": f"170000000{number}.000100"}
    payload = {"type": "event_callback", "event": {**event, "text": text}}
    return {"type": "events_api", "envelope_id": f"e{number}", "payload": payload}


async def test_a_line_that_begins_without_hello_is_heard_from_its_first_word() -> None:
    async with visiting() as (stranger, guest):

        async def speak(socket: web.WebSocketResponse) -> None:
            await socket.send_json(envelope("good morning"))

        stranger.socket = speak
        async with guest.listening():
            await until(lambda: stranger.acks)
        assert guest.texts == ["good morning"]
        assert stranger.acks == [{"envelope_id": "e1"}]


async def test_a_line_that_is_refused_with_its_first_word_is_no_line() -> None:
    async with visiting() as (stranger, guest):
        refused = iter([True])

        async def speak(socket: web.WebSocketResponse) -> None:
            too_many = next(refused, False)
            await socket.send_json(
                {"type": "disconnect", "reason": "too_many_websockets"} if too_many else {"type": "hello"}
            )

        stranger.socket = speak
        async with guest.listening():
            await until(lambda: stranger.calls["apps.connections.open"] == 2 and stranger.sockets)
            await stranger.tell(envelope("hi"))
            await until(lambda: guest.texts == ["hi"])


async def test_a_line_elsewhere_is_refused_with_the_key_that_names_it() -> None:
    async with visiting() as (stranger, guest), visiting() as (other, _):
        stranger.lines = other.url
        with pytest.raises(AddressRefused, match="socket_url"):
            await guest.adapter.run(guest.accept, None)
        assert other.sockets == []


async def test_a_server_on_this_machine_may_call_itself_by_its_other_name() -> None:
    async with visiting() as (stranger, guest):
        stranger.lines = stranger.url.replace("127.0.0.1", "localhost")
        async with guest.listening():
            await until(lambda: stranger.sockets)


async def test_lines_that_slack_wants_replaced_and_does_not_end_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belino.adapters.slack.socket.REPLACED_SECONDS", 0.05)
    async with visiting() as (stranger, guest), guest.listening():
        for number in range(1, 4):
            await until(lambda count=number: stranger.calls["apps.connections.open"] == count)  # type: ignore[misc]
            await until(lambda: len(stranger.sockets) == 1)
            await stranger.tell(envelope(f"message {number}", number=number))
            await until(lambda count=number: len(guest.texts) == count)  # type: ignore[misc]
            await stranger.tell({"type": "disconnect", "reason": "refresh_requested"})
        await until(lambda: stranger.calls["apps.connections.open"] == 4 and len(stranger.sockets) == 1)


async def test_nonsense_over_a_line_ends_nothing() -> None:
    async with visiting() as (stranger, guest), guest.listening():
        await until(lambda: stranger.sockets)
        socket = stranger.sockets[0]
        for nonsense in ("", "null", "[]", "{", '"hello"', '{"type": 5}', '{"type": "new_thing", "envelope_id": "n"}'):
            await socket.send_str(nonsense)
        await socket.send_bytes(b"\x00\xff")
        await socket.send_str('{"type": "events_api", "envelope_id": "p", "payload": null}')
        await stranger.tell(envelope("still here"))
        await until(lambda: len(stranger.acks) == 3)
        assert [ack["envelope_id"] for ack in stranger.acks] == ["n", "p", "e1"]
        assert guest.texts == ["still here"]


async def test_colleagues_of_an_organisations_app_are_no_strangers_and_others_are() -> None:
    async with visiting() as (stranger, guest):
        whole = "E0GRID0001"
        stranger.answers["auth.test"] = {"user_id": "U0BELINO01", "team_id": whole, "enterprise_id": whole}
        async with guest.listening():
            await until(lambda: stranger.sockets)
            for number, team in enumerate(("T0WORK0002", "T0FARAWAY1"), 1):
                told = envelope("hi", number=number)
                told["payload"] |= {"context_team_id": "T0WORK0002", "authorizations": [{"team_id": "T0WORK0002"}]}
                told["payload"]["event"]["user_team"] = team
                await stranger.tell(told)
            await until(lambda: len(guest.texts) == 2)
        authors = [arrival.author for arrival in guest.arrivals]
        assert [author.id for author in authors if author] == ["U0ADA00001", "U0ADA00001@T0FARAWAY1"]


async def test_a_server_that_takes_questions_only_as_they_are_documented_is_asked_that_way() -> None:
    async with visiting() as (stranger, guest):
        stranger.only_get = {"conversations.history"}
        message = {"type": "message", "user": "U0ADA00001", "text": "long ago", "ts": "1700000000.000100"}
        stranger.answers["conversations.history"] = {"messages": [message]}
        where = ConversationKey(platform="slack", account="default", channel="C0GENERAL1")
        assert [message.text for message in await guest.adapter.history(where, limit=5)] == ["long ago"]
        assert stranger.asked["conversations.history"] == {"channel": "C0GENERAL1", "limit": "5"}


async def test_a_message_that_was_taken_without_an_id_is_not_sent_again() -> None:
    async with visiting() as (stranger, guest):
        stranger.answers["chat.postMessage"] = {}
        where = ConversationKey(platform="slack", account="default", channel="C0GENERAL1")
        receipt = await guest.adapter.send(Parcel(key="k-1", conversation=where, text="hi"))
        assert receipt.message_id == "untold-k-1"


async def test_a_link_with_a_space_in_it_is_a_link() -> None:
    async with visiting() as (stranger, guest):

        async def picture(request: web.Request) -> web.Response:
            return web.Response(body=request.path.encode(), content_type="image/png")

        stranger.page = picture
        link = f"{stranger.url}/files-pri/T-F/our boat.png"
        stranger.answers["files.info"] = {"file": {"id": "F0BOAT0001", "url_private": link}}
        async with guest.adapter.open_media(REF) as chunks:
            assert b"".join([chunk async for chunk in chunks]) == b"/files-pri/T-F/our boat.png"
        assert stranger.headers[0]["Authorization"] == f"Bearer {BOT_TOKEN}"


async def test_a_redirect_to_somebody_else_tells_nobody_the_token() -> None:
    async with visiting() as (stranger, guest), visiting() as (other, _):

        async def elsewhere(request: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": f"{other.url}/files-pri/T-F/boat.png"})

        stranger.page = elsewhere
        link = f"{stranger.url}/files-pri/T-F/boat.png"
        stranger.answers["files.info"] = {"file": {"id": "F0BOAT0001", "url_private": link}}
        with pytest.raises(AddressRefused):
            async with guest.adapter.open_media(REF) as chunks:
                await anext(chunks)
        assert other.headers == []


async def test_socket_mode_that_is_off_is_found_also_where_only_the_line_tells() -> None:
    async with visiting() as (stranger, guest):

        async def off(socket: web.WebSocketResponse) -> None:
            await socket.send_json({"type": "disconnect", "reason": "link_disabled"})

        assert all(finding.ok for finding in await guest.adapter.check())
        stranger.socket = off
        found, *_ = await guest.adapter.check()
        assert not found.ok
        assert "Enable Socket Mode" in found.cure


async def test_who_listens_is_checked_without_another_line() -> None:
    async with visiting() as (stranger, guest), guest.listening():
        await until(lambda: stranger.sockets)
        assert all(finding.ok for finding in await guest.adapter.check())
        assert (stranger.opened, stranger.calls["apps.connections.open"]) == (1, 2)


async def test_what_slack_held_back_is_asked_for() -> None:
    async with visiting() as (stranger, guest), guest.listening():
        await until(lambda: stranger.sockets)
        now = SystemClock().now().timestamp()
        heard = envelope("one")
        heard["payload"]["event"]["ts"] = f"{now - 9:.6f}"
        await stranger.tell(heard)
        await until(lambda: guest.texts == ["one"])
        left_out = {**heard["payload"]["event"], "text": "two", "ts": f"{now - 8:.6f}"}
        stranger.answers["conversations.history"] = {"messages": [left_out]}
        limited = {"type": "app_rate_limited", "minute_rate_limited": int(now), "team_id": "T0WORK0001"}
        await stranger.tell({"type": "events_api", "envelope_id": "e2", "payload": limited})
        await until(lambda: guest.texts == ["one", "two"])


@pytest.mark.parametrize(
    ("error", "kind"),
    [("ekm_access_denied", Undeliverable), ("org_login_required", Unanswered), ("token_expired", Unauthorized)],
)
async def test_what_administrators_suspend_or_move_is_no_matter_of_the_token(error: str, kind: type[Exception]) -> None:
    async with visiting() as (stranger, guest):
        stranger.answers["chat.postMessage"] = {"ok": False, "error": error}
        where = ConversationKey(platform="slack", account="default", channel="C0GENERAL1")
        with pytest.raises(kind):
            await guest.adapter.send(Parcel(key="k-1", conversation=where, text="hi"))


@pytest.mark.parametrize(
    "told",
    [
        {"ok": False, "error": "access_denied"},
        {"file": {"id": "F0BOAT0001", "file_access": "access_denied"}},
        {"file": {"id": "F0BOAT0001", "file_access": "slack_connect_file_upload_sharing_blocked"}},
    ],
    ids=["refused", "denied", "blocked"],
)
async def test_a_file_that_slack_does_not_show_the_app_is_not_to_be_sent_again(told: dict[str, Any]) -> None:
    async with visiting() as (stranger, guest):
        stranger.answers["files.info"] = told
        with pytest.raises(MediaRefused, match="invite it there"):
            async with guest.adapter.open_media(REF):
                pass
