"""The gateway, heard through as many connections as it takes: a new session, or one that is resumed."""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AddressRefused, ConfigError, RateLimited, Unauthorized
from belino.domain.ports import Clock, OpensSockets
from belino.net.raw import Raw, table, whole, words
from belino.net.redact import Secret

if TYPE_CHECKING:
    from belino.adapters.discord.library import GatewaySocket

log = logging.getLogger(__name__)

# Servers and their channels; messages and reactions, in servers and in private; what messages say.
MESSAGE_CONTENT = 1 << 15
INTENTS = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | MESSAGE_CONTENT

API_VERSION = "10"
OPEN_SECONDS = 20.0
# Discord asks for so long a pause before a new session takes the place of one that cannot be resumed.
LEAST_PAUSE, LONGEST_PAUSE = 1.0, 5.0
LONGEST_WAIT = 60.0
# A gateway that lets us in and hangs up on every resume does not say so in any other way.
MOST_RESUMES = 3
DISALLOWED = 4014
_REFUSALS = {
    4004: "Discord does not know this bot token; reset it in the developer portal and set it anew",
    4010: "Discord refuses the shard",
    4011: "this bot is in so many servers that Discord wants it sharded, which belino does not do",
    4012: "Discord no longer speaks the version of its gateway that belino does",
    4013: "Discord does not know what belino asks to hear",
    DISALLOWED: "Discord does not let this bot hear what belino asks for; see its intents in the developer portal",
}

_DICE = Random()  # noqa: S311 - jitter, not a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What can be resumed: a session, the number of the last event that counts, and where Discord wants us back.

    Without a place it is resumed where a new one would begin.
    """

    id: str
    seq: int
    url: str


def session_of(ready: Raw) -> Session:
    """The session that a READY begins."""
    told = table(ready, "d")
    return Session(id=words(told, "session_id"), seq=whole(ready, "s") or 0, url=words(told, "resume_gateway_url"))


class Listener:
    """Hears one bot's events."""

    def __init__(
        self,
        http: OpensSockets,
        clock: Clock,
        *,
        token: Secret,
        gateway: Callable[[], Awaitable[str]],
        way_back: Callable[[Session], Session],
        session: Session | None = None,
        rng: Random = _DICE,
    ) -> None:
        self._http = http
        self._clock = clock
        self._token = token
        self._gateway = gateway
        """Asks where a new session begins."""
        self._way_back = way_back
        """A session as it may be resumed: the token is not said wherever somebody asks for it."""
        self._session = session
        self._rng = rng
        self._intents = INTENTS
        self._failures = 0
        self._resumes = 0
        """How often a session was to be resumed and told nothing."""

    async def run(self, take: Callable[[Raw], Awaitable[None]]) -> None:
        """Hand on every event, in order, until cancelled; Unauthorized if Discord will not have us."""
        # Half a second of imports, which nobody else in the process should have to wait for.
        try:
            library = await asyncio.to_thread(importlib.import_module, "belino.adapters.discord.library")
        except ModuleNotFoundError:
            raise ConfigError(
                "Discord needs discord.py, which is not installed: pip install 'belino[discord]'"
            ) from None
        while True:
            try:
                async with self._connected(library) as socket:
                    await self._hear(socket, take)
            except library.Reconnect as again:
                self._session = self._session if again.resume else None
            except library.Closed as closed:
                self._refused(closed.code)
            except AddressRefused:
                if not self._returns:
                    raise
            except (Unauthorized, RateLimited):
                raise
            except (AdapterError, OSError, TimeoutError, ValueError) as error:
                # ValueError: what came was no JSON, or not compressed as it should be.
                log.info("a connection to the gateway broke: %s", type(error).__name__)
            await self._pause()

    @asynccontextmanager
    async def _connected(self, library: Any) -> AsyncIterator["GatewaySocket"]:
        session = self._session
        url = session.url if session is not None and self._returns else await self._gateway()
        query = f"v={API_VERSION}&encoding=json&compress={library.COMPRESSION}"
        async with self._http.socket(f"{url.rstrip('/')}/?{query}", timeout=OPEN_SECONDS) as opened:
            socket = library.GatewaySocket(opened, url=url, token=self._token.reveal(), intents=self._intents)
            if session is not None:
                socket.session_id, socket.sequence = session.id, session.seq
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await socket.poll_event()  # hello
                    await (socket.identify() if session is None else socket.resume())
                self._resumes += session is not None
                yield socket
            finally:
                await socket.close()

    async def _hear(self, socket: "GatewaySocket", take: Callable[[Raw], Awaitable[None]]) -> None:
        while True:
            await socket.poll_event()
            for event in socket.heard():
                self._failures = self._resumes = 0
                self._follow(event)
                await take(event)

    @property
    def _returns(self) -> bool:
        """Whether to go where Discord wants the session back; if that failed, every other try is at its front door."""
        session = self._session
        return session is not None and bool(session.url) and (self._failures < 2 or self._failures % 2 == 1)

    def _follow(self, event: Raw) -> None:
        """Keep up with what could be resumed from here."""
        seq = whole(event, "s")
        if words(event, "t") == "READY":
            self._session = self._way_back(session_of(event))
        elif self._session is not None and seq is not None:
            self._session = replace(self._session, seq=seq)

    def _refused(self, code: int) -> None:
        """Discord hung up for good: go on without what it does not allow, or tell the operator."""
        self._session = None
        if code == DISALLOWED and self._intents & MESSAGE_CONTENT:
            log.warning(
                "Discord does not let this bot read what is not said to it: switch on Message Content Intent in the "
                "developer portal (Bot, Privileged Gateway Intents), and restart"
            )
            self._intents &= ~MESSAGE_CONTENT
        elif code in _REFUSALS:
            raise Unauthorized(_REFUSALS[code])

    async def _pause(self) -> None:
        self._failures += 1
        if self._resumes >= MOST_RESUMES:
            self._session, self._resumes = None, 0
        wait = backoff(self._failures, most=LONGEST_WAIT, rng=self._rng)
        if self._session is None:
            wait = max(wait, self._rng.uniform(LEAST_PAUSE, LONGEST_PAUSE))
        await self._clock.sleep(wait)
