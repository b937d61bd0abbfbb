"""Discord's gateway: hello, identify, heartbeats, sessions with their events in order, resume, and every close code."""

import asyncio
import json
import secrets
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.testing.discord.shapes import Json

if TYPE_CHECKING:
    from aiohttp import web

SESSION_SECONDS = 180.0
KEPT_EVENTS = 10_000

GUILDS = 1 << 0
MEMBERS = 1 << 1
PRESENCES = 1 << 8
MESSAGE_CONTENT = 1 << 15
PRIVILEGED = MEMBERS | PRESENCES | MESSAGE_CONTENT
KNOWN_INTENTS = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25

# The intent of each event: in a server, in a direct message. Other events are always sent.
_INTENTS = {
    "GUILD_CREATE": (GUILDS, 0),
    "GUILD_DELETE": (GUILDS, 0),
    "CHANNEL_CREATE": (GUILDS, 0),
    "CHANNEL_UPDATE": (GUILDS, 0),
    "CHANNEL_DELETE": (GUILDS, 0),
    "CHANNEL_PINS_UPDATE": (GUILDS, 1 << 12),
    "THREAD_CREATE": (GUILDS, 0),
    "THREAD_UPDATE": (GUILDS, 0),
    "THREAD_DELETE": (GUILDS, 0),
    "MESSAGE_CREATE": (1 << 9, 1 << 12),
    "MESSAGE_UPDATE": (1 << 9, 1 << 12),
    "MESSAGE_DELETE": (1 << 9, 1 << 12),
    "MESSAGE_DELETE_BULK": (1 << 9, 1 << 12),
    "MESSAGE_REACTION_ADD": (1 << 10, 1 << 13),
    "MESSAGE_REACTION_REMOVE": (1 << 10, 1 << 13),
    "MESSAGE_REACTION_REMOVE_ALL": (1 << 10, 1 << 13),
    "MESSAGE_REACTION_REMOVE_EMOJI": (1 << 10, 1 << 13),
    "TYPING_START": (1 << 11, 1 << 14),
    "MESSAGE_POLL_VOTE_ADD": (1 << 24, 1 << 25),
    "MESSAGE_POLL_VOTE_REMOVE": (1 << 24, 1 << 25),
}

HEARTBEAT_SECONDS = 41.25
GRACE = 1.5
PAYLOAD_BYTES = 4096
SENDS_PER_MINUTE = 120
VERSIONS = ("", "9", "10")
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11
REQUEST_MEMBERS = 8
# Presence, voice state, soundboard sounds, channel info: accepted without effect.
IGNORED = frozenset({3, 4, 31, 43})

CLOSES = {
    4000: "Unknown error.",
    4001: "Unknown opcode.",
    4002: "Error while decoding payload.",
    4003: "Not authenticated.",
    4004: "Authentication failed.",
    4005: "Already authenticated.",
    4007: "Invalid seq.",
    4008: "You are being rate limited.",
    4009: "Session timed out.",
    4010: "Invalid shard.",
    4011: "Sharding required.",
    4012: "Invalid API version.",
    4013: "Invalid intents.",
    4014: "Disallowed intents.",
}


@dataclass(slots=True, kw_only=True)
class DiscordSession:
    """One bot's numbered stream of events; it outlives its connection by a few minutes."""

    intents: int
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    seq: int = 0
    events: deque[Json] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    more: asyncio.Event = field(default_factory=asyncio.Event)
    connection: "DiscordConnection | None" = None
    left_at: float | None = None

    def wants(self, event: str, *, in_guild: bool) -> bool:
        needed = _INTENTS.get(event)
        return needed is None or bool(self.intents & needed[0 if in_guild else 1])

    def add(self, event: str, payload: Json) -> None:
        self.seq += 1
        self.events.append({"t": event, "s": self.seq, "op": 0, "d": payload})
        self.more.set()

    def after(self, seq: int) -> list[Json]:
        """The events after a number."""
        known = seq + 1 - self.events[0]["s"] if self.events else 0
        return list(islice(self.events, max(known, 0), None))

    def can_replay(self, seq: int) -> bool:
        return not self.events or seq >= self.events[0]["s"] - 1


class DiscordSessions:
    """All connected or resumable sessions."""

    def __init__(self, clock: Clock, veil: Callable[[Json], Json]) -> None:
        self._clock = clock
        self._veil = veil
        self.live: dict[str, DiscordSession] = {}
        self.identified: list[Json] = []
        """Every identify payload the gateway accepted, without its token."""
        self.resumed: list[str] = []
        """The path at which each session was resumed."""

    def start(self, identify: Json) -> DiscordSession:
        session = DiscordSession(intents=int(identify["intents"]))
        self.identified.append({name: value for name, value in identify.items() if name != "token"})
        self.live[session.id] = session
        return session

    def find(self, session_id: str) -> DiscordSession | None:
        """A session that can be resumed."""
        session = self.live.get(session_id)
        if session is None:
            return None
        if session.left_at is not None and self._clock.monotonic() - session.left_at > SESSION_SECONDS:
            self.end(session)
            return None
        return session

    def end(self, session: DiscordSession) -> None:
        self.live.pop(session.id, None)

    def left(self, session: DiscordSession) -> None:
        session.connection = None
        session.left_at = self._clock.monotonic()

    def dispatch(self, event: str, payload: Json) -> None:
        """Send an event to the sessions with its intents, without content if that intent is missing."""
        in_guild = event.startswith("GUILD_") or "guild_id" in payload
        for session in self.live.values():
            if session.wants(event, in_guild=in_guild):
                clear = session.intents & MESSAGE_CONTENT or event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE")
                session.add(event, payload if clear else self._veil(payload))


class GatewayClosed(Exception):
    """The gateway closes the connection with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(CLOSES.get(code, ""))
        self.code = code


class DiscordGateway:
    """The state that all connections share."""

    def __init__(
        self,
        sessions: DiscordSessions,
        ready: Callable[[DiscordSession], list[tuple[str, Json]]],
        members: Callable[[Json], list[Json]],
    ) -> None:
        self.sessions = sessions
        self.ready = ready
        """The events at the start of a session."""
        self.members = members
        """The members of a server, in chunks."""
        self.token = ""
        self.allowed = PRIVILEGED
        """The privileged intents enabled on the bot's page."""
        self.heartbeat_seconds = HEARTBEAT_SECONDS
        self.heartbeats = 0
        self.heartbeat_seq: int | None = None
        """The event number of the last heartbeat."""
        self.acknowledges = True
        """Whether heartbeats are acknowledged."""
        self.frozen = False
        """Whether open connections are dead: nothing is sent."""
        self.resumes = 0
        self.resume_code: int | None = None
        """The close code for every resume."""
        self.identify_code: int | None = None
        """The close code for every identify."""
        self.identify_seconds = 0.0
        """The minimum time between identifies; Discord's five seconds would slow tests."""
        self.identified_at: float | None = None
        self.turned_away = 0
        """How many connections get a reconnect request instead of a hello."""
        self.frame_bytes: int | None = None
        """The largest frame of a compressed payload, which is then split; None for one frame each."""
        self.connections: list[DiscordConnection] = []

    async def take(self, request: "web.Request") -> "web.StreamResponse":
        """Serve one connection until it ends."""
        connection = DiscordConnection(self, request)
        self.connections.append(connection)
        try:
            return await connection.run()
        finally:
            self.connections.remove(connection)

    def identifies_too_often(self) -> bool:
        """Whether the last identify was less than `identify_seconds` ago; if not, this one counts."""
        now = asyncio.get_running_loop().time()
        if self.identified_at is not None and now - self.identified_at < self.identify_seconds:
            return True
        self.identified_at = now
        return False

    async def close_all(self, code: int) -> None:
        for connection in list(self.connections):
            await connection.close(code)


class DiscordConnection:
    """One connection."""

    def __init__(self, gateway: DiscordGateway, request: "web.Request") -> None:
        from aiohttp import web

        self._gateway = gateway
        self._request = request
        self._socket = web.WebSocketResponse(max_msg_size=1024 * 1024, autoping=True, timeout=1.0)
        self._press = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        self._lock = asyncio.Lock()
        self._taken: deque[float] = deque(maxlen=SENDS_PER_MINUTE)
        self._begun = asyncio.Event()
        self._told = 0
        self._hung_up = False
        self.session: DiscordSession | None = None

    async def run(self) -> "web.StreamResponse":
        await self._socket.prepare(self._request)
        try:
            if self._request.query.get("v", "") not in VERSIONS:
                raise GatewayClosed(4012)
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write())
                await self._read()
                writer.cancel()
        except* GatewayClosed as errors:
            await self.close(_first(errors).code)
        except* ConnectionError:
            pass  # the client is gone; missed events wait in the session
        finally:
            self._leave()
        return self._socket

    async def close(self, code: int) -> None:
        """Close the connection; some codes end the session too."""
        if code in (4004, 4007, 4009) and self.session is not None:
            self._gateway.sessions.end(self.session)
        self._hung_up = True
        if not self._socket.closed:
            await self._socket.close(code=code, message=CLOSES.get(code, "").encode())

    def abort(self) -> None:
        """Break the connection without a close code."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def blurt(self, told: str | bytes) -> None:
        """Send exactly this, valid or not."""
        await (self._socket.send_str(told) if isinstance(told, str) else self._socket.send_bytes(told))

    async def tell(self, op: int, payload: Any = None) -> None:
        await self._send({"t": None, "s": None, "op": op, "d": payload})

    async def _read(self) -> None:
        from aiohttp import WSMsgType

        if self._gateway.turned_away > 0:
            self._gateway.turned_away -= 1
            await self.tell(RECONNECT)
        else:
            await self.tell(HELLO, {"heartbeat_interval": int(self._gateway.heartbeat_seconds * 1000), "_trace": []})
        while True:
            try:
                message = await self._socket.receive(timeout=self._gateway.heartbeat_seconds * GRACE)
            except TimeoutError:
                raise GatewayClosed(4000) from None
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                await self._take(_decoded(message.data))
            else:
                return

    async def _take(self, payload: Json) -> None:
        self._keep_pace()
        op, content = payload.get("op"), payload.get("d")
        if op == HEARTBEAT and (content is None or type(content) is int):
            self._gateway.heartbeats += 1
            self._gateway.heartbeat_seq = content
            if self._gateway.acknowledges:
                await self.tell(ACK)
        elif op == IDENTIFY and isinstance(content, dict) and isinstance(content.get("properties"), dict):
            await self._identify(content)
        elif op == RESUME and isinstance(content, dict):
            await self._resume(content)
        elif op not in IGNORED | {REQUEST_MEMBERS}:
            raise GatewayClosed(4001)
        elif self.session is None:
            raise GatewayClosed(4003)
        elif op == REQUEST_MEMBERS and isinstance(content, dict):
            for piece in self._gateway.members(content):
                self.session.add("GUILD_MEMBERS_CHUNK", piece)

    async def _identify(self, content: Json) -> None:
        if self.session is not None:
            raise GatewayClosed(4005)
        intents = content.get("intents")
        if str(content.get("token", "")).removeprefix("Bot ") != self._gateway.token:
            raise GatewayClosed(4004)
        if not isinstance(intents, int) or intents & ~KNOWN_INTENTS or intents < 0:
            raise GatewayClosed(4013)
        if intents & PRIVILEGED & ~self._gateway.allowed:
            raise GatewayClosed(4014)
        shard = content.get("shard", [0, 1])
        if not (isinstance(shard, list) and len(shard) == 2 and 0 <= shard[0] < shard[1]):
            raise GatewayClosed(4010)
        if self._gateway.identify_code is not None:
            raise GatewayClosed(self._gateway.identify_code)
        if self._gateway.identifies_too_often():
            await self.tell(INVALID, False)
            return
        session = self._gateway.sessions.start(content)
        for event, told in self._gateway.ready(session):
            session.add(event, told)
        self._begin(session, 0)

    async def _resume(self, content: Json) -> None:
        if self.session is not None:
            raise GatewayClosed(4005)
        if str(content.get("token", "")).removeprefix("Bot ") != self._gateway.token:
            raise GatewayClosed(4004)
        self._gateway.resumes += 1
        if self._gateway.resume_code is not None:
            raise GatewayClosed(self._gateway.resume_code)
        session = self._gateway.sessions.find(str(content.get("session_id")))
        seq = content.get("seq")
        if session is None or not isinstance(seq, int) or not session.can_replay(seq):
            await self.tell(INVALID, False)
            return
        if seq > session.seq:
            self._gateway.sessions.end(session)
            raise GatewayClosed(4007)
        if session.connection is not None:
            await session.connection.close(4000)
        self._gateway.sessions.resumed.append(self._request.path)
        session.add("RESUMED", {"_trace": []})
        self._begin(session, seq)

    def _begin(self, session: DiscordSession, seq: int) -> None:
        self.session, self._told = session, seq
        session.connection, session.left_at = self, None
        session.more.set()
        self._begun.set()

    async def _write(self) -> None:
        await self._begun.wait()
        session = self.session
        assert session is not None
        while session.connection is self:
            await session.more.wait()
            session.more.clear()
            for event in session.after(self._told):
                await self._send(event)
                self._told = event["s"]

    async def _send(self, payload: Json) -> None:
        if self._gateway.frozen or self._socket.closed:
            return
        written = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        async with self._lock:  # a compressed stream depends on the order of compression
            if self._press is None:
                await self._socket.send_str(written)
            else:
                packed = self._press.compress(written.encode()) + self._press.flush(zlib.Z_SYNC_FLUSH)
                size = self._gateway.frame_bytes or len(packed)
                for start in range(0, len(packed), size):
                    await self._socket.send_bytes(packed[start : start + size])

    def _keep_pace(self) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._taken) == SENDS_PER_MINUTE and now - self._taken[0] < 60:
            raise GatewayClosed(4008)
        self._taken.append(now)

    def _leave(self) -> None:
        session = self.session
        if session is None or session.connection is not self:
            return
        self._gateway.sessions.left(session)
        if self._socket.close_code in (1000, 1001) and not self._hung_up:
            self._gateway.sessions.end(session)


def _decoded(written: str | bytes) -> Json:
    if len(written) > PAYLOAD_BYTES:
        raise GatewayClosed(4002)
    try:
        payload = json.loads(written)
    except ValueError:
        raise GatewayClosed(4002) from None
    if not isinstance(payload, dict):
        raise GatewayClosed(4002)
    return payload


def _first(errors: BaseExceptionGroup[GatewayClosed]) -> GatewayClosed:
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
