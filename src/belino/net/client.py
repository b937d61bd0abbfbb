"""HTTP clients, with time limits and no proxies: an adapter's, one per account, and the one that model SDKs are given.

The error and the wait that an answer asks for are read from its status and headers. No URL is named in an error or a
log.
"""

import asyncio
import json as json_format
import os
import socket
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Literal

from belino.aio.idle_timeout import IdleTimeout
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaTooLarge,
    RateLimited,
    Unanswered,
    Unauthorized,
    Unreached,
)
from belino.domain.ports import HttpAnswer, WebSocket
from belino.net.guard import REFUSED, CheckedUrl, Guard, as_http, parse_url, redirected
from belino.net.proxy import ProxyConfig, ProxyError, Tunnels

if TYPE_CHECKING:
    from aiohttp import ClientConnectorError, ClientResponse, ClientSession, ConnectionTimeoutError
    from httpx2 import AsyncClient as AsyncClient  # for callers that receive one
    from httpx2 import Request, Response

_Way = Literal["proxy", "named", "guarded"]

MOST_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Headers for any server; every other header may be a credential, and goes to the account's own hosts only.
HARMLESS_HEADERS = frozenset(
    {"accept", "content-type", "if-match", "if-modified-since", "if-none-match", "if-range", "range", "user-agent"}
)

SOCKET_MESSAGE_BYTES = 64 * 1024 * 1024
CLOSING_SECONDS = 1.0
# A private web socket close code: after 1000 or 1001 platforms discard what we did not receive.
STILL_WANTED = 4000

# The wait after a 429 without Retry-After.
DEFAULT_RETRY_AFTER = 5.0
# If asked to wait more than a day, belino tries once a day.
LONGEST_WAIT = 86_400.0

SDK_CONNECT_SECONDS = 10.0
# A reasoning model may be silent for minutes; the gateway limits the length of a turn.
SDK_SILENCE_SECONDS = 300.0

_OPENING: "ContextVar[list[Response]]" = ContextVar("opening")
"""Collects the answers of a running request."""


def error_for(status: int, headers: Mapping[str, str], *, now: datetime | None = None) -> AdapterError | None:
    """The error for a status, or None for 1xx to 3xx. Adapters know better what a 403 or 404 means."""
    if status < 400:
        return None
    wait = retry_after(headers, now=now or datetime.now(UTC))
    if status == 429:
        wait = DEFAULT_RETRY_AFTER if wait is None else wait
    if wait is not None and status in (429, 503):
        return RateLimited(f"the platform asks to wait {wait:g} seconds (status {status})", retry_after=wait)
    if status == 401:
        return Unauthorized("the platform refused our credentials (status 401)")
    return AdapterError(f"the platform answered with status {status}")


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The wait of a `Retry-After` header, as seconds or as a date; None if it is unreadable.

    A date counts from the answer's own `Date`, as the platform's clock and ours may differ; `now` is the fallback.
    """
    seconds = _seconds(header(headers, "retry-after"), http_date(header(headers, "date")) or now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _seconds(value: str, now: datetime) -> float | None:
    try:
        seconds = float(value)
        return seconds if isfinite(seconds) else None
    except ValueError:
        pass
    date = http_date(value)
    return None if date is None else (date - now).total_seconds()


def http_date(value: str) -> datetime | None:
    """The time in a header like `Date`; None if it is invalid or has no zone."""
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None


def header(headers: Mapping[str, str], wanted: str) -> str:
    """The value of a header, case-insensitive; empty if there is none."""
    return next((value for name, value in headers.items() if name.lower() == wanted.lower()), "").strip()


async def look_up(name: str, port: int) -> Sequence[str]:
    """Every address of a name, by the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


class Client:
    """An HttpClient on aiohttp, which is imported and opened by the first request.

    `hosts` are the account's own, from an adapter's `hosts(config)`: `host` means HTTPS at its default port,
    `host:port` exactly that, even a private one. Credentials go only to them. An account that lists none may send its
    headers to any host it calls, but never to the target of a redirect.
    """

    def __init__(
        self,
        *,
        guard: Guard | None = None,
        hosts: Iterable[str] = (),
        resolve: Callable[[str, int], Awaitable[Sequence[str]]] = look_up,
        proxy: ProxyConfig | None = None,
        sites: Collection[str] = (),
    ) -> None:
        """`proxy` serves the account's own hosts and, over HTTPS, those below the platform's `sites`; no others."""
        own = tuple(hosts)
        self._own = Guard(host if _has_port(host) else f"{host}:443" for host in own) if own else None
        self._guard = (guard or Guard()).naming(host for host in own if _has_port(host))
        self._resolve = resolve
        self._tunnels = Tunnels(proxy) if proxy is not None and proxy.proxy is not None else None
        self._sites = tuple(sites)
        self._sessions: dict[_Way, ClientSession] = {}
        self._requests = 0
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        body: bytes | AsyncIterable[bytes] | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[HttpAnswer]:
        """Send one request; `timeout` bounds the wait for the answer's head and for each piece of its body."""
        sent_headers = dict(headers or {})
        if json is not None:
            body = json_format.dumps(json, ensure_ascii=False).encode()
            sent_headers.setdefault("Content-Type", "application/json")
        with self._counted():
            with _as_adapter_errors(method, timeout):
                async with asyncio.timeout(timeout):
                    response = await self._follow(method, parse_url(url), sent_headers, body)
            try:
                yield _Answer(response, method, timeout)
            finally:
                if response.content.at_eof():
                    response.release()
                else:
                    response.close()

    @asynccontextmanager
    async def socket(
        self, url: str, *, timeout: float = 30.0, heartbeat: float | None = None
    ) -> AsyncIterator[WebSocket]:
        """Open a web socket, under the same rules as a request; `timeout` bounds the wait until it is open."""
        from aiohttp import ClientWSTimeout
        from yarl import URL

        place = parse_url(as_http(url))
        self._guard.check(place)
        with _as_adapter_errors("web socket", timeout):
            async with asyncio.timeout(timeout):
                opened = await self._session(place).ws_connect(
                    URL(str(place), encoded=True),
                    max_msg_size=SOCKET_MESSAGE_BYTES,
                    autoclose=False,
                    heartbeat=heartbeat,
                    timeout=ClientWSTimeout(ws_close=CLOSING_SECONDS),
                )
        try:
            yield opened
        finally:
            await opened.close(code=STILL_WANTED)

    async def close(self) -> None:
        while self._sessions:
            await self._sessions.popitem()[1].close()

    async def retire(self) -> None:
        """Close it once its open requests have ended; a later request opens it again."""
        while self._requests:
            self._idle.clear()
            await self._idle.wait()
        await self.close()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def _follow(
        self,
        method: str,
        start: CheckedUrl,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes] | None,
    ) -> "ClientResponse":
        """The answer after at most three redirects, each checked like a first request."""
        place = start
        for _ in range(MOST_REDIRECTS + 1):
            told = headers if self._may_know(place, start) else _harmless(headers)
            response = await self._send(method, place, told, body)
            # A redirected POST would send its body again to a host that the platform names.
            if response.status not in REDIRECTS or method.upper() not in ("GET", "HEAD"):
                return response
            location = response.headers.get("Location")
            if location is None:
                return response
            response.close()
            place = redirected(place, location)
        raise AdapterError(f"a {method} to the platform failed: it was redirected more than {MOST_REDIRECTS} times")

    async def _send(
        self, method: str, place: CheckedUrl, headers: Mapping[str, str], body: bytes | AsyncIterable[bytes] | None
    ) -> "ClientResponse":
        from yarl import URL

        self._guard.check(place)
        url = URL(str(place))
        if (url.scheme, url.raw_host, url.port) != place.origin:
            raise AddressRefused(REFUSED)  # two parsers disagree: the URL is refused
        return await self._session(place).request(
            method,
            url,
            headers=headers,
            data=body,
            allow_redirects=False,
        )

    def _may_know(self, place: CheckedUrl, start: CheckedUrl) -> bool:
        if self._own is None:
            return place.origin == start.origin
        # Plain HTTP can be read in transit: only where the operator wrote the port.
        return self._own.names(place) and (place.scheme == "https" or self._guard.names(place))

    def _session(self, place: CheckedUrl) -> "ClientSession":
        """One session for each way, so that no connection opened for a place that the operator named serves others."""
        named = self._guard.names(place)
        way: _Way = "proxy" if self._is_proxied(place) else "named" if named else "guarded"
        if way not in self._sessions:
            from belino.net.connect import open_session, open_tunnelled_session

            if way == "proxy" and self._tunnels is not None:
                self._sessions[way] = open_tunnelled_session(self._tunnels)
            else:
                self._sessions[way] = open_session(None if named else self._guard, self._resolve)
        return self._sessions[way]

    def _is_proxied(self, place: CheckedUrl) -> bool:
        if self._tunnels is None:
            return False
        scheme, host, _ = place.origin
        below = any(host == site or (host or "").endswith(f".{site}") for site in self._sites)
        return (self._own is not None and self._own.names(place)) or (below and scheme == "https")


class _Answer:
    """One aiohttp response, as our port."""

    def __init__(self, response: "ClientResponse", method: str, timeout: float) -> None:
        self._response = response
        self._method = method
        self._timeout = timeout

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self, limit: int) -> bytes:
        """The whole body; MediaTooLarge past `limit` bytes."""
        pieces: list[bytes] = []
        count = 0
        with _as_adapter_errors(self._method, self._timeout):
            async with asyncio.timeout(self._timeout):
                async for piece in self._response.content.iter_any():
                    count += len(piece)
                    if count > limit:
                        raise MediaTooLarge(f"the platform's answer is over {limit} bytes", limit=limit)
                    pieces.append(piece)
        return b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece, as it arrives."""
        from belino.net.connect import direct_body

        with _as_adapter_errors(self._method, self._timeout), closing(IdleTimeout()) as patience:
            direct = direct_body(self._response)
            read = self._response.content.readany if direct is None else direct.read
            while True:
                with patience.of(self._timeout):
                    piece = await read()
                if not piece:
                    return
                yield piece


def _harmless(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in HARMLESS_HEADERS}


def _has_port(host: str) -> bool:
    return host.rpartition("]")[2].rpartition(":")[2].isdigit()


@contextmanager
def _as_adapter_errors(method: str, timeout: float) -> Iterator[None]:
    """Describe a failure without the URL: aiohttp's own errors print it, and a platform's URL may hold its token."""
    from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError

    try:
        yield
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        if _was_refused(error):
            raise AddressRefused(REFUSED) from None
        raise Unreached(f"a {method} did not reach the platform: {_why_unreached(error)}") from None
    except TimeoutError:
        raise Unanswered(f"the platform did not answer a {method} within {timeout:g} seconds") from None
    except (ClientError, OSError, ValueError) as error:
        if _was_refused(error):
            raise AddressRefused(REFUSED) from None
        raise Unanswered(f"a {method} to the platform failed: {type(error).__name__}") from None


def _why_unreached(error: "ClientConnectorError | ConnectionTimeoutError") -> str:
    from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ConnectionTimeoutError

    if isinstance(error.__cause__, ProxyError):
        return str(error.__cause__)
    match error:
        case ConnectionTimeoutError():
            return "the connection took too long"
        case ClientConnectorCertificateError():
            return "its certificate is not trusted here"
        case ClientConnectorDNSError():
            return "its host name is not found"
    return os.strerror(error.os_error.errno).lower() if error.os_error.errno else "it cannot be connected to"


def _was_refused(error: BaseException | None) -> bool:
    from belino.net.connect import ConnectRefusal

    while error is not None and not isinstance(error, ConnectRefusal):
        error = error.__cause__
    return error is not None


def open_sdk_client() -> "AsyncClient":
    """A client for an SDK that accepts one; ImportError without an extra that needs it."""
    import httpx2

    # The environment is ignored: no proxy that would see every word, and no .netrc.
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SDK_SILENCE_SECONDS, connect=SDK_CONNECT_SECONDS),
        event_hooks={"request": [_say_one_name], "response": [_note, _refuse_sdk_redirect]},
    )


class SdkAnswers:
    """The HTTP answers to one request of an SDK. Not every SDK closes them when reading stops early."""

    def __init__(self) -> None:
        self._open: list[Response] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Collect answers inside the block."""
        token = _OPENING.set(self._open)
        try:
            yield
        finally:
            _OPENING.reset(token)

    async def close(self) -> None:
        for answer in self._open:
            await answer.aclose()


async def _refuse_sdk_redirect(answer: "Response") -> None:
    # SDKs request redirects per call, whatever the client says; the key and every word would be sent along.
    if answer.is_redirect:
        import httpx2

        raise httpx2.RemoteProtocolError("redirects are not followed", request=answer.request)


async def _note(answer: "Response") -> None:
    if (noting := _OPENING.get(None)) is not None:
        noting.append(answer)


async def _say_one_name(request: "Request") -> None:
    # Google's SDK sends this header twice, which strict servers refuse.
    request.headers["User-Agent"] = "belino"
