"""Chaos server: a loopback server with scripted faults of HTTP, and a canary that counts connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from belino.net.listener import stop_accepting

PIECE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosRequest:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """Names in lower case."""


Act = Callable[[ChaosRequest, asyncio.StreamWriter], Awaitable[None]]
"""Writes any bytes; then the connection is closed."""


class ChaosServer:
    """Answers each request with the next act of its script; the last one is repeated."""

    def __init__(self, *script: Act) -> None:
        self.script = list(script)
        self.asked: list[ChaosRequest] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = line.split(" ", 2)
            headers = {
                name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines if text)
            }
            self.asked.append(ChaosRequest(method=method, target=target, headers=headers))
            act = self.script[min(len(self.asked), len(self.script)) - 1]
            await act(self.asked[-1], writer)


@asynccontextmanager
async def chaos(*script: Act, host: str = "127.0.0.1") -> AsyncIterator[ChaosServer]:
    """A server that plays this script inside the block."""
    server = ChaosServer(*script)
    async with _listening(server.answer, host) as port:
        server.url = f"http://{host}:{port}"
        yield server


class Canary:
    """A listener that no connection may reach."""

    def __init__(self) -> None:
        self.touched = 0
        self.port = 0

    async def count(self, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        """Count one more."""
        self.touched += 1


@asynccontextmanager
async def canary(host: str = "127.0.0.1") -> AsyncIterator[Canary]:
    """A canary at this address, on a free port."""
    bird = Canary()
    async with _listening(bird.count, host) as bird.port:
        yield bird


def says(status: int, headers: Mapping[str, str] | None = None, *pieces: bytes) -> Act:
    """Exactly these headers and bytes, whether or not they are consistent."""

    async def act(_asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(status, headers or {}))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return act


def whole(body: bytes, headers: Mapping[str, str] | None = None) -> Act:
    """A correct answer."""
    return says(200, {"Content-Length": str(len(body)), **(headers or {})}, body)


def endless(piece: bytes = b"\0" * PIECE) -> Act:
    """A body without a length and without an end."""

    async def act(_asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, {}))
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return act


def stalls(body: bytes, *, length: int) -> Act:
    """Some bytes of many, then silence until the client disconnects."""

    async def act(_asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, {"Content-Length": str(length)}) + body)
        await writer.drain()
        await asyncio.Event().wait()

    return act


def ranges(body: bytes, *, tag: str, breaks_after: int | None = None) -> Act:
    """A file served from any offset if the request has its tag; it may break off."""

    async def act(asked: ChaosRequest, writer: asyncio.StreamWriter) -> None:
        start = 0
        if asked.headers.get("if-range") == tag:
            start = int(asked.headers["range"].removeprefix("bytes=").removesuffix("-"))
        headers = {"ETag": tag, "Accept-Ranges": "bytes", "Content-Length": str(len(body) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        end = None if breaks_after is None else start + breaks_after
        writer.write(_head(206 if start else 200, headers) + body[start:end])

    return act


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@asynccontextmanager
async def _listening(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], host: str
) -> AsyncIterator[int]:
    running: set[asyncio.Task[None]] = set()

    async def owned(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await answer(reader, writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        finally:
            writer.transport.abort()
            running.discard(task)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    server = await asyncio.start_server(owned, sock=listener)
    try:
        yield listener.getsockname()[1]
    finally:
        await stop_accepting(listener)
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
