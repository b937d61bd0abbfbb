"""Tap: an HTTP client that reports platform calls to a recording.

Only calls on behalf of a conversation are reported. An adapter's own calls (polls, sockets, directories) mix
conversations, and people without access, so they are never reported.
"""

import hashlib
import json as json_format
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl

from belino.domain.errors import AdapterError
from belino.domain.message import ConversationKey
from belino.domain.ports import HttpAnswer, HttpClient, OpensSockets, WebSocket

KEPT_BYTES = 1024 * 1024
"""The largest body that is reported itself; of a larger one only size and hash are."""
KEPT_HEADERS = ("content-type", "content-length", "content-range", "retry-after")

Json = dict[str, Any]

_PART = re.compile(rb'Content-Disposition: form-data; name="([^"\r\n]*)"(?:; filename="([^"\r\n]*)")?')


@dataclass(frozen=True, slots=True, kw_only=True)
class Behalf:
    """The conversation that a call is made for."""

    conversation: ConversationKey
    trace: str = ""
    """The parcel's trace; empty during a turn."""
    kind: str = ""
    """The parcel's kind."""


_behalf: ContextVar[Behalf | None] = ContextVar("behalf", default=None)


@contextmanager
def on_behalf(conversation: ConversationKey | None, trace: str = "", kind: str = "") -> Iterator[None]:
    """Calls inside the block are made on behalf of this conversation; of none, with None."""
    token = _behalf.set(None if conversation is None else Behalf(conversation=conversation, trace=trace, kind=kind))
    try:
        yield
    finally:
        _behalf.reset(token)


def behalf() -> Behalf | None:
    """The conversation that calls are made for, if there is one."""
    return _behalf.get()


def has_behalf() -> bool:
    """Whether calls are made on behalf of a conversation."""
    return _behalf.get() is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One platform call and its answer."""

    behalf: Behalf
    account: tuple[str, str]
    method: str
    url: str
    body: Json
    status: int
    """0 without an answer."""
    headers: Mapping[str, str]
    answer: Json
    error: str = ""
    """The class of the error instead of an answer."""


class Listener(Protocol):
    """Receives reported calls."""

    def wants(self, conversation: ConversationKey) -> bool: ...

    def called(self, call: Call) -> None: ...


class Closable(HttpClient, OpensSockets, Protocol):
    """A client that holds connections."""

    async def close(self) -> None: ...


class TappedClient:
    """A client whose calls can be observed; without observers it costs one check per call."""

    def __init__(self, client: Closable, listener: Listener, account: tuple[str, str]) -> None:
        self._client = client
        self._listener = listener
        self._account = account

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        body: bytes | AsyncIterable[bytes] | None = None,
        timeout: float = 30.0,
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send one request."""
        behalf = _behalf.get()
        if behalf is None or not self._listener.wants(behalf.conversation):
            return self._client.request(method, url, headers=headers, json=json, body=body, timeout=timeout)
        sent = SentBody(headers or {}, json, body)
        return self._overheard(behalf, sent, method, url, dict(headers or {}), timeout)

    def socket(
        self, url: str, *, timeout: float = 30.0, heartbeat: float | None = None
    ) -> AbstractAsyncContextManager[WebSocket]:
        """A web socket; its traffic mixes conversations and is not reported."""
        return self._client.socket(url, timeout=timeout, heartbeat=heartbeat)

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def _overheard(
        self, behalf: Behalf, sent: "SentBody", method: str, url: str, headers: dict[str, str], timeout: float
    ) -> AsyncIterator[HttpAnswer]:
        heard: _HeardAnswer | None = None
        error = ""
        try:
            asked = self._client.request(
                method, url, headers=headers, json=sent.json, body=sent.chunks(), timeout=timeout
            )
            async with asked as answer:
                heard = _HeardAnswer(answer)
                yield heard
        except AdapterError as failure:
            error = type(failure).__name__ if heard is None else ""
            raise
        finally:
            self._listener.called(
                Call(
                    behalf=behalf,
                    account=self._account,
                    method=method,
                    url=url,
                    body=sent.described(),
                    status=0 if heard is None else heard.status,
                    headers={} if heard is None else heard.kept_headers(),
                    answer={} if heard is None else heard.described(),
                    error=error,
                )
            )


class SentBody:
    """A request's body, observed while it is sent."""

    def __init__(self, headers: Mapping[str, str], json: object, body: bytes | AsyncIterable[bytes] | None) -> None:
        self.json = json
        self._body = body
        self._mime = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
        self._seen = _Seen()
        if isinstance(body, bytes):
            self._seen.add(body)

    def chunks(self) -> bytes | AsyncIterable[bytes] | None:
        """The body to send."""
        return self._body if self._body is None or isinstance(self._body, bytes) else self._watched(self._body)

    async def consume(self) -> None:
        """Read the body as a platform would."""
        if self._body is not None and not isinstance(self._body, bytes):
            async for _ in self._watched(self._body):
                pass

    def described(self) -> Json:
        """The body as JSON: its fields, or its size and hash."""
        if self.json is not None:
            return {"json": self.json}
        if self._body is None:
            return {}
        if "multipart/form-data" in self._mime:
            return _multipart(self._seen)
        if "x-www-form-urlencoded" in self._mime and self._seen.is_whole:
            return {"form": dict(parse_qsl(self._seen.head.decode(errors="replace"), keep_blank_values=True))}
        return self._seen.described()

    async def _watched(self, body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        async for piece in body:
            self._seen.add(piece)
            yield piece


class _HeardAnswer:
    """An answer, observed while it is read."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self._seen = _Seen()
        self._ended = False

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    async def read(self, limit: int) -> bytes:
        """The whole body; MediaTooLarge past `limit` bytes."""
        body = await self._answer.read(limit)
        self._seen.add(body)
        self._ended = True
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece."""
        async for piece in self._answer.chunks():
            self._seen.add(piece)
            yield piece
        self._ended = True

    def kept_headers(self) -> Json:
        """The headers that determine how the body is read."""
        return {name: value for name in KEPT_HEADERS for own, value in self.headers.items() if own.lower() == name}

    def described(self) -> Json:
        """The body as JSON, or its size and hash."""
        return self._seen.described() if self._ended else {"bytes": self._seen.size, "unread": True}


class _Seen:
    """The beginning, size and hash of a stream."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.size = 0
        self._digest = hashlib.sha256()

    @property
    def is_whole(self) -> bool:
        return self.size == len(self.head)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._digest.update(piece)
        self.head += piece[: max(0, KEPT_BYTES - len(self.head))]

    def described(self) -> Json:
        """JSON and short text themselves; anything else by size and hash."""
        if self.is_whole:
            try:
                return {"json": json_format.loads(bytes(self.head))}
            except (ValueError, RecursionError):
                pass
            if self.size <= 1024 and self.head.isascii():
                return {"text": self.head.decode()}
        return {"bytes": self.size, "sha256": self._digest.hexdigest()}


def _multipart(seen: _Seen) -> Json:
    """The fields of a form and the names of its files; file bytes are given by size."""
    fields: Json = {}
    files: list[Json] = []
    boundary = bytes(seen.head).split(b"\r\n", 1)[0]
    for part in bytes(seen.head).split(boundary):
        head, _, value = part.partition(b"\r\n\r\n")
        if not (named := _PART.search(head)):
            continue
        name = named[1].decode(errors="replace")
        if named[2] is not None:
            files.append({"field": name, "file_name": named[2].decode(errors="replace")})
        else:
            text = value.removesuffix(b"\r\n").decode(errors="replace")
            fields[name] = _read(text)
    return {"fields": fields, "files": files, "bytes": seen.size}


def _read(text: str) -> object:
    """A field with JSON text, parsed."""
    if text[:1] in ("{", "["):
        try:
            return json_format.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
