"""Client of the running gateway: address and token from run.json, one HTTP request per call.

When no gateway runs, `ask` opens the store itself, under its lock.
"""

import fcntl
import http.client
import json
import os
import socket
import ssl
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import tzinfo
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from belino.cli.command import NotRunning
from belino.domain.errors import BelinoError, ConfigError
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.static_vectors import SearchConfig
    from belino.storage.store import Store

ANSWER_SECONDS = 30.0
APPEND_SECONDS = 120.0
NO_HEADERS: Mapping[str, str] = {}


class Unknown(BelinoError):
    """The gateway has nothing of this name."""


class SilentGateway(BelinoError):
    """The gateway did not answer a request, which it may have carried out."""


class GatewayClient:
    """Calls the gateway that runs on this machine."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._token = token

    def get(self, path: str, **query: object) -> Any:
        """GET as JSON; parameters that are None are left out."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    def find(self, path: str, **query: object) -> Any:
        """The same; None for 404."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self.found("GET", f"{path}?{urlencode(given)}")

    def found(self, method: str, path: str, body: object = None) -> Any:
        """The answer to any request; None for 404."""
        status, read = self.answer(method, path, body)
        return None if status == 404 else read

    def post(self, path: str, body: object) -> Any:
        return self.ask("POST", path, body)

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def ask(self, method: str, path: str, body: object = None, *, seconds: float = ANSWER_SECONDS) -> Any:
        """One request; a refusal becomes an error with the gateway's own message."""
        status, read = self.answer(method, path, body, seconds=seconds)
        if status == 404:
            raise _refused(status, read)
        return read

    def answer(
        self, method: str, path: str, body: object = None, *, seconds: float = ANSWER_SECONDS
    ) -> tuple[int, Any]:
        """One request whose 404 is returned to the caller; any other refusal becomes an error."""
        with self._asked(method, path, body, seconds=seconds) as answer:
            read = _parsed(answer.read())
        if answer.status >= 400 and answer.status != 404:
            raise _refused(answer.status, read)
        return answer.status, read

    def relay(
        self,
        path: str,
        body: object,
        *,
        headers: Mapping[str, str],
        seconds: float,
        tell: Callable[[Any], None],
        opened: Callable[[Callable[[], None]], None] = lambda _: None,
    ) -> Any:
        """Relay another client's request: an answer with its own error is returned as it is.

        `tell` gets what comes before the answer; `opened` gets what cuts the connection, which cancels it.
        """
        accept = "application/json, text/event-stream"
        with self._asked("POST", path, body, accept=accept, headers=headers, seconds=seconds, opened=opened) as answer:
            if answer.headers.get_content_type() == "text/event-stream":
                return _streamed(answer, tell)
            read = _parsed(answer.read())
        if answer.status >= 400 and not (isinstance(read, dict) and "jsonrpc" in read):
            raise _refused(answer.status, read)
        return read

    def append(self, path: str, offset: int, piece: bytes) -> Any:
        """Add raw bytes to an upload; a refusal becomes an error."""
        headers = {"Upload-Offset": str(offset)}
        with self._asked("PATCH", path, piece, headers=headers, seconds=APPEND_SECONDS) as answer:
            read = _parsed(answer.read())
        if answer.status >= 400:
            raise _refused(answer.status, read)
        return read

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = "*/*",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Iterator[http.client.HTTPResponse]:
        """A streamed answer; a refusal becomes an error."""
        with self._asked(method, path, body, accept=accept, headers=headers) as answer:
            if answer.status >= 400:
                raise _refused(answer.status, _parsed(answer.read()))
            yield answer

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        body: object,
        *,
        accept: str = "application/json",
        headers: Mapping[str, str] = NO_HEADERS,
        seconds: float = ANSWER_SECONDS,
        opened: Callable[[Callable[[], None]], None] = lambda _: None,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection(seconds)
        opened(lambda: _cut(connection))
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        own = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "Accept": accept}
        try:
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, path, body=sent, headers={**headers, **own})
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise SilentGateway(f"the gateway at {self.url} does not answer ({type(error).__name__})") from None
        finally:
            connection.close()

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        host, port = address.hostname or "127.0.0.1", address.port
        if address.scheme == "https":
            # Our own process on loopback, with a certificate for its public name: run.json vouches for it.
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=seconds)


def ask(
    args: Namespace, *, running: Callable[[GatewayClient], Any], resting: "Callable[[Store], Awaitable[Any]]"
) -> Any:
    """The same answer from the gateway or from the store."""
    home = Home.at(args.home)
    client = running_gateway(home)
    if client is not None:
        return running(client)
    import asyncio

    return asyncio.run(with_store(home, resting))


async def with_store(home: Home, question: "Callable[[Store], Awaitable[Any]]") -> Any:
    """Open the store, ask, close it."""
    from belino.net.clock import SystemClock
    from belino.storage.store import open_store

    zone, search = _settings(home)
    store = await open_store(home, clock=SystemClock(), zone=zone, search=search)
    try:
        return plain(await question(store))
    finally:
        await store.close()


def _settings(home: Home) -> "tuple[tzinfo, SearchConfig]":
    """The configured time zone and search; the defaults if the configuration cannot be read."""
    from belino.config.read import load
    from belino.net.clock import time_zone
    from belino.storage.static_vectors import SearchConfig

    try:
        config = load(home)
    except ConfigError:  # which other commands report
        return time_zone(), SearchConfig()
    return time_zone(config.context.timezone), config.search


def plain(value: object) -> Any:
    """The value as HTTP would return it: JSON, times in UTC."""
    import orjson

    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS))


def running_gateway(home: Home) -> GatewayClient | None:
    """The gateway of this state folder; None if none runs, even if a killed one left its run.json behind."""
    if not is_locked(home):
        return None
    try:
        run = json.loads(home.run_file.read_text(encoding="utf-8"))
        return GatewayClient(str(run["url"]), str(run["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise NotRunning(f"a process uses {home.path} but has not published its address; try again") from None


def no_conversation(where: object) -> BelinoError:
    """The error for a conversation that does not exist."""
    return BelinoError(f"there is no conversation {where}; see `belino channels`")


def needed_gateway(home: Home) -> GatewayClient:
    """The running gateway; an error if there is none."""
    client = running_gateway(home)
    if client is None:
        raise NotRunning(f"no gateway runs on {home.path}; start it with `belino serve`")
    return client


def is_locked(home: Home) -> bool:
    """Whether a process holds the state folder. The port alone may be another program's, which would get our token."""
    try:
        handle = os.open(home.lock_file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _cut(connection: http.client.HTTPConnection) -> None:
    """End a connection that another thread reads from."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _streamed(answer: http.client.HTTPResponse, tell: Callable[[Any], None]) -> Any:
    """The answer at the end of a stream of events, each with its data on one line; None if it broke off."""
    for line in answer:
        if line.startswith(b"data:"):
            message = _parsed(line.removeprefix(b"data:"))
            if isinstance(message, dict) and "method" not in message:
                return message
            if message is not None:
                tell(message)
    return None


def _refused(status: int, read: Any) -> BelinoError:
    says = read.get("error", {}).get("message") if isinstance(read, dict) else None
    kind = Unknown if status == 404 else BelinoError
    return kind(says or f"the gateway answered with status {status}")


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
