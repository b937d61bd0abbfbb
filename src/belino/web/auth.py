"""Auth: Host and Origin, cookie and bearer token, logins and the access of each grant."""

import ipaddress
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from belino.domain.errors import ConfigError
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import Grant, GrantKind
from belino.web.connections import peer_of
from belino.web.responses import Code, Refusal, not_found

SECRET_CHARS = 256
SAFE_METHODS = frozenset({"GET", "HEAD"})
COOKIE_NAME = "belino_session"
"""The full name up to version 0.7.0; browsers send cookies to every port of a host."""

_BEARER_KINDS = frozenset({GrantKind.PROGRAM, GrantKind.CHANNEL, GrantKind.MONITOR})
_COOKIE_KINDS = frozenset({GrantKind.BROWSER})


class Requires(StrEnum):
    """The requirement of a route. Every route has one."""

    OPEN = "open"
    """Nothing."""
    TURN = "turn"
    """The token of a running turn, which the route checks itself."""
    CONVERSATION = "conversation"
    """Any grant; the route checks each conversation it touches with `Visitor.must_see`."""
    PERSON = "person"
    """A browser login, or the command line on the gateway's machine."""
    MONITOR = "monitor"
    """The same, or a monitoring system's token."""
    PROGRAM = "program"


_OPENED_BY: dict[Requires, Collection[GrantKind]] = {
    Requires.CONVERSATION: {GrantKind.BROWSER, GrantKind.PROGRAM, GrantKind.CHANNEL},
    Requires.PERSON: {GrantKind.BROWSER, GrantKind.PROGRAM},
    Requires.MONITOR: {GrantKind.BROWSER, GrantKind.PROGRAM, GrantKind.MONITOR},
    Requires.PROGRAM: {GrantKind.PROGRAM},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A client with a valid secret of ours."""

    grant: Grant
    secret: str = field(repr=False)

    def may_see(self, conversation: ConversationKey) -> bool:
        """A channel's token sees its conversation and, if that is a whole channel, the threads in it."""
        if self.grant.kind is not GrantKind.CHANNEL:
            return self.grant.kind is not GrantKind.MONITOR
        own = self.grant.conversation
        return own is not None and own in (conversation, conversation.whole_channel)

    def must_see(self, conversation: ConversationKey) -> None:
        """Refuse other conversations exactly like nonexistent ones."""
        if not self.may_see(conversation):
            raise not_found()


class ChecksSecrets(Protocol):
    """Finds the grant of a secret."""

    async def check(self, secret: str) -> Grant | None: ...


class ServerSettings(Protocol):
    """The part of `[server]` about our names and trusted proxies."""

    @property
    def bind(self) -> str: ...
    @property
    def allowed_hosts(self) -> Sequence[str]: ...
    @property
    def trusted_proxies(self) -> Sequence[str]: ...
    @property
    def public_url(self) -> str | None: ...


MCP_PATH = "/mcp"
MCP_ADVICE = "Send a token, `Authorization: Bearer …`: `belino token create --conversation …` prints one."


class Origins:
    """Our own host names and page origins."""

    def __init__(self, settings: ServerSettings) -> None:
        self._names = {name.lower() for name in settings.allowed_hosts}
        self._local = {"127.0.0.1", "localhost", "[::1]"}
        if settings.bind not in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not bound
            self._local.add(f"[{settings.bind}]" if ":" in settings.bind else settings.bind.lower())
        self._proxies = tuple(_network(proxy) for proxy in settings.trusted_proxies)
        self._public: str | None = None
        if settings.public_url:
            public = urlsplit(settings.public_url)
            self._public = f"{public.scheme}://{public.netloc}".lower()
            self._names.add(public.netloc.lower())

    def knows_host(self, connection: HTTPConnection) -> bool:
        """Exactly one Host header, and it is one of our names: this stops DNS rebinding."""
        hosts = connection.headers.getlist("host")
        server = connection.scope.get("server")
        if len(hosts) != 1 or server is None:
            return False
        host, port = hosts[0].lower(), server[1]
        allowed = {f"{name}:{port}" for name in self._local | self._names} | self._names
        if port == (443 if connection.scope["scheme"] in ("https", "wss") else 80):
            allowed |= self._local
        return host in allowed

    def is_ours(self, connection: HTTPConnection, origin: str) -> bool:
        """Whether this origin is our own page's, for this request."""
        scheme = "https" if self.is_secure(connection) else "http"
        ours = {f"{scheme}://{connection.headers.get('host', '')}".lower(), self._public}
        return origin.lower() in ours

    def is_secure(self, connection: HTTPConnection) -> bool:
        """TLS, ours or that of a trusted proxy."""
        if connection.scope["scheme"] in ("https", "wss"):
            return True
        return self._from_proxy(connection) and connection.headers.get("x-forwarded-proto", "").lower() == "https"

    def is_https(self, connection: HTTPConnection) -> bool:
        """Whether the browser uses HTTPS: TLS, or the public address, which an untrusted proxy serves."""
        at_public = self._public == f"https://{connection.headers.get('host', '')}".lower()
        return at_public or self.is_secure(connection)

    def peer(self, connection: HTTPConnection) -> str:
        """The peer by which connections and failures are counted; only trusted proxies may forward another address."""
        direct = connection.client.host if connection.client else "unknown"
        if not self._from_proxy(connection):
            return peer_of(direct)
        named = [part.strip() for line in connection.headers.getlist("x-forwarded-for") for part in line.split(",")]
        return peer_of(next((name for name in reversed(named[-16:]) if not self.trusts(name)), direct)[:64])

    def _from_proxy(self, connection: HTTPConnection) -> bool:
        return connection.client is not None and self.trusts(connection.client.host)

    def trusts(self, address: str) -> bool:
        """Whether an address is that of a proxy whose forwarded headers count."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)


def _network(proxy: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(proxy, strict=False)
    except ValueError:
        raise ConfigError(f"server.trusted_proxies holds {proxy!r}; write an address or a network") from None


class SessionCookie:
    """The session cookie, named after the instance, so that several gateways on one host have separate logins."""

    def __init__(self, instance: str, origins: Origins) -> None:
        self._name = f"{COOKIE_NAME}_{instance}"
        self._origins = origins

    def name(self, connection: HTTPConnection) -> str:
        """`__Host-` over HTTPS, where browsers support it. No subdomain and no plain page can then set one."""
        return f"__Host-{self._name}" if self._origins.is_https(connection) else self._name

    def read(self, connection: HTTPConnection) -> str | None:
        """The secret of a browser's cookie; under the former name only if there is none under its own."""
        return connection.cookies.get(self.name(connection)) or connection.cookies.get(COOKIE_NAME)

    def write(self, request: HTTPConnection, response: Response, secret: str, *, seconds: int) -> None:
        """Set the cookie; zero seconds delete it."""
        self._set(request, response, self.name(request), secret, seconds)

    def rename(self, request: HTTPConnection, response: Response, visitor: Visitor, now: datetime) -> None:
        """Move a login of version 0.7.0, under the former name, to the name of this instance."""
        expires = visitor.grant.expires
        if request.cookies.get(COOKIE_NAME) != visitor.secret or expires is None:
            return
        self.write(request, response, visitor.secret, seconds=max(1, int((expires - now).total_seconds())))
        self._set(request, response, COOKIE_NAME, "", 0)

    def _set(self, request: HTTPConnection, response: Response, name: str, value: str, seconds: int) -> None:
        secure = self._origins.is_https(request)
        response.set_cookie(name, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")


class Attempts:
    """Failed logins per peer in the last minute; an attempt counts as failed until it succeeds."""

    def __init__(self, clock: Clock, *, most: int = 10, seconds: float = 60.0, peers: int = 1_000) -> None:
        self._clock = clock
        self._most = most
        self._seconds = seconds
        self._peers = peers
        self._failed: dict[str, deque[float]] = {}

    def begin(self, peer: str) -> None:
        """Count an attempt before any lookup, so that a hundred at once are still ten."""
        now = self._clock.monotonic()
        failed = self._failed.pop(peer, deque())
        while failed and failed[0] <= now - self._seconds:
            failed.popleft()
        self._failed[peer] = failed
        while len(self._failed) > self._peers:
            del self._failed[next(iter(self._failed))]
        if len(failed) >= self._most:
            wait = max(1, round(failed[0] + self._seconds - now))
            message = "Too many failed logins; wait a minute."
            raise Refusal(429, Code.BUSY, message, headers={"Retry-After": str(wait)})
        failed.append(now)

    def succeeded(self, peer: str) -> None:
        """Undo the count of `begin`."""
        if failed := self._failed.get(peer):
            failed.pop()


async def admit(
    connection: HTTPConnection, requires: Requires, *, grants: ChecksSecrets, cookie: SessionCookie, origins: Origins
) -> Visitor:
    """The visitor of a request, if their grant meets the requirement; Refusal otherwise."""
    bearer = bearer_of(connection)
    if bearer is not None:
        visitor = await _visitor(bearer, _BEARER_KINDS, grants)
    else:
        visitor = await _visitor(cookie.read(connection), _COOKIE_KINDS, grants)
        if visitor is not None:
            _refuse_forgery(connection, origins)
    if visitor is None:
        raise unauthorized(MCP_ADVICE) if connection.url.path == MCP_PATH else unauthorized()
    if visitor.grant.kind not in _OPENED_BY[requires]:
        raise not_found()
    return visitor


def unauthorized(message: str = "Log in first: `belino login` prints a fresh address.") -> Refusal:
    """No secret, or an invalid one."""
    return Refusal(401, Code.UNAUTHORIZED, message, headers={"WWW-Authenticate": 'Bearer realm="belino"'})


def refuse_foreign_page(connection: HTTPConnection, origins: Origins) -> None:
    """Refuse cross-origin requests of browsers, also before there is a cookie."""
    origin = connection.headers.get("origin")
    if origin is not None and not origins.is_ours(connection, origin):
        raise _foreign()
    if connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise _foreign()


def _refuse_forgery(connection: HTTPConnection, origins: Origins) -> None:
    """Browsers send cookies automatically, so a change must prove that our own page asked for it."""
    refuse_foreign_page(connection, origins)
    is_socket = connection.scope["type"] == "websocket"
    if not is_socket and connection.scope["method"] in SAFE_METHODS:
        return
    origin = connection.headers.get("origin")
    if is_socket:
        proven = origin is not None
    else:
        named = origin is not None or connection.headers.get("sec-fetch-site") == "same-origin"
        proven = named and connection.headers.get("x-belino") == "1"
    if not proven:
        raise _foreign()


def _foreign() -> Refusal:
    return Refusal(403, Code.FORBIDDEN, "This request did not come from belino's own page.")


async def _visitor(secret: str | None, kinds: Collection[GrantKind], grants: ChecksSecrets) -> Visitor | None:
    if not secret or len(secret) > SECRET_CHARS:
        return None
    grant = await grants.check(secret)
    return Visitor(grant=grant, secret=secret) if grant is not None and grant.kind in kinds else None


def bearer_of(connection: HTTPConnection) -> str | None:
    """The bearer token of a request: None without the header, empty if it is another scheme."""
    header = connection.headers.get("authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
