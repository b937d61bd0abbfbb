"""Connect only where the guard allows it: aiohttp's connector with a check of every address."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, TraceConfig, TraceRequestRedirectParams
from aiohttp.abc import AbstractResolver, ResolveResult

from belino.net.guard import REFUSED, Guard

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""(name, port) → every address of the name."""

CONNECT_SECONDS = 5.0
# Reading a gigabyte in this size, where the connection is not taken over, costs less CPU than in aiohttp's 64 KiB, or
# in 512.
READ_BYTES = 256 * 1024


class ConnectRefusal(OSError):
    """Raised for a socket that is not opened; it names no address."""

    def __init__(self) -> None:
        super().__init__(REFUSED)


def open_session(guard: Guard | None, resolve: Resolve) -> ClientSession:
    """A session that reaches what the guard allows; without a guard, for places the operator named, anything."""
    connector = TCPConnector(
        resolver=_Resolver(guard, resolve),
        # Called for literal addresses too, which no resolver sees, and before the first packet leaves.
        socket_factory=None if guard is None else _factory(guard),
    )
    # The client follows redirects itself, one by one; a web socket would follow them past the guard.
    leading = TraceConfig()
    leading.on_request_redirect.append(_refuse_redirect)
    # Compressed bodies are neither requested nor unpacked: a decompression bomb stays small.
    return ClientSession(
        connector=connector,
        trace_configs=[leading],
        trust_env=False,
        auto_decompress=False,
        cookie_jar=DummyCookieJar(),
        read_bufsize=READ_BYTES,
        # Readers bound their own waits: aiohttp would set a timer for every packet.
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", "User-Agent": "belino"},
    )


async def _refuse_redirect(_session: ClientSession, _context: object, told: TraceRequestRedirectParams) -> None:
    told.response.close()
    raise ConnectRefusal


class _Resolver(AbstractResolver):
    """Resolves once; a name with one refused address is refused, or it could be retried until it works."""

    def __init__(self, guard: Guard | None, resolve: Resolve) -> None:
        self._guard = guard
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._resolve(host, port)
        if self._guard is not None and not all(self._guard.lets(address) for address in addresses):
            raise ConnectRefusal
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


def _factory(guard: Guard) -> Callable[["AddrInfoType"], socket.socket]:
    def make(address: "AddrInfoType") -> socket.socket:
        family, kind, protocol, _, where = address
        if not guard.lets(str(where[0])):
            raise ConnectRefusal
        return socket.socket(family, kind, protocol)

    return make
