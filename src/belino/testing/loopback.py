"""Loopback server: an aiohttp application on free ports of this machine, for the platforms that tests talk to."""

import socket
from types import TracebackType
from typing import TYPE_CHECKING, Self

from belino.net.listener import stop_accepting

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
CLOSING_SECONDS = 1.0


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
