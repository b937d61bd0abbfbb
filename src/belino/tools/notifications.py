"""Notifications to MCP clients: the progress of a call, a log of what its tool does, and changes of media.

A connection keeps no state of its own: what a client of an earlier protocol has asked for, a log level and the
resources it watches, is kept for its token and conversation until the gateway stops.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from belino.aio.deadline import beside
from belino.tools.resources import uri_of
from belino.tools.tool_context import PROGRESS, TOLD

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.subscriptions import ServerEvent

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
LOGGER = "belino"
ALIVE_SECONDS = 5.0
"""How often a client hears of a call that has nothing new to report, so that it does not give up."""
STREAM_SECONDS = 30.0
"""How often a stream of changes has a line, so that no proxy closes it."""
REPORTS_QUEUED = 100
CLIENTS_KEPT = 256
WATCHED_MOST = 1_000

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class ClientWishes:
    """What the client of a token has asked for in a conversation."""

    level: LogLevel | None = None
    watched: set[str] = field(default_factory=set)
    """The addresses of resources."""


class KnownClients:
    """The wishes of clients, by token and conversation; those unused for longest are forgotten."""

    def __init__(self) -> None:
        self._wishes: OrderedDict[tuple[str, str], ClientWishes] = OrderedDict()

    def of(self, token: str, conversation: str) -> ClientWishes:
        """The wishes of a client, which it may change."""
        key = (token, conversation)
        wishes = self._wishes.setdefault(key, ClientWishes())
        self._wishes.move_to_end(key)
        if len(self._wishes) > CLIENTS_KEPT:
            self._wishes.popitem(last=False)
        return wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChanges:
    """Where a client that listens learns of new, changed and deleted media of its channel."""

    watch: Callable[[Callable[[Sequence[str]], None]], Callable[[], None]]
    """Calls back with the refs that changed, if they are known, until the returned function is called."""
    ended: asyncio.Event
    """Set when the client's token is no longer valid."""
    stopping: asyncio.Event
    """Set when the server stops: what only waits for changes must not hold it up."""

    async def over(self) -> None:
        """Wait until no more changes are told."""
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(event.wait()) for event in (self.ended, self.stopping)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()


class ChangeBus:
    """Changes of media as events of MCP."""

    def __init__(self, changes: ResourceChanges) -> None:
        self._changes = changes

    async def publish(self, event: "ServerEvent") -> None:
        """Nothing is published by requests."""

    def subscribe(self, listener: "Callable[[ServerEvent], None]") -> Callable[[], None]:
        from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated

        def told(refs: Sequence[str]) -> None:
            listener(ResourcesListChanged())
            for ref in refs:
                listener(ResourceUpdated(uri=uri_of(ref)))

        return self._changes.watch(told)


def take_wishes(server: "Server[Any]", wishes: ClientWishes) -> None:
    """Let clients of an earlier protocol set their log level, and watch resources."""
    import mcp_types as types

    async def set_level(_context: object, params: types.SetLevelRequestParams) -> types.EmptyResult:
        wishes.level = params.level
        return types.EmptyResult()

    async def subscribe(_context: object, params: types.SubscribeRequestParams) -> types.EmptyResult:
        if len(wishes.watched) < WATCHED_MOST:
            wishes.watched.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(_context: object, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        wishes.watched.discard(params.uri)
        return types.EmptyResult()

    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


async def stream_changes(changes: ResourceChanges, wishes: ClientWishes, receive: Receive, send: Send) -> None:
    """The stream of a client of an earlier protocol, until it goes or its token ends."""
    news: asyncio.Queue[Sequence[str]] = asyncio.Queue(REPORTS_QUEUED)

    def told(refs: Sequence[str]) -> None:
        if news.full():  # the list has changed, which the client is told anyway
            news.get_nowait()
        news.put_nowait(refs)

    async def write() -> None:
        while True:
            lines = b": waiting\n\n"
            try:
                async with asyncio.timeout(STREAM_SECONDS):
                    refs = await news.get()
                lines = b"".join(_event(told) for told in _changed(refs, wishes))
            except TimeoutError:
                pass
            await send({"type": "http.response.body", "body": lines, "more_body": True})

    stop = changes.watch(told)
    try:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with beside(write()), asyncio.TaskGroup() as group:
            ends = [group.create_task(changes.over()), group.create_task(_gone(receive))]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
    finally:
        stop()
    if changes.ended.is_set() or changes.stopping.is_set():
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _changed(refs: Sequence[str], wishes: ClientWishes) -> list[dict[str, object]]:
    uris = [uri for uri in map(uri_of, refs) if uri in wishes.watched]
    updated: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}} for uri in uris
    ]
    return [{"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}, *updated]


def _event(told: Mapping[str, object]) -> bytes:
    return f"event: message\ndata: {json.dumps(told, separators=(',', ':'))}\n\n".encode()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def wants_reports(body: bytes, wishes: ClientWishes) -> bool:
    """Whether a request must be answered with a stream: its client wants progress, a log or changes."""
    calls = b'"tools/call"' in body or b'"resources/read"' in body
    asked = any(word in body for word in (b'"progressToken"', b'"subscriptions/listen"', LEVEL_KEY.encode()))
    return asked or (calls and wishes.level is not None)


@asynccontextmanager
async def reporting(context: "ServerRequestContext[Any]", wishes: ClientWishes) -> AsyncIterator[None]:
    """Report what the block does, as fast as the client takes the reports; what it did not ask for is not sent."""
    reports = _Reports(context, wishes)
    if not reports.wanted:
        yield
        return
    before, told = PROGRESS.set(reports.fetched), TOLD.set(reports.told)
    try:
        async with beside(reports.send()):
            yield
            await reports.sent()
    finally:
        PROGRESS.reset(before)
        TOLD.reset(told)


class _Reports:
    """Progress and log of one call on their way to its client."""

    def __init__(self, context: "ServerRequestContext[Any]", wishes: ClientWishes) -> None:
        meta: Mapping[str, Any] = context.meta or {}
        level = meta.get(LEVEL_KEY, wishes.level)
        self._context = context
        self._shows_progress = bool(meta.get("progress_token"))
        self._levels = LEVELS[LEVELS.index(level) :] if level in LEVELS else ()
        self._log: asyncio.Queue[tuple[LogLevel, str]] = asyncio.Queue(REPORTS_QUEUED)
        self._latest: tuple[int, int | None] | None = None
        self._news = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._is_ending = False
        self._reported = 0
        self._doing = "working"

    @property
    def wanted(self) -> bool:
        return self._shows_progress or bool(self._levels)

    def fetched(self, done: int, total: int | None) -> None:
        self._latest = (done, total)
        self._news.set()

    def told(self, level: LogLevel, says: str) -> None:
        self._doing = says
        if level in self._levels and not self._log.full():
            self._log.put_nowait((level, says))
        self._news.set()

    async def send(self) -> None:
        """Send what there is, until cancelled; while there is nothing new, that the call still works."""
        while True:
            try:
                async with asyncio.timeout(ALIVE_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                await self._show(self._reported + 1, None, self._doing)
                continue
            self._news.clear()
            while not self._log.empty():
                await self._tell(*self._log.get_nowait())
            if self._latest is not None:
                (done, total), self._latest = self._latest, None
                await self._show(done, total, "bytes fetched")
            if self._is_ending and not self._news.is_set():
                self._all_sent.set()

    async def sent(self) -> None:
        """Wait until everything is sent, so that it comes before the answer."""
        self._is_ending = True
        self._news.set()
        await self._all_sent.wait()

    async def _show(self, done: int, total: int | None, says: str) -> None:
        if self._shows_progress and done > self._reported:  # MCP: each report is more than the one before
            self._reported = done
            await self._context.session.report_progress(done, total, says)

    async def _tell(self, level: LogLevel, says: str) -> None:
        from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams

        params = LoggingMessageNotificationParams(level=level, logger=LOGGER, data=says)
        note = LoggingMessageNotification(params=params)
        await self._context.session.send_notification(note, related_request_id=self._context.request_id)
