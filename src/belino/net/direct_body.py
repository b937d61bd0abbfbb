"""Direct body: the rest of a large response, straight from its connection, one copy less than aiohttp's way."""

import asyncio

from aiohttp import ClientPayloadError, ClientResponse

WORTH = 4 << 20
"""The minimum size of a body that is worth its connection, which serves no other request afterwards."""
BUFFER = 1 << 20


def take_line(response: ClientResponse) -> "DirectBody | None":
    """The connection of an answer with a long body of known length; buffered bytes are read from it too."""
    content, connection, length = response.content, response.connection, response.content_length
    if connection is None or length is None or "Transfer-Encoding" in response.headers:
        return None
    transport, behind = connection.transport, connection.protocol
    if transport is None or behind is None or length - content.total_bytes < WORTH:
        return None
    came = b"".join(iter(content.read_nowait, b""))
    line = DirectBody(transport, behind, came, length - content.total_bytes)
    transport.pause_reading()  # the event loop chooses the read API by the protocol's type when reading starts
    transport.set_protocol(line)
    transport.resume_reading()
    return line


class DirectBody(asyncio.BufferedProtocol):
    """The next so many bytes of a connection."""

    def __init__(self, transport: asyncio.Transport, behind: asyncio.Protocol, came: bytes, left: int) -> None:
        """`behind` receives all callbacks except data."""
        self._transport = transport
        self._behind = behind
        self._came = came
        self._left = left
        self._buffer = memoryview(bytearray(min(BUFFER, left)))
        self._filled = 0
        self._is_lost = False
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """The bytes received since the last call; empty at the end."""
        if self._came:
            came, self._came = self._came, b""
            return came
        while not self._filled and self._left:
            if self._is_lost:
                raise ClientPayloadError(f"{self._left} bytes are missing")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        piece = bytes(self._buffer[: self._filled])
        self._filled = 0
        if self._left:
            self._transport.resume_reading()
        return piece

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._filled : self._filled + self._left]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._left -= nbytes
        if not self._left or self._filled == len(self._buffer):
            self._transport.pause_reading()
        self._wake()

    def pause_writing(self) -> None:
        self._behind.pause_writing()

    def resume_writing(self) -> None:
        self._behind.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._behind.connection_lost(exc)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
