"""Socket Mode: a connection that is replaced before it ends; every envelope is acknowledged once it is on disk.

Not slack-sdk's client: it opens sockets past our guard, queues events without a bound, drops the old connection before
it has the new one, and retries for ever with a refused token.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AddressRefused, BelinoError, RateLimited, Unauthorized
from belino.domain.ports import Clock, OpensSockets, WebSocket
from belino.net.json_fields import NOTHING, Raw, from_json, words

log = logging.getLogger(__name__)

OPEN_SECONDS = 20.0
HEARTBEAT_SECONDS = 10.0
# A connection that answers no ping is detected as dead after this time.
DEAD_SECONDS = HEARTBEAT_SECONDS * 1.5
STEADY_SECONDS = 30.0
REPLACED_SECONDS = 30.0
"""How long a replaced connection is read, if Slack does not end it; ten may be open at once."""
ATTEMPTS = 6
"""Consecutive early disconnects until the account counts as down."""
LONGEST_WAIT = 60.0

_LASTING = (AddressRefused, Unauthorized, SlackRefused)

Take = Callable[[Raw], Awaitable[None]]
Opened = Callable[[float | None], None]
"""Called whenever a connection is open, with the seconds without one; None if there was no gap."""


class LineEnded(AdapterError):
    """A connection ended, as all do."""

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds
        """For how long it had been dead."""


class SocketModeClient:
    """The connections of one app: the newest counts, and replaced ones are read to their end."""

    def __init__(self, client: SlackClient, http: OpensSockets, clock: Clock) -> None:
        self._client = client
        self._http = http
        self._clock = clock
        self._one_by_one = asyncio.Lock()
        self._over = asyncio.Event()
        """A new connection is wanted: the newest has ended, or Slack announced its end."""
        self._why: BelinoError | None = None
        self._failures = 0
        self._since: float | None = None
        """When the newest connection received hello."""
        self._heard = 0
        """How many connections are open, including replaced ones."""
        self._silent_since: float | None = None

    async def listen(self, take: Take, opened: Opened) -> None:
        """Pass on every envelope until cancelled."""
        async with asyncio.TaskGroup() as group:
            failure = await self._stay(group, take, opened)
        raise failure

    async def try_out(self) -> None:
        """Open a connection and close it; raises what prevents it."""
        async with self._open():
            pass

    async def _stay(self, group: asyncio.TaskGroup, take: Take, opened: Opened) -> BelinoError:
        lines: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._over, self._why, self._since = asyncio.Event(), None, None
                lines = {line for line in lines if not line.done()}
                lines.add(group.create_task(self._line(self._over, take, opened)))
                await self._over.wait()
                if (failure := await self._pause()) is not None:
                    return failure
        finally:
            for line in lines:
                line.cancel()

    async def _pause(self) -> BelinoError | None:
        """Back off before the next connection; returns the reason if none should be opened."""
        why = self._why
        if why is not None and (isinstance(why, _LASTING) or not isinstance(why, AdapterError)):
            return why
        lasted = 0.0 if self._since is None else self._clock.monotonic() - self._since
        self._failures = 0 if lasted >= STEADY_SECONDS else self._failures + 1
        wait = why.retry_after if isinstance(why, RateLimited) else 0.0
        if self._failures > 1:
            wait = max(wait, backoff(self._failures - 1))
        if self._failures > ATTEMPTS or wait > LONGEST_WAIT:
            return why or AdapterError("Slack ends one connection after the other")
        log.info("another line is opened: %s", "in good time" if why is None else type(why).__name__)
        await self._clock.sleep(wait)
        return None

    async def _line(self, over: asyncio.Event, take: Take, opened: Opened) -> None:
        """One connection, from hello to its end. It raises nothing: the reason is noted, unless it was replaced."""
        try:
            async with self._open() as (socket, first):
                gap = None if self._silent_since is None else self._clock.monotonic() - self._silent_since
                self._since, self._silent_since = self._clock.monotonic(), None
                opened(gap)
                self._heard += 1
                try:
                    await self._hear(socket, first, over, take)
                finally:
                    self._heard -= 1
        except BelinoError as error:
            self._ended(error, was_replaced=over.is_set())

    def _ended(self, why: BelinoError, *, was_replaced: bool) -> None:
        if self._silent_since is None and not self._heard:
            silent = why.seconds if isinstance(why, LineEnded) else 0.0
            self._silent_since = self._clock.monotonic() - silent
        if was_replaced and isinstance(why, AdapterError):
            return
        self._why = why
        self._over.set()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[WebSocket, Raw]]:
        """A connection and its first message, which is hello if Slack follows its protocol."""
        told = (await self._client.ask("apps.connections.open", as_app=True)).told
        if not (url := words(told, "url")):
            raise AdapterError("Slack returned no URL for a socket")
        try:
            async with self._http.socket(url, timeout=OPEN_SECONDS, heartbeat=HEARTBEAT_SECONDS) as socket:
                yield socket, await self._first(socket)
        except AddressRefused as error:
            raise AddressRefused(f"{error}; a server of your own names where its lines are as socket_url") from None

    async def _first(self, socket: WebSocket) -> Raw:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                first = await self._next(socket)
        except TimeoutError:
            raise AdapterError("Slack opened a socket and sent nothing") from None
        if _is_goodbye(first):
            raise AdapterError("Slack opened a socket and closed it")
        return first

    async def _hear(self, socket: WebSocket, envelope: Raw, over: asyncio.Event, take: Take) -> None:
        ends: float | None = None
        while True:
            if _is_goodbye(envelope):
                over.set()  # the next connection is opened while this one is read to its end
                ends = asyncio.get_running_loop().time() + REPLACED_SECONDS
            elif own := words(envelope, "envelope_id"):
                async with self._one_by_one:
                    await take(envelope)
                with suppress(ConnectionError):  # it is on disk: if sent again, it is recognised
                    await socket.send_str(json.dumps({"envelope_id": own}))
            try:
                async with asyncio.timeout_at(ends):
                    envelope = await self._next(socket)
            except TimeoutError:
                raise LineEnded("the line was replaced", seconds=0.0) from None

    async def _next(self, socket: WebSocket) -> Raw:
        data = (await socket.receive()).data
        if isinstance(data, str):
            return from_json(data)
        if isinstance(data, bytes):
            return NOTHING
        dead = DEAD_SECONDS if isinstance(data, TimeoutError) else 0.0
        raise LineEnded("the line ended", seconds=dead)


def _is_goodbye(envelope: Raw) -> bool:
    if words(envelope, "type") != "disconnect":
        return False
    if words(envelope, "reason") == "link_disabled":
        raise SlackRefused("Socket Mode was turned off; turn it on at api.slack.com/apps", error="link_disabled")
    return True
