"""Socket Mode of the Slack we test against: what is not acknowledged comes again, and every way a connection ends."""

import asyncio

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import settle
from belino.testing.slack import SlackServer
from testing.slack_app import LIMIT, Listener, Told, clock_of, connected, listening, refused, until, web_client


@pytest.fixture
def app(server: SlackServer) -> AsyncWebClient:
    return web_client(server, server.app_token)


async def link(app: AsyncWebClient) -> str:
    return str((await app.apps_connections_open(app_token=app.token or ""))["url"])


async def test_a_link_opens_one_connection_which_is_greeted(server: SlackServer, app: AsyncWebClient) -> None:
    where = await link(app)
    async with aiohttp.ClientSession() as session:
        async with asyncio.timeout(LIMIT), session.ws_connect(where) as one:
            hello = await one.receive_json()
            assert (hello["type"], hello["num_connections"]) == ("hello", 1)
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(where)
            async with session.ws_connect(await link(app) + "&debug_reconnects=true") as two:
                hello = await two.receive_json()
                assert hello["num_connections"] == 2
                assert hello["debug_info"]["approximate_connection_time"] == 360
        late = await link(app)
        clock_of(server).shift(31)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(late)


async def test_an_event_that_nobody_acknowledges_comes_three_times_more(server: SlackServer) -> None:
    ana, clock = server.user("Ana Lima"), clock_of(server)
    async with listening(server) as listener:
        listener.silent = True
        server.say(ana, ana, "hello?")
        for count, pause in enumerate((0.0, 60.0, 300.0, 0.0), 1):
            await listener.wait(count)
            await until(lambda: clock.sleeping)
            await clock.advance(3.0)
            await clock.advance(pause)
        await until(lambda: server.deliveries.lost)
    attempts = [(request.retry_attempt, request.retry_reason) for request in listener.heard]
    assert attempts == [(0, ""), (1, "timeout"), (2, "timeout"), (3, "timeout")]
    assert len({request.payload["event_id"] for request in listener.heard}) == 1
    assert len({request.envelope_id for request in listener.heard}) == 4


async def test_what_is_acknowledged_comes_once_and_late_words_count_for_nothing(server: SlackServer) -> None:
    ana, clock = server.user("Ana Lima"), clock_of(server)
    async with listening(server) as listener:
        server.say(ana, ana, "one")
        await listener.wait(1)
        await until(lambda: server.deliveries.acknowledged)
        await clock.advance(600)
        assert len(server.socket_mode.envelopes) == 1
        await listener.client.send_message('{"envelope_id": "never sent"}')
        await until(lambda: server.socket_mode.strays)
    assert server.deliveries.lost == []


async def test_what_was_said_while_the_line_was_broken_comes_when_it_is_tried_again(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with listening(server) as listener:
        server.drop_sockets()
        await until(lambda: not server.socket_mode.connections)
        server.say(ana, ana, "into the dark")
        await settle()
        assert server.deliveries.acknowledged == []
        await connected(server, 2)
        await clock_of(server).advance(60)
        (event,) = await listener.wait(1)
    assert event["text"] == "into the dark"
    assert listener.heard[0].retry_attempt == 2


async def test_a_warning_leaves_the_connection_and_a_refresh_ends_it(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with listening(server) as listener:
        await server.disconnect("refresh_requested")
        await connected(server, 2)
        server.say(ana, ana, "on the new line")
        (event,) = await listener.wait(1)
        assert event["text"] == "on the new line"


async def test_a_warning_is_told_before_anything_ends(server: SlackServer, app: AsyncWebClient) -> None:
    ana = server.user("Ana Lima")
    async with (
        asyncio.timeout(LIMIT),
        aiohttp.ClientSession() as session,
        session.ws_connect(await link(app)) as socket,
    ):
        await socket.receive_json()
        await server.disconnect("warning")
        assert (await socket.receive_json())["reason"] == "warning"
        server.say(ana, ana, "still here")
        assert (await socket.receive_json())["payload"]["event"]["text"] == "still here"
        await server.disconnect("link_disabled")
        assert (await socket.receive_json())["reason"] == "link_disabled"
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    assert (await refused(app.apps_connections_open(app_token=server.app_token)))["error"] == "forbidden_team"


async def test_with_two_connections_each_event_comes_to_one_of_them(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with listening(server) as one, listening(server) as two:
        await connected(server, 2)
        for number in range(6):
            server.say(ana, ana, str(number))
        await until(lambda: len(one.heard) + len(two.heard) == 6)
        await until(lambda: len(server.deliveries.acknowledged) == 6)
    assert {event["text"] for event in one.events} | {event["text"] for event in two.events} == set("012345")
    assert one.heard
    assert two.heard


async def test_an_eleventh_connection_is_one_too_many(server: SlackServer, app: AsyncWebClient) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        sockets = [await session.ws_connect(await link(app)) for _ in range(10)]
        last = await session.ws_connect(await link(app))
        assert (await last.receive_json())["reason"] == "too_many_websockets"
        for socket in (*sockets, last):
            await socket.close()


async def test_the_library_notices_a_connection_that_is_dead_although_it_is_open(server: SlackServer) -> None:
    async with listening(server):
        server.socket_mode.frozen = True
        await until(lambda: server.socket_mode.opened > 1)


async def test_a_slash_command_is_answered_with_its_acknowledgement(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    async with listening(server) as listener:
        server.command(general, ana, "/belino", "status")
        await listener.wait(1)
        await until(lambda: server.deliveries.acknowledged)
        (request,) = listener.heard
        assert (request.type, request.accepts_response_payload) == ("slash_commands", True)
        assert (request.payload["command"], request.payload["text"]) == ("/belino", "status")
        async with aiohttp.ClientSession() as session:
            await session.post(request.payload["response_url"], json={"text": "all is well"})
    assert [answer["text"] for answer in server.command_answers] == ["all is well"]


async def test_an_app_hears_only_what_it_subscribed_to_may_read_and_is_there_for(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    general, away = server.channel("general", ana), server.channel("away", ana, member=False)
    async with listening(server) as listener:
        server.say(away, ana, "behind closed doors")
        server.scopes.discard("channels:history")
        server.say(general, ana, "unread")
        server.scopes.add("channels:history")
        server.deliveries.subscribed.discard("message.channels")
        server.say(general, ana, "unheard")
        server.say(ana, ana, "heard")
        (event,) = await listener.wait(1)
        await settle()
        assert (len(listener.heard), event["text"], event["channel_type"]) == (1, "heard", "im")


async def events_of(listener: Listener, count: int) -> list[Told]:
    return [{**event, "event_ts": ""} for event in await listener.wait(count)]


async def test_changes_deletions_and_reactions_are_told_as_such(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    async with listening(server) as listener:
        said = server.say(general, ana, "frist <https://example.org>")
        server.unfurl(said, {"title": "An example", "from_url": "https://example.org"})
        server.edit(said, "first")
        server.react(said, ana, "tada")
        server.react(said, ana, "tada", remove=True)
        reply = server.say(general, ana, "aside", thread=said)
        server.delete(said)
        server.delete(reply)
        heard = await events_of(listener, 8)
    kinds = [event.get("subtype", event["type"]) for event in heard]
    changes = ["message_changed", "message_changed", "reaction_added", "reaction_removed"]
    assert kinds == ["message", *changes, "message", "message_changed", "message_deleted"]
    unfurled, edited, tombstone = (heard[at]["message"] for at in (1, 2, 6))
    assert "edited" not in unfurled
    assert (edited["text"], edited["edited"]["user"]) == ("first", ana["id"])
    assert heard[2]["previous_message"]["text"].startswith("frist")
    assert (tombstone["subtype"], tombstone["user"]) == ("tombstone", "USLACKBOT")
    assert heard[7]["deleted_ts"] == reply["ts"]
    assert heard[3]["item"] == {"type": "message", "channel": general["id"], "ts": said["ts"]}


async def test_a_forwarded_message_brings_its_author_its_words_and_its_files(server: SlackServer) -> None:
    ana, bo = server.user("Ana Lima"), server.user("Bo Berg")
    general = server.channel("general", ana, bo)
    said = server.say(general, bo, "our boat", files=[b"bytes"])
    forwarded = server.say(ana, ana, "what is it?", share=said)
    (shared,) = forwarded["attachments"]
    assert (shared["is_share"], shared["author_id"], shared["text"]) == (True, bo["id"], "our boat")
    assert shared["files"] == said["files"]
