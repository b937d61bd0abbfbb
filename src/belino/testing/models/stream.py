"""Server-sent events as scripted: whole, cut off in the middle, or silent until the caller goes away."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from belino.testing.models import ModelCut, ModelHang, ModelReply, ModelServer

if TYPE_CHECKING:
    from aiohttp import web

PIECE = 7


def pieces(text: str) -> Iterator[str]:
    """A text as a model writes it, a little at a time."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def event(data: Mapping[str, Any], *, named: bool = False) -> bytes:
    """One event; some APIs name its type in a line of its own."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


async def stream(
    server: ModelServer,
    request: "web.Request",
    reply: ModelReply,
    said: Iterable[bytes],
    ending: Iterable[bytes],
) -> "web.StreamResponse":
    """Write what was said; then the ending, a broken connection, or nothing for as long as anybody waits."""
    from aiohttp import web

    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    try:
        for line in said:
            await response.write(line)
        if isinstance(reply, ModelHang):
            await server.closing.wait()
        elif not isinstance(reply, ModelCut):
            for line in ending:
                await response.write(line)
    except (ConnectionError, asyncio.CancelledError):
        server.gone.set()
        raise
    if isinstance(reply, ModelCut) and request.transport is not None:
        request.transport.abort()
    return response
