"""Proxy of an account: tunnels to the account's own hosts, through a SOCKS5 or HTTP proxy that the operator names.

The proxy resolves names, and sees host and port; TLS goes through the tunnel. SOCKS5 is RFC 1928, with logins by
RFC 1929; HTTP is CONNECT, RFC 9110 section 9.3.6.
"""

import asyncio
import ipaddress
import socket
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from belino.domain.errors import ConfigError
from belino.net.redact import Secret

SCHEMES = frozenset({"socks5", "http"})
HEAD_BYTES = 8 * 1024
TUNNEL_SECONDS = 10.0

_NO_LOGIN, _LOGIN = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REPLIES = {
    1: "it failed",
    2: "its rules forbid it",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "the host refused it",
    6: "it took too long",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """The proxy of an account."""

    proxy: str | None = field(
        default=None,
        metadata={
            "says": "The proxy for the platform's own hosts, `socks5://HOST:PORT` or `http://HOST:PORT`; all other "
            "addresses are reached without it."
        },
    )
    proxy_login: Secret | None = field(
        default=None, metadata={"says": "The login at the proxy, as `NAME:PASSWORD` in a variable: `env:PROXY_LOGIN`."}
    )

    def __post_init__(self) -> None:
        if self.proxy is not None and (problem := _problem(self.proxy)):
            raise ConfigError(f"proxy {problem}; write socks5://HOST:PORT or http://HOST:PORT")
        if self.proxy_login is not None:
            name, colon, password = self.proxy_login.reveal().partition(":")
            if not (name and colon) or not all(len(part.encode()) <= 255 for part in (name, password)):
                raise ConfigError("proxy_login must be NAME:PASSWORD, each of at most 255 bytes")


def _problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL"
    if "@" in parts.netloc:
        return "holds a login, which belongs in proxy_login"
    if parts.scheme not in SCHEMES:
        return "has a scheme that belino does not know"
    if not parts.hostname or not port or parts.path.strip("/") or parts.query or parts.fragment:
        return "does not name a host and a port"
    return ""


class ProxyError(OSError):
    """The proxy gives no tunnel; names neither an address nor a login."""


class Tunnels:
    """Opens tunnels through one proxy."""

    def __init__(self, config: ProxyConfig) -> None:
        self._proxy: SplitResult = urlsplit(config.proxy or "")
        self._login = config.proxy_login

    async def open(self, host: str, port: int) -> socket.socket:
        """A connected socket that leads to this host; ProxyError says why there is none."""
        try:
            async with asyncio.timeout(TUNNEL_SECONDS):
                with ExitStack() as undoing:
                    sock = await self._connect()
                    undoing.callback(sock.close)
                    await (self._socks if self._proxy.scheme == "socks5" else self._http)(sock, host, port)
                    undoing.pop_all()
                return sock
        except TimeoutError:
            raise ProxyError("the proxy did not answer in time") from None
        except ProxyError:
            raise
        except OSError:
            raise ProxyError("the proxy cannot be reached") from None

    async def _connect(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._proxy.hostname or "", self._proxy.port or 0, type=socket.SOCK_STREAM)
        failure: OSError = ProxyError("the proxy's name has no address")
        for family, kind, protocol, _, address in found:
            with ExitStack() as undoing:
                sock = socket.socket(family, kind, protocol)
                undoing.callback(sock.close)
                sock.setblocking(False)
                try:
                    await loop.sock_connect(sock, address)
                except OSError as error:
                    failure = error
                    continue
                undoing.pop_all()
                return sock
        raise failure

    async def _socks(self, sock: socket.socket, host: str, port: int) -> None:
        methods = bytes([_NO_LOGIN] if self._login is None else [_NO_LOGIN, _LOGIN])
        await _say(sock, bytes([5, len(methods)]) + methods)
        version, method = await _hear(sock, 2)
        if version != 5:
            raise ProxyError("the proxy does not speak SOCKS5")
        if method == _LOGIN and self._login is not None:
            await self._log_in(sock, self._login)
        elif method != _NO_LOGIN:
            raise ProxyError("the proxy asks for a login (proxy_login)")
        await _say(sock, bytes([5, 1, 0]) + _destination(host) + port.to_bytes(2))
        version, reply, _, kind = await _hear(sock, 4)
        if version != 5 or reply:
            raise ProxyError(f"the proxy opened no connection: {_REPLIES.get(reply, 'it does not say why')}")
        length = {_IPV4: 4, _IPV6: 16}.get(kind) or (await _hear(sock, 1))[0]
        await _hear(sock, length + 2)

    async def _log_in(self, sock: socket.socket, login: Secret) -> None:
        name, _, password = login.reveal().partition(":")
        await _say(sock, b"\x01" + b"".join(bytes([len(part)]) + part for part in (name.encode(), password.encode())))
        _, refused = await _hear(sock, 2)
        if refused:
            raise ProxyError("the proxy refused the login (proxy_login)")

    async def _http(self, sock: socket.socket, host: str, port: int) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
        if self._login is not None:
            head += f"Proxy-Authorization: Basic {b64encode(self._login.reveal().encode()).decode()}\r\n"
        await _say(sock, f"{head}\r\n".encode("ascii"))
        answer = b""
        # Byte by byte: what follows the head belongs to the tunnel.
        while not answer.endswith(b"\r\n\r\n"):
            if len(answer) >= HEAD_BYTES:
                raise ProxyError("the proxy does not speak HTTP")
            answer += await _hear(sock, 1)
        protocol, status = [*answer.split(b" ", 2), b"", b""][:2]
        if not protocol.startswith(b"HTTP/1.") or not status[:3].isdigit():
            raise ProxyError("the proxy does not speak HTTP")
        if status[:3] == b"407":
            raise ProxyError("the proxy refused the login (proxy_login)")
        if not status.startswith(b"2"):
            raise ProxyError(f"the proxy opened no connection: it answered with status {int(status[:3])}")


def _destination(host: str) -> bytes:
    """The address type and the address of a SOCKS5 request; names are sent as they are, for the proxy to resolve."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii")
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


async def _say(sock: socket.socket, said: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, said)


async def _hear(sock: socket.socket, size: int) -> bytes:
    heard = b""
    while len(heard) < size:
        piece = await asyncio.get_running_loop().sock_recv(sock, size - len(heard))
        if not piece:
            raise ProxyError("the proxy closed the connection")
        heard += piece
    return heard
