"""Clients that have not logged in hold half-open requests by the thousand: everybody else is still answered."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from belino.adapters.telegram import SECRET_HEADER
from belino.testing import GatewayProcess, SlackServer, TelegramServer
from faults.looking import SOAK, until

HALF_OPEN = 5_000
PER_PROGRAM = 900
"""Few enough for the usual limit of 1 024 open files."""
SLOW_CALLS = 40
AGAIN_SECONDS = 1.0 if SOAK else 5.0
"""How long an attacker waits before a dropped connection is opened again."""
ROUNDS = 20 if SOAK else 3
SECRET = "canary-hook-secret"
UPDATE = Path(__file__).parent.parent / "samples" / "telegram" / "text.json"


def half_open(gateway: GatewayProcess, path: str, **headers: str) -> bytes:
    """A request whose body ends after its first byte."""
    lines = {"Host": urlsplit(gateway.url).netloc, "Content-Type": "application/json", "Content-Length": "500"}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **headers}.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n{{".encode()


@contextmanager
def flood(gateway: GatewayProcess, requests: list[tuple[int, bytes]]) -> Iterator[None]:
    """Hold each request open as often as asked for, until the block is left."""
    port, programs = str(urlsplit(gateway.url).port), []
    for count, request in requests:
        for size in (min(PER_PROGRAM, count - start) for start in range(0, count, PER_PROGRAM)):
            program = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("flood.py")), port, str(size), str(AGAIN_SECONDS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            programs.append(program)
            assert program.stdin is not None
            program.stdin.write(request)
            program.stdin.close()
    try:
        for program in programs:
            assert program.stdout is not None
            assert program.stdout.readline() == b"open\n"
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
            assert program.stdout is not None
            program.stdout.close()


def prepare(home: Path, telegram: TelegramServer, slack: SlackServer) -> dict[str, str]:
    """A configuration that both platforms call, all limits left as they are; the secrets it names."""
    adapters = {
        "telegram": {
            "token": "env:BELINO_TEST_TOKEN",
            "api_url": telegram.url,
            "mode": "webhook",
            "webhook_secret": "env:BELINO_TEST_HOOK",
        },
        "slack": {
            "bot_token": "env:BELINO_TEST_BOT",
            "signing_secret": "env:BELINO_TEST_SIGNING",
            "api_url": slack.api_url,
            "mode": "http",
        },
    }
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps({"adapters": adapters}), encoding="utf-8")
    return {
        "BELINO_TEST_TOKEN": telegram.token,
        "BELINO_TEST_HOOK": SECRET,
        "BELINO_TEST_BOT": slack.bot_token,
        "BELINO_TEST_SIGNING": slack.signing_secret,
    }


class Clients:
    """Those who have a right to an answer."""

    def __init__(self, gateway: GatewayProcess, http: aiohttp.ClientSession) -> None:
        self._gateway = gateway
        self._http = http
        self._bearer = {"Authorization": f"Bearer {gateway.token}"}

    async def status(self, method: str, path: str, **more: Any) -> int:
        """The status of a request on a connection of its own."""
        async with self._http.request(method, self._gateway.url + path, **more) as answer:
            await answer.read()
            return answer.status

    async def log_in(self) -> int:
        made = await asyncio.to_thread(self._gateway.call, "POST", "/api/logins", {})
        token = made[1]["url"].partition("#token=")[2]
        return await self.status("POST", "/api/login", json={"token": token})

    async def open_page(self) -> list[int]:
        return [await self.status("GET", path) for path in ("/", "/static/main.js", "/healthz")]

    async def use_api(self) -> int:
        return await self.status("GET", "/api/me", headers=self._bearer)

    async def call_as_telegram(self, number: int) -> int:
        update = {**json.loads(UPDATE.read_text(encoding="utf-8")), "update_id": number}
        return await self.status("POST", "/hooks/telegram/default", json=update, headers={SECRET_HEADER: SECRET})

    async def open_socket(self) -> "Page":
        socket = await self._http.ws_connect(f"{self._gateway.url}/ws", headers=self._bearer)
        assert "hello" in (await socket.receive_str())
        return Page(socket)


def are_running(gateway: GatewayProcess) -> bool:
    """Whether both platforms have let their adapters in: before that, a webhook gets 503."""
    adapters = gateway.call("GET", "/api/status")[1]["adapters"]
    return [adapter["state"] for adapter in adapters] == ["running"] * 3


class Page:
    """An open page: it always reads its socket, as a browser does, and so answers the server's pings."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    async def asks(self, number: int) -> bool:
        """Whether a request is answered."""
        request = {"conversation": "web:default:main"}
        await self._socket.send_json({"type": "req", "id": number, "method": "chat.history", "params": request})
        answer = await self._answers.get()
        return bool(answer["ok"]) and answer["id"] == number

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._socket.close()

    async def _read(self) -> None:
        async for frame in self._socket:
            answer = frame.json()
            if answer["type"] == "res":
                self._answers.put_nowait(answer)


@pytest.mark.slow
async def test_half_open_logins_and_slow_webhooks_keep_no_one_else_from_an_answer(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, SlackServer() as slack:
        environment = prepare(tmp_path / "home", telegram, slack)
        # The usual limit, which also is the hardest: each connection takes a descriptor.
        gateway = GatewayProcess(tmp_path / "home", environment=environment, open_files=1_024)
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as http:
            try:
                await asyncio.to_thread(gateway.start)
                clients = Clients(gateway, http)
                await asyncio.to_thread(until, lambda: are_running(gateway), "the adapters do not run")
                page = await clients.open_socket()
                stamp = str(int(slack.clock.now().timestamp()))
                forged = {"X-Slack-Signature": "v0=" + "0" * 64, "X-Slack-Request-Timestamp": stamp}
                attack = [
                    (HALF_OPEN, half_open(gateway, "/api/login")),
                    (SLOW_CALLS, half_open(gateway, "/hooks/telegram/default")),
                    (SLOW_CALLS, half_open(gateway, "/hooks/slack/default", **forged)),
                ]
                with flood(gateway, attack):
                    for number in range(ROUNDS):
                        assert await clients.log_in() == 200
                        assert await clients.open_page() == [200, 200, 200]
                        assert await clients.use_api() == 200
                        assert await clients.call_as_telegram(1_000 + number) == 200
                        assert await slack.use_http(f"{gateway.url}/hooks/slack/default")
                        assert await page.asks(number)
                        other = await clients.open_socket()
                        assert await other.asks(number)
                        await other.close()
                await page.close()
                assert await asyncio.to_thread(gateway.stop) == 0
            finally:
                await asyncio.to_thread(gateway.kill)
        assert "Traceback" not in gateway.log()
