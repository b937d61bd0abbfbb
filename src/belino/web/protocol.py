"""HTTP and WebSocket protocols of the server: uvicorn's, with limits on headers and a place in the connection pool."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from starlette.requests import HTTPConnection
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from belino.web.auth import Origins
from belino.web.connections import STATE_KEY, ClientConnection, ConnectionPool, peer_of
from belino.web.responses import Code, Refusal, busy, refuse, stopping

log = logging.getLogger(__name__)

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0
# The separators after a header's name and value.
_HEADER_EXTRA = len(": \r\n")


class HeadTooLarge(Exception):
    """A request's head, or its trailers, exceed the limit."""


class BoundedHttp(HttpToolsProtocol):
    """HTTP with a limit on the size and time of a request's head, and a place in the connection pool."""

    _head_bytes = 0
    _unparsed_bytes = 0
    """Bytes since the parser's last event: a header that is still arriving."""
    _deadline: asyncio.TimerHandle | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pool: ConnectionPool,
        origins: Origins,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._pool = pool
        self._origins = origins
        self._connection: ClientConnection | None = None
        self._is_proxied = False

    def begin(self, connection: ClientConnection, transport: asyncio.Transport, received: bytes) -> None:
        """Serve a connection that already has its place, starting with the bytes that came with its TLS handshake."""
        self._connection = connection
        transport.set_protocol(self)
        self.connection_made(transport)
        if received:
            self.data_received(received)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place in the pool, unless one was taken before the TLS handshake."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        self._is_proxied = self._origins.trusts(host)
        connection = self._connection or self._pool.open(peer_of(host), self._give_way)
        if connection is None:
            self._refuse(busy("Every connection is in use; try again in a moment."))
            return
        connection.drop, connection.has_whole_request = self._give_way, self._has_whole_request
        self._connection = connection
        self.app_state = {**self.app_state, STATE_KEY: connection}
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        if self._connection is not None:
            self._pool.close(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._head_bytes + self._unparsed_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        if self._is_proxied and self._connection is not None:
            # A proxy sends requests of many clients over one connection.
            self._pool.forget(self._connection)
        self._begin_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _HEADER_EXTRA)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._unparsed_bytes = 0
        if self._is_proxied and self._connection is not None:
            self._pool.set_peer(self._connection, self._origins.peer(HTTPConnection(dict(self.scope))))
        if self._connection is not None:
            # The application has the head, and may know the client by it before the body arrives.
            self._pool.set_turn(self._connection, client_turn=False)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        super().on_message_complete()
        self._note_turn()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_turn()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note_turn()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._note_turn()

    def handle_websocket_upgrade(self) -> None:
        self._end_head()
        if self._connection is not None:
            self._pool.set_turn(self._connection, client_turn=False)
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser rejects, in the usual error format."""
        if self._head_bytes > HEAD_BYTES:
            self._refuse_head()
        else:
            self._refuse(Refusal(400, Code.BAD_REQUEST, "This is not an HTTP request."))

    def _count(self, size: int) -> None:
        self._unparsed_bytes = 0
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise HeadTooLarge

    def _begin_head(self) -> None:
        self._end_head()
        self._head_bytes = 0
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    @property
    def _open_cycle(self) -> RequestResponseCycle | None:
        """The newest request with a complete head, until its answer is complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _has_whole_request(self) -> bool:
        return self._open_cycle is None or not self._open_cycle.more_body

    def _note_turn(self) -> None:
        """Let the pool drop this connection only while the server waits for its client."""
        if self._connection is not None:
            is_answering = self._open_cycle is not None and not self._open_cycle.more_body
            self._pool.set_turn(self._connection, client_turn=not is_answering or self.flow.write_paused)

    def _give_way(self) -> None:
        """Close in favour of another connection; a started request gets an error."""
        if self._open_cycle is None or self.scheme == "https":
            # Nothing to answer, or an answer that cannot be sent at once.
            self.transport.abort()
        else:
            self._refuse(busy("The request arrived too slowly while others were waiting; send it again."))

    def _refuse_head(self) -> None:
        self._refuse(Refusal(431, Code.TOO_LARGE, f"The request's headers are over {HEAD_BYTES} bytes."))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer the request that is being read, and close; if another answer is due first, just close."""
        if (cycle := self._open_cycle) is not None:
            if cycle.response_started or cycle.scope is not self.scope or self.pipeline:
                self.transport.abort()
                return
            cycle.disconnected = True
        self.transport.write(raw_answer(refusal))
        self.transport.close()


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket that keeps the place of the HTTP connection it came from."""

    def connection_lost(self, exc: Exception | None) -> None:
        connection = self.app_state.get(STATE_KEY)
        if isinstance(connection, ClientConnection):
            connection.pool.close(connection)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close with 1012, or refuse an upgrade that is not answered yet."""
        if self.handshake_complete or self.close_sent:
            super().shutdown()
            return
        self.handshake_complete = self.disconnected = True
        self.transport.write(raw_answer(stopping()))
        self.transport.close()


class TlsFront(asyncio.Protocol):
    """TLS handshake in the pool: a client that never completes it holds a descriptor too."""

    def __init__(
        self, make_http: Callable[..., BoundedHttp], *, pool: ConnectionPool, context: ssl.SSLContext, **arguments: Any
    ) -> None:
        self._http = make_http(**arguments)
        self._pool = pool
        self._context = context
        self._connection: ClientConnection | None = None
        self._silence: asyncio.TimerHandle | None = None
        """Ends a connection on which no handshake begins."""
        self._early = bytearray()
        self._is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        host = (transport.get_extra_info("peername") or ("",))[0]
        self._connection = self._pool.open(peer_of(host), transport.abort)
        if self._connection is None:
            transport.abort()
            return
        self._transport = transport
        self._silence = self._http.loop.call_later(HEAD_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._silence is not None:  # there is no handshake yet that would close it
            self._silence.cancel()
            if self._connection is not None:
                self._pool.close(self._connection)

    def data_received(self, data: bytes) -> None:
        """Begin the handshake with the client's first bytes; later, keep what it sends with its last message."""
        if self._silence is None or self._connection is None:
            self._early += data
            return
        self._silence.cancel()
        self._silence = None
        # uvloop reads before a protocol can pause it, so the first bytes come here and not to TLS.
        self._transport.pause_reading()
        # uvicorn owns these tasks, and cancels them when it stops.
        task = self._http.loop.create_task(self._shake_hands(self._transport, self._connection))
        self._http.tasks.add(task)
        task.add_done_callback(self._http.tasks.discard)
        # After the task's first step, and the callbacks in which it connects the TLS protocol.
        self._http.loop.call_soon(self._http.loop.call_soon, self._pass_on, data)

    def _pass_on(self, data: bytes) -> None:
        tls = cast("asyncio.BufferedProtocol", self._transport.get_protocol())  # in uvloop not by inheritance
        while data:
            buffer = cast("memoryview", tls.get_buffer(len(data)))
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            tls.buffer_updated(size)
            data = data[size:]

    async def _shake_hands(self, transport: asyncio.Transport, connection: ClientConnection) -> None:
        secured = None
        try:
            secured = await self._http.loop.start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
            )
        except OSError as error:
            log.debug("a TLS handshake failed: %s", type(error).__name__)
        finally:
            if secured is None or self._is_lost:
                self._pool.close(connection)
                transport.abort()
        if secured is not None and not self._is_lost:
            self._http.begin(connection, secured, bytes(self._early))


def raw_answer(refusal: Refusal) -> bytes:
    """A refusal as the bytes of a whole HTTP answer, after which the connection is closed."""
    response = refuse(refusal)
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    lines += [b"x-content-type-options: nosniff", b"cache-control: no-store", b"connection: close", b""]
    return b"\r\n".join(lines) + b"\r\n" + bytes(response.body)
