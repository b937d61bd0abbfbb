"""Platform server: what the fake platforms share: a loopback listener, faults, rate limits, a record of calls."""

import asyncio
import math
import socket
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Hashable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from belino.domain.ports import Clock
from belino.net.listener import stop_accepting
from belino.testing.faults import CannedAnswer, Fault, Faults, Hang, Reset, Stall
from belino.testing.file_server import HostedFile, cut, serve_file

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
CLOSING_SECONDS = 1.0

Json = dict[str, Any]

LONGEST_SECONDS = 600.0
"""The longest window that a platform documents: Discord's ban for invalid requests."""
KEPT_CALLS = 1000
CallT = TypeVar("CallT")


class Loopback:
    """Serves an application between `start` and `stop`, with addresses in that time only."""

    def __init__(self, app: "web.Application", *, ports: int = 1, cancels_handlers: bool = False) -> None:
        """`cancels_handlers`: a handler is cancelled when its client disconnects."""
        from aiohttp import web

        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=CLOSING_SECONDS, handler_cancellation=cancels_handlers
        )
        self._ports = ports
        self._listeners: list[socket.socket] = []

    @property
    def urls(self) -> list[str]:
        """`http://127.0.0.1:PORT` for each port."""
        return [f"http://{HOST}:{listener.getsockname()[1]}" for listener in self._listeners]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen."""
        from aiohttp import web

        await self._runner.setup()
        for _ in range(self._ports):
            self._listeners.append(socket.create_server((HOST, 0)))
            await web.SockSite(self._runner, self._listeners[-1]).start()

    async def stop(self) -> None:
        """Close every connection, including one that is being accepted."""
        await stop_accepting(*self._listeners)
        await self._runner.cleanup()
        self._listeners.clear()


class PlatformServer(ABC, Generic[CallT]):
    """Serves inside `async with`; `fail` makes the next calls fail.

    A platform adds its routes and its documented rules. `CallT` is the platform's own type of call.
    """

    platform: ClassVar[str]
    upload_bytes: ClassVar[int]
    """The largest request that is read."""
    ports: ClassVar[int] = 1
    url: str

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: Counter[str] = Counter()
        """How often each call was made, by its documented name; downloads and uploads have names of their own."""
        self.requests: list[CallT] = []
        """The last calls."""
        self.bytes_served = 0
        self.stalled = 0
        """Stalled uploads."""
        self.faults = Faults()
        self._stopped = asyncio.Event()

    @abstractmethod
    def add_routes(self, app: "web.Application") -> None:
        """The paths of the platform."""

    @abstractmethod
    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        """A canned answer without a body of its own, in the platform's error format."""

    async def listening(self, *urls: str) -> None:
        """Called once the server has addresses, one for each port."""
        self.url = urls[0]

    async def closing(self) -> None:
        """Called before the listener stops."""

    def fail(self, name: str, fault: Fault, *, times: int = 1) -> None:
        """The next calls of this name (`*` for any) have this fault."""
        self.faults.add(name, fault, times)

    def heal(self) -> None:
        """Remove pending faults."""
        self.faults.clear()

    @property
    def folder(self) -> Path:
        """The folder of uploads."""
        return Path(self._folder.name)

    async def __aenter__(self) -> Self:
        from aiohttp import web

        self._folder = TemporaryDirectory(prefix=f"belino-{self.platform}-")
        app = web.Application(client_max_size=self.upload_bytes)
        self.add_routes(app)
        self._loopback = Loopback(app, ports=self.ports)
        await self._loopback.start()
        await self.listening(*self._loopback.urls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        await self.closing()
        await self._loopback.stop()
        self._folder.cleanup()

    def record(self, call: CallT) -> None:
        """Record a call for tests."""
        self.requests = [*self.requests[1 - KEPT_CALLS :], call]

    async def misbehave(self, request: "web.Request", fault: Fault | None) -> "web.StreamResponse | None":
        """The answer of a fault that prevents the call's effect; None lets the call through."""
        from aiohttp import web

        if isinstance(fault, Hang):
            if fault.seconds is None:
                await self._stopped.wait()
                cut(request)
            else:
                await self.clock.sleep(fault.seconds)
        elif isinstance(fault, Reset) and not fault.done:
            cut(request)
            return web.Response()
        elif isinstance(fault, CannedAnswer):
            if fault.body is not None:
                return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
            return self.fault_response(fault)
        return None

    async def stall(self, request: "web.Request", fault: Stall) -> None:
        """Read so many bytes of the body, and no more until the server closes."""
        self.stalled += 1
        taken = 0
        while taken < fault.after and (piece := await request.content.readany()):
            taken += len(piece)
        await self._stopped.wait()
        cut(request)

    async def serve(
        self, request: "web.Request", hosted: HostedFile, fault: Fault | None, *, mime: str = "application/octet-stream"
    ) -> "web.StreamResponse":
        """Answer a download, and count its bytes."""
        return await serve_file(request, hosted, fault, self._count, mime=mime)

    def _count(self, number: int) -> None:
        self.bytes_served += number


class SlidingWindow:
    """The times of calls, by key; a key may have several limits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: defaultdict[Hashable, deque[float]] = defaultdict(deque)

    def wait(self, key: Hashable, most: int, seconds: float) -> float:
        """Seconds until another call is within `most` in `seconds`; 0 if it is now."""
        calls, now = self._calls[key], self._clock.monotonic()
        if len(calls) < most or calls[-most] <= now - seconds:
            return 0.0
        return calls[-most] + seconds - now

    def add(self, key: Hashable, calls: int = 1) -> None:
        """Count calls."""
        now, kept = self._clock.monotonic(), self._calls[key]
        while kept and kept[0] <= now - LONGEST_SECONDS:
            kept.popleft()
        kept.extend([now] * calls)


def retry_after(wait: float) -> int:
    """The whole seconds of a Retry-After header: at least one."""
    return max(1, math.ceil(wait))
