"""A server of one's own on this machine, which answers as each test says."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SECRET = "a-secret-of-the-test-0123456789"
Answers = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class OwnServer:
    """What it was asked, and where it is."""

    answers: Answers
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        if request.method == "OPTIONS":
            return web.Response(status=204)
        self.bodies.append(await request.read())
        self.headers.append(dict(request.headers))
        self.asked.append(await request.json())
        return await self.answers(request, self.asked[-1])


@asynccontextmanager
async def own_server(answers: Answers) -> AsyncIterator[OwnServer]:
    server = OwnServer(answers)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/turn", server._take)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/turn"
    try:
        yield server
    finally:
        await runner.cleanup()
