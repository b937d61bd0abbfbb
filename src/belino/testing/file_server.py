"""The platform's file server: links that expire, ranges, and every way a download goes wrong."""

import asyncio
import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from belino.testing.faults import Changed, Endless, Fault, NoLength, Trickle, Truncate, WrongLength
from belino.testing.telegram.shapes import HostedFile

if TYPE_CHECKING:
    from aiohttp import web

LINK_SECONDS = 3600
CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


async def serve_file(
    request: "web.Request",
    stored: HostedFile,
    fault: Fault | None,
    count: Callable[[int], None],
    *,
    mime: str = "application/octet-stream",
) -> "web.StreamResponse":
    """Answer one download; `count` is told of every byte that leaves."""
    content = await _content(stored)
    if isinstance(fault, Changed):
        content = fault.content
    etag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    start, stop = _asked(request, len(content), etag)
    if start is None:
        return _response(request, 416, {"Content-Range": f"bytes */{len(content)}"})
    part = content[start:stop]
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "Content-Type": mime}
    if "Range" in request.headers and (start, stop) != (0, len(content)):
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
    partial = "Content-Range" in headers
    response = _response(request, 206 if partial else 200, headers)
    if isinstance(fault, WrongLength):
        return await _lie(request, part, fault.length, count)
    if not isinstance(fault, NoLength | Endless):
        response.content_length = len(part)
    await response.prepare(request)
    await _write(request, response, part, fault, count)
    return response


async def _content(stored: HostedFile) -> bytes:
    made = stored.upload.content
    return made if isinstance(made, bytes) else await asyncio.to_thread(made)


def _asked(request: "web.Request", size: int, etag: str) -> tuple[int | None, int]:
    """The first byte and the one after the last; None where the range begins behind the end."""
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or request.headers.get("If-Range", etag) != etag:
        return 0, size
    start = int(found[1])
    stop = min(int(found[2]) + 1, size) if found[2] else size
    return (None, 0) if start >= size else (start, stop)


def _response(request: "web.Request", status: int, headers: dict[str, str]) -> "web.StreamResponse":
    from aiohttp import web

    return web.StreamResponse(status=status, headers=headers)


async def _write(
    request: "web.Request",
    response: "web.StreamResponse",
    part: bytes,
    fault: Fault | None,
    count: Callable[[int], None],
) -> None:
    stop = fault.at if isinstance(fault, Truncate) else fault.after if isinstance(fault, Trickle) else len(part)
    for at in range(0, min(stop, len(part)), CHUNK):
        piece = part[at : min(at + CHUNK, stop)]
        await response.write(piece)
        count(len(piece))
    if isinstance(fault, Truncate):
        cut(request)
    elif isinstance(fault, Trickle):
        await asyncio.Event().wait()
    while isinstance(fault, Endless):
        await response.write(b"\0" * CHUNK)
        count(CHUNK)
    await response.write_eof()


async def _lie(request: "web.Request", part: bytes, length: int, count: Callable[[int], None]) -> "web.StreamResponse":
    """Written by hand: no HTTP library lets one lie about the length."""
    transport = request.transport
    assert transport is not None
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    transport.write(head.encode() + part)
    count(len(part))
    transport.close()
    return _response(request, 200, {})


def cut(request: "web.Request") -> None:
    """Break the connection off."""
    if request.transport is not None:
        request.transport.abort()
