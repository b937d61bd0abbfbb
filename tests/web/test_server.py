"""The server: its socket, its signals, and the file that says where it is."""

import asyncio
import io
import json
import os
import signal
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from belino.config import Config
from belino.domain.errors import ConfigError
from belino.domain.stored import Grant, GrantKind
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing.agent_contract import NoTools
from belino.web.api import web_conversation
from belino.web.connections import ANONYMOUS_MOST
from belino.web.server import serve


async def test_run_json_is_ours_alone_and_gone_after_a_clean_stop(run_site: Any) -> None:
    async with run_site() as site:
        path = site.gateway.home.run_file
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        run = json.loads(path.read_text())
        assert set(run) == {"url", "token", "pid", "version", "started"}
        assert (run["url"], run["pid"]) == (site.url, os.getpid())
    assert not path.exists()
    assert not path.with_suffix(".tmp").exists()


async def test_only_loopback_is_listened_on(site: Any) -> None:
    assert site.url.startswith("http://127.0.0.1:")
    inodes = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listening = [line.split()[1] for line in inodes if line.split()[3] == "0A"]
    ours = [address for address in listening if int(address.partition(":")[2], 16) == site.port]
    assert ours == [f"0100007F:{site.port:04X}"]


async def test_a_port_that_is_taken_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = Config()
        config = replace(config, server=replace(config.server, port=taken.getsockname()[1]))
        home = Home.at(tmp_path / "home")
        async with Gateway(config, home) as gateway:
            with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1 port"):
                await serve(gateway, ready=lambda _url: None)
        assert not home.run_file.exists()


async def test_the_tools_of_a_turn_have_an_address_before_the_first_turn_of_a_start(tmp_path: Path) -> None:
    config = Config()
    config = replace(config, server=replace(config.server, port=0))
    async with Gateway(config, Home.at(tmp_path / "home")) as gateway, asyncio.TaskGroup() as group:
        page = group.create_task(serve(gateway, ready=lambda _url: None))
        await asyncio.sleep(0)
        with gateway.turn_tools.open(web_conversation("main"), NoTools()) as address:
            assert address is not None
        page.cancel()


async def test_a_certificate_that_is_not_one_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    config = Config()
    config = replace(config, server=replace(config.server, port=0, tls_cert=broken, tls_key=broken))
    async with Gateway(config, Home.at(tmp_path / "home")) as gateway:
        with pytest.raises(ConfigError, match="tls_cert"):
            await serve(gateway, ready=lambda _url: None)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate for 127.0.0.1 that nobody else vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    cert, secret = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pem, format_ = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(pem, format_, plain))
    return cert, secret


async def test_under_tls_the_address_is_https_and_the_cookie_secure(run_site: Any, tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    config = Config()
    async with run_site(replace(config, server=replace(config.server, tls_cert=cert, tls_key=key))) as site:
        assert site.login_url.startswith("https://127.0.0.1:")
        body = {"token": site.login_url.partition("#token=")[2]}
        plain = {"Origin": site.url.replace("https", "http")}
        assert (await site.ask("POST", "/api/login", headers=plain, json=body, ssl=False))[0] == 403
        status, _, headers = await site.ask("POST", "/api/login", headers={"Origin": site.url}, json=body, ssl=False)
        assert status == 200
        assert "Secure" in headers["Set-Cookie"]


async def test_signals_stay_with_whoever_started_the_gateway(run_site: Any) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with run_site() as site:
        assert (await site.ask("GET", "/healthz", headers={}))[0] == 200
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_the_programs_token_does_not_outlive_its_gateway(run_site: Any) -> None:
    async with run_site() as first:
        old = first.program
    async with run_site() as second:
        assert (await second.ask("GET", "/api/me", headers=old))[0] == 401
        assert (await second.ask("GET", "/api/me"))[0] == 200
        kinds = [grant.kind for grant in await second.gateway.store.grants()]
        assert kinds.count(GrantKind.PROGRAM) == 1


async def test_a_stop_is_clean_although_pages_are_open(run_site: Any) -> None:
    async with run_site() as site:
        socket_ = await site.http.ws_connect(f"{site.url}/ws", headers=site.program)
        async with asyncio.timeout(60):
            assert "hello" in (await socket_.receive()).data
    assert not site.gateway.home.run_file.exists()


async def test_the_first_conversation_is_there_from_the_start_and_stays(run_site: Any) -> None:
    for _ in range(2):
        async with run_site() as site:
            _, listed, _ = await site.ask("GET", "/api/conversations")
            assert [found["conversation"] for found in listed["conversations"]] == ["web:default:main"]


async def test_a_head_without_end_is_cut_off(site: Any) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n".encode())
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(60):
            while True:
                writer.write(b"X-Filler: " + b"x" * 16_384 + b"\r\n")
                await writer.drain()
    assert (await site.ask("GET", "/healthz", headers={}))[0] == 200
    writer.close()


def too_long(host: str, kind: str) -> bytes:
    """A whole request with 70 000 bytes of headers, in one piece."""
    filler = {
        "one header": "X-Filler: " + "x" * 70_000 + "\r\n",
        "many headers": "".join(f"X-Filler-{number}: {'x' * 80}\r\n" for number in range(1_000)),
        "names": "".join(f"{'x' * 990}{number}: \r\n" for number in range(70)),
    }
    path = f"/healthz?{'x' * 70_000}" if kind == "address" else "/healthz"
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{filler.get(kind, '')}\r\n".encode()


@pytest.mark.parametrize("kind", ["one header", "many headers", "names", "address"])
@pytest.mark.parametrize("pieces", [1, 3, 50])
async def test_headers_over_64_kib_are_refused_however_they_arrive(site: Any, kind: str, pieces: int) -> None:
    request = too_long(site.host, kind)
    size = -(-len(request) // pieces)
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for start in range(0, len(request), size):
        writer.write(request[start : start + size])
        with suppress(ConnectionError):
            await writer.drain()
    with suppress(ConnectionError):
        answer = await asyncio.wait_for(reader.read(), 60)
        assert not answer or answer.startswith(b"HTTP/1.1 431 ")
    writer.transport.abort()


async def test_headers_over_64_kib_in_one_packet_are_told_so_in_json(site: Any) -> None:
    head, _, body = (await site.raw(too_long(site.host, "one header"))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and b"connection: close" in head
    assert json.loads(body)["error"] == {"code": "too_large", "message": "The request's headers are over 65536 bytes."}


async def test_a_second_request_is_held_to_the_same_limit_of_headers(site: Any) -> None:
    small = f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode()
    assert b" 200 OK" not in (await site.raw(small + too_long(site.host, "many headers"))).partition(b"431")[2]
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    async with asyncio.timeout(60):
        writer.write(small)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        writer.write(too_long(site.host, "one header"))
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
    writer.close()


async def test_trailers_and_extensions_of_a_chunked_body_count_as_headers(site: Any) -> None:
    head = f"POST /api/login HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\n"
    start = f"{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n".encode()
    for endless in (b"0\r\nX-Filler: ", b"1;"):
        _, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(start + endless)
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(60):
                while True:
                    writer.write(b"x" * 16_384)
                    await writer.drain()
        writer.close()


async def test_headers_just_under_the_limit_are_read(site: Any) -> None:
    filler = "X-Filler: " + "x" * 65_000
    answer = await site.raw(
        f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n{filler}\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_what_is_not_http_is_refused_in_json(site: Any) -> None:
    head, _, body = (await site.raw(b"nonsense\r\n\r\n")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "bad_request"


async def slow_clients(site: Any, request: bytes, count: int) -> list[asyncio.StreamWriter]:
    """Connections that have sent this much and send no more."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(request)
        writers.append(writer)
    return writers


def abort(writers: Iterable[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.transport.abort()


async def test_who_is_dropped_for_others_is_told_so_in_json(site: Any) -> None:
    request = f"POST /api/login HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\n"
    request += "Content-Length: 500\r\n\r\n{"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(request.encode())
    others = await slow_clients(site, request.encode(), ANONYMOUS_MOST)
    async with asyncio.timeout(60):
        answer = await reader.read()
    abort([writer, *others])
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 503 ", b"HTTP/1.1 408 "))
    assert json.loads(body)["error"]["code"] in ("busy", "bad_request")


async def test_a_client_whose_token_is_being_checked_is_not_dropped_for_others(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = site.gateway.store
    _, token = await store.grant(GrantKind.PROGRAM)
    check, checking, go_on = store.check, asyncio.Event(), asyncio.Event()

    async def slowly(secret: str) -> Grant | None:
        if secret == token:
            checking.set()
            await go_on.wait()
        found: Grant | None = await check(secret)
        return found

    monkeypatch.setattr(store, "check", slowly)
    head = f"HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(f"POST /api/logins {head}Authorization: Bearer {token}\r\nContent-Length: 2\r\n\r\n".encode())
    async with asyncio.timeout(60):
        await checking.wait()
        others = await slow_clients(
            site, f"POST /api/login {head}Content-Length: 500\r\n\r\n{{".encode(), ANONYMOUS_MOST
        )
        assert (await site.raw(f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())).startswith(
            b"HTTP/1.1 200"
        )
        go_on.set()
        writer.write(b"{}")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    abort([writer, *others])


async def test_an_early_answer_to_a_stranger_closes_the_connection(site: Any) -> None:
    body = b"POST /api/messages HTTP/1.1\r\nHost: %b\r\nContent-Length: 500\r\n\r\nx" % site.host.encode()
    answer = await site.raw(body)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer


async def test_handshakes_that_never_end_leave_room_for_others(run_site: Any, tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    config = Config()
    async with run_site(replace(config, server=replace(config.server, tls_cert=cert, tls_key=key))) as site:
        reader, first = await asyncio.open_connection("127.0.0.1", site.port)
        first.write(b"\x16")
        slow = [first, *await slow_clients(site, b"\x16", ANONYMOUS_MOST + 50)]
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        for _ in range(3):
            assert (await site.ask("GET", "/healthz", headers={}, ssl=False))[0] == 200
        abort(slow)
        body = io.BytesIO(b"x" * 300_000)
        assert (await site.ask("POST", "/api/login", headers={}, data=body, ssl=False))[0] == 415
        async with site.http.ws_connect(f"{site.url}/ws", headers=site.program, ssl=False) as socket_:
            assert "hello" in (await socket_.receive_str())


async def test_a_message_during_a_stop_is_refused_at_once(site: Any) -> None:
    site.gateway.stop()
    status = 200
    while status == 200:
        message = {"conversation": "web:default:main", "message": "hi"}
        status, said, headers = await site.ask("POST", "/api/messages", json=message)
    assert (status, said["error"]["code"], headers["Retry-After"]) == (503, "busy", "1")
    assert "stopping" in said["error"]["message"]


async def test_a_stop_closes_open_pages_with_a_code_that_says_come_again(run_site: Any) -> None:
    async with aiohttp.ClientSession() as http:
        async with run_site() as site:
            page = await http.ws_connect(f"{site.url}/ws", headers=site.program)
            assert "hello" in (await page.receive_str())
        async with asyncio.timeout(60):
            closed = await page.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.SERVICE_RESTART)


async def test_requests_that_a_stop_cuts_off_are_told_so_in_json(
    run_site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_site() as site:
        secret = site.program["Authorization"]
        head = f"Host: {site.host}\r\nAuthorization: {secret}\r\nContent-Type: application/json\r\n"
        half = f"POST /api/messages HTTP/1.1\r\n{head}Content-Length: 500\r\n\r\n{{"
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(half.encode())
        assert (await site.ask("GET", "/api/me"))[0] == 200
    async with asyncio.timeout(60):
        start, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert start.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["error"]["code"] == "busy"
    assert not [record for record in caplog.records if record.exc_info]
