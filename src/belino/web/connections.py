"""Connection pool: separate shares of the open connections before and after login.

A client without a login can only displace others without one: when their share is full, the one that keeps the server
waiting longest is dropped, so that a new client always finds a place.
"""

import ipaddress
import logging
import resource
from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from belino.domain.ports import Clock
from belino.web.responses import busy

log = logging.getLogger(__name__)

STATE_KEY = "connection"
KNOWN_MOST = 1_000
ANONYMOUS_MOST = 256
# Reserved for SQLite, blobs, uploads, child processes and outgoing calls.
RESERVED_FILES = 256
REPORT_SECONDS = 60.0

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many connections may be open before and after login."""

    anonymous: int
    known: int

    @property
    def per_peer(self) -> int:
        """Connections of one address that wait for their client, before login."""
        return max(1, self.anonymous * 3 // 4)


def shares_of(open_files: int) -> Shares:
    """The shares for a process with this limit on open files."""
    if open_files == resource.RLIM_INFINITY:
        return Shares(anonymous=ANONYMOUS_MOST, known=KNOWN_MOST)
    available = open_files - min(RESERVED_FILES, open_files // 2)
    anonymous = min(ANONYMOUS_MOST, available // 4)
    return Shares(anonymous=anonymous, known=min(KNOWN_MOST, available - anonymous))


class EvictionQueue(Generic[T]):
    """Items by peer in order of arrival; the one to evict is the oldest of the peer with the most."""

    def __init__(self) -> None:
        self._arrivals = count()
        self._peers: dict[T, str] = {}
        self._items: dict[str, dict[T, int]] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, item: T) -> bool:
        return item in self._peers

    def held_by(self, peer: str) -> int:
        """The number of items of one peer."""
        return len(self._items.get(peer, ()))

    def add(self, item: T, peer: str) -> None:
        """Append an item as the newest."""
        self.discard(item)
        self._peers[item] = peer
        self._items.setdefault(peer, {})[item] = next(self._arrivals)

    def discard(self, item: T) -> None:
        """Remove an item if present."""
        peer = self._peers.pop(item, None)
        if peer is not None:
            del self._items[peer][item]
            if not self._items[peer]:
                del self._items[peer]

    def oldest(self, peer: str | None = None) -> T | None:
        """The item to evict: of one peer, or of the peer with the most."""
        groups = self._items.values() if peer is None else [self._items.get(peer, {})]
        fullest = max(filter(None, groups), key=lambda items: (len(items), -next(iter(items.values()))), default=None)
        return next(iter(fullest)) if fullest else None


@dataclass(eq=False, slots=True, kw_only=True)
class ClientConnection:
    """One accepted connection: its protocol reports whose turn it is, the application whether its client is known."""

    pool: "ConnectionPool"
    peer: str
    drop: Callable[[], None]
    """Closes it, with an answer where one is possible."""
    has_whole_request: Callable[[], bool] = lambda: True
    """Whether the request being answered has arrived in full."""
    is_open: bool = True
    is_known: bool = False


class ConnectionPool:
    """The connections of one server, each in the anonymous or in the known share."""

    def __init__(self, shares: Shares, clock: Clock) -> None:
        self.shares = shares
        self._clock = clock
        self._waiting: EvictionQueue[ClientConnection] = EvictionQueue()
        self._anonymous = self._known = 0
        self._dropped, self._reported = 0, float("-inf")

    def open(self, peer: str, drop: Callable[[], None]) -> ClientConnection | None:
        """Admit a new connection, by dropping the slowest if necessary; None if all others are being answered."""
        if self._waiting.held_by(peer) >= self.shares.per_peer:
            self._evict(self._waiting.oldest(peer))
        elif self._anonymous >= self.shares.anonymous and not self._evict(self._waiting.oldest()):
            return None
        connection = ClientConnection(pool=self, peer=peer, drop=drop)
        self._anonymous += 1
        self._waiting.add(connection, peer)
        return connection

    def close(self, connection: ClientConnection) -> None:
        """Release the place of a connection that ended."""
        if not connection.is_open:
            return
        connection.is_open = False
        if connection.is_known:
            self._known -= 1
        else:
            self._anonymous -= 1
            self._waiting.discard(connection)

    def claim(self, connection: ClientConnection) -> bool:
        """Move a connection whose client has logged in to the known share; False if that is full."""
        if connection.is_known or not connection.is_open:
            return True
        if self._known >= self.shares.known:
            return False
        self._anonymous -= 1
        self._known += 1
        self._waiting.discard(connection)
        connection.is_known = True
        return True

    def forget(self, connection: ClientConnection) -> None:
        """Move a connection back: the next request on it may be another client's."""
        if connection.is_known and connection.is_open:
            connection.is_known = False
            self._known -= 1
            self._anonymous += 1
            self._waiting.add(connection, connection.peer)

    def set_turn(self, connection: ClientConnection, client_turn: bool) -> None:
        """Make an anonymous connection evictable exactly while the server waits for its client.

        One that is waited for already keeps its place, however often a part of its request arrives.
        """
        if not client_turn or not connection.is_open or connection.is_known:
            self._waiting.discard(connection)
        elif connection not in self._waiting:
            self._waiting.add(connection, connection.peer)

    def set_peer(self, connection: ClientConnection, peer: str) -> None:
        """Count a connection under another address; it counts as new again, as its request has just begun."""
        if peer != connection.peer:
            self._waiting.discard(connection)
            connection.peer = peer
            self.set_turn(connection, client_turn=True)

    def _evict(self, connection: ClientConnection | None) -> bool:
        if connection is None:
            return False
        self.close(connection)
        connection.drop()
        self._dropped += 1
        now = self._clock.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            log.warning("%d slow connections before login dropped since the start, to admit others", self._dropped)
        return True


def connection_of(scope: MutableMapping[str, Any]) -> ClientConnection | None:
    """The connection of a request; None where an application is called without a server."""
    connection = scope.get("state", {}).get(STATE_KEY)
    return connection if isinstance(connection, ClientConnection) else None


def count_as_known(scope: MutableMapping[str, Any]) -> None:
    """Move the connection of an authenticated request to the known share; Refusal if that is full."""
    connection = connection_of(scope)
    if connection is not None and not connection.pool.claim(connection):
        raise busy(f"{connection.pool.shares.known} connections are open already; close a page or a program.")


def peer_of(address: str) -> str:
    """The key by which connections are counted: an IPv4 address, or the /64 network of an IPv6 customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
