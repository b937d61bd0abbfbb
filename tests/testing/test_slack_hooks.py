"""Events over HTTP from the Slack we test against: signed, tried again, given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from belino.testing.platform_server import Loopback
from belino.testing.slack import SlackServer
from testing.slack_app import clock_of, until


class Receiver:
    """An app's own server: it says what it is told to say."""

    def __init__(self, server: SlackServer) -> None:
        self.calls: list[tuple[bytes, dict[str, str]]] = []
        self.statuses: list[int] = []
        """What to answer next; 200 when there is nothing more."""
        self.headers: dict[str, str] = {}
        self.repeats = True
        self.held = asyncio.Event()
        self.held.set()
        self.url = ""
        self._verifier = SignatureVerifier(server.signing_secret)

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.calls.append((body, dict(request.headers)))
        stamp = request.headers["X-Slack-Request-Timestamp"]
        signed = self._verifier.generate_signature(timestamp=stamp, body=body)
        assert request.headers["X-Slack-Signature"] == signed
        if request.content_type == "application/json" and (await request.json())["type"] == "url_verification":
            challenge = (await request.json())["challenge"]
            return web.json_response({"challenge": challenge if self.repeats else "no"})
        await self.held.wait()
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers=self.headers)


@asynccontextmanager
async def receiving(server: SlackServer) -> AsyncIterator[Receiver]:
    receiver = Receiver(server)
    app = web.Application()
    app.router.add_post("/events", receiver.take)
    async with Loopback(app) as loopback:
        receiver.url = f"{loopback.urls[0]}/events"
        yield receiver


async def test_an_address_is_used_once_it_repeats_the_challenge(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        receiver.repeats = False
        assert not await server.use_http(receiver.url)
        receiver.repeats = True
        assert await server.use_http(receiver.url)
        server.say(ana, ana, "hello")
        await until(lambda: server.deliveries.acknowledged)
    body, headers = receiver.calls[-1]
    assert b'"text": "hello"' in body
    assert "X-Slack-Retry-Num" not in headers


async def test_an_event_is_sent_again_with_its_number_and_the_reason(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        await server.use_http(receiver.url)
        receiver.statuses = [500, 404]
        server.say(ana, ana, "hello")
        await until(lambda: len(server.hooks.attempts) == 2)
        await until(lambda: clock_of(server).sleeping)
        await clock_of(server).advance(60)
        await until(lambda: server.deliveries.acknowledged)
    assert server.hooks.attempts == [(0, 500), (1, 404), (2, 200)]
    retries = [headers["X-Slack-Retry-Num"] for _, headers in receiver.calls[2:]]
    assert retries == ["1", "2"]
    assert receiver.calls[-1][1]["X-Slack-Retry-Reason"] == "http_error"


async def test_an_app_may_say_that_it_wants_nothing_again(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        await server.use_http(receiver.url)
        receiver.statuses, receiver.headers = [500], {"X-Slack-No-Retry": "1"}
        server.say(ana, ana, "hello")
        await until(lambda: server.deliveries.lost)
    assert server.hooks.attempts == [(0, 500)]


async def test_an_answer_after_three_seconds_is_none(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        await server.use_http(receiver.url)
        receiver.held.clear()
        server.say(ana, ana, "hello")
        await until(lambda: len(receiver.calls) == 2)
        await clock_of(server).advance(3)
        receiver.held.set()
        await until(lambda: server.deliveries.acknowledged)
    assert server.hooks.attempts == [(0, 0), (1, 200)]
    assert receiver.calls[-1][1]["X-Slack-Retry-Reason"] == "http_timeout"


async def test_a_slash_command_comes_as_a_form_and_never_twice(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        await server.use_http(receiver.url)
        receiver.statuses = [500]
        server.command(ana, ana, "/belino", "a & b")
        await until(lambda: server.deliveries.lost)
    fields = parse_qs(receiver.calls[-1][0].decode())
    assert (fields["command"], fields["text"]) == (["/belino"], ["a & b"])
    assert len(server.hooks.attempts) == 1


async def test_an_old_call_bears_an_old_stamp(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    async with receiving(server) as receiver:
        await server.use_http(receiver.url)
        server.hooks.skew = -600
        server.say(ana, ana, "hello")
        await until(lambda: server.deliveries.acknowledged)
    stamp = int(receiver.calls[-1][1]["X-Slack-Request-Timestamp"])
    assert stamp == int(server.clock.now().timestamp()) - 600
