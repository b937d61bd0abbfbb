"""The server: its socket, its signals, and the file that says where it is."""

import asyncio
import json
import os
import signal
import socket
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from belino.config import Config
from belino.domain.errors import ConfigError
from belino.domain.record import GrantKind
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
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
