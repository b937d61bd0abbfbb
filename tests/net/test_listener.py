"""A loopback server leaves no connection behind, however late it was opened."""

import asyncio
import socket
from contextlib import suppress

import pytest
from aiohttp import ClientSession, web

from belino.testing.platform_server import HOST, Loopback


def application() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=str(request.url.port))

    app = web.Application()
    app.router.add_get("/", answer)
    return app


async def test_it_answers_on_every_port() -> None:
    async with Loopback(application(), ports=2) as server, ClientSession() as session:
        for url in server.urls:
            async with session.get(url) as response:
                assert url.endswith(await response.text())


@pytest.mark.parametrize("steps", range(5))
async def test_a_connection_that_is_accepted_at_the_very_end_is_closed(steps: int) -> None:
    with socket.socket() as late:
        async with Loopback(application()) as server:
            late.connect((HOST, int(server.urls[0].rpartition(":")[2])))
            for _ in range(steps):
                await asyncio.sleep(0)
        late.settimeout(5)
        with suppress(ConnectionResetError):  # it was never accepted
            assert late.recv(1) == b""
