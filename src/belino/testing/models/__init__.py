"""Model APIs on loopback that follow a script, each in its own wire format, for tests with real SDKs."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from belino.testing.platform_server import Loopback

if TYPE_CHECKING:
    from aiohttp import web

REQUEST_BYTES = 64 * 1024 * 1024
PIECE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelToolCall:
    """The model calls a tool."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """The model answers: words, then tool calls."""

    text: str = ""
    calls: tuple[ModelToolCall, ...] = ()
    ends: str = ""
    """How it ends in the API's own word, like `length`, `max_tokens` or `refusal`; empty for its usual end."""
    input_tokens: int = 100
    output_tokens: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailure:
    """The API refuses, in its own error format."""

    status: int
    kind: str = "api_error"
    message: str = "something went wrong"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCut:
    """The connection breaks after these words."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHang:
    """These words, then silence until the caller disconnects or the server closes."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenPart:
    """Some words in a recording, with their times in seconds and their speaker's number."""

    text: str
    start: float
    end: float
    speaker: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpeech:
    """The model transcribes a recording."""

    parts: tuple[SpokenPart, ...] = ()
    language: str = "en"
    confidence: float = 0.98
    no_speech: float = 0.01
    """How probable it is that nothing is said."""

    @property
    def text(self) -> str:
        return " ".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRaw:
    """Exactly these bytes, `times` over, as an answer of this type.

    After them the connection breaks with `cut`, and nothing comes any more with `stalls`.
    """

    body: bytes = b""
    content_type: str = "application/json"
    status: int = 200
    times: int = 1
    cut: bool = False
    stalls: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="", init=False)


ModelReply = ModelAnswer | ModelFailure | ModelCut | ModelHang | ModelSpeech | ModelRaw


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One received request."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]
    """The JSON, or the fields of a form."""
    raw: bytes = field(repr=False)
    """The whole body, or the file in a form."""
    file_name: str = ""
    mime: str = ""
    """The type of the file."""


ModelScript = Callable[[ModelRequest], ModelReply] | Iterable[ModelReply]


class ModelServer(ABC):
    """Inside `async with`, `url` is the API's address and `asked` its requests. After its script it answers "ok"."""

    url: str

    def __init__(self, script: ModelScript = (), *, key: str = "") -> None:
        self.asked: list[ModelRequest] = []
        self.key = key
        """The only valid key; empty accepts every key."""
        self.script = script
        self.arrived = asyncio.Event()
        """Set by every request; a waiting test clears it."""
        self.gone = asyncio.Event()
        """A caller disconnected while the model was still writing."""
        self.closing = asyncio.Event()

    @property
    def script(self) -> ModelScript:
        return self._script

    @script.setter
    def script(self, script: ModelScript) -> None:
        self._script = script
        self._lines = deque[ModelReply]() if callable(script) else deque(script)

    @abstractmethod
    def add_routes(self, app: "web.Application") -> None:
        """The API's paths; each format adds its own."""

    @abstractmethod
    def refusal(self, request: "web.Request", body: Mapping[str, Any]) -> ModelFailure | None:
        """What the API itself refuses: a wrong key, or an invalid request."""

    async def reply_to(
        self, request: "web.Request", asked: ModelRequest | None = None
    ) -> tuple[ModelRequest, ModelReply]:
        """A request, read already or JSON, and its refusal or scripted answer."""
        asked = asked or await read_request(request)
        self.asked.append(asked)
        self.arrived.set()
        return asked, self.refusal(request, asked.body) or self._next_reply(asked)

    def _next_reply(self, asked: ModelRequest) -> ModelReply:
        if callable(self._script):
            return self._script(asked)
        return self._lines.popleft() if self._lines else ModelAnswer(text="ok")

    async def deliver(self, request: "web.Request", reply: ModelReply, answer: object) -> "web.StreamResponse":
        """An answer that is not streamed, as the script wants it: whole, broken off, never, or raw bytes."""
        from aiohttp import web

        if isinstance(reply, ModelHang):
            try:
                await self.closing.wait()
            except asyncio.CancelledError:
                self.gone.set()
                raise
        if isinstance(reply, ModelCut):
            whole = json.dumps(answer).encode()
            reply = ModelRaw(body=whole[: len(whole) // 2], cut=True)
        if not isinstance(reply, ModelRaw):
            return web.json_response(answer)
        response = web.StreamResponse(
            status=reply.status, headers={**reply.headers, "Content-Type": reply.content_type}
        )
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(reply.times):
                await response.write(reply.body)
        if reply.stalls:
            await self.closing.wait()
        if reply.cut and request.transport is not None:
            request.transport.abort()
        return response

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=REQUEST_BYTES)
        self.add_routes(app)
        self._loopback = Loopback(app, cancels_handlers=True)
        await self._loopback.start()
        (self.url,) = self._loopback.urls
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        await self._loopback.stop()


async def read_request(request: "web.Request") -> ModelRequest:
    """A JSON request, parsed."""
    raw = await request.read()
    body = json.loads(raw) if raw else {}
    headers = {name.lower(): value for name, value in request.headers.items()}
    return ModelRequest(path=request.path_qs, headers=headers, body=body, raw=raw)


async def read_form(request: "web.Request") -> ModelRequest:
    """A multipart request with one file; its fields are texts."""
    from aiohttp import BodyPartReader

    fields: dict[str, Any] = {}
    content, name, mime = b"", "", ""
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.filename is not None and part.name == "file":
            content, name, mime = bytes(await part.read()), part.filename, part.headers.get("Content-Type", "")
        else:
            fields[str(part.name)] = await part.text()
    headers = {key.lower(): value for key, value in request.headers.items()}
    return ModelRequest(path=request.path_qs, headers=headers, body=fields, raw=content, file_name=name, mime=mime)


def pieces(text: str) -> Iterator[str]:
    """A text in small pieces, as a model streams it."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def event(data: Mapping[str, Any], *, named: bool = False) -> bytes:
    """One event; some APIs name its type on a line of its own."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


async def stream(
    server: ModelServer,
    request: "web.Request",
    reply: ModelReply,
    said: Iterable[bytes],
    ending: Iterable[bytes],
) -> "web.StreamResponse":
    """Write the events; then the ending, a broken connection, or silence until the caller disconnects."""
    from aiohttp import web

    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    try:
        for line in said:
            await response.write(line)
        if isinstance(reply, ModelHang):
            await server.closing.wait()
        elif not isinstance(reply, ModelCut):
            for line in ending:
                await response.write(line)
    except (ConnectionError, asyncio.CancelledError):
        server.gone.set()
        raise
    if isinstance(reply, ModelCut) and request.transport is not None:
        request.transport.abort()
    return response
