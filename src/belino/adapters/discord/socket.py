"""Gateway socket: a bot's events over web sockets, with heartbeats, compression and session resume.

The protocol: https://discord.com/developers/docs/events/gateway
Opcodes and close codes: https://discord.com/developers/docs/topics/opcodes-and-status-codes
"""

import asyncio
import json
import logging
import sys
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AddressRefused, RateLimited, Unauthorized
from belino.domain.ports import Clock, OpensSockets, WebSocket
from belino.net.json_fields import Raw, count, table, whole, words
from belino.net.redact import Secret

log = logging.getLogger(__name__)

# Servers and their channels; messages and reactions, in servers and in private; message content.
MESSAGE_CONTENT = 1 << 15
INTENTS = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | MESSAGE_CONTENT

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 7, 9, 10, 11
QUERY = "v=10&encoding=json&compress=zlib-stream"
PROPERTIES = {"os": sys.platform, "browser": "belino", "device": "belino"}
Z_SYNC_FLUSH = b"\x00\x00\xff\xff"
# The largest payloads are servers with thousands of threads: a few MB.
PAYLOAD_BYTES = 32 * 1024 * 1024
# Discord accepts 120 frames a minute on a connection and counts them on arrival; the margin allows for latency.
FRAMES_PER_MINUTE = 110
MINUTE = 60.0

OPEN_SECONDS = 20.0
# The pause before a new session replaces one that cannot be resumed.
LEAST_PAUSE, LONGEST_PAUSE = 1.0, 5.0
# `max_concurrency` counts shards: a bot without any may identify once in five seconds, whatever its value.
IDENTIFY_SECONDS = 5.0
LONGEST_WAIT = 60.0
# A gateway that accepts the connection and closes it on every resume gives no other sign of refusal.
MOST_RESUMES = 3

# Close codes. After any other, and after none, the session is resumed.
NEW_SESSION = frozenset({4007, 4009})
DISALLOWED_INTENTS = 4014
PERMANENT = {
    4004: "Discord does not know this bot token; reset it in the developer portal (Bot, Reset Token), set the new one",
    4010: "Discord refuses the shard that belino listens as; update belino",
    4011: "this bot is in more servers than Discord allows without sharding (2500), which belino does not support; "
    "remove it from some",
    4012: "Discord no longer accepts the gateway version that belino uses; update belino",
    4013: "Discord does not accept the intents that belino asks for; update belino",
    DISALLOWED_INTENTS: "Discord does not allow this bot the intents that belino asks for; switch them on in the "
    "developer portal (Bot, Privileged Gateway Intents)",
}

NO_CONTENT = (
    "Discord does not let this bot read what is not said to it: switch on Message Content Intent in the developer "
    "portal (Bot, Privileged Gateway Intents); it is asked for again within the hour, or when the account reconnects"
)
ALLOWED_AGAIN_SECONDS = 3_600.0
# One failure is a routine reconnect.
FAILURES_TOLD = 2
GATEWAY, CONTENT = "gateway", "message content"
"""The parts that are reported as not working."""

Take = Callable[[Raw], Awaitable[None]]
Report = Callable[[str, str], None]

_DICE = Random()  # noqa: S311 - jitter, not a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySession:
    """What can be resumed: a session, the number of its last event that counts, and the URL to resume it at.

    Without a URL it resumes where a new session would begin.
    """

    id: str
    seq: int
    url: str


def session_of(ready: Raw) -> GatewaySession:
    """The session of a READY event."""
    told = table(ready, "d")
    return GatewaySession(
        id=words(told, "session_id"), seq=whole(ready, "s") or 0, url=words(told, "resume_gateway_url")
    )


class Disconnected(AdapterError):
    """A connection to the gateway ended; `resumable` says whether its session can be resumed."""

    def __init__(self, message: str, *, code: int = 0, resumable: bool = True) -> None:
        super().__init__(message)
        self.code = code
        """The close code; 0 if there was none."""
        self.resumable = resumable


class GatewayListener:
    """Receives one bot's events, over as many connections as necessary."""

    def __init__(
        self,
        http: OpensSockets,
        clock: Clock,
        *,
        token: Secret,
        gateway: Callable[[], Awaitable[str]],
        way_back: Callable[[GatewaySession], GatewaySession],
        report: Report = lambda _part, _problem: None,
        session: GatewaySession | None = None,
        rng: Random = _DICE,
    ) -> None:
        self._http = http
        self._clock = clock
        self._token = token
        self._gateway = gateway
        """Asks for the URL of a new session."""
        self._way_back = way_back
        """A session as it may be resumed: the token goes to known gateways only."""
        self._report = report
        self._session = session
        self._rng = rng
        self._intents = INTENTS
        self._failures = 0
        self._resumes = 0
        """Consecutive resumes without an event."""
        self._identify_at = 0.0
        """The earliest time of the next identify."""
        self._allowed_again_at = 0.0
        """When refused intents are asked for again: the operator may have switched them on."""

    async def run(self, take: Take) -> None:
        """Pass on every event, in order, until cancelled; Unauthorized if Discord refuses the bot permanently."""
        while True:
            try:
                await self._listen(take)
            except Disconnected as ended:
                self._ended(ended)
            except AddressRefused:
                if not self._returns:
                    raise
            except (Unauthorized, RateLimited):
                raise
            except (AdapterError, OSError) as error:
                log.info("a connection to the gateway broke: %s", type(error).__name__)
            if self._failures >= FAILURES_TOLD:
                self._report(GATEWAY, f"the connection to the gateway fails, {self._failures + 1} times by now")
            await self._pause()

    async def _listen(self, take: Take) -> None:
        """One connection, from hello to close."""
        session = self._session
        url = session.url if session is not None and self._returns else await self._gateway()
        async with self._http.socket(f"{url.rstrip('/')}/?{QUERY}", timeout=OPEN_SECONDS) as opened:
            socket = GatewaySocket(opened, seq=None if session is None else session.seq, rng=self._rng)
            async with asyncio.timeout(OPEN_SECONDS):
                await socket.hello()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(socket.beat())
                    await self._log_in(socket, session)
                    await self._hear(socket, take)
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

    async def _log_in(self, socket: "GatewaySocket", session: GatewaySession | None) -> None:
        token = self._token.reveal()
        if session is not None:
            await socket.send(RESUME, {"token": token, "session_id": session.id, "seq": session.seq})
            self._resumes += 1
        else:
            self._identify_at = self._clock.monotonic() + IDENTIFY_SECONDS
            if self._intents != INTENTS and self._clock.monotonic() >= self._allowed_again_at:
                self._intents = INTENTS
            await socket.send(IDENTIFY, {"token": token, "intents": self._intents, "properties": PROPERTIES})

    async def _hear(self, socket: "GatewaySocket", take: Take) -> None:
        while True:
            event = await socket.event()
            self._failures = self._resumes = 0
            self._report(GATEWAY, "")
            if words(event, "t") == "READY" and self._intents == INTENTS:
                self._report(CONTENT, "")
            await take(event)
            self._follow(event)

    @property
    def _returns(self) -> bool:
        """Whether to resume at the session's own URL; after a failure, every other attempt uses the default URL."""
        session = self._session
        return session is not None and bool(session.url) and (self._failures < 2 or self._failures % 2 == 1)

    def _follow(self, event: Raw) -> None:
        """Store the resume point: after the last event that was passed on."""
        seq = whole(event, "s")
        if words(event, "t") == "READY":
            self._session = self._way_back(session_of(event))
        elif self._session is not None and seq is not None:
            self._session = replace(self._session, seq=seq)

    def _ended(self, ended: Disconnected) -> None:
        """Decide how to continue: resume, start a new session, request fewer intents, or report to the operator."""
        log.info("a connection to the gateway ended: %s", ended)
        if not ended.resumable:
            self._session = None
        if ended.code == DISALLOWED_INTENTS and self._intents & MESSAGE_CONTENT:
            log.warning(NO_CONTENT)
            self._report(CONTENT, NO_CONTENT)
            self._allowed_again_at = self._clock.monotonic() + ALLOWED_AGAIN_SECONDS
            self._intents &= ~MESSAGE_CONTENT
        elif ended.code in PERMANENT:
            raise Unauthorized(PERMANENT[ended.code])

    async def _pause(self) -> None:
        self._failures += 1
        if self._resumes >= MOST_RESUMES:
            self._session, self._resumes = None, 0
        wait = backoff(self._failures, most=LONGEST_WAIT, rng=self._rng)
        if self._session is None:
            pause = self._rng.uniform(LEAST_PAUSE, LONGEST_PAUSE)
            wait = max(wait, pause, self._identify_at - self._clock.monotonic())
        await self._clock.sleep(wait)


class GatewaySocket:
    """One connection: hello, heartbeats, events, and its end as Disconnected."""

    def __init__(self, opened: WebSocket, *, seq: int | None, rng: Random) -> None:
        self._opened = opened
        self._seq = seq
        self._rng = rng
        self._inflater = Inflater()
        self._interval = 0.0
        self._beat_asked = asyncio.Event()
        self._acknowledged = True
        self._reads = False
        """Whether the socket is being read now; while an event is processed, acknowledgements wait behind it."""
        self._sent: deque[float] = deque(maxlen=FRAMES_PER_MINUTE)

    async def hello(self) -> None:
        """Wait for hello, with the heartbeat interval."""
        while not self._interval:
            self._control(await self._payload())

    async def beat(self) -> None:
        """Send heartbeats; Disconnected if one is not acknowledged before the next."""
        wait = self._interval * self._rng.random()
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._beat_asked.wait()
            except TimeoutError:
                if self._reads and not self._acknowledged:
                    raise Disconnected("the gateway did not acknowledge a heartbeat") from None
            self._beat_asked.clear()
            self._acknowledged = False
            await self.send(HEARTBEAT, self._seq)
            wait = self._interval

    async def event(self) -> Raw:
        """The next event."""
        self._reads = True
        try:
            while whole(payload := await self._payload(), "op") != DISPATCH:
                self._control(payload)
        finally:
            self._reads = False
        seq = whole(payload, "s")
        self._seq = self._seq if seq is None else seq
        return {"t": payload.get("t"), "s": self._seq, "d": payload.get("d")}

    async def send(self, op: int, content: object) -> None:
        """Send a payload, after a wait if the minute's limit is reached."""
        time = asyncio.get_running_loop().time
        if len(self._sent) == FRAMES_PER_MINUTE:
            await asyncio.sleep(max(self._sent[0] + MINUTE - time(), 0.0))
        self._sent.append(time())
        with suppress(ConnectionError):  # the reader reports the reason
            await self._opened.send_str(json.dumps({"op": op, "d": content}))

    def _control(self, payload: Raw) -> None:
        """Handle the gateway's control payloads; unknown opcodes are ignored."""
        op = whole(payload, "op")
        if op == HEARTBEAT:
            self._beat_asked.set()
        elif op == HEARTBEAT_ACK:
            self._acknowledged = True
        elif op == RECONNECT:
            raise Disconnected("the gateway asked to reconnect")
        elif op == INVALID_SESSION:
            raise Disconnected("the gateway ended the session", resumable=payload.get("d") is True)
        elif op == HELLO:
            if not (interval := count(table(payload, "d"), "heartbeat_interval")):
                raise Disconnected("the gateway's hello names no heartbeat interval")
            self._interval = interval / 1000

    async def _payload(self) -> Raw:
        while True:
            data = (await self._opened.receive()).data
            if isinstance(data, str):
                return _parsed(data)
            if not isinstance(data, bytes | bytearray):
                code = data if isinstance(data, int) else 0
                resumable = code not in NEW_SESSION and code not in PERMANENT
                raise Disconnected(f"closed with code {code or 'none'}", code=code, resumable=resumable)
            if (whole_payload := self._inflater.feed(data)) is not None:
                return _parsed(whole_payload)


class Inflater:
    """Decompresses zlib-stream: one context per connection; a payload ends with a flush and may span frames."""

    def __init__(self) -> None:
        self._context = zlib.decompressobj()
        self._inflated = bytearray()
        self._tail = b""

    def feed(self, frame: bytes | bytearray) -> bytes | None:
        """The payload that this frame completes; None if it is incomplete."""
        try:
            self._inflated += self._context.decompress(frame, PAYLOAD_BYTES + 1 - len(self._inflated))
        except zlib.error:
            raise Disconnected("the gateway sent what cannot be decompressed") from None
        if len(self._inflated) > PAYLOAD_BYTES:
            raise Disconnected(f"the gateway sent a payload of more than {PAYLOAD_BYTES} bytes")
        self._tail = (self._tail + frame[-len(Z_SYNC_FLUSH) :])[-len(Z_SYNC_FLUSH) :]
        if self._tail != Z_SYNC_FLUSH:
            return None
        payload, self._inflated, self._tail = bytes(self._inflated), bytearray(), b""
        return payload


def _parsed(written: str | bytes) -> Raw:
    try:
        payload = json.loads(written)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise Disconnected("the gateway sent something unreadable")
    return payload
