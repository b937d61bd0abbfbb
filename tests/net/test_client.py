"""The HTTP client against a real server on loopback."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import ClientWebSocketResponse, web

from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaTooLarge,
    RateLimited,
    Unanswered,
    Unauthorized,
    Unreached,
)
from belino.net.client import DEFAULT_RETRY_AFTER, LONGEST_WAIT, Client, error_for, retry_after
from belino.net.guard import Guard
from belino.testing.chaos import ChaosRequest, chaos
from belino.testing.platform_server import Loopback

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
CANARY = "canary-in-the-path"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[str]]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made = Client(guard=Guard(["127.0.0.0/8"]))
    yield made
    await made.close()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as opened:

        async def start(answer: Answer) -> str:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", answer)
            return (await opened.enter_async_context(Loopback(app))).urls[0]

        yield start


async def test_a_request_carries_its_json_and_asks_for_nothing_compressed(client: Client, serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        seen = {
            "encoding": request.headers["Accept-Encoding"],
            "type": request.content_type,
            "sent": await request.json(),
        }
        return web.json_response(seen)

    async with client.request("POST", await serve(answer), json={"text": "grüße"}) as got:
        assert got.status == 200
        seen = json.loads(await got.read(1000))
    assert seen == {"encoding": "identity", "type": "application/json", "sent": {"text": "grüße"}}


async def test_proxies_of_the_environment_are_not_believed(
    client: Client, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="direct")

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with client.request("GET", await serve(answer)) as got:
        assert await got.read(10) == b"direct"


async def test_a_body_can_be_sent_and_received_in_pieces(client: Client, serve: Serve) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for piece in request.content.iter_any():
            await response.write(piece)
        return response

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(10):
            yield bytes([number]) * 100_000

    async with client.request("PUT", await serve(answer), body=pieces()) as got:
        received = [piece async for piece in got.chunks()]
    assert len(received) > 1
    assert b"".join(received) == b"".join([piece async for piece in pieces()])


async def test_a_read_stops_at_its_limit(client: Client, serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 101)

    url = await serve(answer)
    async with client.request("GET", url) as got:
        with pytest.raises(MediaTooLarge, match="over 100 bytes"):
            await got.read(100)
    async with client.request("GET", url) as got:
        assert len(await got.read(101)) == 101


async def test_a_compressed_bomb_is_not_unpacked(client: Client, serve: Serve) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with client.request("GET", await serve(answer)) as got:
        assert await got.read(100_000) == bomb


async def test_a_get_follows_a_redirect_without_handing_its_credentials_on(client: Client, serve: Serve) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("Authorization", "nothing"))

    target = await serve(elsewhere)

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound(target)

    async with client.request("GET", await serve(redirect), headers={"Authorization": "Bearer x"}) as got:
        assert await got.read(100) == b"nothing"


async def test_a_post_is_never_said_again_to_somebody_else(client: Client, serve: Serve) -> None:
    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/")

    async with client.request("POST", await serve(redirect), body=b"secret") as got:
        assert got.status == 307


async def test_a_platform_that_is_not_there_is_an_error_without_its_address(client: Client) -> None:
    with pytest.raises(AdapterError) as caught:
        async with client.request("GET", f"http://127.0.0.1:9/{CANARY}"):
            pass
    assert CANARY not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_a_platform_that_never_answers_is_given_up(client: Client, serve: Serve) -> None:
    async def silence(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(60):
        with pytest.raises(AdapterError, match=r"did not answer a GET within 0\.05 seconds"):
            async with client.request("GET", await serve(silence), timeout=0.05):
                pass


async def test_a_body_that_breaks_off_is_an_error(client: Client, serve: Serve) -> None:
    async def breaks(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    url = await serve(breaks)
    async with client.request("GET", url) as got:
        with pytest.raises(AdapterError, match="failed: "):
            await got.read(1000)
    async with client.request("GET", url) as got:
        with pytest.raises(AdapterError, match="failed: "):
            async for _ in got.chunks():
                pass


async def test_an_address_that_is_none_is_an_error_that_does_not_show_it(client: Client) -> None:
    with pytest.raises(AdapterError) as caught:
        async with client.request("GET", f"nonsense:{CANARY}"):
            pass
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("status", [200, 204, 302, 304])
def test_a_good_status_is_no_error(status: int) -> None:
    assert error_for(status, {}) is None


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "7"}, 7),
        (429, {"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT"}, 30),
        (429, {}, DEFAULT_RETRY_AFTER),
        (429, {"Retry-After": "soon"}, DEFAULT_RETRY_AFTER),
        (503, {"Retry-After": "2"}, 2),
    ],
)
def test_a_wish_to_wait_is_rate_limited(status: int, headers: dict[str, str], wait: float) -> None:
    error = error_for(status, headers, now=NOW)
    assert isinstance(error, RateLimited)
    assert error.retry_after == wait


def test_401_is_unauthorized_and_the_rest_may_be_tried_again() -> None:
    assert isinstance(error_for(401, {}), Unauthorized)
    for status in (400, 403, 404, 500, 503):
        assert type(error_for(status, {})) is AdapterError


async def test_it_is_told_whether_the_platform_may_have_done_what_it_was_asked_for(client: Client) -> None:
    async def hang_up(_asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def never(_asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with chaos(hang_up, never) as server:
        url = server.url
        for timeout in (30.0, 0.05):
            with pytest.raises(Unanswered):
                async with client.request("POST", url, json={}, timeout=timeout):
                    pass
        assert len(server.asked) == 2
    with pytest.raises(Unreached, match="a POST did not reach the platform: connection refused"):
        async with client.request("POST", url, json={}):
            pass


async def test_a_web_socket_goes_where_a_request_may_go_and_says_no_goodbye(client: Client, serve: Serve) -> None:
    ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{message.data} to you")
        ended.set_result(socket.close_code)
        return socket

    url = (await serve(answer)).replace("http://", "ws://")
    async with asyncio.timeout(60), client.socket(url) as opened:
        assert isinstance(opened, ClientWebSocketResponse)
        await opened.send_str("hello")
        assert await opened.receive_str() == "hello to you"
    # 1000 would be a goodbye, after which a platform forgets what we have not heard.
    assert await asyncio.wait_for(ended, 60) == 4000


@pytest.mark.parametrize("url", ["ws://10.0.0.1/", "wss://169.254.169.254/", "ftp://example.org/", "ws://a@b/"])
async def test_a_web_socket_is_refused_where_a_request_is(url: str) -> None:
    with pytest.raises(AddressRefused):
        async with Client().socket(url):
            pass


async def test_a_web_socket_that_answers_no_ping_has_ended(client: Client, serve: Serve) -> None:
    async def deaf(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket

    url = (await serve(deaf)).replace("http", "ws", 1)
    async with asyncio.timeout(60), client.socket(url, heartbeat=0.05) as opened:
        assert isinstance(opened, ClientWebSocketResponse)
        assert isinstance((await opened.receive()).data, TimeoutError)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("99999999", LONGEST_WAIT),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-AFTER": value}, now=NOW) == seconds


@pytest.mark.parametrize("ahead", [-3600, 0, 90, 86_400])
def test_a_date_to_wait_for_is_a_date_of_the_platforms_clock(ahead: int) -> None:
    theirs = NOW + timedelta(seconds=ahead)
    dates = {"Date": theirs, "Retry-After": theirs + timedelta(seconds=30)}
    headers = {name: format_datetime(date, usegmt=True) for name, date in dates.items()}
    assert retry_after(headers, now=NOW) == 30


def test_a_missing_header_asks_for_nothing() -> None:
    assert retry_after({"Date": "7"}, now=NOW) is None


async def test_a_client_that_retires_ends_when_its_requests_have_and_can_still_be_used(
    client: Client, serve: Serve
) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        arrived.set()
        await go_on.wait()
        return web.Response(text="done")

    async def ask() -> bytes:
        async with client.request("GET", url) as response:
            return await response.read(100)

    url = await serve(answer)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(ask())
        await arrived.wait()
        retired = group.create_task(client.retire())
        await asyncio.sleep(0)
        assert not retired.done()
        go_on.set()
        assert await asked == b"done"
        await retired
    assert client._sessions == {}
    assert await ask() == b"done"
