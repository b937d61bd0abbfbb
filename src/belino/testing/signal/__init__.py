"""Signal server: a signal-cli daemon on loopback that follows its documented protocol, for tests and benchmarks.

Facts are from the man pages signal-cli(1) and signal-cli-jsonrpc(5) and from the classes of its JSON.
"""

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import CannedAnswer, Reset, Stall, Truncate
from belino.testing.file_server import cut
from belino.testing.platform_server import PlatformServer
from belino.testing.signal.calls import MOST_PER_MINUTE, SignalCalls
from belino.testing.signal.request import SignalCall, SignalRefusal, read_call
from belino.testing.signal.world import NUMBER, SignalWorld, first_of

if TYPE_CHECKING:
    from aiohttp import web

KEEP_ALIVE_SECONDS = 15.0
EVENTS = "events"
"""The key of a fault for the next stream of events."""
CHECK, UPLOAD = "check", "upload"
LARGE_BYTES = 1024 * 1024
"""What a call is longer than to count as an upload, for faults."""
_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class SignalServer(SignalWorld, PlatformServer[SignalCall]):
    """A fake daemon: inside `async with`, an account is configured with `url`.

    People act through the methods of SignalWorld; `calls` counts the methods. With `receives_always` it runs with
    `--receive-mode on-start`, and what comes while no stream is open is lost, as with the real one.
    """

    platform = "signal"
    upload_bytes = 300 * 1024 * 1024

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        number: str = NUMBER,
        single: bool = False,
        linked: bool = True,
        receives_always: bool = False,
        per_minute: int = MOST_PER_MINUTE,
    ) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        SignalWorld.__init__(self, self.clock, number=number)
        self.answers = SignalCalls(self, self.clock, single=single, linked=linked, per_minute=per_minute)
        self.streams = 0
        """Open streams of events."""
        self.handed_out = 0
        self._receives_always = receives_always
        self._single = single
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()
        self.news = self._arrived

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_route("*", "/api/v1/rpc", self._take_call)
        app.router.add_route("*", "/api/v1/events", self._take_stream)
        app.router.add_route("*", "/api/v1/check", self._take_check)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        self.answers.data_folder = self.folder

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        from aiohttp import web

        return web.Response(status=fault.status, headers=fault.headers)

    def scan(self) -> None:
        """The person scans the code with the phone."""
        self.answers.scanned.set()

    def drop_streams(self) -> None:
        """Every stream of events breaks off."""
        self._ended.set()
        self._ended = asyncio.Event()

    def _arrived(self) -> None:
        if self._receives_always and not self.streams:
            self.waiting.clear()
        self._woken.set()

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if (status := self._refused(request)) is not None:
            return web.Response(status=status)
        is_large = (request.content_length or 0) > LARGE_BYTES
        if is_large and isinstance(fault := self.faults.take(UPLOAD), Stall):
            await self.stall(request, fault)
        try:
            call = read_call(await request.read())
        except SignalRefusal as error:
            return web.json_response({"jsonrpc": "2.0", "error": error.error(), "id": None})
        fault = self.faults.take(call.method)
        self.calls[call.method] += 1
        self.record(call)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        told: dict[str, Any] = {"jsonrpc": "2.0"}
        try:
            told["result"] = await self.answers.answer(call)
        except SignalRefusal as error:
            told["error"] = error.error()
        if isinstance(fault, Reset):
            cut(request)
        body = json.dumps({**told, "id": call.id}).encode()
        if call.method in ("getAttachment", "getSticker"):
            self.bytes_served += len(body)
        if isinstance(fault, Truncate):
            return await self._broken_off(request, body, fault.at)
        return web.Response(body=body, content_type="application/json")

    def _refused(self, request: "web.Request") -> int | None:
        if not self._knows_host(request):
            return 421
        if request.method != "POST":
            return 405
        return None if request.headers.get("Content-Type", "").startswith("application/json") else 415

    async def _broken_off(self, request: "web.Request", body: bytes, at: int) -> "web.StreamResponse":
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(body[:at])
        cut(request)
        return response

    async def _take_check(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[CHECK] += 1
        if (answered := await self.misbehave(request, self.faults.take(CHECK))) is not None:
            return answered
        return web.Response(status=200 if request.method == "GET" else 405)

    async def _take_stream(self, request: "web.Request") -> "web.StreamResponse":
        """Hand out events while the stream is open; nothing says whether the other side read them."""
        from aiohttp import web

        if not self._knows_host(request):
            return web.Response(status=421)
        self.calls[EVENTS] += 1
        if (answered := await self.misbehave(request, self.faults.take(EVENTS))) is not None:
            return answered
        account = request.query.get("account")
        known = self._single or (self.answers.linked and account in (None, self.number, self.me["uuid"]))
        if not known:
            return web.Response(status=400)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.streams += 1
        try:
            await self._hand_out(response, self._ended)
        finally:
            self.streams -= 1
        cut(request)
        return response

    async def _hand_out(self, response: "web.StreamResponse", ended: asyncio.Event) -> None:
        with suppress(ConnectionError):
            while not ended.is_set() and not self._stopped.is_set():
                while self.waiting and not ended.is_set():
                    told = json.dumps(self.waiting[0], ensure_ascii=False)
                    await response.write(f"event:receive\ndata:{told}\n\n".encode())
                    self.waiting.popleft()
                    self.handed_out += 1
                self._woken.clear()
                await self._next(ended)
                if not self.waiting and not ended.is_set():
                    await response.write(b":\n")

    async def _next(self, ended: asyncio.Event) -> None:
        """Wait for an event, the end of the stream, or the time of a comment that keeps it alive."""
        sleep = self.clock.sleep(KEEP_ALIVE_SECONDS)
        await first_of(self._woken.wait(), ended.wait(), self._stopped.wait(), sleep)

    def _knows_host(self, request: "web.Request") -> bool:
        """The daemon answers only under the names of this machine."""
        host, _, port = request.headers.get("Host", "").rpartition(":")
        return host in _HOSTS and port == str(urlsplit(self.url).port)
