"""Socket Mode: single-use links, hello, envelopes that want an acknowledgement, and every way a connection ends."""

import asyncio
import json
import secrets
import uuid
from typing import TYPE_CHECKING, Any

from belino.delivery.deadline import deadline
from belino.domain.ports import Clock
from belino.testing.slack.deliveries import ACK_SECONDS, COMMANDS
from belino.testing.slack.shapes import APP, Json

if TYPE_CHECKING:
    from aiohttp import web

MOST_CONNECTIONS = 10
TICKET_SECONDS = 30.0
CONNECTION_SECONDS = 3600
HOST = "applink-1"


class SocketModeServer:
    """Every connection of the app, and what waits for an acknowledgement."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._waiting: dict[str, tuple[SocketModeConnection, asyncio.Future[Json]]] = {}
        self._turn = 0
        self.connections: list[SocketModeConnection] = []
        self.opened = 0
        """How many connections there ever were."""
        self.acks: list[Json] = []
        """Every acknowledgement, as it came."""
        self.strays: list[Json] = []
        """Acknowledgements for what nobody waited for any more, or never did."""
        self.envelopes: list[Json] = []
        """Every envelope that was sent."""
        self.frozen = False
        """Connections stay open and are dead: nothing is answered, nothing is told."""

    def ticket(self) -> str:
        """The path and query of a link that opens one connection."""
        made = secrets.token_hex(12)
        self._tickets[made] = self._clock.monotonic() + TICKET_SECONDS
        return f"/link/?ticket={made}&app_id={APP}"

    async def take(self, request: "web.Request") -> "web.StreamResponse":
        """One connection, until it ends."""
        from aiohttp import web

        if self._tickets.pop(request.query.get("ticket", ""), -1.0) < self._clock.monotonic():
            return web.Response(status=408)
        connection = SocketModeConnection(self, request)
        await connection.open()
        if len(self.connections) >= MOST_CONNECTIONS:
            await connection.disconnect("too_many_websockets")
            return connection.socket
        self.connections.append(connection)
        self.opened += 1
        try:
            await connection.run(len(self.connections))
        finally:
            self.connections.remove(connection)
            self._forget(connection)
        return connection.socket

    async def attempt(self, kind: str, payload: Json, *, number: int, reason: str) -> str | None:
        """Send one envelope over one of the connections, and wait for its acknowledgement."""
        connection = self._next()
        if connection is None:
            return "timeout"
        envelope: Json = {"envelope_id": str(uuid.uuid4()), "payload": payload, "type": kind}
        envelope["accepts_response_payload"] = kind == COMMANDS
        if kind != COMMANDS:
            envelope |= {"retry_attempt": number, "retry_reason": reason}
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[envelope["envelope_id"]] = connection, waiting
        self.envelopes.append(envelope)
        try:
            await connection.tell(envelope)
            async with deadline(self._clock, ACK_SECONDS):
                await waiting
        except (TimeoutError, ConnectionError):
            return "timeout"
        finally:
            self._waiting.pop(envelope["envelope_id"], None)
        return None

    def acknowledge(self, ack: Json) -> None:
        """Whichever connection it came by: a client may have a new one already."""
        found = self._waiting.get(str(ack.get("envelope_id")))
        if found is None or found[1].done():
            self.strays.append(ack)
            return
        self.acks.append(ack)
        found[1].set_result(ack)

    async def disconnect(self, reason: str) -> None:
        """Tell every connection that it ends; after anything but a `warning` it does."""
        for connection in list(self.connections):
            await connection.disconnect(reason)

    def drop(self) -> None:
        """Every line breaks without a word."""
        for connection in list(self.connections):
            connection.abort()

    async def close(self) -> None:
        for connection in list(self.connections):
            await connection.socket.close()

    def _next(self) -> "SocketModeConnection | None":
        alive = [connection for connection in self.connections if not connection.socket.closed]
        if not alive:
            return None
        self._turn += 1
        return alive[self._turn % len(alive)]

    def _forget(self, connection: "SocketModeConnection") -> None:
        for sent_by, waiting in self._waiting.values():
            if sent_by is connection and not waiting.done():
                waiting.set_exception(ConnectionResetError("the connection ended"))


class SocketModeConnection:
    """One socket."""

    def __init__(self, mode: SocketModeServer, request: "web.Request") -> None:
        from aiohttp import web

        self._mode = mode
        self._request = request
        self._seconds = 360 if request.query.get("debug_reconnects") == "true" else CONNECTION_SECONDS
        self.socket = web.WebSocketResponse(autoping=False, timeout=1.0)

    async def open(self) -> None:
        await self.socket.prepare(self._request)

    async def run(self, number: int) -> None:
        from aiohttp import WSMsgType

        await self.tell(_hello(number, self._seconds))
        async for message in self.socket:
            if self._mode.frozen:
                continue
            if message.type is WSMsgType.PING:
                await self.socket.pong(message.data)
            elif message.type is WSMsgType.TEXT and (ack := _parsed(message.data)) is not None:
                self._mode.acknowledge(ack)

    async def tell(self, payload: Json) -> None:
        if self.socket.closed:
            raise ConnectionResetError("the connection ended")
        if not self._mode.frozen:
            await self.socket.send_str(json.dumps(payload, ensure_ascii=False))

    async def disconnect(self, reason: str) -> None:
        await self.tell({"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}})
        if reason != "warning":
            await self.socket.close()

    def abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()


def _hello(number: int, seconds: int) -> Json:
    told = {"host": HOST, "build_number": 54, "approximate_connection_time": seconds}
    return {"type": "hello", "num_connections": number, "debug_info": told, "connection_info": {"app_id": APP}}


def _parsed(written: str) -> Json | None:
    try:
        value: Any = json.loads(written)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
