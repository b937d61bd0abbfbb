"""A large body that leaves aiohttp's way: whole, in order, and as careful of its errors as before."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import aiohttp
import aiohttp.web
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from belino.domain.errors import AdapterError, Unanswered, Unreached
from belino.net.client import Client
from belino.net.connect import DIRECT_BUFFER, DIRECT_FROM_BYTES, direct_body
from belino.net.guard import Guard
from belino.net.stream import range_headers, resumed
from belino.testing import FakeClock
from belino.testing.chaos import Act, chaos, ranges, says, stalls, whole
from belino.testing.platform_server import Loopback

BODY = bytes(range(256)) * (3 * DIRECT_FROM_BYTES // 256) + b"the end"
PATIENCE_SECONDS = 60.0

Loop = Callable[[], asyncio.AbstractEventLoop]


class Hurried(FakeClock):
    """Sleeps at once."""

    async def sleep(self, seconds: float) -> None:
        self.shift(seconds)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made = Client(guard=Guard(["127.0.0.0/8"]))
    yield made
    await made.close()


async def chunks_of(client: Client, act: Act, *, timeout: float = 10.0) -> bytes:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        chaos(act) as server,
        client.request("GET", server.url, timeout=timeout) as answer,
    ):
        return b"".join([chunk async for chunk in answer.chunks()])


def run(main: Coroutine[None, None, None], loop: Loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main)


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server and a client need for a name of their own."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "line")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem: Path = tmp_path_factory.mktemp("tls") / "line.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


@pytest.mark.parametrize("is_sealed", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_every_byte_comes_in_its_order_over_every_kind_of_connection(
    loop: Loop, is_sealed: bool, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        for start in range(0, len(BODY), 300_000):
            writer.write(BODY[start : start + 300_000])
            await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def main() -> None:
        server_side, client_side = contexts
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side if is_sealed else None)
        port = server.sockets[0].getsockname()[1]
        url = f"{'https' if is_sealed else 'http'}://localhost:{port}/"
        connector = aiohttp.TCPConnector(family=socket.AF_INET, ssl=client_side)
        async with asyncio.timeout(PATIENCE_SECONDS), server, aiohttp.ClientSession(connector=connector) as session:
            response = await session.get(url)
            direct = direct_body(response)
            assert direct is not None
            found, longest, size = sha256(), 0, 0
            while piece := await direct.read():
                found.update(piece)
                longest, size = max(longest, len(piece)), size + len(piece)
            response.close()
        assert (size, found.digest()) == (len(BODY), sha256(BODY).digest())
        assert longest <= DIRECT_BUFFER

    run(main(), loop)


async def test_a_certificate_that_is_not_trusted_is_told_in_words(
    client: Client, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=contexts[0]) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/bot1:secret"
        with pytest.raises(Unreached) as caught:
            async with client.request("GET", url, timeout=PATIENCE_SECONDS):
                pass
    assert str(caught.value) == "a GET did not reach the platform: its certificate is not trusted here"


async def test_a_client_hands_a_large_body_out_whole(client: Client) -> None:
    assert await chunks_of(client, whole(BODY)) == BODY


async def test_what_follows_a_body_is_not_of_it(client: Client) -> None:
    assert await chunks_of(client, says(200, {"Content-Length": str(len(BODY))}, BODY, b"HTTP/1.1 200 OK")) == BODY


async def test_a_reader_that_takes_its_time_misses_nothing(client: Client) -> None:
    found = []
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        chaos(whole(BODY)) as server,
        client.request("GET", server.url) as answer,
    ):
        async for chunk in answer.chunks():
            found.append(chunk)
            for _ in range(50):
                await asyncio.sleep(0)
    assert b"".join(found) == BODY


async def test_a_large_body_that_breaks_off_is_an_error(client: Client) -> None:
    with pytest.raises(Unanswered, match="a GET to the platform failed: ClientPayloadError"):
        await chunks_of(client, says(200, {"Content-Length": str(len(BODY) + 1)}, BODY))


async def test_a_large_body_that_stalls_is_given_up(client: Client) -> None:
    with pytest.raises(Unanswered, match=r"did not answer a GET within 0\.2 seconds"):
        await chunks_of(client, stalls(BODY, length=len(BODY) + 1), timeout=0.2)


async def test_a_large_body_that_breaks_off_goes_on_where_it_broke(client: Client) -> None:
    half, tag = len(BODY) // 2, '"v1"'
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with chaos(ranges(BODY, tag=tag, breaks_after=half), ranges(BODY, tag=tag)) as server:
            body = resumed(
                lambda offset, validator: client.request("GET", server.url, headers=range_headers(offset, validator)),
                clock=Hurried(),
            )
            assert b"".join([chunk async for chunk in body]) == BODY
    assert server.asked[1].headers["range"] == f"bytes={half}-"


async def test_who_leaves_a_large_body_in_its_middle_can_ask_for_another(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), chaos(whole(BODY), whole(BODY)) as server:
        async with client.request("GET", server.url) as answer:
            assert await anext(answer.chunks())
        async with client.request("GET", server.url) as answer:
            assert b"".join([chunk async for chunk in answer.chunks()]) == BODY


@pytest.mark.parametrize("size", [0, 1, DIRECT_FROM_BYTES // 2])
async def test_a_small_body_leaves_its_connection_to_the_next(client: Client, size: int) -> None:
    seen: list[object] = []

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.Response:
        seen.append(request.transport)
        return aiohttp.web.Response(body=BODY[:size])

    app = aiohttp.web.Application()
    app.router.add_get("/", answer)
    async with Loopback(app) as server, asyncio.timeout(2 * PATIENCE_SECONDS):
        for _ in range(2):
            async with client.request("GET", server.urls[0]) as got:
                assert b"".join([chunk async for chunk in got.chunks()]) == BODY[:size]
    assert seen[0] is seen[1]


async def test_an_error_of_a_large_body_does_not_show_its_address(client: Client) -> None:
    with pytest.raises(AdapterError) as caught:
        await chunks_of(client, says(200, {"Content-Length": str(len(BODY) + 1)}, BODY))
    assert "127.0.0.1" not in str(caught.value)
