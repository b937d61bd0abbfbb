"""The HTTP client an adapter gets: one per account, patient within limits, silent about URLs."""

import asyncio
import json as json_format
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from belino.domain.errors import AdapterError, MediaTooLarge, RateLimited, Unauthorized
from belino.domain.ports import HttpAnswer
from belino.net.pace import retry_after

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_SECONDS = 5.0
MOST_REDIRECTS = 5

# A platform that says 429 without saying how long.
DEFAULT_RETRY_AFTER = 5.0


def error_for(status: int, headers: Mapping[str, str], *, now: datetime | None = None) -> AdapterError | None:
    """The error an answer's status means, or None for 1xx to 3xx. What a 403 or 404 means, an adapter knows better."""
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


class Client:
    """An HttpClient on aiohttp, which is imported and opened by the first request."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

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
        """Send one request; `timeout` bounds the wait for the answer's head and each wait for a piece of its body."""
        from aiohttp import ClientTimeout

        sent_headers = dict(headers or {})
        if json is not None:
            body = json_format.dumps(json, ensure_ascii=False).encode()
            sent_headers.setdefault("Content-Type", "application/json")
        with _as_adapter_errors(method, timeout):
            async with asyncio.timeout(timeout):
                response = await self._opened().request(
                    method,
                    url,
                    headers=sent_headers,
                    data=body,
                    # A redirected POST would say its body again to somebody the platform names.
                    allow_redirects=method.upper() in ("GET", "HEAD"),
                    max_redirects=MOST_REDIRECTS,
                    timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=timeout),
                )
        try:
            yield _Answer(response, method, timeout)
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> "ClientSession":
        if self._session is None:
            from aiohttp import ClientSession, DummyCookieJar

            # A compressed body is not asked for and not unpacked: a bomb stays small.
            self._session = ClientSession(
                trust_env=False,
                auto_decompress=False,
                cookie_jar=DummyCookieJar(),
                headers={"Accept-Encoding": "identity", "User-Agent": "belino"},
            )
        return self._session


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
        pieces = aiter(self._response.content.iter_any())
        while True:
            with _as_adapter_errors(self._method, self._timeout):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return
            yield piece


@contextmanager
def _as_adapter_errors(method: str, timeout: float) -> Iterator[None]:
    """Name what failed without the URL: aiohttp's own errors print it, and a platform's URL may hold its token."""
    from aiohttp import ClientError

    try:
        yield
    except TimeoutError:
        raise AdapterError(f"the platform did not answer a {method} within {timeout:g} seconds") from None
    except (ClientError, OSError, ValueError) as error:
        raise AdapterError(f"a {method} to the platform failed: {type(error).__name__}") from None
