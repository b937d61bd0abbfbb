"""HTTP as uvicorn reads it, with a bound it lacks: how large a request's head may be and how long it may take."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0


class BoundedHttp(HttpToolsProtocol):
    """Hangs up on a head without end, before anybody was asked for a login."""

    _in_head = True
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def _begin_head(self) -> None:
        self._end_head()
        self._in_head, self._head_bytes = True, 0
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_head(self) -> None:
        self._in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
