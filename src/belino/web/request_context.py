"""Request context: what every route receives: the gateway, the visitor, and shared counters."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from belino.config import Config
from belino.context.history import History
from belino.domain.audit import Audit
from belino.domain.media import Blob
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import CacheSize, Counters, Finding
from belino.domain.ports import Adapter, Clock, Taken
from belino.domain.stored import ParcelRecord, RefRecord, StoredMessage, Tidied, UploadLimits
from belino.domain.turn import Toolbox
from belino.gateway.cassettes import WrittenCassette
from belino.gateway.channel_inbox import ChannelInbox
from belino.gateway.events import EventBus
from belino.gateway.health import AdapterHealth
from belino.gateway.linking import Linking
from belino.gateway.owners import Groups, Owners
from belino.gateway.recorder import Recorder, Recording
from belino.gateway.reload import Reloaded, Reloader
from belino.gateway.unasked import UnaskedMessages
from belino.media.preview import FilePreview, Glance
from belino.media.renditions import Rendered, RenderOptions
from belino.media.sandbox.sandbox import Sandbox
from belino.storage.home import Home
from belino.storage.store import Store
from belino.tools.notifications import KnownClients
from belino.turns.agents import Agents
from belino.turns.reply import Flushed
from belino.turns.tool_access import ToolAccess
from belino.understanding.speaker import Speaker
from belino.web.auth import Attempts, Origins, Requires, SessionCookie, Visitor, admit
from belino.web.connections import EvictionQueue, count_as_known
from belino.web.events import Events
from belino.web.fields import Fields, parse_json
from belino.web.grants import Grants
from belino.web.responses import Code, Refusal, bad_request, busy

if TYPE_CHECKING:
    from belino.gateway.readings import WantedReading
    from belino.media.image.images import Fitted
    from belino.understanding.read import Understanding
    from belino.understanding.request import ItemReading

JSON_BYTES = 1024 * 1024
BODY_SECONDS = 30.0
SOCKETS_PER_GRANT = 32
LARGE_BODIES = 4
"""Bodies over `JSON_BYTES` that one login may send at once."""
HOOK_READERS = 32
"""Webhook bodies of one account that are read at once."""
HOOKS_AT_ONCE = 32
"""Webhooks of one account that are processed at once, after their bodies are read."""


class PostsMessages(Protocol):
    """The part of the web adapter that pages use."""

    async def post(self, message: Message) -> Taken: ...


class WebGateway(Protocol):
    """The part of the gateway that the web uses."""

    @property
    def config(self) -> Config: ...
    @property
    def home(self) -> Home: ...
    @property
    def store(self) -> Store: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def notices(self) -> EventBus: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def sandbox(self) -> Sandbox: ...
    @property
    def speaker(self) -> Speaker | None: ...
    @property
    def adapters(self) -> Mapping[tuple[str, str], Adapter]: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def web(self) -> PostsMessages | None: ...
    @property
    def history(self) -> History: ...
    @property
    def channel_inbox(self) -> ChannelInbox: ...
    @property
    def unasked(self) -> UnaskedMessages: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def turn_tools(self) -> ToolAccess: ...
    @property
    def reloader(self) -> Reloader: ...
    async def reload(
        self, config: Config | None = None, *, reconnect: Collection[tuple[str, str]] = ()
    ) -> Reloaded: ...
    @property
    def started(self) -> datetime: ...
    @property
    def recorder(self) -> Recorder: ...
    def toolbox(self, conversation: ConversationKey) -> Toolbox: ...
    async def record(
        self, conversation: ConversationKey | None = None, *, without_text: bool = False, without_media: bool = False
    ) -> Recording: ...
    async def stop_recording(self) -> WrittenCassette: ...
    async def retry_parcel(self, key: str) -> ParcelRecord | None: ...
    async def drop_parcel(self, key: str) -> ParcelRecord | None: ...
    async def retry_message(self, message: StoredMessage) -> tuple[StoredMessage, ...]: ...
    async def abort(self, conversation: ConversationKey) -> bool: ...
    async def fetch(self, record: RefRecord, progress: Callable[[int, int | None], None] | None = None) -> Blob: ...
    async def render(self, record: RefRecord, form: str, wish: RenderOptions) -> Rendered: ...
    async def glance(self, record: RefRecord, look: FilePreview) -> Glance: ...
    async def picture(self, record: RefRecord, page: int) -> "Fitted": ...
    async def small_picture(self, blob: Blob) -> "Fitted": ...
    @property
    def understanding(self) -> "Understanding": ...
    async def read(self, record: RefRecord, wanted: "WantedReading") -> "ItemReading": ...
    async def flush(self, conversation: ConversationKey | None = None) -> tuple[Flushed, ...]: ...
    def health(self) -> Mapping[tuple[str, str], AdapterHealth]: ...
    def troubles(self) -> Mapping[str, str]: ...
    def cache_sizes(self) -> Mapping[str, CacheSize]: ...
    def soundness(self) -> tuple[Finding, ...]: ...
    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied: ...
    async def audit(self) -> Audit: ...
    @property
    def linking(self) -> Linking: ...
    async def take_over(self, account: tuple[str, str]) -> str: ...
    async def check_media(self, account: tuple[str, str], to: ConversationKey | None = None) -> tuple[Finding, ...]: ...


class ConcurrencyLimit:
    """A bounded number of concurrent holders; beyond it requests are refused, not queued."""

    def __init__(self, most: int, refusal: Callable[[], Refusal]) -> None:
        self._most = most
        self._refusal = refusal
        self._inside: Counter[str] = Counter()

    @contextmanager
    def enter(self, who: str) -> Iterator[None]:
        if self._inside[who] >= self._most:
            raise self._refusal()
        self._inside[who] += 1
        try:
            yield
        finally:
            self._inside[who] -= 1
            if not self._inside[who]:
                del self._inside[who]


class BodyReaders:
    """Bodies being read under each key; when there are too many, the slowest is dropped for the next."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reading: dict[str, EvictionQueue[asyncio.Timeout]] = {}

    @asynccontextmanager
    async def enter(self, key: str, peer: str) -> AsyncIterator[None]:
        """Read a body inside the block; Refusal if it is still incomplete when others need its place."""
        queue = self._reading.setdefault(key, EvictionQueue())
        if len(queue) >= self._most and (slowest := queue.oldest()) is not None:
            queue.discard(slowest)
            slowest.reschedule(0)
        try:
            async with asyncio.timeout(None) as place:
                queue.add(place, peer)
                try:
                    yield
                finally:
                    queue.discard(place)
        except TimeoutError:
            raise busy("The body arrived too slowly while others were waiting; send it again.") from None


class Site:
    """One running web server's shared state."""

    def __init__(self, gateway: WebGateway) -> None:
        self.gateway = gateway
        self.origins = Origins(gateway.config.server)
        self.grants = Grants(gateway.store, gateway.clock)
        self.cookie = SessionCookie(gateway.store.instance, self.origins)
        self.events = Events(gateway.notices, gateway.store, gateway.clock)
        self.logins = Attempts(gateway.clock)
        self.sockets = ConcurrencyLimit(
            SOCKETS_PER_GRANT, lambda: busy("Too many pages are open under this login.", status=429)
        )
        self.hook_readers = BodyReaders(HOOK_READERS)
        self.hooks = ConcurrencyLimit(HOOKS_AT_ONCE, lambda: busy("Too many calls at once.", status=429))
        self.large_bodies = ConcurrencyLimit(
            LARGE_BODIES, lambda: busy(f"{LARGE_BODIES} large messages are being sent already.", status=429)
        )
        self.extending = ConcurrencyLimit(
            1, lambda: Refusal(409, Code.CONFLICT, "This upload is being written already.")
        )
        self.mcp_clients = KnownClients()
        self.mcp_streams = ConcurrencyLimit(
            SOCKETS_PER_GRANT, lambda: busy("Too many streams are open under this token.", status=429)
        )
        self.stopping = asyncio.Event()
        """Set when the server stops, for requests that wait without an end."""
        self.uploads: dict[str, set[str]] = {}
        """Upload ids begun under each grant since the start, to limit them."""
        self.known: set[ConversationKey] = set()
        """Known channels; none is ever removed."""
        self.heavy = asyncio.Semaphore(1)
        """Large frames are parsed one at a time, so that memory stays bounded for any number of sockets."""

    @property
    def store(self) -> Store:
        return self.gateway.store

    async def admit(self, connection: HTTPConnection, requires: Requires) -> Visitor:
        """The visitor of a request, if their grant meets the requirement.

        Their connection then counts among those of logged-in clients.
        """
        visitor = await admit(connection, requires, grants=self.grants, cookie=self.cookie, origins=self.origins)
        count_as_known(connection.scope)
        return visitor

    async def run(self) -> None:
        """Feed open sockets and end expired logins, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.events.run())
            group.create_task(self.grants.expire())

    @property
    def upload_limits(self) -> UploadLimits:
        """Size limits of uploads, and of attachments in frames and bodies."""
        media = self.gateway.config.media
        return UploadLimits(channel_bytes_per_day=media.channel_bytes_per_day, total_bytes=media.uploads_bytes)

    async def must_exist(self, conversation: ConversationKey) -> None:
        """Refuse a conversation whose channel does not exist."""
        channel = conversation.whole_channel
        if channel not in self.known:
            if not await self.store.has_channel(channel):
                raise Refusal(404, Code.NOT_FOUND, "There is no such conversation.")
            self.known.add(channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCall:
    """One admitted request."""

    site: Site
    request: Request
    known_visitor: Visitor | None = None

    @property
    def visitor(self) -> Visitor:
        """The visitor; only open routes have none."""
        assert self.known_visitor is not None
        return self.known_visitor

    @property
    def store(self) -> Store:
        return self.site.store

    def query(self, *known: str) -> Fields:
        """The query's fields, each at most once."""
        pairs = self.request.query_params.multi_items()
        if len({name for name, _ in pairs}) != len(pairs):
            raise bad_request("The query names a field twice.")
        values = {name: value for name, value in pairs if value}
        return Fields(values, known=known, what="The query", from_query=True)

    async def fields(self, *known: str, limit: int = JSON_BYTES, seconds: float = BODY_SECONDS) -> Fields:
        """The body's fields."""
        return Fields(parse_json(await self.json_body(limit=limit, seconds=seconds)), known=known)

    async def json_body(self, *, limit: int, seconds: float) -> bytes:
        """The raw body; one that is not declared as JSON is not read."""
        declared = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != "application/json":
            raise Refusal(415, Code.BAD_REQUEST, "Content-Type must be application/json.")
        return await read_body(self.request, limit=limit, seconds=seconds)


async def read_body(request: Request, *, limit: int, seconds: float) -> bytes:
    """The whole body, refused as soon as it is too large or too slow."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > limit:
        raise too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large(limit)
    except TimeoutError:
        raise Refusal(408, Code.BAD_REQUEST, f"The body did not arrive within {seconds:.0f} seconds.") from None
    return bytes(body)


async def body_chunks(request: Request, *, idle_seconds: float) -> AsyncIterator[bytes]:
    """The body piece by piece; it ends without an error if the client disconnects or stalls."""
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(idle_seconds):
                chunk = await anext(stream)
            if chunk:
                yield chunk
    except (StopAsyncIteration, ClientDisconnect, TimeoutError):
        return


def too_large(limit: int, what: str = "The body") -> Refusal:
    """The refusal for exceeding a named limit."""
    return Refusal(413, Code.TOO_LARGE, f"{what} is over {limit} bytes.")
