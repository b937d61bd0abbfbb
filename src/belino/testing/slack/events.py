"""Events for a Slack app: delivered until acknowledged, over Socket Mode or signed HTTP, with documented retries."""

import asyncio
import hashlib
import hmac
import json
import secrets
import uuid
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from belino.aio.deadline import deadline
from belino.domain.ports import Clock
from belino.testing.slack.shapes import APP, BOT_USER, TEAM, Json

if TYPE_CHECKING:
    from aiohttp import web

ACK_SECONDS = 3.0
RETRY_SECONDS = (0.0, 60.0, 300.0)
EVENTS = "events_api"
COMMANDS = "slash_commands"
INTERACTIVE = "interactive"
NO_RETRY = "no_retry"
"""The failure reason when the app asked for no retry."""
ALL_EVENTS = frozenset(
    {
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "app_mention",
        "reaction_added",
        "reaction_removed",
        "member_joined_channel",
        "member_left_channel",
        "app_uninstalled",
        "tokens_revoked",
    }
)
MOST_CONNECTIONS = 10
TICKET_SECONDS = 30.0
CONNECTION_SECONDS = 3600
HOST = "applink-1"
AGENT = "Slackbot 1.0 (+https://api.slack.com/robots)"
FORM = "application/x-www-form-urlencoded"
WHOLE_SECONDS = 30.0


class EventTransport(Protocol):
    """A channel to the app: Socket Mode or its request URL."""

    async def attempt(self, kind: str, payload: Json, *, number: int, reason: str) -> str | None:
        """Deliver a payload; None on success, otherwise the reason."""
        ...


class Deliveries:
    """All payloads being delivered."""

    def __init__(self, clock: Clock, line: EventTransport) -> None:
        self._clock = clock
        self.line = line
        self.retry_seconds: tuple[float, ...] = RETRY_SECONDS
        self.subscribed: set[str] = set(ALL_EVENTS)
        self.acknowledged: list[str] = []
        """The event ids that the app acknowledged, in order."""
        self.lost: list[str] = []
        """The event ids whose every attempt failed."""
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    @property
    def waiting(self) -> int:
        """How many are being delivered."""
        return len(self._tasks)

    def start(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._group = None

    def event(self, event: Json, subscription: str, *, shared: bool = False) -> None:
        """Send an event, if the app subscribed to its type."""
        if subscription in self.subscribed:
            self._send(EVENTS, self._callback(event, shared=shared))

    def command(self, fields: Mapping[str, str]) -> None:
        self._send(COMMANDS, dict(fields))

    def interaction(self, payload: Json) -> None:
        self._send(INTERACTIVE, payload)

    def _send(self, kind: str, payload: Json) -> None:
        assert self._group is not None, "people can only speak while the server runs"
        task = self._group.create_task(self._deliver(kind, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, kind: str, payload: Json) -> None:
        name = str(payload.get("event_id") or payload.get("trigger_id"))
        reason: str | None = ""
        # Only events are retried: a failed command is reported to its user at once.
        pauses = (0.0, *self.retry_seconds) if kind == EVENTS else (0.0,)
        for number, pause in enumerate(pauses):
            if pause:
                await self._clock.sleep(pause)
            reason = await self.line.attempt(kind, payload, number=number, reason=reason or "")
            if reason is None:
                self.acknowledged.append(name)
                return
            if (
                reason == NO_RETRY or self._group is None
            ):  # a connection that ends with the server may report its end as a delay
                break
        self.lost.append(name)

    def _callback(self, event: Json, *, shared: bool) -> Json:
        number = next(self._numbers)
        authorization = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True}
        return {
            "token": "deprecated-verification-token",
            "team_id": TEAM,
            "context_team_id": TEAM,
            "context_enterprise_id": None,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev0BLN{number:06}",
            "event_time": int(self._clock.now().timestamp()),
            "authorizations": [authorization | {"is_enterprise_install": False}],
            "is_ext_shared_channel": shared,
            "event_context": f"4-{event['type']}-{TEAM}-{number}",
        }


class SocketModeServer:
    """Every connection of the app, and unacknowledged envelopes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._waiting: dict[str, tuple[SocketModeConnection, asyncio.Future[Json]]] = {}
        self._turn = 0
        self.connections: list[SocketModeConnection] = []
        self.opened = 0
        """How many connections there were."""
        self.acks: list[Json] = []
        """Every acknowledgement."""
        self.strays: list[Json] = []
        """Acknowledgements without an envelope."""
        self.envelopes: list[Json] = []
        """Every envelope that was sent."""
        self.frozen = False
        """Connections stay open but are dead: no answers, no events."""

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
        if kind not in (COMMANDS, INTERACTIVE):
            envelope |= {"retry_attempt": number, "retry_reason": reason}
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[envelope["envelope_id"]] = connection, waiting
        self.envelopes.append(envelope)
        try:
            await connection.send(envelope)
            async with deadline(self._clock, ACK_SECONDS):
                await waiting
        except (TimeoutError, ConnectionError):
            return "timeout"
        finally:
            self._waiting.pop(envelope["envelope_id"], None)
        return None

    def acknowledge(self, ack: Json) -> None:
        """On any connection: a client may already have a new one."""
        found = self._waiting.get(str(ack.get("envelope_id")))
        if found is None or found[1].done():
            self.strays.append(ack)
            return
        self.acks.append(ack)
        found[1].set_result(ack)

    async def disconnect(self, reason: str) -> None:
        """Announce the end of every connection; except for a `warning`, close it."""
        for connection in list(self.connections):
            await connection.disconnect(reason)

    def drop(self) -> None:
        """Break every connection."""
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

        await self.send(_hello(number, self._seconds))
        async for message in self.socket:
            if self._mode.frozen:
                continue
            if message.type is WSMsgType.PING:
                await self.socket.pong(message.data)
            elif message.type is WSMsgType.TEXT and (ack := _parsed(message.data)) is not None:
                self._mode.acknowledge(ack)

    async def send(self, payload: Json) -> None:
        if self.socket.closed:
            raise ConnectionResetError("the connection ended")
        if not self._mode.frozen:
            await self.socket.send_str(json.dumps(payload, ensure_ascii=False))

    async def disconnect(self, reason: str) -> None:
        await self.send({"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}})
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


class RequestUrl:
    """The app's request URL, where Slack posts events."""

    def __init__(self, clock: Clock, secret: str) -> None:
        self._clock = clock
        self.secret = secret
        self.url = ""
        self.skew = 0.0
        """The error of the clock that timestamps the calls, in seconds."""
        self.attempts: list[tuple[int, int]] = []
        """Every attempt: its number for the event, and the status; 0 without an answer."""
        self.answers: list[bytes] = []
        """The app's answers."""

    async def verify(self, url: str) -> bool:
        """Whether the address answers the challenge, which Slack sends before any event."""
        challenge = secrets.token_hex(16)
        asked = {"token": "deprecated-verification-token", "challenge": challenge, "type": "url_verification"}
        self.url = url
        if await self._post(json.dumps(asked).encode(), "application/json", {}) != 200:
            return False
        return challenge.encode() in self.answers[-1]

    async def attempt(self, kind: str, payload: Json, *, number: int, reason: str) -> str | None:
        """Post once; None if the app answers 2xx in time."""
        headers = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason} if number else {}
        body, mime = json.dumps(payload).encode(), "application/json"
        if kind == COMMANDS:
            body, mime = urlencode(payload).encode(), FORM
        if kind == INTERACTIVE:
            body, mime = urlencode({"payload": json.dumps(payload)}).encode(), FORM
        try:
            async with deadline(self._clock, ACK_SECONDS):
                status = await self._post(body, mime, headers)
        except TimeoutError:
            self.attempts.append((number, 0))
            return "http_timeout"
        self.attempts.append((number, abs(status)))
        if 200 <= status < 300:
            return None
        return NO_RETRY if status < 0 else "http_error" if status else "connection_failed"

    def signature(self, body: bytes, stamp: str) -> str:
        """The value of X-Slack-Signature for a body."""
        signed = b"v0:" + stamp.encode() + b":" + body
        return "v0=" + hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()

    async def _post(self, body: bytes, mime: str, more: dict[str, str]) -> int:
        """The status, negative if the app wants no retry, 0 without an answer."""
        from aiohttp import ClientError, ClientSession, ClientTimeout

        stamp = str(int(self._clock.now().timestamp() + self.skew))
        headers: dict[str, Any] = {"Content-Type": mime, "User-Agent": AGENT, **more}
        headers |= {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": self.signature(body, stamp)}
        try:
            async with (
                asyncio.timeout(WHOLE_SECONDS),
                ClientSession(timeout=ClientTimeout(total=WHOLE_SECONDS)) as session,
                session.post(self.url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                self.answers.append(await answer.read())
                final = answer.headers.get("X-Slack-No-Retry") == "1" and answer.status >= 300
                return -answer.status if final else answer.status
        except (ClientError, OSError):
            return 0
