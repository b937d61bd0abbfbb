"""Discord's gateway sessions: each bot's intents, the events sent to it, and those it can have replayed."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from belino.domain.ports import Clock
from belino.testing.discord.shapes import Json

if TYPE_CHECKING:
    from belino.testing.discord.gateway import DiscordConnection

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
