"""A SOCKS5 and HTTP proxy on loopback, which notes where its tunnels lead."""

import asyncio
import socket
from base64 import b64decode
from contextlib import suppress
from types import TracebackType
from typing import Self


class LoopbackProxy:
    """Speaks both protocols on one port, with or without a login; leads every tunnel to where it is asked to."""

    def __init__(self, *, login: str | None = None, refuses: int = 0) -> None:
        self.asked: list[tuple[str, int]] = []
        """The hosts as the client wrote them."""
        self._login = login
        self._refuses = refuses
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(asyncio.IncompleteReadError, OSError):
                first = await reader.readexactly(1)
                place = await (self._socks(reader, writer) if first == b"\x05" else self._http(reader, writer))
                if place is not None:
                    await self._lead(place, reader, writer)
        finally:
            await _close(writer)

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        wanted = 0 if self._login is None else 2
        writer.write(bytes([5, wanted if wanted in methods else 0xFF]))
        if wanted not in methods:
            return None
        if self._login is not None and not await self._knows(reader, writer):
            return None
        *_, kind = await reader.readexactly(4)
        match kind:
            case 1:
                host = socket.inet_ntop(socket.AF_INET, await reader.readexactly(4))
            case 4:
                host = socket.inet_ntop(socket.AF_INET6, await reader.readexactly(16))
            case _:
                host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append((host, port))
        writer.write(bytes([5, self._refuses, 0, 1, 0, 0, 0, 0, 0, 0]))
        return None if self._refuses else (host, port)

    async def _knows(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        name = await reader.readexactly((await reader.readexactly(1))[0])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        right = f"{name.decode()}:{password.decode()}" == self._login
        writer.write(bytes([1, 0 if right else 1]))
        return right

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        host, _, port = head.split(" ")[1].rpartition(":")
        given = head.partition("Proxy-Authorization: Basic ")[2].partition("\r\n")[0]
        if self._login is not None and b64decode(given).decode() != self._login:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        self.asked.append((host, int(port)))
        writer.write(
            b"HTTP/1.1 403 Forbidden\r\n\r\n" if self._refuses else b"HTTP/1.1 200 Connected\r\nVia: us\r\n\r\n"
        )
        return None if self._refuses else (host, int(port))

    async def _lead(self, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*place)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, back))
                group.create_task(_copy(there, writer))
        finally:
            await _close(back)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
